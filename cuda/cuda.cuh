/* SPDX-License-Identifier: MIT */
/*
 * cuda.cuh - what the files of the CUDA backend share: a queue (a stream and its plans), device memory that knows who
 * wrote it last, and the operations, one file a family as in host/; see backend.h for what each does.
 *
 * Every gadget has a queue, and so a stream, of its own. An array remembers the stream that wrote it and an event behind
 * that; whoever reads it on another stream waits for the event on the device, never on the host. Memory comes from the
 * device's stream-ordered pool and goes back to it once the last reader is through.
 */
#ifndef FORNIX_CUDA_CUH
#define FORNIX_CUDA_CUH

#include <fornix/backend.h>

#include <cuda_runtime.h>
#include <cufft.h>

/** A stream that lives as long as its queue or any memory that was last written on it. */
typedef struct fxi_stream {
	int refs; /* atomic */
	int device;
	cudaStream_t stream;
} fxi_stream;

#define FXI_CUDA_PLANS 16
#define FXI_CUDA_SUMS 64

typedef struct fxi_cuda_plan {
	int64_t dims[3], batch;
	int type;              /* FX_CF32 or FX_CF64; FX_F32 or FX_F64: of real numbers to half a spectrum */
	cufftHandle handle;
	size_t work;           /* bytes that it works in */
	int64_t used;          /* by age, the oldest goes */
} fxi_cuda_plan;

typedef struct fxi_cuda_queue {
	fxi_stream *stream, *copies; /* the second copies from staging arrays; NULL until then */
	int device, n_processors, major; /* of the compute capability */
	int64_t memory;        /* bytes that the GPU has */
	size_t shared_limit;   /* bytes of shared memory that a block may ask for */
	int n_plans;
	int64_t clock;
	fxi_cuda_plan plans[FXI_CUDA_PLANS];
	struct fxi_cuda_nufft *nufft; /* what NUFFTs keep, or NULL */
	void *plan_work;       /* device: what all plans work in, as they run one after the other */
	size_t plan_work_bytes;
	struct fxi_pinned *pinned;
	double *partial;       /* device: block sums of a reduction */
	double *result;        /* host, pinned: its results */
	fx_cg_sums *sums;      /* host, pinned: of the iterations under way, FXI_CUDA_SUMS of them */
} fxi_cuda_queue;

static inline fxi_cuda_queue *fxi_queue(fx_math *m)
{
	return (fxi_cuda_queue *)m->queue;
}

static inline cudaStream_t fxi_stream_of(fx_math *m)
{
	return fxi_queue(m)->stream->stream;
}

/** Explains a CUDA failure: FX_ENOMEM where memory is short, else FX_EIO. FX_OK for success. */
int fxi_cuda_check(fx_math *m, cudaError_t e, const char *what);
/** FX_ENOMEM, explained: `bytes` (0: not known) for `what` were not to be had. Clears CUDA's own error. */
int fxi_cuda_no_memory(fx_math *m, double bytes, const char *what);
int fxi_cufft_check(fx_math *m, cufftResult e, const char *what);
/** Behind a launch. */
int fxi_cuda_launched(fx_math *m, const char *what);

/**
 * The arrays of one operation: `in` and `out` see that they live on this queue's device and order this stream behind
 * whoever wrote or read them; `done` marks them as used. `out` is written, and may be read too.
 */
class fxi_use {
public:
	explicit fxi_use(fx_math *m) : math(m), n(0), status(FX_OK) {}
	const void *in(const fx_array *a);
	void *out(fx_array *a);
	/** FX_OK, or why one of them cannot be used; ask before launching. */
	int ready() const { return status; }
	/** After the last launch: `what` names the operation for the error. */
	int done(const char *what);

private:
	static const int MOST = 12;
	fx_math *math;
	int n, status;
	const fx_array *arrays[MOST];
	bool written[MOST];
	void add(const fx_array *a, bool write);
};

/** Device memory for work on this queue alone: taken from the pool, given back in stream order. */
class fxi_work {
public:
	fxi_work(fx_math *m, int64_t count, size_t size);
	~fxi_work();
	void *get() const { return memory; }
	int status() const { return state; }
	fxi_work(const fxi_work &) = delete;
	fxi_work &operator=(const fxi_work &) = delete;

private:
	cudaStream_t stream;
	void *memory;
	int state;
};

