/* SPDX-License-Identifier: MIT */
/*
 * separable.c - the exact sums as matrix products. On a regular grid e^{i2pi k.x} = Ex Ey Ez, a factor an axis, so
 * image[x, (y,z)] = sum_m (s_m Ex[m, x]) (Ey[m, y] Ez[m, z]): no sine and cosine for each pair of voxel and sample, and what is
 * left is 8 flop a pair in the form that processors are best at.
 *
 * Both factors are made for a block of voxels and a chunk of samples at a time, as the product reads them, and used up at
 * once: nothing is stored for all samples. The product is our own, since a BLAS would first copy both factors, and Debian
 * 12's OpenBLAS takes processors newer than itself for one of 2004, no faster than direct.c. Products of a chunk are single (for
 * cf32), sums of chunks double, as in direct.c. A task owns a block whose size depends on the shapes alone: the same
 * bits whatever the number of threads.
 */
#include "host.h"
#include "kernels/separable.h"
#include "scratch.h"
#include "sums.h"

#include <string.h>

/** Samples of a chunk: terms of a sum of a product. Rounding as in direct.c. */
#define CHUNK FXI_SEPARABLE_DEPTH
/** Most voxels of a block along the longest axis (terms, of the forward sum), and across it. */
#define MOST_ROWS FXI_SEPARABLE_DEPTH
#define MOST_COLUMNS 128
/** Most sums that a block keeps: 512 kB in double. */
#define MOST_SUMS 32768
/** Coils that share a block's factors. */
#define MOST_COILS 4

/* The image's axes, the longest first, cut into blocks as even as they come. */
struct shape {
	int axis[3];
	int64_t n[3], stride[3];
	int64_t block[3], n_blocks[3];  /* voxels of a block, blocks, of each axis */
	int64_t row[3], across;         /* the length of a row of waves of each axis, and of waves across the first */
	int64_t n_voxels, n_coils;
	int64_t batch;                  /* coils of a pass */
};

/* Voxels of one block: first, and how many of each axis. */
struct block {
	int64_t first[3], n[3], columns;
	int64_t place;                  /* of its first voxel in the image */
};

static int64_t whole_row(int64_t n)
{
	return (n + FXI_SEPARABLE_ROW - 1) / FXI_SEPARABLE_ROW * FXI_SEPARABLE_ROW;
}

static void cut_axis(struct shape *s, int a, int64_t most)
{
	s->n_blocks[a] = (s->n[a] + most - 1) / most;
	s->block[a] = (s->n[a] + s->n_blocks[a] - 1) / s->n_blocks[a];
	s->n_blocks[a] = (s->n[a] + s->block[a] - 1) / s->block[a];
	s->row[a] = whole_row(s->block[a]);
}

static struct shape shape_of(const fx_array *image, int64_t n_coils)
{
	struct shape s = {.axis = {0, 1, 2}, .n_voxels = image->dims[0] * image->dims[1] * image->dims[2], .n_coils = n_coils};
	int64_t stride[3] = {1, image->dims[0], image->dims[0] * image->dims[1]}, columns;

	for (int a = 1; a < 3; a++)
		if (image->dims[a] > image->dims[s.axis[0]]) {
			s.axis[a] = s.axis[0];
			s.axis[0] = a;
		}
	for (int a = 0; a < 3; a++) {
		s.n[a] = image->dims[s.axis[a]];
		s.stride[a] = stride[s.axis[a]];
	}
	s.batch = n_coils < MOST_COILS ? n_coils : MOST_COILS;
	cut_axis(&s, 0, MOST_ROWS);
	columns = MOST_SUMS / (s.row[0] * s.batch);
	if (columns > MOST_COLUMNS)
		columns = MOST_COLUMNS;
	cut_axis(&s, 1, columns);
	cut_axis(&s, 2, columns / s.block[1]);
	s.across = whole_row(s.block[1] * s.block[2]);
	return s;
}

static struct block block_of(const struct shape *s, int64_t i)
{
	const int64_t at[3] = {i % s->n_blocks[0], i / s->n_blocks[0] % s->n_blocks[1], i / s->n_blocks[0] / s->n_blocks[1]};
	struct block b = {.place = 0};

	for (int a = 0; a < 3; a++) {
		b.first[a] = at[a] * s->block[a];
		b.n[a] = s->n[a] - b.first[a] < s->block[a] ? s->n[a] - b.first[a] : s->block[a];
		b.place += b.first[a] * s->stride[a];
		b.first[a] -= s->n[a] / 2;
	}
	b.columns = b.n[1] * b.n[2];
	return b;
}

static int64_t n_blocks_of(const struct shape *s)
{
	return s->n_blocks[0] * s->n_blocks[1] * s->n_blocks[2];
}

/* The next n bytes of a work buffer, `bytes` into it; NULL where only the size is asked for. */
static void *part_of(char *memory, int64_t *bytes, int64_t n)
{
	char *part = memory ? memory + *bytes : NULL;

	*bytes += (n + 63) / 64 * 64;
	return part;
}

#define REAL float
#define PHASE uint32_t
#define PICK(fn) FXI_PICK(fn##_f32)
#define FN(name) FXI_JOIN(name, f32)
#include "separable_template.h"
#undef REAL
#undef PHASE
#undef PICK
#undef FN

#define REAL double
#define PHASE uint64_t
#define PICK(fn) FXI_PICK(fn##_f64)
#define FN(name) FXI_JOIN(name, f64)
#include "separable_template.h"

static int sums(fx_math *m, const fx_array *k, bool forward, double scale, const fx_array *samples, const fx_array *image)
{
	struct shape s = shape_of(image, samples->n / samples->dims[0]);

	if (samples->type == FX_CF32)
		return sums_f32(m, &s, k, forward, scale, samples, image);
	return sums_f64(m, &s, k, forward, scale, samples, image);
}

int fxi_host_separable_adjoint(fx_math *m, const fx_array *k, const fx_array *samples, double scale, fx_array *image)
{
	int status = fxi_sums_need(m, k, samples, image);

	if (status != FX_OK || samples->n == 0 || image->n == 0)
		return status;
	return sums(m, k, false, scale, samples, image);
}

int fxi_host_separable_forward(fx_math *m, const fx_array *k, const fx_array *image, double scale, fx_array *samples)
{
	int status = fxi_sums_need(m, k, samples, image);

	if (status != FX_OK || samples->n == 0)
		return status;
	if (image->n == 0) {
		memset(samples->data, 0, (size_t)samples->bytes);
		return FX_OK;
	}
	return sums(m, k, true, scale, samples, image);
}
