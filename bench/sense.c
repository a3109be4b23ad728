/* SPDX-License-Identifier: MIT */
/*
 * sense.c - iterative SENSE, from samples and trajectory on the host to an image on the host: N^3 voxels, radial spokes, maps given where
 * the backend works, zero start. Prints one JSON object: the whole, the whole with Q known, each part by itself, what the memory plan
 * said and what was taken.
 *
 *   ninja -C build bench_sense
 *   build/bin/bench_sense [BACKEND [N [COILS [SAMPLES [ITERATIONS [ROUNDS [TOLERANCE]]]]]]]
 */
#include "bench.h"

#include <complex.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

static fx_math *m, *other; /* as toeplitz and cg have: a queue each */

struct job {
	fx_frame f;
	fx_fourier_spec spec;
	const fx_array *samples;
	fx_array *b, *x, *image;
	int64_t iterations;
	double residual;
};

/* Spokes through the centre in Fibonacci directions. */
static fx_array *radial(int64_t n, int64_t samples)
{
	int64_t each = 2 * n, spokes = samples / each;
	fx_array *k;

	check(fx_array_new(FX_F64, 2, (int64_t[]){3, spokes * each}, &k));
	for (int64_t s = 0; s < spokes; s++) {
		double z = 1 - (2 * (double)s + 1) / (double)spokes, r = sqrt(1 - z * z), a = 2.399963229728653 * (double)s;

		for (int64_t i = 0; i < each; i++) {
			double t = ((double)i - (double)n) / (double)each, *v = FX_F64_OF(k) + 3 * (s * each + i);

			v[0] = t * r * cos(a);
			v[1] = t * r * sin(a);
			v[2] = t * z;
		}
	}
	return k;
}

/* One plane of the maps. */
static void map_plane(void *arg, int64_t plane)
{
	fx_array *a = arg;
	int64_t n = a->dims[0], coils = a->dims[3];

	for (int64_t i = plane * n * n; i < (plane + 1) * n * n; i++) {
		double at[3] = {(double)(i % n) / (double)n - 0.5, (double)(i / n % n) / (double)n - 0.5, (double)plane / (double)n - 0.5};
		double power = 0;

		for (int64_t c = 0; c < coils; c++) {
			double angle = 2.399963229728653 * (double)c, z = 0.6 * (1 - (2 * (double)c + 1) / (double)coils);
			double d = pow(at[0] - 0.6 * cos(angle), 2) + pow(at[1] - 0.6 * sin(angle), 2) + pow(at[2] - z, 2), s = exp(-d);

			power += s * s;
			FX_CF32_OF(a)[i + c * n * n * n] = (fx_cf32)(s * cexp(I * (angle + at[0])));
		}
		for (int64_t c = 0; c < coils; c++)
			FX_CF32_OF(a)[i + c * n * n * n] *= (float)(1 / sqrt(power));
	}
}

/* Smooth maps of unit sum of squares, on the host. */
static fx_array *coil_maps(int64_t n, int64_t coils)
{
	fx_array *a;

	check(fx_array_new4(FX_CF32, n, n, n, coils, &a));
	fx_parallel(fx_processors(), n, map_plane, a);
	return a;
}

static fx_array *to_backend(fx_array *host)
{
	fx_array *there;

	check(m->ops->upload(m, host, &there));
	return there;
}

/* Balls of unlike brightness. */
static fx_array *object(int64_t n)
{
	static const double balls[][5] = {{0, 0, 0, 0.4, 1}, {0.15, 0.1, 0, 0.12, 0.5}, {-0.2, 0, 0.1, 0.08, -0.7}, {0, -0.2, -0.1, 0.05, 1}};
	fx_array *a;

	check(fx_array_new(FX_CF32, 3, (int64_t[]){n, n, n}, &a));
	for (int64_t i = 0; i < a->n; i++)
		for (size_t b = 0; b < sizeof balls / sizeof balls[0]; b++) {
			double x = (double)(i % n - n / 2) / (double)n - balls[b][0], y = (double)(i / n % n - n / 2) / (double)n - balls[b][1];
			double z = (double)(i / n / n - n / 2) / (double)n - balls[b][2];

			if (x * x + y * y + z * z < balls[b][3] * balls[b][3])
				FX_CF32_OF(a)[i] += (float)balls[b][4];
		}
	return a;
}

