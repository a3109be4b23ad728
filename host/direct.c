/* SPDX-License-Identifier: MIT */
/*
 * direct.c - the non-Cartesian Fourier sums exactly as they are written: the oracle of everything faster.
 *
 * The scheme of Stone et al. (2008), and of Kirk & Hwu's chapter on their code: the loop is fissioned (the weighting by
 * conj(phi) is done before, once) and interchanged into gather form, each output summing over all inputs, inputs taken in chunks
 * that stay in the first cache. Here a task owns a block of neighbouring outputs, a vector lane each. Sums of a chunk are
 * single (for cf32), sums of chunks double, so the error does not grow with the number of samples.
 *
 * A phase is an integer: k's fraction of a cycle in fixed point times the voxel's integer index, which wraps exactly.
 */
#include "host.h"
#include "kernels/direct.h"
#include "sums.h"

#include <string.h>

/** Inputs of a chunk. Rounding of a chunk's sum is about sqrt(256) * 6e-8 / 2 of its terms' root mean square. */
#define CHUNK 256

/* The image's axes, the longest first: lines of voxels run along it. */
struct shape {
	int axis[3];
	int64_t n[3], stride[3];
	int64_t n_voxels, n_coils;
	int64_t block;     /* outputs of a task: voxels of a line, or samples */
	int64_t n_blocks;  /* of a line (adjoint) */
	int64_t n_pieces;  /* CHUNKs of a line (forward) */
};

static int coil_batch(int64_t left)
{
	return left >= 4 ? 4 : left >= 2 ? 2 : 1;
}

/* The fewest vectors, of 1, 2 and 4, that hold `count` outputs. */
static int vectors_for(int64_t count, int lanes, int64_t most)
{
	int64_t v = 1;

	while (v * lanes < count && v < most)
		v *= 2;
	return (int)v;
}

#define REAL float
#define PHASE uint32_t
#define PICK(fn) FXI_PICK(fn##_f32)
#define FN(name) FXI_JOIN(name, f32)
#include "direct_template.h"
#undef REAL
#undef PHASE
#undef PICK
#undef FN

#define REAL double
#define PHASE uint64_t
#define PICK(fn) FXI_PICK(fn##_f64)
#define FN(name) FXI_JOIN(name, f64)
#include "direct_template.h"

static struct shape shape_of(const fx_array *image, int64_t n_coils, int lanes)
{
	struct shape s = {.axis = {0, 1, 2}, .n_voxels = image->dims[0] * image->dims[1] * image->dims[2]};
	int64_t stride[3] = {1, image->dims[0], image->dims[0] * image->dims[1]};

	for (int a = 1; a < 3; a++)
		if (image->dims[a] > image->dims[s.axis[0]]) {
			s.axis[a] = s.axis[0];
			s.axis[0] = a;
		}
	for (int a = 0; a < 3; a++) {
		s.n[a] = image->dims[s.axis[a]];
		s.stride[a] = stride[s.axis[a]];
	}
	s.n_coils = n_coils;
	s.block = lanes * (n_coils == 1 ? FXI_DIRECT_VECTORS : FXI_DIRECT_VECTORS / 2);
	s.n_blocks = (s.n[0] + s.block - 1) / s.block;
	s.n_pieces = (s.n[0] + CHUNK - 1) / CHUNK;
	return s;
}

int fxi_sums_need(fx_math *m, const fx_array *k, const fx_array *samples, const fx_array *image)
{
	int64_t voxels = image->dims[0] * image->dims[1] * image->dims[2];

	if (k->type != FX_F64 || k->dims[0] != 3 || k->n != 3 * k->dims[1])
		return fx_math_fail(m, FX_EINVAL, "a trajectory is f64 {3, M}, not %s {%lld, %lld}", fx_type_name(k->type),
			(long long)k->dims[0], (long long)k->dims[1]);
	if ((samples->type != FX_CF32 && samples->type != FX_CF64) || image->type != samples->type)
		return fx_math_fail(m, FX_EINVAL, "samples and image are both cf32 or both cf64, not %s and %s",
			fx_type_name(samples->type), fx_type_name(image->type));
	if (samples->dims[0] != k->dims[1])
		return fx_math_fail(m, FX_EINVAL, "%lld samples a coil for a trajectory of %lld",
			(long long)samples->dims[0], (long long)k->dims[1]);
	if ((samples->dims[0] > 0 && voxels > 0 && image->n / voxels != samples->n / samples->dims[0]))
		return fx_math_fail(m, FX_EINVAL, "samples of %lld coils for an image of %lld",
			(long long)(samples->n / samples->dims[0]), (long long)(image->n / voxels));
	return FX_OK;
}

int fxi_host_direct_adjoint(fx_math *m, const fx_array *k, const fx_array *samples, double scale, fx_array *image)
{
	int status = fxi_sums_need(m, k, samples, image);
	struct shape s;

	if (status != FX_OK || samples->n == 0 || image->n == 0)
		return status;
	s = shape_of(image, samples->n / samples->dims[0], samples->type == FX_CF32 ? 16 : 8);
	if (samples->type == FX_CF32)
		return adjoint_f32(m, &s, k, samples, scale, image);
	return adjoint_f64(m, &s, k, samples, scale, image);
}

int fxi_host_direct_forward(fx_math *m, const fx_array *k, const fx_array *image, double scale, fx_array *samples)
{
	int status = fxi_sums_need(m, k, samples, image);
	struct shape s;

	if (status != FX_OK || samples->n == 0)
		return status;
	if (image->n == 0) {
		memset(samples->data, 0, (size_t)samples->bytes);
		return FX_OK;
	}
	s = shape_of(image, samples->n / samples->dims[0], samples->type == FX_CF32 ? 16 : 8);
	if (samples->type == FX_CF32)
		return forward_f32(m, &s, k, image, scale, samples);
	return forward_f64(m, &s, k, image, scale, samples);
}
