/* SPDX-License-Identifier: MIT */
/* backend.cu - the CUDA backend's table, its queues, and how failures of the GPU are told. */
#include "cuda.cuh"

#include <mutex>
#include <new>
#include <stdio.h>
#include <string.h>

#define PARTIALS 1024 /* block sums of a reduction, two numbers each */

/* ---- failures ----------------------------------------------------------------------------------- */

/* Errors after which every further call of this process fails, whatever it is: the driver has given the context up. */
static bool is_sticky(cudaError_t e)
{
	switch (e) {
	case cudaErrorIllegalAddress:
	case cudaErrorMisalignedAddress:
	case cudaErrorInvalidAddressSpace:
	case cudaErrorInvalidPc:
	case cudaErrorIllegalInstruction:
	case cudaErrorHardwareStackError:
	case cudaErrorLaunchFailure:
	case cudaErrorLaunchTimeout:
	case cudaErrorAssert:
	case cudaErrorECCUncorrectable:
	case cudaErrorNvlinkUncorrectable:
	case cudaErrorContextIsDestroyed:
	case cudaErrorDeviceUninitialized:
	case cudaErrorMpsRpcFailure:
	case cudaErrorMpsServerNotReady:
	case cudaErrorUnknown:
		return true;
	default:
		return false;
	}
}

/* What is wrong and the way out, for those errors that a user can do something about. */
static int explain(fx_error *err, int device, cudaError_t e, const char *what)
{
	if (e == cudaErrorNoKernelImageForDevice || e == cudaErrorUnsupportedPtxVersion)
		return fx_error_set(err, FX_ENOTSUP, "GPU %d cannot run this build, which has no code for it (%s): build with "
			"FORNIX_CUDA_ARCHITECTURES of that GPU, update the driver, or use --backend host", device, cudaGetErrorName(e));
	if (e == cudaErrorDevicesUnavailable || e == cudaErrorDeviceAlreadyInUse)
		return fx_error_set(err, FX_EIO, "GPU %d is busy: another process has it to itself (its compute mode is exclusive; nvidia-smi "
			"shows who); wait, take another with --backend cuda:N, or use --backend host", device);
	if (is_sticky(e))
		return fx_error_set(err, FX_EIO, "GPU %d failed at %s: %s (%s). Its context is lost: nothing more can be computed on it in this "
			"process, and what was on it is gone. Start the run again; if it fails again, use --backend host and report this "
			"message (the kernel's log, dmesg | grep Xid, tells whether the GPU itself failed)", device, what, cudaGetErrorString(e),
			cudaGetErrorName(e));
	return fx_error_set(err, FX_EIO, "GPU %d failed at %s: %s (%s)", device, what, cudaGetErrorString(e), cudaGetErrorName(e));
}

int fxi_cuda_no_memory(fx_math *m, double bytes, const char *what)
{
	size_t left = 0, all = 0;
	char much[32] = "memory";

	cudaGetLastError(); /* this one is over, and the next call is to succeed */
	if (bytes > 0)
		snprintf(much, sizeof much, "%.1f MB", bytes / 1e6);
	if (cudaMemGetInfo(&left, &all) != cudaSuccess)
		cudaGetLastError();
	return fx_math_fail(m, FX_ENOMEM, "GPU %d has no %s left for %s: of its %.1f GB, %.2f GB are free, the rest is held by this run and by "
		"other processes (nvidia-smi lists them); free it, take another GPU with --backend cuda:N, or use --backend host", m->device,
		much, what, (double)all / 1e9, (double)left / 1e9);
}

int fxi_cuda_check(fx_math *m, cudaError_t e, const char *what)
{
	if (e == cudaSuccess)
		return FX_OK;
	if (e == cudaErrorMemoryAllocation)
		return fxi_cuda_no_memory(m, 0, what);
	return explain(m->err, m->device, e, what);
}

int fxi_cufft_check(fx_math *m, cufftResult e, const char *what)
{
	if (e == CUFFT_SUCCESS)
		return FX_OK;
	if (e == CUFFT_ALLOC_FAILED)
		return fx_math_fail(m, FX_ENOMEM, "GPU %d has no memory left for a Fourier transform (%s)", m->device, what);
	return fx_math_fail(m, FX_EIO, "cuFFT failed on GPU %d at %s: error %d", m->device, what, (int)e);
}

