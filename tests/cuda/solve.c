/* SPDX-License-Identifier: MIT */
/*
 * solve.c - the normal operator and conjugate gradients in one piece on the GPU, against the host's and against the same iterations made
 * of the GPU's own vector operations.
 */
#include "parity.h"

#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* x y z coils; 0 coils: no maps. The sizes take the own passes, in 3-D and 2-D, one and several batches of coils, and cuFFT's. */
static const int64_t shapes[][4] = {
	{16, 16, 16, 0}, {32, 16, 64, 3}, {64, 32, 1, 9}, {16, 128, 16, 17}, {7, 6, 5, 2}, {33, 1, 1, 1}, {12, 10, 1, 0}, {1, 1, 1, 1},
	{48, 40, 20, 4}, {1, 16, 16, 2},
};
#define N_SHAPES (sizeof shapes / sizeof shapes[0])

enum { NONE, IDENTITY, WEIGHTS, N_PRIORS };

struct problem {
	fx_normal on_host, on_gpu;
	fx_array *b, *gb;
	fx_array *all[8];
	int n;
};

static fx_array *keep(struct problem *p, fx_array *a)
{
	CU_ASSERT_FATAL(p->n < 8);
	p->all[p->n++] = a;
	return a;
}

/* One kernel for both, so that what differs is the operator alone. */
static void problem_new(const int64_t s[4], int prior, struct problem *p)
{
	const int64_t d[4] = {s[0], s[1], s[2], s[3] > 0 ? s[3] : 1};
	fx_array *k = parity_trajectory(d, 400, 21), *kernel, *maps = NULL, *w = NULL;

	memset(p, 0, sizeof *p);
	CU_ASSERT_EQUAL_FATAL(fx_toeplitz_kernel(host, FX_FOURIER_NUFFT, 1e-5, d, 0.1, k, NULL, &kernel), FX_OK);
	fx_array_unref(k);
	if (s[3] > 0)
		maps = keep(p, parity_random(FX_CF32, 4, d, 22));
	if (prior == WEIGHTS) {
		w = keep(p, parity_random(FX_F32, 4, (int64_t[]){d[0], d[1], d[2], 3}, 23));
		for (int64_t i = 0; i < w->n; i++)
			FX_F32_OF(w)[i] = fabsf(FX_F32_OF(w)[i]);
	}
	p->on_host = (fx_normal){keep(p, kernel), maps, w, prior == NONE ? 0 : 0.3};
	p->on_gpu = (fx_normal){keep(p, to_gpu(kernel)), maps ? keep(p, to_gpu(maps)) : NULL, w ? keep(p, to_gpu(w)) : NULL,
		p->on_host.lambda};
	p->b = keep(p, parity_random(FX_CF32, 3, d, 24));
	p->gb = keep(p, to_gpu(p->b));
}

static void problem_free(struct problem *p)
{
	for (int i = 0; i < p->n; i++)
		fx_array_unref(p->all[i]);
}

static void normal_operators(void)
{
	for (size_t s = 0; s < N_SHAPES; s++)
		for (int prior = 0; prior < N_PRIORS; prior++) {
			struct problem p;
			const fx_normal *a = &p.on_host;
			fx_array *y, *gy, *work = NULL;

			problem_new(shapes[s], prior, &p);
			y = zeros(host, FX_CF32, 3, p.b->dims);
			gy = to_gpu(p.b); /* what is there before must not matter */
			CU_ASSERT_EQUAL_FATAL(fx_normal_apply(host, a->kernel, a->maps, a->weights, a->lambda, p.b, &work, y), FX_OK);
			CU_ASSERT_EQUAL_FATAL(gpu->ops->normal_apply(gpu, &p.on_gpu, p.gb, gy), FX_OK);
			/* two transforms and a sum over coils, each with a few roundings of 6e-8 */
			CU_ASSERT_TRUE(parity_distance(gy, y) < 2e-6);
			fx_array_unref(work);
			fx_array_unref(y);
			fx_array_unref(gy);
			problem_free(&p);
		}
}

struct apply_arg {
	fx_math *m;
	const fx_normal *a;
	fx_array *work;
};

static int apply(void *arg, const fx_array *x, fx_array *y)
{
	struct apply_arg *j = arg;

	return fx_normal_apply(j->m, j->a->kernel, j->a->maps, j->a->weights, j->a->lambda, x, &j->work, y);
}

