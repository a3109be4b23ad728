/* SPDX-License-Identifier: MIT */
/*
 * fourier.c - the operator F of non-Cartesian sampling and its adjoint on whole trajectories; accumulator.c does the
 * adjoint piece by piece, and the one here is made of it, so both give the same bits.
 */
#include "fourier.h"

#include <math.h>
#include <stdio.h>

/* Coils that are transformed together: they share sorting and kernel values; more would only take memory. */
#define COIL_BATCH 8
/* The most that a thread works in for a separable sum in single (backend.h). */
#define SEPARABLE_BYTES 5e6

static int need_spec(fx_math *m, const fx_fourier_spec *s)
{
	int64_t n = 1;

	for (int a = 0; a < 3; a++)
		if (s->dims[a] < 1 || s->dims[a] > INT32_MAX / 4 || !fx_mul_size(n, s->dims[a], &n))
			return fx_math_fail(m, FX_EINVAL, "an image of %lld x %lld x %lld voxels", (long long)s->dims[0],
				(long long)s->dims[1], (long long)s->dims[2]);
	if (n > INT64_MAX / 1024)
		return fx_math_fail(m, FX_ENOMEM, "an image of %lld voxels is beyond any memory", (long long)n);
	if (s->type != FX_CF32 && s->type != FX_CF64)
		return fx_math_fail(m, FX_EINVAL, "a Fourier operator works in cf32 or cf64, not %s", fx_type_name(s->type));
	if (s->method != FX_FOURIER_DIRECT && s->method != FX_FOURIER_NUFFT && s->method != FX_FOURIER_SEPARABLE)
		return fx_math_fail(m, FX_EINVAL, "there is no Fourier method %d", s->method);
	if (!isfinite(s->scale))
		return fx_math_fail(m, FX_EINVAL, "the Fourier operator's scale is no number");
	if (s->method == FX_FOURIER_NUFFT && !(s->tolerance > 0 && s->tolerance < 1))
		return fx_math_fail(m, FX_EINVAL, "a NUFFT tolerance of %g; 1e-2 to 1e-5 are usual", s->tolerance);
	if (s->method == FX_FOURIER_SEPARABLE)
		return fx_math_need(m, m->ops->separable_adjoint && m->ops->separable_forward, "separable sums");
	return FX_OK;
}

static int need_kernel(fx_math *m, const fx_fourier_spec *s)
{
	const char *name = fx_direct_kernel_name(s->direct.kernel);
	char what[64];

	if (s->direct.kernel == FX_DIRECT_AUTO)
		return FX_OK;
	if (!name)
		return fx_math_fail(m, FX_EINVAL, "there is no kernel %d of the direct sum", s->direct.kernel);
	if (s->method != FX_FOURIER_DIRECT || s->type != FX_CF32)
		return fx_math_fail(m, FX_EINVAL, "kernel '%s' is of method=direct in single precision; kernel=auto does what was asked for", name);
	snprintf(what, sizeof what, "kernel '%s' of the direct sum", name);
	return fx_math_need(m, m->ops->direct_ladder != NULL, what);
}

int fx_fourier_new(fx_math *m, const fx_fourier_spec *spec, fx_fourier **out)
{
	fx_fourier *f;
	int status = need_spec(m, spec);

	*out = NULL;
	if (status == FX_OK)
		status = need_kernel(m, spec);
	if (status != FX_OK)
		return status;
	f = fx_alloc(1, sizeof *f);
	if (!f)
		return fx_math_fail(m, FX_ENOMEM, "no memory for a Fourier operator");
	f->m = m;
	f->spec = *spec;
	f->n_voxels = spec->dims[0] * spec->dims[1] * spec->dims[2];
	if (spec->method == FX_FOURIER_NUFFT) {
		status = fxi_fine_grid_choose(m, spec, &f->grid);
		f->n_cells = f->grid.fine[0] * f->grid.fine[1] * f->grid.fine[2];
	}
	if (status != FX_OK) {
		fx_free(f);
		return status;
	}
	*out = f;
	return FX_OK;
}

void fx_fourier_free(fx_fourier *f)
{
	for (int i = 0; f && i < FXI_SPARES; i++)
		fxi_chunk_free(&f->spares[i]);
	fx_free(f);
}

