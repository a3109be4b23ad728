/* SPDX-License-Identifier: MIT */
/*
 * normal.cu - A = sum_c conj(S_c) T S_c + lambda W^H W in one operation: the maps are taken along in the first and the last pass of the
 * Toeplitz product (toeplitz.cu), so that coil images exist in its work memory only, a batch of coils at a time.
 */
#include "normal.cuh"

int fxi_normal_of(fx_math *m, const fx_normal *a, const fx_array *image, fxi_product *p)
{
	bool fits = image->type == FX_CF32 && fxi_product_box(image->dims, a->kernel, &p->box) &&
		image->n == image->dims[0] * image->dims[1] * image->dims[2];

	for (int d = 0; d < 3; d++)
		fits = fits && (!a->maps || a->maps->dims[d] == image->dims[d]) && (!a->weights || a->weights->dims[d] == image->dims[d]);
	if (a->maps)
		fits = fits && a->maps->type == FX_CF32 && (image->n == 0 || (a->maps->n > 0 && a->maps->n % image->n == 0));
	if (a->weights)
		fits = fits && a->weights->type == FX_F32 && a->weights->dims[3] == 3 && a->weights->n == 3 * image->n;
	if (!fits)
		return fx_math_fail(m, FX_EINVAL, "the normal operator's kernel, maps or weights do not belong to an image of %lld x %lld x %lld",
			(long long)image->dims[0], (long long)image->dims[1], (long long)image->dims[2]);
	p->n_coils = a->maps && image->n > 0 ? a->maps->n / image->n : 1;
	p->batch = fxi_product_batch(m, &p->box, p->n_coils);
	return FX_OK;
}

int64_t fxi_cuda_normal_bytes(fx_math *m, const int64_t dims[3], int64_t n_coils)
{
	fxi_box b;

	fxi_product_box(dims, nullptr, &b);
	return fxi_product_bytes(&b, fxi_product_batch(m, &b, n_coils));
}

int fxi_cuda_normal_apply(fx_math *m, const fx_normal *a, const fx_array *x, fx_array *y)
{
	fxi_product p = {};
	fxi_use use(m);
	int status = fxi_normal_of(m, a, x, &p);

	if (status != FX_OK)
		return status;
	if (!fx_array_same_shape(x, y) || (x->n > 0 && x->data == y->data))
		return fx_math_fail(m, FX_EINVAL, "the normal operator takes an image to a different one of the same shape");
	if (x->n == 0)
		return FX_OK;
	fxi_work work(m, fxi_product_bytes(&p.box, p.batch), 1);
	p.work = (float2 *)work.get();
	p.spectrum = (const float *)use.in(a->kernel);
	p.maps = a->maps ? (const float2 *)use.in(a->maps) : nullptr;
	p.x = (const float2 *)use.in(x);
	p.y = (float2 *)use.out(y);
	status = work.status() != FX_OK ? work.status() : use.ready();
	if (status == FX_OK)
		status = fxi_product_run(m, fxi_stream_of(m), &p);
	if (status == FX_OK)
		status = use.done("the normal operator");
	if (status != FX_OK || a->lambda == 0)
		return status;
	return a->weights ? fxi_cuda_difference_normal(m, a->weights, a->lambda, x, y) : fxi_cuda_axpy(m, a->lambda, x, y);
}