static int penalty(void *arg, const fx_array *x, double *value)
{
	struct apply_arg *j = arg;
	fx_array *y = zeros(j->m, FX_CF32, 3, x->dims);
	double im;
	int status = fx_prior_apply(j->m, j->a->weights, 1, x, y);

	if (status == FX_OK)
		status = j->m->ops->dot(j->m, x, y, value, &im);
	fx_array_unref(y);
	return status;
}

static int solve(fx_math *m, const fx_normal *a, const fx_array *b, bool in_one_piece, int64_t iterations, double tolerance,
	fx_array *x, fx_cg_report *report)
{
	struct apply_arg arg = {m, a, NULL};
	fx_cg_options o = {.iterations = iterations, .tolerance = tolerance, .penalty = penalty, .normal = in_one_piece ? a : NULL};
	int status = fx_cg_solve(m, apply, &arg, b, a->lambda, 1e6, &o, x, report);

	fx_array_unref(arg.work);
	return status;
}

static void same_report(const fx_cg_report *a, const fx_cg_report *b, double bound)
{
	CU_ASSERT_EQUAL(a->iterations, b->iterations);
	CU_ASSERT_EQUAL(a->stop, b->stop);
	CU_ASSERT_EQUAL_FATAL(a->n_residuals, b->n_residuals);
	for (int64_t i = 0; i < a->n_residuals; i++) {
		CU_ASSERT_DOUBLE_EQUAL(a->residual_normal[i], b->residual_normal[i], bound * (1e-3 + b->residual_normal[i]));
		CU_ASSERT_DOUBLE_EQUAL(a->residual_data[i], b->residual_data[i], bound);
	}
}

/* From zero and from elsewhere; the same bytes when run again. */
static void solutions(void)
{
	for (size_t s = 0; s < N_SHAPES; s++)
		for (int prior = IDENTITY; prior < N_PRIORS; prior++) {
			struct problem p;
			fx_array *x[4], *back[2];
			fx_cg_report report[4];

			if (shapes[s][0] * shapes[s][1] * shapes[s][2] < 32)
				continue; /* solved exactly before the sixth iteration, or nearly so */
			problem_new(shapes[s], prior, &p);
			x[0] = parity_random(FX_CF32, 3, p.b->dims, 25);
			for (int i = 1; i < 4; i++)
				x[i] = to_gpu(x[0]);
			CU_ASSERT_EQUAL_FATAL(solve(host, &p.on_host, p.b, false, 6, 0, x[0], &report[0]), FX_OK);
			CU_ASSERT_EQUAL_FATAL(solve(gpu, &p.on_gpu, p.gb, false, 6, 0, x[1], &report[1]), FX_OK);
			for (int i = 2; i < 4; i++)
				CU_ASSERT_EQUAL_FATAL(solve(gpu, &p.on_gpu, p.gb, true, 6, 0, x[i], &report[i]), FX_OK);
			/* lambda bounds the condition, and with it how far six iterations carry a rounding */
			CU_ASSERT_TRUE(parity_distance(x[2], x[0]) < 2e-5);
			same_report(&report[2], &report[1], 1e-3);
			same_report(&report[2], &report[0], 1e-3);
			for (int i = 0; i < 2; i++)
				CU_ASSERT_EQUAL_FATAL(gpu->ops->download(gpu, x[2 + i], &back[i]), FX_OK);
			CU_ASSERT_TRUE(memcmp(back[0]->data, back[1]->data, (size_t)back[0]->bytes) == 0);
			CU_ASSERT_TRUE(memcmp(report[2].residual_normal, report[3].residual_normal, 7 * sizeof(double)) == 0);
			CU_ASSERT_TRUE(memcmp(report[2].residual_data, report[3].residual_data, 7 * sizeof(double)) == 0);
			for (int i = 0; i < 4; i++) {
				fx_cg_report_free(&report[i]);
				fx_array_unref(x[i]);
			}
			fx_array_unref(back[0]);
			fx_array_unref(back[1]);
			problem_free(&p);
		}
}

