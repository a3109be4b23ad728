/* SPDX-License-Identifier: MIT */
/* tensor_field.h - tensors to push in, and regions as files, for the suites of metric and track. */
#ifndef FORNIX_TESTS_TENSOR_FIELD_H
#define FORNIX_TESTS_TENSOR_FIELD_H

#include <CUnit/CUnit.h>
#include <fornix/fornix.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** Tensors (new message) all alike: xx, xy, yy, xz, yz, zz in um^2/ms. */
static inline fx_msg *uniform_tensors(const fx_lattice *l, const double d[6])
{
	fx_msg *m = fx_msg_new(FX_TENSORS);
	fx_tensors *t;

	CU_ASSERT_PTR_NOT_NULL_FATAL(m);
	t = fx_msg_tensors(m);
	t->lattice = *l;
	CU_ASSERT_EQUAL_FATAL(fx_array_new4(FX_F32, 6, l->dims[0], l->dims[1], l->dims[2], &t->d), FX_OK);
	for (int64_t i = 0; i < t->d->n; i++)
		FX_F32_OF(t->d)[i] = (float)d[i % 6];
	return m;
}

static inline int64_t voxel_of(const fx_lattice *l, int64_t x, int64_t y, int64_t z)
{
	return x + l->dims[0] * (y + l->dims[1] * z);
}

static inline void set_tensor(fx_msg *m, int64_t voxel, const double d[6])
{
	for (int c = 0; c < 6; c++)
		FX_F32_OF(fx_msg_tensors(m)->d)[6 * voxel + c] = (float)d[c];
}

/**
 * A NIfTI-1 file of f32 values on the lattice, header and bytes by hand (little-endian hosts): sform where it has an affine.
 * `path` ends in XXXXXX.nii and is filled in.
 */
static inline void write_region(char *path, const fx_lattice *l, const float *values)
{
	uint8_t head[352] = {0};
	int16_t dims[4] = {3, (int16_t)l->dims[0], (int16_t)l->dims[1], (int16_t)l->dims[2]}, type[2] = {16, 32};
	int16_t codes[2] = {0, (int16_t)(l->has_affine ? 1 : 0)};
	float affine[3][4], sizes[4] = {1, 1, 1, 1}, offset = 352;
	int32_t size = 348;
	int fd = mkstemps(path, 4);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "wb");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 4; j++)
			affine[i][j] = (float)l->affine[i][j];
	memcpy(head, &size, 4);
	memcpy(head + 40, dims, sizeof dims);
	memcpy(head + 70, type, sizeof type);
	memcpy(head + 76, sizes, sizeof sizes);
	memcpy(head + 108, &offset, 4);
	memcpy(head + 252, codes, sizeof codes);
	memcpy(head + 280, affine, sizeof affine);
	memcpy(head + 344, "n+1", 4);
	CU_ASSERT_EQUAL_FATAL(fwrite(head, sizeof head, 1, f), 1);
	CU_ASSERT_EQUAL_FATAL(fwrite(values, (size_t)(l->dims[0] * l->dims[1] * l->dims[2]) * 4, 1, f), 1);
	CU_ASSERT_EQUAL_FATAL(fclose(f), 0);
}

#endif
