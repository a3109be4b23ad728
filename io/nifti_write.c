/* SPDX-License-Identifier: MIT */
/*
 * nifti_write.c - see nifti_write.h. NIfTI is RAS where MRD is LPS: the first two world axes change sign, the voxels stay
 * where they are.
 */
#include "nifti_write.h"

#include "nifti_out.h"

#include <nifti/nifti1.h>

static void fill_geometry(fxi_nifti_facts *f, const fxi_stack *s)
{
	fx_lattice l = {.has_affine = s->has_geometry};

	for (int i = 0; i < 3; i++) {
		double sign = i < 2 ? -1 : 1;

		for (int a = 0; a < 3; a++)
			l.affine[i][a] = sign * s->axes[a][i] * s->voxel_mm[a];
		l.affine[i][3] = sign * s->origin[i];
	}
	fxi_nifti_geometry(f, &l);
	for (int i = 0; i < 3; i++)
		f->pixdim[i + 1] = s->voxel_mm[i];
}

static fxi_nifti_facts facts_of(const fxi_stack *s, bool as_complex)
{
	fxi_nifti_facts f = fxi_nifti_facts_new(as_complex ? DT_COMPLEX64 : DT_FLOAT32, as_complex ? 64 : 32);
	int64_t n = s->n_volumes > 1 ? s->n_volumes : s->n_channels, m = s->n_volumes > 1 ? s->n_channels : 1;

	for (int i = 0; i < 3; i++)
		f.dim[i + 1] = s->matrix[i];
	f.dim[4] = n;
	f.dim[5] = m;
	f.dim[0] = m > 1 ? 5 : n > 1 ? 4 : 3;
	fill_geometry(&f, s);
	return f;
}

static int write_voxels(fxi_nifti_out *o, const fxi_held_list *images, const fxi_stack *s, bool as_complex, fx_error *err)
{
	size_t size = as_complex ? sizeof(fx_cf32) : sizeof(float);
	int64_t n = s->matrix[0] * s->matrix[1];
	void *plane = fx_alloc(n, size);
	int status = FX_OK;

	if (!plane)
		return fx_error_set(err, FX_ENOMEM, "out of memory while writing %s", o->file->final);
	for (int64_t c = 0; c < s->n_channels; c++)
		for (int64_t v = 0; v < s->n_volumes; v++)
			for (int64_t z = 0; z < s->matrix[2] && status == FX_OK; z++) {
				if (as_complex)
					fxi_stack_plane_complex(images, s, v, z, c, plane);
				else
					fxi_stack_plane(images, s, v, z, c, plane);
				status = fxi_nifti_out_write(o, plane, (size_t)n * size, err);
			}
	fx_free(plane);
	return status;
}

int fxi_nifti_write(fxi_aside *file, bool gz, const fxi_held_list *images, const fxi_stack *stack, bool complex_values,
	fx_error *err)
{
	bool as_complex = complex_values && fxi_stack_is_complex(images, stack);
	fxi_nifti_facts f = facts_of(stack, as_complex);
	fxi_nifti_out o;
	int status = fxi_nifti_out_open(&o, file, gz, err);

	if (status == FX_OK)
		status = fxi_nifti_header_write(&o, &f, err);
	if (status == FX_OK)
		status = write_voxels(&o, images, stack, as_complex, err);
	if (status == FX_OK)
		status = fxi_nifti_out_finish(&o, err);
	fxi_nifti_out_close(&o);
	return status;
}