/** Up to 16 counters on the device, for kernels to add to. */
class fxi_counts {
public:
	fxi_counts(fx_math *m, int n);
	unsigned long long *device() const { return (unsigned long long *)work.get(); }
	int status() const { return state; }
	/** Waits for this queue's work and copies them. */
	int get(int64_t *out);

private:
	fx_math *math;
	int n, state;
	fxi_work work;
};

/** An array on the device, not zeroed. */
int fxi_cuda_array(fx_math *m, int type, int n_dims, const int64_t *dims, fx_array **out);

/* array.cu */
int fxi_cuda_array_new(fx_math *m, int type, int n_dims, const int64_t *dims, fx_array **out);
int fxi_cuda_upload(fx_math *m, const fx_array *host, fx_array **out);
int fxi_cuda_download(fx_math *m, const fx_array *device, fx_array **out);
int fxi_cuda_staging_new(fx_math *m, int type, int n_dims, const int64_t *dims, fx_array **out);
int fxi_cuda_staging_wait(fx_math *m, const fx_array *array);
int fxi_cuda_memory(fx_math *m, int64_t *available, int64_t *most);
int fxi_cuda_copy(fx_math *m, const fx_array *source, int64_t from, int64_t n, fx_array *target, int64_t to);
fxi_stream *fxi_stream_ref(fxi_stream *s);
void fxi_stream_unref(fxi_stream *s);

/* pinned.cu: page-locked memory, kept for the next who asks */
typedef struct fxi_pinned fxi_pinned;
fxi_pinned *fxi_pinned_new(void);
fxi_pinned *fxi_pinned_ref(fxi_pinned *p);
void fxi_pinned_unref(fxi_pinned *p);
/** At least `bytes`, not cleared; *got of them, which fxi_pinned_give wants to be told. */
cudaError_t fxi_pinned_take(fxi_pinned *p, size_t bytes, void **data, size_t *got);
void fxi_pinned_give(fxi_pinned *p, void *data, size_t bytes);

/* fft.cu */
int fxi_cuda_fft(fx_math *m, fx_array *a, int sign, double scale);
/** A cuFFT plan of this queue, on its stream: `batch` transforms over dims (axes of 1 are left out). Real types: to half spectra. */
int fxi_cuda_plan_of(fx_math *m, int type, const int64_t dims[3], int64_t batch, cufftHandle *plan);
void fxi_cuda_plans_free(fxi_cuda_queue *q);

/* points.cu, nufft.cu (with nufft_spread.cu and nufft_gather.cu), fine.cu */
void fxi_cuda_nufft_free(fxi_cuda_queue *q);
int fxi_cuda_points_new(fx_math *m, const fx_fine_grid *g, const fx_array *k, void **points);
void fxi_cuda_points_free(fx_math *m, void *points);
int fxi_cuda_spread(fx_math *m, const fx_fine_grid *g, void *points, const fx_array *samples, fx_array *fine);
int fxi_cuda_interpolate(fx_math *m, const fx_fine_grid *g, void *points, const fx_array *fine, fx_array *samples);
int fxi_cuda_fine_to_image(fx_math *m, const fx_fine_grid *g, fx_array *fine, double scale, fx_array *image);
int fxi_cuda_image_to_fine(fx_math *m, const fx_fine_grid *g, const fx_array *image, double scale, fx_array *fine);

/* share.cu, density.cu */
int fxi_cuda_share_out(fx_math *m, const fx_array *k, const fx_array *samples, fx_array *cells);
int fxi_cuda_density_iterate(fx_math *m, const fx_density_cells *c, int64_t n_iterations, float *weights);

/* direct.cu, ladder.cu, separable.cu */
int fxi_cuda_direct_adjoint(fx_math *m, const fx_array *k, const fx_array *samples, double scale, fx_array *image);
int fxi_cuda_direct_forward(fx_math *m, const fx_array *k, const fx_array *image, double scale, fx_array *samples);
int fxi_cuda_direct_ladder(fx_math *m, const fx_direct_plan *plan, const fx_array *k, const fx_array *samples, double scale, fx_array *image);
int fxi_cuda_separable_adjoint(fx_math *m, const fx_array *k, const fx_array *samples, double scale, fx_array *image);
int fxi_cuda_separable_forward(fx_math *m, const fx_array *k, const fx_array *image, double scale, fx_array *samples);
/** FX_EINVAL, explained, unless k is f64 {3, M} and samples and image belong to it. */
int fxi_cuda_direct_need(fx_math *m, const fx_array *k, const fx_array *samples, const fx_array *image);