/* F S of the object, a coil at a time, as samples on the host. */
static fx_array *scan(const fx_fourier_spec *spec, const fx_array *k, const fx_array *maps)
{
	int64_t n = spec->dims[0], voxels = n * n * n, coils = maps->n / voxels;
	fx_array *ball = object(n), *there = to_backend(ball), *samples;
	fx_fourier *f;

	check(fx_fourier_new(m, spec, &f));
	check(fx_array_new2(FX_CF32, k->dims[1], coils, &samples));
	for (int64_t c = 0; c < coils; c++) {
		fx_array *map, *map_there, *seen, *some, *here;

		check(fx_array_new4(FX_CF32, n, n, n, 1, &map));
		memcpy(map->data, FX_CF32_OF(maps) + c * voxels, (size_t)map->bytes);
		map_there = to_backend(map);
		check(m->ops->array_new(m, FX_CF32, 4, map->dims, &seen));
		check(m->ops->coil_expand(m, map_there, there, seen));
		check(fx_fourier_forward(f, k, seen, &some));
		check(m->ops->download(m, some, &here));
		memcpy(FX_CF32_OF(samples) + c * k->dims[1], here->data, (size_t)here->bytes);
		fx_array *all[] = {map, map_there, seen, some, here};
		for (int i = 0; i < 5; i++)
			fx_array_unref(all[i]);
	}
	fx_fourier_free(f);
	fx_array_unref(ball);
	fx_array_unref(there);
	return samples;
}

static void drop(fx_array **a)
{
	fx_array_unref(*a);
	*a = NULL;
}

static void adjoint(struct job *j)
{
	fx_fourier *f;

	drop(&j->f.fhd);
	check(fx_fourier_new(m, &j->spec, &f));
	check(fx_fourier_adjoint(f, j->f.k, j->samples, &j->f.fhd));
	fx_fourier_free(f);
}

static void kernel_on(fx_math *math, struct job *j)
{
	drop(&j->f.kernel);
	check(fx_toeplitz_kernel(math, FX_FOURIER_NUFFT, j->spec.tolerance, j->f.grid, j->spec.scale, j->f.k, NULL, &j->f.kernel));
}

static void kernel(struct job *j)
{
	kernel_on(m, j);
}

static void *kernel_beside(void *arg)
{
	kernel_on(other, arg);
	return NULL;
}

static void solve(struct job *j)
{
	fx_cg_options o = {.iterations = j->iterations};
	fx_cg_report report;

	drop(&j->b);
	drop(&j->x);
	check(fx_frame_right_side(m, &j->f, &j->b));
	check(m->ops->array_new(m, FX_CF32, 3, j->f.grid, &j->x));
	check(fx_frame_solve(m, &j->f, 0, 1, j->b, &o, j->x, &report));
	j->residual = report.residual_normal[report.n_residuals - 1];
	fx_cg_report_free(&report);
}

static void back(struct job *j)
{
	drop(&j->image);
	check(m->ops->download(m, j->x, &j->image));
}

static void known_q(struct job *j)
{
	adjoint(j);
	solve(j);
	back(j);
}

/* As in a pipeline: the gadgets fhd and toeplitz have a thread and a queue each. */
static void whole(struct job *j)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, kernel_beside, j) != 0)
		exit(1);
	adjoint(j);
	pthread_join(thread, NULL);
	solve(j);
	back(j);
}

static void one_by_one(struct job *j)
{
	kernel(j);
	known_q(j);
}

