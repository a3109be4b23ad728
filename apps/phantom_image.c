/* SPDX-License-Identifier: MIT */
/*
 * phantom_image.c - any image as the object of a test scan. Its voxels are points: no image knows what lies between them, and
 * points have an exact k-space, by the same sum that reconstructions invert.
 */
#include "apps/phantom_image.h"

#include <complex.h>
#include <math.h>
#include <string.h>

#include <fornix/recon.h>

#include "apps/phantom_dwi.h"
#include "io/nifti_read.h"

#define PI 3.14159265358979323846
#define TOLERANCE 1e-9 /* of the NUFFT: the sum itself, as far as single samples can hold it */
#define BLOCK 64

void fxi_phantom_image_free(fxi_phantom_image *image)
{
	if (!image)
		return;
	fx_array_unref(image->volume);
	fx_array_unref(image->field_hz);
	for (int64_t i = 0; image->samples && i < image->n_samples; i++)
		fx_array_unref(image->samples[i]);
	fx_free(image->samples);
	fx_free(image);
}

/* ---- reading ----------------------------------------------------------------------------------- */

/* RAS to LPS; directions and voxel sizes out of the columns. */
static int take_geometry(fxi_phantom_job *job, const fxi_nifti_info *info, const char *path, double voxel_mm[3],
	fx_error *err)
{
	fxi_phantom_image *image = job->image;
	float *directions[3] = {job->read_dir, job->phase_dir, job->slice_dir};
	double unit[3][3];

	for (int d = 0; d < 3; d++) {
		double column[3] = {-info->affine[0][d], -info->affine[1][d], info->affine[2][d]};

		voxel_mm[d] = sqrt(column[0] * column[0] + column[1] * column[1] + column[2] * column[2]);
		if (!(voxel_mm[d] > 0) || !isfinite(voxel_mm[d]))
			return fx_error_set(err, FX_EDATA, "%s: its affine gives voxels no size along axis %d", path, d + 1);
		for (int i = 0; i < 3; i++) {
			unit[d][i] = column[i] / voxel_mm[d];
			directions[d][i] = (float)unit[d][i];
		}
	}
	for (int d = 0; d < 3; d++) {
		int e = (d + 1) % 3;

		if (!(fabs(unit[d][0] * unit[e][0] + unit[d][1] * unit[e][1] + unit[d][2] * unit[e][2]) < 1e-3))
			return fx_error_set(err, FX_EDATA, "%s: its affine is sheared, and no scanner's axes are; resample it first", path);
	}
	for (int i = 0; i < 3; i++) {
		double at = info->affine[i][3];

		for (int d = 0; d < 3; d++)
			at += info->affine[i][d] * (double)(image->dims[d] / 2);
		image->position[i] = (float)(i < 2 ? -at : at);
		job->position_mm[i] = (double)image->position[i];
	}
	return FX_OK;
}

static int read_volume(fxi_phantom_image *image, const char *path, fxi_nifti_info *info, fx_error *err)
{
	fx_array *data = NULL;
	int64_t dims[4];
	int status = fxi_nifti_read(path, err, &data, info);

	if (status != FX_OK)
		return status;
	for (int d = 0; d < 3; d++)
		dims[d] = image->dims[d] = info->dims[d];
	dims[3] = image->n_frames = info->dims[3];
	if (data->n != dims[0] * dims[1] * dims[2] * dims[3])
		status = fx_error_set(err, FX_EDATA, "%s has more than four dimensions: an image, or a series of them, is wanted", path);
	image->is_complex = data->type == FX_CF32 || data->type == FX_CF64;
	if (status == FX_OK && fx_array_convert(data, FX_CF64, &image->volume) != FX_OK)
		status = fx_error_set(err, FX_ENOMEM, "no memory for %s in double precision", path);
	for (int64_t i = 0; status == FX_OK && i < data->n; i++) {
		fx_cf64 v = FX_CF64_OF(image->volume)[i];

		if (!isfinite(creal(v)) || !isfinite(cimag(v)))
			status = fx_error_set(err, FX_EDATA, "%s holds voxels that are not finite", path);
	}
	fx_array_unref(data);
	return status;
}

