/* SPDX-License-Identifier: MIT */
/*
 * The iterative chain, coil_maps to cg, against a dense solve of the same normal equations: the matrix is built here from
 * the trajectory and the maps by its definition, and solved by Gaussian elimination in double.
 */
#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

#include "gadgets/harness.h"
#include "unit/plain_sums.h"

#define NX 7
#define NY 6
#define N (NX * NY)
#define SAMPLES 40
#define COILS 3

#define HEAD "trajectory unit=cycles_per_voxel | density method=pipe_menon | mu voxel=box | fhd method=direct | " \
	"coil_maps radius=1 | toeplitz | prior lambda=0.05"

static fx_msg *readout(uint64_t seed, uint16_t repetition)
{
	fx_msg *msg = harness_acquisition(SAMPLES, COILS, 2);
	fx_acquisition *a = fx_msg_acquisition(msg);
	fx_array *k = random_array(FX_F64, 2, (int64_t[]){2, SAMPLES}, 100 + seed);

	for (int64_t i = 0; i < k->n; i++)
		FX_F32_OF(a->traj)[i] = (float)(FX_F64_OF(k)[i] / 2);
	fx_array_unref(k);
	fx_slot_take(&a->data, random_array(FX_CF32, 2, (int64_t[]){SAMPLES, COILS}, seed));
	a->head.scan_counter = (uint32_t)seed;
	a->head.idx.repetition = repetition;
	return msg;
}

static void run(harness *h, const char *chain, int n_repetitions, fxi_cache *cache)
{
	char *xml = harness_header((int64_t[]){NX, NY, 1}, (double[]){70, 60, 5}, "other", 0);
	harness_options options = {.cache = cache};
	fx_msg *in[8];
	int n = 0;

	for (int r = 0; r < n_repetitions; r++)
		for (uint64_t i = 0; i < 2; i++)
			in[n++] = readout(i, (uint16_t)r);
	harness_run_with(h, chain, xml, in, n, &options);
	free(xml);
	CU_ASSERT_EQUAL_FATAL(h->status, FX_OK);
	CU_ASSERT_EQUAL_FATAL(h->n_out, n_repetitions);
}

/* x of A x = b by Gaussian elimination with partial pivoting; A and b are overwritten. */
static void solve(double _Complex *a, double _Complex *b)
{
	for (int i = 0; i < N; i++) {
		int pivot = i;

		for (int r = i + 1; r < N; r++)
			if (cabs(a[r * N + i]) > cabs(a[pivot * N + i]))
				pivot = r;
		for (int c = 0; c < N; c++) {
			double _Complex t = a[i * N + c];

			a[i * N + c] = a[pivot * N + c];
			a[pivot * N + c] = t;
		}
		double _Complex t = b[i];

		b[i] = b[pivot];
		b[pivot] = t;
		for (int r = i + 1; r < N; r++) {
			double _Complex f = a[r * N + i] / a[i * N + i];

			for (int c = i; c < N; c++)
				a[r * N + c] -= f * a[i * N + c];
			b[r] -= f * b[i];
		}
	}
	for (int i = N - 1; i >= 0; i--) {
		for (int c = i + 1; c < N; c++)
			b[i] -= a[i * N + c] * b[c];
		b[i] /= a[i * N + i];
	}
}

static double phi(const double *k)
{
	double p = 1;

	for (int d = 0; d < 2; d++)
		p *= k[d] != 0 ? sin(acos(-1) * k[d]) / (acos(-1) * k[d]) : 1;
	return p;
}