int fxi_cuda_launched(fx_math *m, const char *what)
{
	return fxi_cuda_check(m, cudaGetLastError(), what);
}

/* Before there is a queue. */
static int cannot(fx_error *err, int device, const char *what, cudaError_t e)
{
	cudaGetLastError();
	if (e == cudaErrorMemoryAllocation)
		return fx_error_set(err, FX_ENOMEM, "GPU %d has too little memory left even to begin; other processes hold it (nvidia-smi lists "
			"them): wait, take another with --backend cuda:N, or use --backend host", device);
	return explain(err, device, e, what);
}

/* ---- which GPU ---------------------------------------------------------------------------------- */

/* Is there a GPU of that number that this build has code for? */
static int look_at(int device, fx_error *err, cudaDeviceProp *properties)
{
	int n = 0, driver = 0, runtime = 0;
	cudaError_t e = cudaGetDeviceCount(&n);

	cudaDriverGetVersion(&driver);
	cudaRuntimeGetVersion(&runtime);
	if (e == cudaErrorInsufficientDriver && driver == 0)
		return fx_error_set(err, FX_ENOTSUP, "there is no NVIDIA driver on this machine");
	if (e == cudaErrorInsufficientDriver)
		return fx_error_set(err, FX_ENOTSUP, "the NVIDIA driver knows CUDA %d.%d and this build needs %d.%d: update the driver",
			driver / 1000, driver % 100 / 10, runtime / 1000, runtime % 100 / 10);
	if (e != cudaSuccess || n == 0) {
		cudaGetLastError();
		return fx_error_set(err, FX_ENOTSUP, "there is no GPU that CUDA can use (%s)",
			e == cudaSuccess ? "none was found" : cudaGetErrorString(e));
	}
	if (device < 0 || device >= n)
		return fx_error_set(err, FX_EINVAL, "there is no GPU %d: %d of them, counted from 0", device, n);
	e = cudaGetDeviceProperties(properties, device);
	if (e != cudaSuccess)
		return cannot(err, device, "its properties", e);
	if (properties->major < 7 || (properties->major == 7 && properties->minor < 5))
		return fx_error_set(err, FX_ENOTSUP, "GPU %d (%s) has compute capability %d.%d; Fornix needs 7.5 or newer", device,
			properties->name, properties->major, properties->minor);
	return FX_OK;
}

/* "580.95.05" of "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build ...". */
static void driver_version(char out[32])
{
	char line[512] = "";
	FILE *f = fopen("/proc/driver/nvidia/version", "r");
	char *at = f && fgets(line, sizeof line, f) ? strstr(line, "Module") : nullptr;

	out[0] = '\0';
	if (f)
		fclose(f);
	while (at && *at && !(*at == ' ' && at[1] >= '0' && at[1] <= '9'))
		at++;
	if (at && *at)
		snprintf(out, 32, "%.*s", (int)strspn(at + 1, "0123456789."), at + 1);
}

__global__ static void answer(double *out)
{
	out[threadIdx.x] = 42.0 + threadIdx.x;
}

/* The GPU has computed this before anybody counts on it: code for it is there and its memory answers. */
static int try_out(int device, fx_device_info *out, fx_error *err)
{
	size_t left = 0, all = 0;
	double *there = nullptr, here[32] = {0};
	cudaError_t e = cudaSetDevice(device);

	if (e == cudaSuccess)
		e = cudaMemGetInfo(&left, &all);
	if (e == cudaSuccess)
		e = cudaMalloc(&there, sizeof here);
	if (e == cudaSuccess) {
		answer<<<1, 32>>>(there);
		e = cudaGetLastError();
	}
	if (e == cudaSuccess)
		e = cudaMemcpy(here, there, sizeof here, cudaMemcpyDeviceToHost);
	if (there)
		cudaFree(there);
	out->bytes = (int64_t)all;
	out->available = (int64_t)left;
	if (e != cudaSuccess)
		return cannot(err, device, "a first computation", e);
	for (int i = 0; i < 32; i++)
		if (here[i] != 42.0 + i)
			return fx_error_set(err, FX_EIO, "GPU %d computes wrong numbers; use --backend host", device);
	return FX_OK;
}