/* toeplitz.cu, toeplitz_spectrum.cu */
int fxi_cuda_toeplitz_apply(fx_math *m, const fx_array *spectrum, const fx_array *x, fx_array *y);
int fxi_cuda_toeplitz_spectrum(fx_math *m, fx_array *q, fx_array *spectrum);

/* normal.cu, solve.cu */
int fxi_cuda_normal_apply(fx_math *m, const fx_normal *a, const fx_array *x, fx_array *y);
int64_t fxi_cuda_normal_bytes(fx_math *m, const int64_t dims[3], int64_t n_coils);
int fxi_cuda_cg_steps(fx_math *m, const fx_normal *a, const fx_array *b, double rr, double goal, int64_t n, fx_array *x, fx_array *r,
	fx_array *p, fx_array *q, fx_cg_sums *sums, int64_t *n_done);

/* vector.cu, difference.cu */
int fxi_cuda_dot(fx_math *m, const fx_array *x, const fx_array *y, double *re, double *im);
int fxi_cuda_axpy(fx_math *m, double a, const fx_array *x, fx_array *y);
int fxi_cuda_xpay(fx_math *m, const fx_array *x, double a, fx_array *y);
int fxi_cuda_scale(fx_math *m, double a, fx_array *x);
int fxi_cuda_difference_normal(fx_math *m, const fx_array *weights, double factor, const fx_array *x, fx_array *y);

/* coils.cu, walsh.cu */
int fxi_cuda_coil_expand(fx_math *m, const fx_array *maps, const fx_array *image, fx_array *coils);
int fxi_cuda_coil_combine(fx_math *m, const fx_array *maps, const fx_array *coils, fx_array *image);
int fxi_cuda_coil_power(fx_math *m, const fx_array *coils, fx_array *power);
int fxi_cuda_coil_finish(fx_math *m, const fx_array *power, bool has_maps, fx_array *image);
int fxi_cuda_coil_mix(fx_math *m, const fx_array *matrix, const fx_array *in, fx_array *out);
int fxi_cuda_walsh(fx_math *m, const fx_array *coils, int radius, int n_iterations, fx_array *maps);

/* track.cu, track_field.cu */
int fxi_cuda_track_prepare(fx_math *m, const fx_track_plan *plan, const fx_metric_arrays *metric, void **prepared);
void fxi_cuda_track_release(fx_math *m, void *prepared);
int fxi_cuda_track_batch(fx_math *m, const fx_track_plan *plan, const fx_metric_arrays *metric, void *prepared, const fx_track_keep *keep,
	const fx_array *starts, fx_track_arrays *out, fx_track_counts *counts);
/* marks.cu, smooth.cu, tensor.cu, metric.cu */
int fxi_cuda_marks(fx_math *m, const fx_array *a, unsigned bits, int yes, int no, const fx_array *within, fx_array *out,
	int64_t counts[9]);
int fxi_cuda_magnitude(fx_math *m, const fx_array *x, fx_array *out, bool *any);
int fxi_cuda_tensor_smooth(fx_math *m, const fx_array *tensors, const fx_array *mask, const fx_array *flags, unsigned skip_flags,
	const double sigma[3], fx_array *out);
int fxi_cuda_tensor_fit(fx_math *m, const fx_tensor_design *design, const fx_array *const *volumes, const fx_array *mask,
	const fx_tensor_arrays *out);
int fxi_cuda_tensor_accumulate(fx_math *m, const double row[7], const fx_array *volume, const fx_array *first, fx_array *sums,
	fx_array *seen);
int fxi_cuda_tensor_solve(fx_math *m, const fx_tensor_design *design, const fx_array *sums, const fx_array *seen,
	const fx_array *mask, const fx_tensor_arrays *out);
int fxi_cuda_metric_build(fx_math *m, const fx_metric_plan *plan, const fx_array *tensors, const fx_array *mask,
	const fx_array *flags, const fx_metric_arrays *out, fx_metric_counts *counts);

#endif