const fx_fine_grid *fx_fourier_grid(const fx_fourier *f)
{
	return f->spec.method == FX_FOURIER_NUFFT ? &f->grid : NULL;
}

int fxi_sample_type(const fx_fourier *f)
{
	if (f->spec.real_samples && f->spec.method == FX_FOURIER_NUFFT)
		return f->spec.type == FX_CF32 ? FX_F32 : FX_F64;
	return f->spec.type;
}

/*
 * What a GPU keeps between the two steps of spreading a chunk (cuda/nufft_spread.cu): tiles with their rims, of coils that are spread
 * together.
 */
static double tile_bytes(const fx_fourier *f, int64_t n_coils)
{
	double tile = 1, tiles = 1, bytes;
	int axes = 0;

	for (int d = 0; d < 3; d++)
		axes += f->spec.dims[d] > 1;
	for (int d = 0; d < 3; d++)
		if (f->spec.dims[d] > 1) {
			double edge = fmin(axes == 3 ? 8 : axes == 2 ? 32 : 512, (double)f->grid.fine[d]);

			tiles *= ceil((double)f->grid.fine[d] / edge);
			tile *= edge + f->grid.width;
		}
	bytes = (fmin(tiles, FXI_CHUNK) + FXI_CHUNK / 512.0) * tile * (double)fx_type_size(fxi_sample_type(f));
	return fmax(bytes, fmin(bytes * (double)n_coils, 1.5e9));
}

/* A double, so that no size overflows. */
static double bytes_of(const fx_fourier *f, int64_t n_coils)
{
	double image = (double)f->n_voxels * (double)n_coils * (double)fx_type_size(f->spec.type);
	double sample = (double)fx_type_size(fxi_sample_type(f)), chunk = FXI_CHUNK * (3 * sizeof(double) + (double)n_coils * sample);

	if (f->spec.method == FX_FOURIER_SEPARABLE && !fx_math_on_host(f->m))
		/* The image, a chunk, the factors of a slice of it, and what parts of it make of a small image (cuda/separable.cu). */
		return image + chunk + 1e8 + fmin(16 * image, 2.7e8);
	if (f->spec.method == FX_FOURIER_SEPARABLE)
		/* The image, a chunk, and what each thread makes products in. */
		return image + chunk + SEPARABLE_BYTES * (double)f->m->n_threads * (f->spec.type == FX_CF32 ? 1 : 2);
	if (f->spec.method == FX_FOURIER_DIRECT)
		/* The image, and a chunk's fixed-point phases and its samples once more. */
		return image + chunk + FXI_CHUNK * ((double)n_coils * sample + 24);
	/* The fine grid, a chunk and its sorted points; at the end the image. */
	return image + chunk + FXI_CHUNK * 40 + (double)f->n_cells * (double)n_coils * sample +
		(fx_math_on_host(f->m) ? 0 : tile_bytes(f, n_coils));
}

int64_t fx_fourier_bytes(const fx_fourier *f, int64_t n_coils)
{
	double bytes = bytes_of(f, n_coils);

	return bytes < 9e18 ? (int64_t)bytes : INT64_MAX;
}

int fxi_need_memory(const fx_fourier *f, int64_t n_coils, double bytes)
{
	const int64_t *n = f->spec.dims;
	int64_t there = 0;
	int status = fx_math_memory(f->m, &there, NULL);
	double available = (double)there;

	if (status != FX_OK || bytes <= available)
		return status;
	return fx_math_fail(f->m, FX_ENOMEM, "the Fourier operator of %lld x %lld x %lld voxels and %lld coils needs %.0f MB of memory, and %.0f MB "
		"are available; compress to fewer coils, or reconstruct a smaller matrix", (long long)n[0], (long long)n[1],
		(long long)n[2], (long long)n_coils, ceil(bytes / 1e6), available / 1e6);
}