/* The dense normal equations of a frame: A = sum_c S^H F^H F S + lambda (mean eigenvalue) I, b = sum_c S^H F^H D. */
static void dense(const fx_frame *f, double lambda, double _Complex *a, double _Complex *b)
{
	double power = 0, phi2 = 0;

	memset(a, 0, N * N * sizeof *a);
	memset(b, 0, N * sizeof *b);
	for (int64_t s = 0; s < f->k->dims[1]; s++) {
		const double *k = FX_F64_OF(f->k) + 3 * s;
		double _Complex e[N];

		phi2 += phi(k) * phi(k);
		for (int n = 0; n < N; n++)
			e[n] = phi(k) / sqrt(N) * plain_phase(k, n % NX - NX / 2, n / NX - NY / 2, 0, -1);
		for (int c = 0; c < COILS; c++) {
			const fx_cf32 *map = FX_CF32_OF(f->maps) + c * N;
			fx_msg *msg = readout((uint64_t)(s / SAMPLES), 0);
			double _Complex d = (double _Complex)FX_CF32_OF(fx_msg_acquisition(msg)->data)[c * SAMPLES + s % SAMPLES];

			fx_drop(msg);
			for (int i = 0; i < N; i++) {
				double _Complex row = conj(e[i] * (double _Complex)map[i]);

				b[i] += row * d;
				for (int j = 0; j < N; j++)
					a[i * N + j] += row * e[j] * (double _Complex)map[j];
			}
		}
	}
	for (int i = 0; i < COILS * N; i++)
		power += pow(cabs((double _Complex)FX_CF32_OF(f->maps)[i]), 2) / N;
	for (int i = 0; i < N; i++)
		a[i * N + i] += lambda * phi2 / N * power;
}

static double against(const fx_array *image, const double _Complex *want)
{
	double sum = 0, norm = 0;

	for (int i = 0; i < N; i++) {
		sum += pow(cabs(element_of(image, i) - want[i]), 2);
		norm += pow(cabs(want[i]), 2);
	}
	return sqrt(sum / norm);
}

static void equals_the_dense_solution(void)
{
	static double _Complex a[N * N], b[N];
	harness before, after;

	run(&before, HEAD, 1, NULL);
	run(&after, HEAD " | cg iterations=200 tolerance=1e-6", 1, NULL);
	dense(fx_msg_frame(before.out[0]), 0.05, a, b);
	solve(a, b);
	/* a residual of 1e-6 times the condition number, which lambda keeps near 50 here */
	CU_ASSERT(against(fx_msg_image(after.out[0])->data, b) < 5e-5);
	CU_ASSERT_STRING_EQUAL(harness_text(&after, 7, "stop", 0), "converged");
	harness_free(&before);
	harness_free(&after);
}

/* Starting at zero leads to the same solution, and the recorded residuals fall from 1. */
static void the_start_does_not_matter(void)
{
	static double _Complex a[N * N], b[N];
	harness before, after;

	run(&before, HEAD, 1, NULL);
	run(&after, HEAD " | cg iterations=200 tolerance=1e-6 start=zero", 1, NULL);
	dense(fx_msg_frame(before.out[0]), 0.05, a, b);
	solve(a, b);
	CU_ASSERT(against(fx_msg_image(after.out[0])->data, b) < 5e-5);
	CU_ASSERT_DOUBLE_EQUAL(harness_number(&after, 7, "residual_normal", 0), 1, 1e-6);
	CU_ASSERT_DOUBLE_EQUAL(harness_number(&after, 7, "residual_data", 0), 1, 1e-6);
	harness_free(&before);
	harness_free(&after);
}

/* Q that was summed while readouts came, Q from the cache, and Q of the whole trajectory are the same operator. */
static void q_is_the_same_by_every_way(void)
{
	fxi_cache *cache = harness_cache();
	harness plain, cached, again;

	run(&plain, HEAD, 1, NULL);
	run(&cached, HEAD, 3, cache);
	run(&again, HEAD, 1, cache);
	CU_ASSERT_STRING_EQUAL(harness_text(&plain, 5, "q", 0), "streamed");
	CU_ASSERT_STRING_EQUAL(harness_text(&cached, 5, "q", 0), "streamed");
	CU_ASSERT_STRING_EQUAL(harness_text(&cached, 5, "q", 2), "cached");
	CU_ASSERT_STRING_EQUAL(harness_text(&again, 5, "q", 0), "cached");
	/* "host" in hex: no other backend, which rounds otherwise, takes this Q for its own */
	CU_ASSERT_EQUAL(harness_cache_keys(cache, "686f7374-a-"), 1);
	for (int i = 0; i < 3; i++) {
		const fx_array *one = fx_msg_frame(plain.out[0])->kernel, *other = fx_msg_frame(cached.out[i])->kernel;

		CU_ASSERT_EQUAL_FATAL(one->bytes, other->bytes);
		CU_ASSERT_EQUAL(memcmp(one->data, other->data, (size_t)one->bytes), 0);
	}
	harness_free(&plain);
	harness_free(&cached);
	harness_free(&again);
	cache->close(cache);
}