/* Rounds of several iterations end where one by one would, and long runs go round the sums' ring. */
static void stops(void)
{
	static const double tolerances[] = {0.5, 1e-2, 1e-4};

	for (size_t t = 0; t < 3; t++) {
		struct problem p;
		fx_array *x[2];
		fx_cg_report report[2];

		problem_new(shapes[1], IDENTITY, &p);
		for (int i = 0; i < 2; i++) {
			x[i] = zeros(gpu, FX_CF32, 3, p.b->dims);
			CU_ASSERT_EQUAL_FATAL(solve(gpu, &p.on_gpu, p.gb, i == 1, 300, tolerances[t], x[i], &report[i]), FX_OK);
		}
		CU_ASSERT_EQUAL(report[1].stop, FX_STOP_CONVERGED);
		CU_ASSERT_EQUAL(report[0].iterations, report[1].iterations);
		CU_ASSERT_TRUE(report[1].residual_normal[report[1].iterations] <= tolerances[t]);
		for (int i = 0; i < 2; i++) {
			fx_cg_report_free(&report[i]);
			fx_array_unref(x[i]);
		}
		x[0] = zeros(gpu, FX_CF32, 3, p.b->dims);
		CU_ASSERT_EQUAL_FATAL(solve(gpu, &p.on_gpu, p.gb, true, 150, 0, x[0], &report[0]), FX_OK);
		CU_ASSERT_EQUAL(report[0].iterations, 150);
		CU_ASSERT_EQUAL(report[0].stop, FX_STOP_ITERATIONS);
		/* the true one: single precision holds A x = b to 3e-5 here (the host's figure), not what updates would say */
		CU_ASSERT_TRUE(report[0].residual_normal[150] < 1e-4);
		fx_cg_report_free(&report[0]);
		fx_array_unref(x[0]);
		problem_free(&p);
	}
}

static bool stop_now(const void *arg)
{
	(void)arg;
	return true;
}

static void trouble(void)
{
	struct problem p;
	fx_array *x, *kernel;
	fx_cg_report report;
	fx_normal a;

	problem_new(shapes[1], NONE, &p);
	CU_ASSERT_EQUAL_FATAL(gpu->ops->download(gpu, p.on_gpu.kernel, &kernel), FX_OK);
	for (int64_t i = 0; i < kernel->n; i++)
		FX_F32_OF(kernel)[i] = -FX_F32_OF(kernel)[i];
	a = p.on_gpu;
	a.kernel = to_gpu(kernel);
	memset(&gpu_error, 0, sizeof gpu_error);
	x = zeros(gpu, FX_CF32, 3, p.b->dims);
	CU_ASSERT_EQUAL(solve(gpu, &a, p.gb, true, 10, 0, x, &report), FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(gpu_error.text, "not positive definite"));
	fx_cg_report_free(&report);
	fx_array_unref((fx_array *)(uintptr_t)a.kernel);
	FX_F32_OF(kernel)[77] = NAN;
	a.kernel = to_gpu(kernel);
	memset(&gpu_error, 0, sizeof gpu_error);
	CU_ASSERT_EQUAL(solve(gpu, &a, p.gb, true, 10, 0, x, &report), FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(gpu_error.text, "finite"));
	fx_cg_report_free(&report);
	fx_array_unref((fx_array *)(uintptr_t)a.kernel);
	memset(&gpu_error, 0, sizeof gpu_error);
	gpu->stopped = stop_now;
	CU_ASSERT_EQUAL(solve(gpu, &p.on_gpu, p.gb, true, 10, 0, x, &report), FX_ECANCELED);
	gpu->stopped = NULL;
	fx_cg_report_free(&report);
	memset(&gpu_error, 0, sizeof gpu_error);
	fx_array_unref(x);
	fx_array_unref(kernel);
	problem_free(&p);
}

/* Spokes through the centre in Fibonacci directions, as crowded there as scans are. */
static fx_array *radial(int64_t n, int64_t spokes)
{
	fx_array *k;

	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_F64, 3, 2 * n * spokes, &k), FX_OK);
	for (int64_t i = 0; i < 2 * n * spokes; i++) {
		double s = (double)(i / (2 * n)), z = 1 - (2 * s + 1) / (double)spokes, a = 2.399963229728653 * s;
		double t = (double)(i % (2 * n)) / (double)(2 * n) - 0.5, r = t * sqrt(1 - z * z);

		FX_F64_OF(k)[3 * i] = r * cos(a);
		FX_F64_OF(k)[3 * i + 1] = r * sin(a);
		FX_F64_OF(k)[3 * i + 2] = t * z;
	}
	return k;
}

