/* SPDX-License-Identifier: MIT */
/*
 * tensor.c - tensor fits on the CPU. Volumes are read in tiles of voxels, all volumes of a tile at once, so that logarithms,
 * every reweighting and the residual are had from the first-level caches. What single precision may not decide, a small
 * pivot, is done again in double.
 */
#include "tensor.h"

#include "host.h"
#include "kernels/tensor.h"
#include "scratch.h"

#include <fornix/diffusion.h>

#include <math.h>
#include <string.h>

#define TILE FXI_TENSOR_TILE
#define X FXI_TENSOR_X
#define XX FXI_TENSOR_XX
#define CHUNK 4096 /* voxels that one thread does at a time; a multiple of TILE */

/*
 * Smallest trusted pivot. The last correction is off by some 1e-7 over the pivot, relative to its size, and so is what the
 * rounding of logarithms to single, 1e-6, becomes in D: against double, 5e-6 um^2/ms at the most where noise is ordinary.
 */
#define SMALL_PIVOT 2e-2f

struct job {
	fx_math *m;
	const fx_tensor_design *design;
	fxi_tensor_rows rows;
	const fx_array *const *volumes;
	const fx_array *sums, *seen;
	const uint8_t *mask;
	const fx_tensor_arrays *out;
	const float *row, *volume, *first;
	int64_t n;            /* voxels */
	fxi_scratch scratch;
};

static int64_t n_chunks(const struct job *j)
{
	return (j->n + CHUNK - 1) / CHUNK;
}

/* Floats of a thread's work: signals, logarithms, weights of a tile, and its results; then doubles of one voxel. */
static bool work_bytes(int64_t n, int64_t *bytes)
{
	int64_t floats, doubles;

	if (!fx_mul_size(n, 4 * TILE * (int64_t)sizeof(float), &floats) || !fx_mul_size(n, 4 * (int64_t)sizeof(double) + 4, &doubles))
		return false;
	*bytes = floats + (X + 4) * TILE * (int64_t)sizeof(float) + doubles + TILE;
	return true;
}

static void lay_out(const struct job *j, void *scratch, fxi_tensor_tile *t, double **voxel, float **signals)
{
	int64_t n = j->design->n;

	t->s = scratch;
	t->y = t->s + n * TILE;
	t->work = t->y + n * TILE;
	t->z = t->work + 2 * n * TILE;
	t->residual = t->z + X * TILE;
	t->used = t->residual + TILE;
	t->pivot = t->used + TILE;
	t->differs = t->pivot + TILE;
	*voxel = (double *)(t->differs + TILE);
	*signals = (float *)(*voxel + 4 * n);
}

static void finish_voxel(const struct job *j, const fxi_tensor_tile *t, int64_t at, int64_t voxel, double *work, float *s)
{
	int64_t n = j->design->n;
	unsigned flags = t->used[at] < (float)n ? FX_TENSOR_DROPPED : 0;
	fxi_voxel_fit fit = {.residual = t->residual[at]};
	bool good = t->used[at] >= X;

	for (int k = 0; k < X; k++)
		fit.z[k] = t->z[k * TILE + at];
	if (good && !(t->pivot[at] > SMALL_PIVOT && isfinite(fit.residual))) {
		for (int64_t i = 0; i < n; i++)
			s[i] = t->s[i * TILE + at];
		good = fxi_tensor_voxel(j->design, s, work, &fit);
	}
	if (!good)
		fit.z[0] = NAN; /* which fxi_tensor_put tells of */
	else if (t->differs[at] == 0)
		flags |= FX_TENSOR_ISOTROPIC;
	fxi_tensor_put(j->design, fit.z, voxel, flags, j->out);
	FX_F32_OF(j->out->residual)[voxel] = good ? (float)fit.residual : 0;
}