static int read_field(fxi_phantom_image *image, const char *path, fx_error *err)
{
	fx_array *data = NULL;
	fxi_nifti_info info;
	int status = fxi_nifti_read(path, err, &data, &info);

	if (status != FX_OK)
		return status;
	if (data->n != image->dims[0] * image->dims[1] * image->dims[2] || info.dims[0] != image->dims[0] ||
		info.dims[1] != image->dims[1] || data->type >= FX_CF32)
		status = fx_error_set(err, FX_EINVAL, "--field-map %s: it needs the image's %lld x %lld x %lld voxels, real, in Hz", path,
			(long long)image->dims[0], (long long)image->dims[1], (long long)image->dims[2]);
	else if (fx_array_convert(data, FX_F64, &image->field_hz) != FX_OK)
		status = fx_error_set(err, FX_ENOMEM, "no memory for %s", path);
	for (int64_t i = 0; status == FX_OK && i < data->n; i++)
		if (!isfinite(FX_F64_OF(image->field_hz)[i]))
			status = fx_error_set(err, FX_EDATA, "--field-map %s holds values that are not finite", path);
	fx_array_unref(data);
	return status;
}

/* Matrix, slices, frames and fields of view as image and trajectory ask. */
static int fit(fxi_phantom_job *job, const char *path, bool has_matrix, bool as_slices, const double voxel_mm[3],
	fx_error *err)
{
	fxi_phantom_image *image = job->image;
	int kind = job->sampling.kind;
	bool flat = kind == FXI_RADIAL || kind == FXI_SPIRAL || as_slices;
	int64_t *n = job->sampling.matrix;

	if (as_slices && job->n_slices != image->dims[2])
		return fx_error_set(err, FX_EINVAL, "--slices %lld: %s has %lld planes", (long long)job->n_slices, path,
			(long long)image->dims[2]);
	if (image->n_frames > 1 && job->n_repetitions > 1)
		return fx_error_set(err, FX_EINVAL, "--repetitions: the %lld frames of %s are the repetitions", (long long)image->n_frames, path);
	if (image->n_frames > 1)
		job->n_repetitions = image->n_frames;
	job->n_slices = flat ? image->dims[2] : 1;
	for (int d = 0; d < 3; d++) {
		int64_t planes = d == 2 && flat ? 1 : image->dims[d];

		if (!has_matrix)
			n[d] = planes;
		if (n[d] > planes)
			return fx_error_set(err, FX_EINVAL, "--matrix %lld along axis %d: %s has %lld, and no detail beyond", (long long)n[d], d + 1,
				path, (long long)planes);
		job->fov_mm[d] = voxel_mm[d] * (double)planes;
	}
	job->slice_spacing_mm = voxel_mm[2];
	if (job->unit == FX_UNIT_AUTO)
		job->unit = FX_UNIT_CYCLES_PER_VOXEL;
	return FX_OK;
}

int fxi_phantom_image_load(fxi_phantom_job *job, const char *path, const char *field_path, double te_ms, bool has_matrix,
	bool as_slices, fx_error *err)
{
	fxi_nifti_info info;
	double voxel_mm[3];
	int status;

	job->image = fx_alloc(1, sizeof *job->image);
	if (!job->image)
		return fx_error_set(err, FX_ENOMEM, "no memory for an image");
	job->image->te_s = te_ms / 1000;
	status = read_volume(job->image, path, &info, err);
	if (status == FX_OK && field_path)
		status = read_field(job->image, field_path, err);
	if (status == FX_OK)
		status = take_geometry(job, &info, path, voxel_mm, err);
	return status == FX_OK ? fit(job, path, has_matrix, as_slices, voxel_mm, err) : status;
}

/* ---- one slice or volume --------------------------------------------------------------------------- */