static int about(int device, fx_device_info *out, fx_error *err)
{
	cudaDeviceProp properties = {};
	int status = look_at(device, err, &properties);

	*out = fx_device_info{};
	snprintf(out->name, sizeof out->name, "%.127s", properties.name); /* also of one that is too old */
	out->major = properties.major;
	out->minor = properties.minor;
	cudaDriverGetVersion(&out->driver_api);
	cudaRuntimeGetVersion(&out->runtime);
	driver_version(out->driver);
	return status == FX_OK ? try_out(device, out, err) : status;
}

/* ---- queues ------------------------------------------------------------------------------------- */

static std::mutex queues_lock;
static int n_queues[1024]; /* open ones of each device */

/* With the last queue goes the memory that the pool kept, so that a process that waits does not hold it from others. */
static void count_queue(int device, int by)
{
	cudaMemPool_t pool;
	std::lock_guard<std::mutex> guard(queues_lock);

	n_queues[device] += by;
	if (n_queues[device] == 0 && cudaDeviceGetDefaultMemPool(&pool, device) == cudaSuccess)
		cudaMemPoolTrimTo(pool, 0);
}

static void close_queue(void *queue)
{
	fxi_cuda_queue *q = (fxi_cuda_queue *)queue;

	if (!q)
		return;
	cudaSetDevice(q->device);
	if (q->stream)
		cudaStreamSynchronize(q->stream->stream);
	fxi_cuda_plans_free(q);
	fxi_cuda_nufft_free(q);
	if (q->partial)
		cudaFree(q->partial);
	if (q->result)
		cudaFreeHost(q->result);
	fxi_stream_unref(q->copies);
	fxi_pinned_unref(q->pinned);
	if (q->sums)
		cudaFreeHost(q->sums);
	fxi_stream_unref(q->stream);
	count_queue(q->device, -1);
	delete q;
}

static cudaError_t make(fxi_cuda_queue *q)
{
	cudaMemPool_t pool;
	uint64_t keep = UINT64_MAX;
	cudaError_t e = cudaStreamCreateWithFlags(&q->stream->stream, cudaStreamNonBlocking);

	/* Memory that was given back stays with the process: taking it again costs no call into the driver. */
	if (e == cudaSuccess)
		e = cudaDeviceGetDefaultMemPool(&pool, q->device);
	if (e == cudaSuccess)
		e = cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep);
	if (e == cudaSuccess)
		e = cudaMalloc(&q->partial, 2 * PARTIALS * sizeof(double));
	if (e == cudaSuccess)
		e = cudaMallocHost(&q->result, 16 * sizeof(double));
	if (e == cudaSuccess)
		e = cudaMallocHost(&q->sums, FXI_CUDA_SUMS * sizeof *q->sums);
	return e;
}

static int open_queue(int device, int n_threads, void **queue, fx_error *err)
{
	cudaDeviceProp properties;
	fxi_cuda_queue *q;
	cudaError_t e;
	int status = look_at(device, err, &properties);

	(void)n_threads;
	*queue = nullptr;
	if (status != FX_OK)
		return status;
	e = cudaSetDevice(device);
	if (e != cudaSuccess)
		return cannot(err, device, "choosing it", e);
	q = new (std::nothrow) fxi_cuda_queue();
	if (q)
		q->stream = new (std::nothrow) fxi_stream();
	if (q)
		q->pinned = fxi_pinned_new();
	if (!q || !q->stream || !q->pinned) {
		if (q) {
			fxi_pinned_unref(q->pinned);
			delete q->stream;
		}
		delete q;
		return fx_error_set(err, FX_ENOMEM, "no memory for a queue of GPU %d", device);
	}
	q->stream->refs = 1;
	q->stream->device = q->device = device;
	count_queue(device, 1);
	q->n_processors = properties.multiProcessorCount;
	q->memory = (int64_t)properties.totalGlobalMem;
	q->major = properties.major;
	q->shared_limit = properties.sharedMemPerBlockOptin;
	e = make(q);
	if (e != cudaSuccess) {
		close_queue(q);
		return cannot(err, device, "opening it", e);
	}
	*queue = q;
	return FX_OK;
}