/* A run of N iterations that does not converge says so. */
static void says_when_it_did_not_converge(void)
{
	harness h;

	run(&h, HEAD " | cg iterations=2 tolerance=1e-6", 1, NULL);
	CU_ASSERT_STRING_EQUAL(harness_text(&h, 7, "stop", 0), "iterations");
	CU_ASSERT_EQUAL(harness_number(&h, 7, "iterations", 0), 2);
	harness_free(&h);
}

/* Frames of a series that does not change: the second starts where the first ended and has nothing left to do. */
static void a_series_starts_where_it_was(void)
{
	harness h;

	run(&h, HEAD " | cg iterations=200 tolerance=1e-4 start=previous", 3, NULL);
	CU_ASSERT(harness_number(&h, 7, "iterations", 0) > 2);
	CU_ASSERT(harness_number(&h, 7, "iterations", 1) <= 1);
	CU_ASSERT(harness_number(&h, 7, "iterations", 2) <= 1);
	harness_free(&h);
}

/* The estimate on a larger grid is cropped about the centre voxel to the matrix that was asked for. */
static void fov_factor_is_cropped(void)
{
	harness h;

	run(&h, "trajectory unit=cycles_per_voxel | density method=pipe_menon | mu | fhd fov_factor=1.5 | coil_maps radius=1 | "
		"toeplitz | prior | cg", 1, NULL);
	CU_ASSERT_EQUAL(fx_msg_image(h.out[0])->data->dims[0], NX);
	CU_ASSERT_EQUAL(fx_msg_image(h.out[0])->data->dims[1], NY);
	harness_free(&h);
}

static void what_is_missing_is_named(void)
{
	static const struct {
		const char *chain, *word;
	} cases[] = {
		{"trajectory unit=cycles_per_voxel | mu | fhd method=direct | coil_maps", "<density/>"},
		{"trajectory unit=cycles_per_voxel | mu | fhd method=direct | toeplitz | cg", "<coil_maps/>"},
		{"trajectory unit=cycles_per_voxel | mu | fhd method=direct | cg", "<toeplitz/>"},
		{"trajectory unit=cycles_per_voxel | mu | fhd method=direct | combine", "<density/>"},
		{"trajectory unit=cycles_per_voxel | mu | fhd method=direct accumulate=weighted", "<density/>"},
		{"trajectory unit=cycles_per_voxel | grid", "<density/>"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char *xml = harness_header((int64_t[]){NX, NY, 1}, (double[]){70, 60, 5}, "other", 0);
		fx_msg *in[] = {readout(0, 0), readout(1, 0)};
		harness h;

		harness_run(&h, cases[i].chain, xml, in, 2);
		CU_ASSERT_EQUAL(h.status, FX_EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(h.err.text, cases[i].word));
		harness_free(&h);
		free(xml);
	}
}

static CU_TestInfo tests[] = {
	{"equals the dense solution", equals_the_dense_solution},
	{"the start does not matter", the_start_does_not_matter},
	{"Q is the same by every way", q_is_the_same_by_every_way},
	{"says when it did not converge", says_when_it_did_not_converge},
	{"a series starts where it was", a_series_starts_where_it_was},
	{"fov_factor is cropped", fov_factor_is_cropped},
	{"what is missing is named", what_is_missing_is_named},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_cg_chain = {"cg_chain", NULL, NULL, NULL, NULL, tests};