static void fit_chunk(void *arg, int64_t chunk)
{
	struct job *j = arg;
	int64_t end = (chunk + 1) * CHUNK < j->n ? (chunk + 1) * CHUNK : j->n;
	void *scratch;
	fxi_tensor_tile t;
	double *work;
	float *signals;

	if (j->m->stopped && j->m->stopped(j->m->stopped_arg))
		return;
	scratch = fxi_scratch_take(&j->scratch);
	lay_out(j, scratch, &t, &work, &signals);
	for (int64_t first = chunk * CHUNK; first < end; first += TILE) {
		int64_t length = end - first < TILE ? end - first : TILE;
		uint8_t wanted[TILE] = {0};
		bool any = false;

		for (int64_t k = 0; k < length; k++) {
			wanted[k] = !j->mask || j->mask[first + k];
			any = any || wanted[k];
		}
		if (!any)
			continue;
		t.wanted = wanted;
		for (int64_t i = 0; i < j->design->n; i++) {
			memcpy(t.s + i * TILE, FX_F32_OF(j->volumes[i]) + first, (size_t)length * sizeof(float));
			memset(t.s + i * TILE + length, 0, (size_t)(TILE - length) * sizeof(float));
		}
		FXI_PICK(fxi_tensor_fit)(&j->rows, &t);
		for (int64_t k = 0; k < length; k++)
			if (wanted[k])
				finish_voxel(j, &t, k, first + k, work, signals);
	}
	fxi_scratch_give(&j->scratch, scratch);
}

static bool is_field(const fx_array *a, int type, int64_t each, int64_t n)
{
	return a && a->type == type && a->n == each * n;
}

static int check_arrays(fx_math *m, const fx_array *mask, const fx_tensor_arrays *out, int64_t n, bool residual)
{
	if (!is_field(out->d, FX_F32, 6, n) || !is_field(out->s0, FX_F32, 1, n) || !is_field(out->flags, FX_U8, 1, n) ||
		(residual && !is_field(out->residual, FX_F32, 1, n)) || (mask && !is_field(mask, FX_U8, 1, n)))
		return fx_math_fail(m, FX_EINVAL, "a tensor fit of %lld voxels takes a u8 mask and gives f32 tensors, S0 and residuals and "
			"u8 flags of that size", (long long)n);
	return FX_OK;
}

/* The rows and their products in single. */
static int new_rows(struct job *j, float **rows)
{
	int64_t n = j->design->n;
	float *q = *rows = fx_alloc(n, (X + XX) * sizeof(float)), *qq = q + X * n;

	if (!q)
		return fx_math_fail(j->m, FX_ENOMEM, "no memory for the design of %lld volumes", (long long)n);
	for (int64_t i = 0; i < n; i++)
		for (int k = 0; k < X; k++) {
			q[X * i + k] = (float)j->design->q[X * i + k];
			for (int l = 0; l <= k; l++)
				qq[XX * i + k * (k + 1) / 2 + l] = (float)(j->design->q[X * i + k] * j->design->q[X * i + l]);
		}
	j->rows = (fxi_tensor_rows){.n = n, .q = q, .qq = qq, .from_signals = j->design->from_signals,
		.reweightings = j->design->reweightings};
	return FX_OK;
}

int fxi_host_tensor_fit(fx_math *m, const fx_tensor_design *design, const fx_array *const *volumes, const fx_array *mask,
	const fx_tensor_arrays *out)
{
	struct job j = {.m = m, .design = design, .volumes = volumes, .mask = mask ? mask->data : NULL, .out = out};
	int64_t bytes = 0;
	float *rows = NULL;
	int status;

	if (design->n < X)
		return fx_math_fail(m, FX_EINVAL, "%lld volumes do not determine a tensor and S0", (long long)design->n);
	j.n = volumes[0]->n;
	status = check_arrays(m, mask, out, j.n, true);
	for (int64_t i = 0; status == FX_OK && i < design->n; i++)
		if (!is_field(volumes[i], FX_F32, 1, j.n))
			status = fx_math_fail(m, FX_EINVAL, "tensor_fit takes f32 volumes of one size");
	if (status != FX_OK || j.n == 0)
		return status;
	if (!work_bytes(design->n, &bytes))
		return fx_math_fail(m, FX_ENOMEM, "no memory to fit %lld volumes", (long long)design->n);
	status = new_rows(&j, &rows);
	if (status == FX_OK)
		status = fxi_scratch_new(m, bytes, &j.scratch);
	if (status == FX_OK) {
		fx_parallel(m->n_threads, n_chunks(&j), fit_chunk, &j);
		fxi_scratch_free(&j.scratch);
		status = fx_math_check(m);
	}
	fx_free(rows);
	return status;
}