static int sync_queue(fx_math *m)
{
	return fxi_cuda_check(m, cudaStreamSynchronize(fxi_stream_of(m)), "waiting for its work");
}

static int describe(fx_math *m, char *text, size_t size)
{
	cudaDeviceProp p;
	int driver = 0, status = fxi_cuda_check(m, cudaGetDeviceProperties(&p, m->device), "its properties");

	cudaDriverGetVersion(&driver);
	if (status == FX_OK)
		snprintf(text, size, "%s, compute capability %d.%d, %d multiprocessors, driver CUDA %d.%d", p.name, p.major, p.minor,
			p.multiProcessorCount, driver / 1000, driver % 100 / 10);
	return status;
}

static fx_backend table()
{
	fx_backend b = {};

	b.abi = FX_ABI;
	b.name = "cuda";
	b.about = about;
	b.open = open_queue;
	b.close = close_queue;
	b.sync = sync_queue;
	b.describe = describe;
	b.array_new = fxi_cuda_array_new;
	b.upload = fxi_cuda_upload;
	b.download = fxi_cuda_download;
	b.staging_new = fxi_cuda_staging_new;
	b.staging_wait = fxi_cuda_staging_wait;
	b.memory = fxi_cuda_memory;
	b.copy = fxi_cuda_copy;
	b.fft = fxi_cuda_fft;
	b.share_out = fxi_cuda_share_out;
	b.density_iterate = fxi_cuda_density_iterate;
	b.points_new = fxi_cuda_points_new;
	b.points_free = fxi_cuda_points_free;
	b.spread = fxi_cuda_spread;
	b.interpolate = fxi_cuda_interpolate;
	b.fine_to_image = fxi_cuda_fine_to_image;
	b.image_to_fine = fxi_cuda_image_to_fine;
	b.direct_adjoint = fxi_cuda_direct_adjoint;
	b.direct_forward = fxi_cuda_direct_forward;
	b.direct_ladder = fxi_cuda_direct_ladder;
	b.separable_adjoint = fxi_cuda_separable_adjoint;
	b.separable_forward = fxi_cuda_separable_forward;
	b.toeplitz_apply = fxi_cuda_toeplitz_apply;
	b.toeplitz_spectrum = fxi_cuda_toeplitz_spectrum;
	b.normal_apply = fxi_cuda_normal_apply;
	b.normal_bytes = fxi_cuda_normal_bytes;
	b.cg_steps = fxi_cuda_cg_steps;
	b.dot = fxi_cuda_dot;
	b.axpy = fxi_cuda_axpy;
	b.xpay = fxi_cuda_xpay;
	b.scale = fxi_cuda_scale;
	b.difference_normal = fxi_cuda_difference_normal;
	b.coil_expand = fxi_cuda_coil_expand;
	b.coil_combine = fxi_cuda_coil_combine;
	b.coil_power = fxi_cuda_coil_power;
	b.coil_finish = fxi_cuda_coil_finish;
	b.coil_mix = fxi_cuda_coil_mix;
	b.walsh = fxi_cuda_walsh;
	b.track_prepare = fxi_cuda_track_prepare;
	b.track_release = fxi_cuda_track_release;
	b.track_batch = fxi_cuda_track_batch;
	b.marks = fxi_cuda_marks;
	b.magnitude = fxi_cuda_magnitude;
	b.tensor_smooth = fxi_cuda_tensor_smooth;
	b.tensor_fit = fxi_cuda_tensor_fit;
	b.tensor_accumulate = fxi_cuda_tensor_accumulate;
	b.tensor_solve = fxi_cuda_tensor_solve;
	b.metric_build = fxi_cuda_metric_build;
	return b;
}

/** The only symbol that libfornix-cuda.so exports. */
extern "C" FX_EXPORT const fx_backend fx_backend_cuda;
extern "C" const fx_backend fx_backend_cuda = table();
