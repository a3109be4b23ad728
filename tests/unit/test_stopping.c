/* SPDX-License-Identifier: MIT */
/* Long operations end soon after they are asked to, with FX_ECANCELED: what Ctrl-C waits for. */
#include <CUnit/CUnit.h>
#include <fornix/fornix.h>
#include <stdatomic.h>

struct patience {
	atomic_int asked;
	int limit;
};

/* Says stop from the limit-th question on. */
static bool is_over(const void *arg)
{
	struct patience *p = (struct patience *)(uintptr_t)arg;

	return atomic_fetch_add(&p->asked, 1) >= p->limit;
}

static void exact_sums(void)
{
	for (int way = 0; way < 4; way++) {
		bool forward = way & 1, separable = way & 2;
		struct patience patience = {.limit = 3};
		fx_error err = {0};
		fx_array *k, *samples, *image;
		fx_math *m;

		CU_ASSERT_EQUAL_FATAL(fx_math_new("host", 2, &err, &m), FX_OK);
		CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_F64, 3, 2000, &k), FX_OK);
		CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_CF32, 2000, 1, &samples), FX_OK);
		CU_ASSERT_EQUAL_FATAL(fx_array_new4(FX_CF32, 32, 32, 32, 1, &image), FX_OK);
		for (int64_t i = 0; i < samples->n; i++)
			FX_CF32_OF(samples)[i] = 1;
		for (int64_t i = 0; i < image->n; i++)
			FX_CF32_OF(image)[i] = forward ? 1 : 0;
		m->stopped = is_over;
		m->stopped_arg = &patience;
		if (forward)
			CU_ASSERT_EQUAL((separable ? m->ops->separable_forward : m->ops->direct_forward)(m, k, image, 1, samples), FX_ECANCELED)
		else
			CU_ASSERT_EQUAL((separable ? m->ops->separable_adjoint : m->ops->direct_adjoint)(m, k, samples, 1, image), FX_ECANCELED)
		CU_ASSERT_EQUAL(err.status, FX_ECANCELED);
		/* k is 0 throughout, so that every finished output is the sum: the last ones were never begun. */
		CU_ASSERT(forward ? FX_CF32_OF(samples)[samples->n - 1] == 1 : FX_CF32_OF(image)[image->n - 1] == 0);
		fx_array_unref(k);
		fx_array_unref(samples);
		fx_array_unref(image);
		fx_math_free(m);
	}
}

static int same(void *arg, const fx_array *x, fx_array *y)
{
	fx_math *m = arg;

	/* diag(1, 2, 3, ...), which needs an iteration per unknown */
	for (int64_t i = 0; i < x->n; i++)
		FX_CF32_OF(y)[i] = (float)(i + 1) * FX_CF32_OF(x)[i];
	return m->err->status;
}

static void conjugate_gradients(void)
{
	struct patience patience = {.limit = 4};
	fx_cg_options options = {.iterations = 20, .tolerance = 0};
	fx_cg_report report = {0};
	fx_error err = {0};
	fx_array *b, *x;
	fx_math *m;

	CU_ASSERT_EQUAL_FATAL(fx_math_new("host", 1, &err, &m), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_array_new1(FX_CF32, 50, &b), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_array_new1(FX_CF32, 50, &x), FX_OK);
	for (int64_t i = 0; i < b->n; i++)
		FX_CF32_OF(b)[i] = 1;
	m->stopped = is_over;
	m->stopped_arg = &patience;
	CU_ASSERT_EQUAL(fx_cg_solve(m, same, m, b, 0, 0, &options, x, &report), FX_ECANCELED);
	CU_ASSERT(report.iterations < 20);
	fx_cg_report_free(&report);
	fx_array_unref(b);
	fx_array_unref(x);
	fx_math_free(m);
}

static void density_weights(void)
{
	struct patience patience = {.limit = 2};
	const int64_t dims[3] = {16, 16, 1};
	fx_error err = {0};
	fx_array *k, *weights = NULL;
	fx_math *m;

	CU_ASSERT_EQUAL_FATAL(fx_math_new("host", 1, &err, &m), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_F64, 3, 64, &k), FX_OK);
	for (int64_t i = 0; i < 64; i++) {
		FX_F64_OF(k)[3 * i] = (double)(i % 8) / 16 - 0.25;
		FX_F64_OF(k)[3 * i + 1] = (double)(i / 8) / 16 - 0.25;
	}
	m->stopped = is_over;
	m->stopped_arg = &patience;
	CU_ASSERT_EQUAL(fx_density_iterative(m, k, dims, 1000000, &weights), FX_ECANCELED);
	CU_ASSERT_PTR_NULL(weights);
	fx_array_unref(k);
	fx_math_free(m);
}

static CU_TestInfo tests[] = {
	{"exact sums", exact_sums},
	{"conjugate gradients", conjugate_gradients},
	{"density weights", density_weights},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_stopping = {"stopping", NULL, NULL, NULL, NULL, tests};
