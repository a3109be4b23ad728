/* SPDX-License-Identifier: MIT */
/*
 * smooth.c - a tensor field averaged with a Gaussian over its mask: noise turns the direction of each tensor by itself, and
 * a sharpened metric follows every turn. What is outside the mask has no weight (normalised convolution, Knutsson & Westin
 * 1993), so nothing leaks in from there.
 */
#include "tensor.h"

int fx_tensors_smooth(fx_math *m, const fx_tensors *t, double sigma_mm, fx_array **out)
{
	double sigma[3];
	int status = fx_math_need(m, m->ops->tensor_smooth, "smoothing of tensors");

	*out = NULL;
	if (status == FX_OK)
		status = m->ops->array_new(m, FX_F32, 4, t->d->dims, out);
	if (status != FX_OK)
		return status;
	fx_lattice_voxel_mm(&t->lattice, sigma);
	for (int a = 0; a < 3; a++)
		sigma[a] = sigma_mm / sigma[a];
	status = m->ops->tensor_smooth(m, t->d, t->mask, t->flags, (unsigned)FX_TENSOR_OUTSIDE | (unsigned)FX_TENSOR_UNFITTED, sigma, *out);
	if (status != FX_OK) {
		fx_array_unref(*out);
		*out = NULL;
	}
	return status;
}