/* Its voxels begin here in the volume; its dims are {x, y, planes}. */
static int64_t part_of(const fxi_phantom_job *job, int64_t slice, int64_t frame, int64_t dims[3])
{
	const fxi_phantom_image *image = job->image;

	dims[0] = image->dims[0];
	dims[1] = image->dims[1];
	dims[2] = job->n_slices == image->dims[2] && job->sampling.matrix[2] == 1 ? 1 : image->dims[2];
	return dims[0] * dims[1] * (slice * dims[2] + frame * image->dims[2]);
}

int fxi_phantom_image_truth(const fxi_phantom_job *job, int64_t slice, int64_t frame, fx_math *m, fx_array **out)
{
	const int64_t *n = job->sampling.matrix;
	int64_t dims[3], from = part_of(job, slice, frame, dims);
	fx_array *whole = NULL;
	int status = fx_array_new(FX_CF64, 3, dims, &whole);

	*out = NULL;
	if (status != FX_OK)
		return fx_math_fail(m, status, "no memory for an image of %lld x %lld x %lld voxels", (long long)dims[0],
			(long long)dims[1], (long long)dims[2]);
	memcpy(whole->data, FX_CF64_OF(job->image->volume) + from, (size_t)whole->bytes);
	if (dims[0] == n[0] && dims[1] == n[1] && dims[2] == n[2]) {
		*out = whole;
		return FX_OK;
	}
	/* the frequencies that the matrix has */
	status = m->ops->fft(m, whole, -1, 1 / (double)whole->n);
	if (status == FX_OK)
		status = fx_resize_centred(m, whole, n, out);
	if (status == FX_OK)
		status = fx_array_own(out);
	if (status == FX_OK)
		status = m->ops->fft(m, *out, 1, 1);
	fx_array_unref(whole);
	if (status != FX_OK) {
		fx_array_unref(*out);
		*out = NULL;
	}
	return status;
}

/* The image as each coil sees it: cf64 {x, y, z, coils}. */
static int coil_images(const fxi_phantom_job *job, int64_t slice, int64_t frame, fx_error *err, fx_array **out)
{
	int64_t d[3], from = part_of(job, slice, frame, d), voxels = d[0] * d[1] * d[2], at = 0;
	const int64_t *n = job->sampling.matrix;
	fx_cf64 *maps = fx_alloc(job->n_coils, sizeof *maps);

	if (!maps || fx_array_new4(FX_CF64, d[0], d[1], d[2], job->n_coils, out) != FX_OK) {
		fx_free(maps);
		return fx_error_set(err, FX_ENOMEM, "no memory for the images of %lld coils", (long long)job->n_coils);
	}
	for (int64_t z = 0; z < d[2]; z++)
		for (int64_t y = 0; y < d[1]; y++)
			for (int64_t x = 0; x < d[0]; x++, at++) {
				/* coils are placed on the scan's matrix */
				const double p[3] = {(double)((x - d[0] / 2) * n[0]) / (double)d[0], (double)((y - d[1] / 2) * n[1]) / (double)d[1],
					(double)((z - d[2] / 2) * n[2]) / (double)d[2]};

				fxi_coils_at(job->coils, p, maps);
				for (int64_t c = 0; c < job->n_coils; c++)
					FX_CF64_OF(*out)[at + voxels * c] = maps[c] * FX_CF64_OF(job->image->volume)[from + at];
			}
	fx_free(maps);
	return FX_OK;
}

/* ---- sampling ------------------------------------------------------------------------------------- */

/* The plain sum with off-resonance; voxels that hold nothing are left out. */
struct sum {
	const fx_array *images, *k;
	const int64_t *voxels;   /* indices of those that hold something */
	const double *field_hz;  /* of the part */
	int64_t n_voxels, n_coils, samples_a_readout, center_sample;
	double dwell_s, te_s, scale;
	fx_array *out;
	const volatile int *stop;
};