static void accumulate_chunk(void *arg, int64_t chunk)
{
	const struct job *j = arg;
	int64_t first = chunk * CHUNK, length = j->n - first < CHUNK ? j->n - first : CHUNK;

	FXI_PICK(fxi_tensor_accumulate)(length, j->n, j->row, j->volume + first, j->first + first, FX_F32_OF(j->sums) + first,
		(uint8_t *)j->seen->data + first);
}

int fxi_host_tensor_accumulate(fx_math *m, const double row[7], const fx_array *volume, const fx_array *first,
	fx_array *sums, fx_array *seen)
{
	float single[X];
	struct job j = {.m = m, .n = volume->n, .row = single, .volume = volume->data, .first = first->data, .sums = sums,
		.seen = seen};

	if (!is_field(volume, FX_F32, 1, j.n) || !is_field(first, FX_F32, 1, j.n) || !is_field(sums, FX_F32, X, j.n) ||
		!is_field(seen, FX_U8, 1, j.n))
		return fx_math_fail(m, FX_EINVAL, "tensor_accumulate takes f32 volumes and sums and u8 marks of one size");
	for (int k = 0; k < X; k++)
		single[k] = (float)row[k];
	fx_parallel(m->n_threads, n_chunks(&j), accumulate_chunk, &j);
	return FX_OK;
}

static void solve_chunk(void *arg, int64_t chunk)
{
	const struct job *j = arg;
	int64_t end = (chunk + 1) * CHUNK < j->n ? (chunk + 1) * CHUNK : j->n;
	const uint8_t *seen = j->seen->data;

	for (int64_t v = chunk * CHUNK; v < end; v++) {
		double z[X];

		if ((j->mask && !j->mask[v]) || (seen[v] & 1))
			continue;
		for (int k = 0; k < X; k++)
			z[k] = FX_F32_OF(j->sums)[k * j->n + v];
		fxi_tensor_put(j->design, z, v, seen[v] & 2 ? 0 : FX_TENSOR_ISOTROPIC, j->out);
	}
}

int fxi_host_tensor_solve(fx_math *m, const fx_tensor_design *design, const fx_array *sums, const fx_array *seen,
	const fx_array *mask, const fx_tensor_arrays *out)
{
	struct job j = {.m = m, .design = design, .sums = sums, .seen = seen, .mask = mask ? mask->data : NULL, .out = out,
		.n = seen->n};
	int status = check_arrays(m, mask, out, j.n, false);

	if (status == FX_OK && (!is_field(sums, FX_F32, X, j.n) || !is_field(seen, FX_U8, 1, j.n)))
		status = fx_math_fail(m, FX_EINVAL, "tensor_solve takes f32 sums and u8 marks of one size");
	if (status == FX_OK)
		fx_parallel(m->n_threads, n_chunks(&j), solve_chunk, &j);
	return status;
}

void fxi_host_tensor_log(int64_t n, const float *s, float *y)
{
	FXI_PICK(fxi_tensor_log)(n, s, y);
}

void fxi_host_tensor_exp(int64_t n, const float *x, float *y)
{
	FXI_PICK(fxi_tensor_exp)(n, x, y);
}