/* Coils first .. first + n of samples, which are on the host and have the coils last. */
static int take_coils(fx_math *m, const fx_array *a, int64_t first, int64_t n, int64_t n_coils, fx_array **out)
{
	int64_t dims[FX_MAX_DIMS], bytes = n_coils ? a->bytes / n_coils : 0;
	int n_dims = a->n_dims, coil_dim = n_dims - 1, status;

	if (n == n_coils) {
		*out = fx_array_ref((fx_array *)(uintptr_t)a);
		return FX_OK;
	}
	for (int i = 0; i < FX_MAX_DIMS; i++)
		dims[i] = a->dims[i];
	dims[coil_dim] = n;
	status = fx_array_new(a->type, n_dims, dims, out);
	if (status != FX_OK)
		return fx_math_fail(m, status, "no memory for %.1f MB of coils", (double)(bytes * n) / 1e6);
	if (bytes)
		__builtin_memcpy((*out)->data, (const char *)a->data + first * bytes, (size_t)(n * bytes));
	return FX_OK;
}

/* The same of an image, which is the backend's. */
static int take_images(fx_math *m, const fx_array *a, int64_t first, int64_t n, int64_t n_coils, fx_array **out)
{
	int64_t each = n_coils ? a->n / n_coils : 0;
	int status;

	if (n == n_coils) {
		*out = fx_array_ref((fx_array *)(uintptr_t)a);
		return FX_OK;
	}
	status = m->ops->array_new(m, a->type, 4, (int64_t[]){a->dims[0], a->dims[1], a->dims[2], n}, out);
	return status == FX_OK ? m->ops->copy(m, a, first * each, n * each, *out, 0) : status;
}

static int put_coils(fx_math *m, const fx_array *part, int64_t first, int64_t n, fx_array *all)
{
	return m->ops->copy(m, part, 0, part->n, all, first * (part->n / n));
}

static int adjoint_batch(fx_fourier *f, const fx_array *k, const fx_array *samples, int64_t n_coils, fx_array **image)
{
	fx_accumulator *a;
	int status = fx_accumulator_new(f, n_coils, &a);

	if (status != FX_OK)
		return status;
	status = fx_accumulator_add(a, k, samples, NULL);
	if (status != FX_OK) {
		fx_accumulator_free(a);
		return status;
	}
	return fx_accumulator_finish(a, image);
}

/* Coils of an array {n, ...} or {x, y, z, ...}: everything after the first `n_before` dimensions. */
static int64_t coils_of(const fx_array *a, int n_before)
{
	int64_t n = 1;

	for (int i = n_before; i < FX_MAX_DIMS; i++)
		n *= a->dims[i];
	return n;
}

int fx_fourier_adjoint(fx_fourier *f, const fx_array *k, const fx_array *samples, fx_array **image)
{
	const int64_t *n = f->spec.dims;
	int64_t n_coils = coils_of(samples, 1);
	fx_array *all = NULL;
	int status = FX_OK;

	*image = NULL;
	if (n_coils <= COIL_BATCH)
		return adjoint_batch(f, k, samples, n_coils, image);
	if (samples->n_dims != 2)
		return fx_math_fail(f->m, FX_EINVAL, "samples have %d dimensions where {M, coils} belongs", samples->n_dims);
	status = f->m->ops->array_new(f->m, f->spec.type, 4, (int64_t[]){n[0], n[1], n[2], n_coils}, &all);
	for (int64_t c = 0; c < n_coils && status == FX_OK; c += COIL_BATCH) {
		int64_t batch = n_coils - c < COIL_BATCH ? n_coils - c : COIL_BATCH;
		fx_array *some = NULL, *part = NULL;

		status = take_coils(f->m, samples, c, batch, n_coils, &some);
		if (status == FX_OK)
			status = adjoint_batch(f, k, some, batch, &part);
		if (status == FX_OK)
			status = put_coils(f->m, part, c, batch, all);
		fx_array_unref(some);
		fx_array_unref(part);
	}
	if (status == FX_OK)
		*image = all;
	else
		fx_array_unref(all);
	return status;
}