static void sum_block(void *arg, int64_t block)
{
	const struct sum *s = arg;
	const int64_t *d = s->images->dims;
	int64_t all = d[0] * d[1] * d[2], n = s->k->dims[1], end = (block + 1) * BLOCK < n ? (block + 1) * BLOCK : n;

	for (int64_t i = block * BLOCK; i < end && !*s->stop; i++) {
		const double *k = FX_F64_OF(s->k) + 3 * i;
		double t = s->te_s + (double)(i % s->samples_a_readout - s->center_sample) * s->dwell_s;

		for (int64_t v = 0; v < s->n_voxels; v++) {
			int64_t at = s->voxels[v], x = at % d[0] - d[0] / 2, y = at / d[0] % d[1] - d[1] / 2, z = at / d[0] / d[1] - d[2] / 2;
			double turn = k[0] * (double)x + k[1] * (double)y + k[2] * (double)z + s->field_hz[at] * t;

			turn = 2 * PI * (turn - floor(turn));
			fx_cf64 phase = s->scale * FX_CF64(cos(turn), -sin(turn));

			for (int64_t c = 0; c < s->n_coils; c++)
				FX_CF64_OF(s->out)[i + n * c] += phase * FX_CF64_OF(s->images)[at + all * c];
		}
	}
}

static int plain_sum(const fxi_phantom_job *job, const fx_array *images, const fx_array *k, int64_t slice, double scale,
	const volatile int *stop, fx_error *err, fx_array **out)
{
	int64_t voxels = images->n / job->n_coils, n = 0, dims[3], from = part_of(job, slice, 0, dims);
	int64_t *list = fx_alloc(voxels, sizeof *list);
	struct sum s = {.images = images, .k = k, .voxels = list, .field_hz = FX_F64_OF(job->image->field_hz) + from,
		.n_coils = job->n_coils, .samples_a_readout = job->sampling.n_samples, .center_sample = job->sampling.center_sample,
		.dwell_s = job->dwell_us * 1e-6, .te_s = job->image->te_s, .scale = scale, .stop = stop};

	if (!list || fx_array_new2(FX_CF64, k->dims[1], job->n_coils, out) != FX_OK) {
		fx_free(list);
		return fx_error_set(err, FX_ENOMEM, "no memory for %lld samples", (long long)k->dims[1]);
	}
	for (int64_t v = 0; v < voxels; v++) {
		bool something = false;

		for (int64_t c = 0; c < job->n_coils; c++)
			something = something || FX_CF64_OF(images)[v + voxels * c] != 0;
		if (something)
			list[n++] = v;
	}
	s.n_voxels = n;
	s.out = *out;
	fx_parallel(job->n_threads, (k->dims[1] + BLOCK - 1) / BLOCK, sum_block, &s);
	fx_free(list);
	return *stop ? fx_error_set(err, FX_ECANCELED, "stopped") : FX_OK;
}

fxi_sampling fxi_phantom_calibration(const fxi_phantom_job *job)
{
	fxi_sampling s = job->sampling;

	s.n_readouts = job->n_calibrations;
	s.acceleration = 1;
	return s;
}

/* The shot that a readout belongs to gives the object a phase: k shifts by its slope, and samples turn. */
static double shift_by_phase(const fxi_phantom_job *job, int64_t slice, int64_t volume, int64_t readout, double *k)
{
	double turns = 0, slope[3] = {0};

	if (job->dwi)
		fxi_phantom_dwi_phase(job, volume, slice, readout * job->dwi->n_shots / job->sampling.n_readouts, &turns, slope);
	for (int64_t j = 0; j < job->sampling.n_samples; j++)
		for (int d = 0; d < 3; d++)
			k[3 * j + d] -= slope[d];
	return turns;
}

static void turn_samples(const fxi_phantom_job *job, int64_t readout, double turns, fx_array *samples)
{
	fx_cf64 phase = FX_CF64(cos(2 * PI * turns), sin(2 * PI * turns));

	for (int64_t c = 0; c < job->n_coils; c++)
		for (int64_t j = 0; j < job->sampling.n_samples; j++)
			FX_CF64_OF(samples)[samples->dims[0] * c + readout * job->sampling.n_samples + j] *= phase;
}

