/* SPDX-License-Identifier: MIT */
/* backend.c - the CPU backend's table. */
#include "host.h"

#include <string.h>


static int open_queue(int device, int n_threads, void **queue, fx_error *err)
{
	(void)n_threads;
	*queue = NULL;
	if (device != 0)
		return fx_error_set(err, FX_EINVAL, "the host backend has no device %d; leave the number out", device);
	return FX_OK;
}

static void close_queue(void *queue)
{
	(void)queue;
}

static int sync_queue(fx_math *m)
{
	(void)m;
	return FX_OK;
}

static int array_new(fx_math *m, int type, int n_dims, const int64_t *dims, fx_array **out)
{
	int status = fx_array_new(type, n_dims, dims, out);
	double bytes = (double)fx_type_size(type);

	if (status == FX_OK)
		return FX_OK;
	for (int i = 0; i < n_dims; i++)
		bytes *= (double)dims[i];
	return fx_math_fail(m, status, "no memory for an array of %.1f MB", bytes / 1e6);
}

/* On the host both ways are the array itself. */
static int same_array(fx_math *m, const fx_array *a, fx_array **out)
{
	(void)m;
	*out = fx_array_ref((fx_array *)(uintptr_t)a);
	return FX_OK;
}

static int copy_part(fx_math *m, const fx_array *source, int64_t from, int64_t n, fx_array *target, int64_t to)
{
	size_t size = fx_type_size(source->type);

	if (source->type != target->type || n < 0 || from < 0 || to < 0 || from > source->n - n || to > target->n - n)
		return fx_math_fail(m, FX_EINVAL, "copying %lld elements from %lld of %lld to %lld of %lld", (long long)n, (long long)from,
			(long long)source->n, (long long)to, (long long)target->n);
	if (n > 0)
		memcpy((char *)target->data + (size_t)to * size, (const char *)source->data + (size_t)from * size, (size_t)n * size);
	return FX_OK;
}

static const fx_backend host = {
	.abi = FX_ABI,
	.name = "host",
	.open = open_queue,
	.close = close_queue,
	.sync = sync_queue,
	.array_new = array_new,
	.upload = same_array,
	.download = same_array,
	.copy = copy_part,
	.fft = fxi_host_fft,
	.share_out = fxi_host_share_out,
	.density_iterate = fxi_host_density_iterate,
	.points_new = fxi_host_points_new,
	.points_free = fxi_host_points_free,
	.spread = fxi_host_spread,
	.interpolate = fxi_host_interpolate,
	.fine_to_image = fxi_host_fine_to_image,
	.image_to_fine = fxi_host_image_to_fine,
	.direct_adjoint = fxi_host_direct_adjoint,
	.direct_forward = fxi_host_direct_forward,
	.separable_adjoint = fxi_host_separable_adjoint,
	.separable_forward = fxi_host_separable_forward,
	.toeplitz_apply = fxi_host_toeplitz_apply,
	.toeplitz_spectrum = fxi_host_toeplitz_spectrum,
	.dot = fxi_host_dot,
	.axpy = fxi_host_axpy,
	.xpay = fxi_host_xpay,
	.scale = fxi_host_scale,
	.difference_normal = fxi_host_difference_normal,
	.coil_expand = fxi_host_coil_expand,
	.coil_combine = fxi_host_coil_combine,
	.coil_power = fxi_host_coil_power,
	.coil_mix = fxi_host_coil_mix,
	.walsh = fxi_host_walsh,
	.marks = fxi_host_marks,
	.magnitude = fxi_host_magnitude,
	.tensor_smooth = fxi_host_tensor_smooth,
	.metric_build = fxi_host_metric_build,
	.tensor_fit = fxi_host_tensor_fit,
	.tensor_accumulate = fxi_host_tensor_accumulate,
	.tensor_solve = fxi_host_tensor_solve,
	.track_prepare = fxi_host_track_prepare,
	.track_release = fxi_host_track_release,
	.track_batch = fxi_host_track_batch,
};

const fx_backend *fx_backend_host(void)
{
	return &host;
}
