/* SPDX-License-Identifier: MIT */
/* backend.c - the CPU backend's table, and the handles on it. */
#include "host.h"

#include <stdlib.h>
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

static const fx_backend host = {
	.abi = FX_ABI,
	.name = "host",
	.open = open_queue,
	.close = close_queue,
	.sync = sync_queue,
	.array_new = array_new,
	.upload = same_array,
	.download = same_array,
	.fft = fxi_host_fft,
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
	.metric_build = fxi_host_metric_build,
	.tensor_fit = fxi_host_tensor_fit,
	.tensor_accumulate = fxi_host_tensor_accumulate,
	.tensor_solve = fxi_host_tensor_solve,
	.track_batch = fxi_host_track_batch,
};

const fx_backend *fx_backend_host(void)
{
	return &host;
}

int fx_math_new(const char *backend, int n_threads, fx_error *err, fx_math **out)
{
	fx_math *m;
	int status;

	*out = NULL;
	if (strcmp(backend, "auto") != 0 && strcmp(backend, "host") != 0)
		return fx_error_set(err, FX_ENOTSUP,
			"backend '%s' is not in this build; 'host' and 'auto' are", backend);
	m = fx_alloc(1, sizeof *m);
	if (!m)
		return fx_error_set(err, FX_ENOMEM, "no memory for a backend handle");
	m->ops = &host;
	m->n_threads = n_threads > 0 ? n_threads : fx_processors();
	m->err = err;
	status = m->ops->open(0, m->n_threads, &m->queue, err);
	if (status != FX_OK) {
		fx_free(m);
		return status;
	}
	*out = m;
	return FX_OK;
}

void fx_math_free(fx_math *m)
{
	if (!m)
		return;
	m->ops->close(m->queue);
	fx_free(m);
}

int fx_math_check(fx_math *m)
{
	if (m->stopped && m->stopped(m->stopped_arg))
		return fx_math_fail(m, FX_ECANCELED, "stopped before the end");
	return FX_OK;
}

int fx_math_fail(fx_math *m, int status, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fx_error_setv(m->err, status, fmt, args);
	va_end(args);
	return status;
}