/* Samples to image by one backend: F^H D, Q and ten iterations from zero. */
static fx_array *reconstruct(fx_math *m, const fx_array *k, const fx_array *samples, const fx_array *maps)
{
	fx_fourier_spec spec = {.method = FX_FOURIER_NUFFT, .type = FX_CF32, .tolerance = 1e-3,
		.dims = {maps->dims[0], maps->dims[1], maps->dims[2]}, .scale = 1 / sqrt((double)(maps->n / maps->dims[3]))};
	fx_frame f = {.n_coils = maps->dims[3], .grid = {maps->dims[0], maps->dims[1], maps->dims[2]}};
	fx_cg_options o = {.iterations = 10};
	fx_cg_report report;
	fx_fourier *op;
	fx_array *b, *x = zeros(m, FX_CF32, 3, f.grid), *image;

	CU_ASSERT_EQUAL_FATAL(m->ops->upload(m, maps, &f.maps), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_fourier_new(m, &spec, &op), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_fourier_adjoint(op, k, samples, &f.fhd), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_toeplitz_kernel(m, spec.method, 1e-3, f.grid, spec.scale, k, NULL, &f.kernel), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_frame_right_side(m, &f, &b), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_frame_solve(m, &f, 0, 0, b, &o, x, &report), FX_OK);
	CU_ASSERT_EQUAL(report.iterations, 10);
	CU_ASSERT_EQUAL_FATAL(m->ops->download(m, x, &image), FX_OK);
	fx_cg_report_free(&report);
	fx_fourier_free(op);
	fx_array *all[] = {f.maps, f.fhd, f.kernel, b, x};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		fx_array_unref(all[i]);
	return image;
}

/* A ball with a bright one in it, seen by four smooth coils, from samples of it in double. */
static void from_samples_to_an_image(void)
{
	const int64_t n = 64, d[4] = {n, n, n, 4}, voxels = n * n * n;
	fx_fourier_spec spec = {.method = FX_FOURIER_NUFFT, .type = FX_CF64, .tolerance = 1e-6, .dims = {n, n, n},
		.scale = 1 / sqrt((double)voxels)};
	fx_array *k = radial(n, 512), *maps = zeros(host, FX_CF32, 4, d), *seen = zeros(host, FX_CF64, 4, d), *exact, *samples, *one, *two;
	fx_fourier *op;

	for (int64_t i = 0; i < voxels; i++) {
		double x = (double)(i % n - n / 2) / (double)n, y = (double)(i / n % n - n / 2) / (double)n, z = (double)(i / n / n - n / 2) / (double)n;
		double r = sqrt(x * x + y * y + z * z), v = r < 0.4 ? (fabs(x - 0.1) + fabs(y) + fabs(z) < 0.1 ? 2 : 1) : 0;

		for (int c = 0; c < 4; c++) {
			double s = 0.5 * (1 + 0.5 * sin(3 * (c % 2 ? x : y) + c)), angle = c + z;
			int64_t at = i + c * voxels;

			FX_CF32_OF(maps)[at] = FX_CF32((float)(s * cos(angle)), (float)(s * sin(angle)));
			FX_CF64_OF(seen)[at] = v * (fx_cf64)FX_CF32_OF(maps)[at];
		}
	}
	CU_ASSERT_EQUAL_FATAL(fx_fourier_new(host, &spec, &op), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_fourier_forward(op, k, seen, &exact), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_array_convert(exact, FX_CF32, &samples), FX_OK);
	one = reconstruct(host, k, samples, maps);
	two = reconstruct(gpu, k, samples, maps);
	{
		fx_array *there = to_gpu(two);
		double distance = parity_distance(there, one);

		/*
		 * Both work in single precision; ten iterations multiply the rounding of F^H D, 1e-6 and less of its norm, by 30 to 50.
		 * Each is at 2e-5 to 5e-5 of the same computed in double (docs/performance.md).
		 */
		CU_ASSERT_TRUE(distance < 1e-4);
		if (!(distance < 1e-4))
			printf("\nhost and GPU differ by %g\n", distance);
		fx_array_unref(there);
	}
	fx_fourier_free(op);
	fx_array *all[] = {k, maps, seen, exact, samples, one, two};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		fx_array_unref(all[i]);
}

static void memory(void)
{
	int64_t before, after, most;
	fx_array *a;

	CU_ASSERT_EQUAL(fx_math_memory(gpu, &before, &most), FX_OK);
	a = zeros(gpu, FX_U8, 1, (int64_t[]){256 << 20});
	CU_ASSERT_EQUAL(gpu->ops->sync(gpu), FX_OK);
	CU_ASSERT_EQUAL(fx_math_memory(gpu, &after, &most), FX_OK);
	CU_ASSERT_TRUE(before - after >= 256 << 20);
	CU_ASSERT_TRUE(most >= 256 << 20);
	fx_array_unref(a);
}

static CU_TestInfo tests[] = {
	{"the normal operator in one piece", normal_operators}, {"conjugate gradients in one piece, the same bytes twice", solutions},
	{"where they stop", stops}, {"trouble is explained", trouble}, {"from samples to an image", from_samples_to_an_image},
	{"its memory is known", memory}, CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_parity_solve = {"parity: the normal equations", NULL, NULL, NULL, NULL, tests};