/* One batch of coils through the fine grid. */
static int interpolate_batch(fx_fourier *f, void *points, const fx_array *image, int64_t n_coils, fx_array *samples)
{
	fx_math *m = f->m;
	const int64_t dims[4] = {f->grid.fine[0], f->grid.fine[1], f->grid.fine[2], n_coils};
	fx_array *fine = NULL;
	int status = m->ops->array_new(m, f->spec.type, 4, dims, &fine);

	if (status == FX_OK)
		status = m->ops->image_to_fine(m, &f->grid, image, f->spec.scale, fine);
	if (status == FX_OK)
		status = m->ops->interpolate(m, &f->grid, points, fine, samples);
	fx_array_unref(fine);
	return status;
}

static int forward_nufft(fx_fourier *f, const fx_array *k, const fx_array *image, int64_t n_coils, fx_array *samples)
{
	fx_math *m = f->m;
	void *points = NULL;
	int64_t batch = n_coils < COIL_BATCH ? n_coils : COIL_BATCH, size = (int64_t)fx_type_size(f->spec.type);
	int status = fxi_need_memory(f, batch, (double)(f->n_cells * batch * size) + (double)k->dims[1] * 40);

	if (status == FX_OK)
		status = m->ops->points_new(m, &f->grid, k, &points);
	for (int64_t c = 0; c < n_coils && status == FX_OK; c += batch) {
		int64_t n = n_coils - c < batch ? n_coils - c : batch;
		fx_array *some = NULL, *part = NULL;

		status = take_images(m, image, c, n, n_coils, &some);
		if (status == FX_OK && n == n_coils)
			part = fx_array_ref(samples);
		else if (status == FX_OK)
			status = m->ops->array_new(m, f->spec.type, 2, (int64_t[]){k->dims[1], n}, &part);
		if (status == FX_OK)
			status = interpolate_batch(f, points, some, n, part);
		if (status == FX_OK && part != samples)
			status = put_coils(m, part, c, n, samples);
		fx_array_unref(some);
		fx_array_unref(part);
	}
	m->ops->points_free(m, points);
	return status;
}

static int forward_into(fx_fourier *f, const fx_array *k, const fx_array *image, int64_t n_coils, fx_array *samples)
{
	fx_math *m = f->m;

	if (f->spec.method == FX_FOURIER_DIRECT)
		return m->ops->direct_forward(m, k, image, f->spec.scale, samples);
	if (f->spec.method == FX_FOURIER_SEPARABLE)
		return m->ops->separable_forward(m, k, image, f->spec.scale, samples);
	return forward_nufft(f, k, image, n_coils, samples);
}

int fx_fourier_forward(fx_fourier *f, const fx_array *k, const fx_array *image, fx_array **samples)
{
	int64_t n_coils = coils_of(image, 3);
	const int64_t *n = f->spec.dims;
	fx_array *k_there = NULL;
	int status;

	*samples = NULL;
	if (f->spec.real_samples)
		return fx_math_fail(f->m, FX_EINVAL, "a Fourier operator of real samples has an adjoint only");
	if (k->type != FX_F64 || k->dims[0] != 3 || k->n != 3 * k->dims[1])
		return fx_math_fail(f->m, FX_EINVAL, "a trajectory is f64 {3, M}, not %s {%lld, %lld}", fx_type_name(k->type),
			(long long)k->dims[0], (long long)k->dims[1]);
	if (image->type != f->spec.type || image->dims[0] != n[0] || image->dims[1] != n[1] || image->dims[2] != n[2] ||
		image->n_dims > 4)
		return fx_math_fail(f->m, FX_EINVAL, "an image of %lld x %lld x %lld %s where %lld x %lld x %lld %s belongs",
			(long long)image->dims[0], (long long)image->dims[1], (long long)image->dims[2], fx_type_name(image->type),
			(long long)n[0], (long long)n[1], (long long)n[2], fx_type_name(f->spec.type));
	status = f->m->ops->upload(f->m, k, &k_there);
	if (status == FX_OK)
		status = f->m->ops->array_new(f->m, f->spec.type, 2, (int64_t[]){k->dims[1], n_coils}, samples);
	if (status == FX_OK && k->dims[1] > 0 && n_coils > 0)
		status = forward_into(f, k_there, image, n_coils, *samples);
	fx_array_unref(k_there);
	if (status != FX_OK) {
		fx_array_unref(*samples);
		*samples = NULL;
	}
	return status;
}
