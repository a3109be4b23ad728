/* SPDX-License-Identifier: MIT */
/* main.c - the parity suites. Exit 77, with the reason, where there is no GPU: a skip that is seen, not a pass. */
#include "parity.h"

#include <CUnit/Basic.h>
#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

fx_math *host, *gpu;
fx_error host_error, gpu_error;

fx_array *parity_random(int type, int n_dims, const int64_t *dims, unsigned seed)
{
	uint64_t state = 0x9e3779b97f4a7c15u * (seed + 1);
	int64_t n;
	fx_array *a;

	CU_ASSERT_EQUAL_FATAL(fx_array_new(type, n_dims, dims, &a), FX_OK);
	n = type >= FX_CF32 ? 2 * a->n : a->n;
	for (int64_t i = 0; i < n; i++) {
		double v;

		state = state * 6364136223846793005u + 1442695040888963407u;
		v = (double)(state >> 11) / 4503599627370496.0 - 1;
		if (type == FX_F32 || type == FX_CF32)
			((float *)a->data)[i] = (float)v;
		else
			((double *)a->data)[i] = v;
	}
	return a;
}

fx_array *parity_trajectory(const int64_t dims[3], int64_t n, unsigned seed)
{
	static const double special[][3] = {{0, 0, 0}, {-0.5, -0.5, -0.5}, {0.5, 0.5, 0.5}, {0.49999999, -0.49999999, 0.25}};
	fx_array *k = parity_random(FX_F64, 2, (int64_t[]){3, n}, seed);

	for (int64_t i = 0; i < n; i++)
		for (int d = 0; d < 3; d++) {
			double *v = &FX_F64_OF(k)[3 * i + d];

			*v = i < 4 ? special[i][d] : *v / 2;
			if (dims[d] == 1)
				*v = 0;
		}
	return k;
}

fx_array *to_gpu(const fx_array *a)
{
	fx_array *b;

	CU_ASSERT_EQUAL_FATAL(gpu->ops->upload(gpu, a, &b), FX_OK);
	return b;
}

fx_array *zeros(fx_math *m, int type, int n_dims, const int64_t *dims)
{
	fx_array *a;

	CU_ASSERT_EQUAL_FATAL(m->ops->array_new(m, type, n_dims, dims, &a), FX_OK);
	return a;
}

static double _Complex at(const fx_array *a, int64_t i)
{
	switch (a->type) {
	case FX_F32:
		return (double)FX_F32_OF(a)[i];
	case FX_F64:
		return FX_F64_OF(a)[i];
	case FX_CF32:
		return (double _Complex)FX_CF32_OF(a)[i];
	default:
		return FX_CF64_OF(a)[i];
	}
}

double parity_distance(const fx_array *on_gpu, const fx_array *on_host)
{
	double difference = 0, norm = 0;
	fx_array *a;

	CU_ASSERT_EQUAL_FATAL(gpu->ops->download(gpu, on_gpu, &a), FX_OK);
	if (!fx_array_same_shape(a, on_host)) {
		fx_array_unref(a);
		return (double)INFINITY;
	}
	for (int64_t i = 0; i < a->n; i++) {
		double _Complex d = at(a, i) - at(on_host, i), v = at(on_host, i);

		difference += creal(d) * creal(d) + cimag(d) * cimag(d);
		norm += creal(v) * creal(v) + cimag(v) * cimag(v);
	}
	fx_array_unref(a);
	if (!isfinite(difference) || !isfinite(norm))
		return (double)INFINITY;
	return norm > 0 ? sqrt(difference / norm) : difference > 0 ? (double)INFINITY : 0;
}

/* All suites, or those whose name has one of the arguments in it. */
static bool asked_for(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strstr(name, argv[i]))
			return true;
	return argc < 2;
}

int main(int argc, char **argv)
{
	CU_SuiteInfo *const suites[] = {&suite_parity_vectors, &suite_parity_fourier, &suite_parity_gridding, &suite_parity_solve,
		&suite_parity_direct, &suite_parity_tracking, &suite_parity_diffusion};
	unsigned failures;

	if (fx_math_new("cuda", 0, &gpu_error, &gpu) != FX_OK) {
		printf("skipped: %s\n", gpu_error.text);
		return gpu_error.status == FX_ENOTSUP ? 77 : 1;
	}
	if (fx_math_new("host", 0, &host_error, &host) != FX_OK || CU_initialize_registry() != CUE_SUCCESS)
		return 1;
	for (size_t i = 0; i < sizeof suites / sizeof suites[0]; i++) {
		CU_SuiteInfo list[2] = {*suites[i], CU_SUITE_INFO_NULL};

		if (asked_for(suites[i]->pName, argc, argv) && CU_register_suites(list) != CUE_SUCCESS)
			return 1;
	}
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	failures = CU_get_number_of_failures() + CU_get_number_of_suites_failed() + (CU_get_number_of_tests_run() == 0);
	CU_cleanup_registry();
	if (gpu_error.status != FX_OK)
		printf("last explained failure: %s\n", gpu_error.text);
	fx_math_free(gpu);
	fx_math_free(host);
	return failures ? 1 : 0;
}