/* One frame of one slice: cf32 {M, coils}, readouts in order; a calibration frame has no phases of shots. */
static int sample_frame(fxi_phantom_job *job, fx_math *m, const fxi_sampling *s, int64_t slice, int64_t average, int64_t repetition,
	bool phases, const volatile int *stop, fx_error *err, fx_array **out)
{
	int64_t d[3], m_samples = s->n_readouts * s->n_samples, frame = job->image->n_frames > 1 ? repetition : 0, step[2];
	fx_fourier_spec spec = {.method = FX_FOURIER_NUFFT, .type = FX_CF64, .tolerance = TOLERANCE, .scale = 1};
	fx_array *images = NULL, *k = NULL, *samples = NULL;
	double *turns = fx_alloc(s->n_readouts, sizeof *turns);
	fx_fourier *f = NULL;
	int status = coil_images(job, slice, frame, err, &images);

	part_of(job, slice, frame, d);
	if (status == FX_OK && (!turns || fx_array_new2(FX_F64, 3, m_samples, &k) != FX_OK))
		status = fx_error_set(err, FX_ENOMEM, "no memory for a trajectory of %lld samples", (long long)m_samples);
	for (int64_t i = 0; status == FX_OK && i < s->n_readouts; i++) {
		double *of = FX_F64_OF(k) + 3 * i * s->n_samples;

		fxi_sampling_readout(s, i + s->n_readouts * (average + job->n_averages * repetition), of, step);
		if (phases)
			turns[i] = shift_by_phase(job, slice, repetition, i, of);
	}
	for (int a = 0; a < 3; a++) {
		double finer = (double)s->matrix[a] / (double)d[a];

		spec.dims[a] = d[a];
		spec.scale *= finer / sqrt((double)job->encoded[a]);
		for (int64_t i = 0; status == FX_OK && i < m_samples; i++)
			FX_F64_OF(k)[3 * i + a] *= finer;
	}
	if (status == FX_OK && job->image->field_hz) {
		status = plain_sum(job, images, k, slice, spec.scale, stop, err, &samples);
	} else if (status == FX_OK) {
		status = fx_fourier_new(m, &spec, &f);
		if (status == FX_OK)
			status = fx_fourier_forward(f, k, images, &samples);
		if (status != FX_OK)
			fx_error_set(err, status, "%s", m->err->text);
	}
	for (int64_t i = 0; status == FX_OK && phases && i < s->n_readouts; i++)
		turn_samples(job, i, turns[i], samples);
	if (status == FX_OK && fx_array_convert(samples, FX_CF32, out) != FX_OK)
		status = fx_error_set(err, FX_ENOMEM, "no memory for %lld samples", (long long)m_samples);
	fx_free(turns);
	fx_fourier_free(f);
	fx_array_unref(images);
	fx_array_unref(k);
	fx_array_unref(samples);
	return status;
}

int fxi_phantom_image_sample(fxi_phantom_job *job, const volatile int *stop, fx_error *err)
{
	fxi_phantom_image *image = job->image;
	int64_t n_frames = job->n_slices * job->n_averages * job->n_repetitions;
	int64_t n = n_frames + (job->n_calibrations > 0 ? job->n_slices : 0);
	const fxi_sampling calibration = fxi_phantom_calibration(job);
	fx_error why = {0};
	fx_math *m = NULL;
	int status = fx_math_new("host", job->n_threads, &why, &m);

	if (status != FX_OK)
		return fx_error_set(err, status, "%s", why.text);
	image->samples = fx_alloc(n, sizeof(fx_array *));
	if (!image->samples)
		status = fx_error_set(err, FX_ENOMEM, "no memory for %lld frames", (long long)n);
	image->n_samples = n;
	for (int64_t i = 0; status == FX_OK && i < n; i++) {
		if (*stop)
			status = fx_error_set(err, FX_ECANCELED, "stopped");
		else
			status = i < n_frames ? sample_frame(job, m, &job->sampling, i % job->n_slices, i / job->n_slices % job->n_averages,
				i / job->n_slices / job->n_averages, true, stop, err, &image->samples[i]) :
				sample_frame(job, m, &calibration, i - n_frames, 0, 0, false, stop, err, &image->samples[i]);
	}
	fx_math_free(m);
	return status;
}