static void one_product(struct job *j)
{
	if (m->ops->normal_apply)
		check(m->ops->normal_apply(m, &(fx_normal){j->f.kernel, j->f.maps, NULL, 0}, j->b, j->x));
}

static double median_ms(void (*body)(struct job *), struct job *j, int rounds)
{
	double t[64];

	for (int i = -1; i < rounds; i++) {
		double start;

		check(m->ops->sync(m));
		start = now();
		body(j);
		check(m->ops->sync(m));
		if (i >= 0)
			t[i] = 1e3 * (now() - start);
	}
	qsort(t, (size_t)rounds, sizeof *t, by_value);
	return t[rounds / 2];
}

static void plan(struct job *j)
{
	fx_fourier *f;
	int64_t available, most;
	double bytes;

	check(fx_fourier_new(m, &j->spec, &f));
	bytes = fx_plan_bytes(m, &j->f, (double)fx_fourier_bytes(f, j->f.n_coils));
	check(fx_math_memory(m, &available, &most));
	printf(", \"planned_mb\": %.0f, \"available_mb\": %.0f", bytes / 1e6, (double)available / 1e6);
	fflush(stdout);
	check(fx_plan_check(m, &j->f, bytes));
	fx_fourier_free(f);
}

static void times(struct job *j, int rounds)
{
	static const struct {
		const char *name;
		void (*body)(struct job *);
	} parts[] = {{"whole_ms", whole}, {"one_by_one_ms", one_by_one}, {"known_q_ms", known_q}, {"adjoint_ms", adjoint}, {"kernel_ms", kernel}, {"solve_ms", solve},
		{"download_ms", back}, {"product_ms", one_product}};

	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
		printf(", \"%s\": %.3f", parts[i].name, median_ms(parts[i].body, j, rounds));
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	int64_t n = argc > 2 ? atoll(argv[2]) : 128, coils = argc > 3 ? atoll(argv[3]) : 8;
	int64_t n_samples = argc > 4 ? atoll(argv[4]) : 524288, available, most;
	int rounds = argc > 6 ? atoi(argv[6]) : 7;
	struct job j = {.iterations = argc > 5 ? atoll(argv[5]) : 10};
	fx_array *first, *maps;

	check(fx_math_new(argc > 1 ? argv[1] : "host", 0, &error, &m));
	check(fx_math_new(argc > 1 ? argv[1] : "host", 0, &error, &other));
	rounds = rounds < 1 ? 1 : rounds > 64 ? 64 : rounds;
	for (int d = 0; d < 3; d++)
		j.f.grid[d] = j.spec.dims[d] = n;
	j.spec.method = FX_FOURIER_NUFFT;
	j.spec.type = FX_CF32;
	j.spec.tolerance = argc > 7 ? atof(argv[7]) : 1e-3;
	j.spec.scale = 1 / sqrt((double)(n * n * n));
	j.f.n_coils = coils;
	j.f.k = radial(n, n_samples);
	printf("{\"backend\": \"%s\", \"n\": %lld, \"coils\": %lld, \"samples\": %lld, \"iterations\": %lld, \"tolerance\": %g", m->ops->name,
		(long long)n, (long long)coils, (long long)j.f.k->dims[1], (long long)j.iterations, j.spec.tolerance);
	plan(&j);
	maps = coil_maps(n, coils);
	j.samples = scan(&j.spec, j.f.k, maps);
	j.f.maps = to_backend(maps);
	whole(&j);
	first = fx_array_ref(j.image);
	times(&j, rounds);
	whole(&j);
	check(fx_math_memory(m, &available, &most));
	printf(", \"most_mb\": %.0f, \"residual\": %.6g, \"same_bytes\": %s}\n", (double)most / 1e6, j.residual,
		memcmp(first->data, j.image->data, (size_t)first->bytes) == 0 ? "true" : "false");
	return 0;
}
