/* SPDX-License-Identifier: MIT */
/* phantom_header.c - completes what was asked for, and says it as an MRD header. */
#include "apps/phantom.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "apps/phantom_dwi.h"
#include "apps/phantom_image.h"
#include "xml/mrd_header.h"

#define PI 3.14159265358979323846
#define FIELD_T 3.0
#define GAMMA_HZ_PER_T 42577478.518 /* proton, CODATA 2018 */

void fxi_phantom_position(const fxi_phantom_job *job, int64_t slice, float position[3])
{
	double along = (double)(slice - job->n_slices / 2) * job->slice_spacing_mm;

	for (int d = 0; d < 3; d++)
		position[d] = (float)(job->position_mm[d] + along * (double)job->slice_dir[d]);
}

/* Turns about x, then y, then z: the columns of Rz Ry Rx are the read, phase and slice directions. */
static void directions(fxi_phantom_job *job)
{
	double c[3], s[3];

	for (int d = 0; d < 3; d++) {
		c[d] = cos(job->oblique_deg[d] * PI / 180);
		s[d] = sin(job->oblique_deg[d] * PI / 180);
	}
	const double r[3][3] = {
		{c[2] * c[1], c[2] * s[1] * s[0] - s[2] * c[0], c[2] * s[1] * c[0] + s[2] * s[0]},
		{s[2] * c[1], s[2] * s[1] * s[0] + c[2] * c[0], s[2] * s[1] * c[0] - c[2] * s[0]},
		{-s[1], c[1] * s[0], c[1] * c[0]},
	};

	for (int d = 0; d < 3; d++) {
		job->read_dir[d] = (float)r[d][0];
		job->phase_dir[d] = (float)r[d][1];
		job->slice_dir[d] = (float)r[d][2];
	}
}

static int make_object(const fxi_phantom_job *job, int n_dims, const int64_t matrix[3], fx_error *err, fxi_phantom **out)
{
	/* one flat object off centre, so that a flip, a swap of axes and a wrong scale all show */
	static const fxi_ellipsoid ellipse = {1, {0.1, -0.06, 0.08}, {0.55, 0.72, 0.63}, {20, 0, 0}};

	if (job->object == FXI_OBJECT_SHEPP_LOGAN)
		return fxi_phantom_shepp_logan(n_dims, matrix, err, out);
	if (job->object == FXI_OBJECT_ELLIPSE)
		return fxi_phantom_new(n_dims, matrix, &ellipse, 1, err, out);
	return fxi_phantom_new(n_dims, matrix, job->shapes, job->n_shapes, err, out);
}

/* One slice: the 2-D object. Several: planes of the 3-D one, its middle half, so that all hold something. */
static int make_objects(fxi_phantom_job *job, fx_error *err)
{
	const int64_t *m = job->sampling.matrix;
	const int64_t around[3] = {m[0], m[1], 2 * job->n_slices};
	fxi_phantom *whole = NULL;
	int status;

	job->slices = fx_alloc(job->n_slices, sizeof *job->slices);
	if (!job->slices)
		return fx_error_set(err, FX_ENOMEM, "no memory for %lld slices", (long long)job->n_slices);
	if (job->n_slices == 1)
		return make_object(job, m[2] > 1 ? 3 : 2, m, err, &job->slices[0]);
	status = make_object(job, 3, around, err, &whole);
	for (int64_t s = 0; status == FX_OK && s < job->n_slices; s++)
		status = fxi_phantom_slice(whole, (double)(s - job->n_slices / 2), err, &job->slices[s]);
	fxi_phantom_free(whole);
	return status;
}

int fxi_phantom_prepare(fxi_phantom_job *job, fx_error *err)
{
	const int64_t *m = job->sampling.matrix;
	int status = fxi_sampling_complete(&job->sampling, err);

	if (status != FX_OK)
		return status;
	if (job->n_slices > 1 && m[2] > 1)
		return fx_error_set(err, FX_EINVAL, "several slices are 2-D scans: the third matrix size must be 1");
	if (job->sampling.n_readouts > 65536)
		return fx_error_set(err, FX_EINVAL, "%lld readouts a frame: MRD's counter holds 65536",
			(long long)job->sampling.n_readouts);
	for (int d = 0; d < 3; d++) {
		double factor = d == 0 && job->sampling.kind == FXI_CARTESIAN ? job->sampling.oversampling : 1;

		job->encoded[d] = llround(factor * (double)m[d]);
		job->encoded_fov_mm[d] = factor * job->fov_mm[d];
	}
	if (job->columns == 0)
		job->columns = job->sampling.n_k_dims;
	if (job->columns < job->sampling.n_k_dims)
		return fx_error_set(err, FX_EINVAL, "a trajectory of %d columns cannot hold the scan's %d axes", job->columns,
			job->sampling.n_k_dims);
	if (!job->image) /* an image says where it lies, and is the object */
		directions(job);
	if (!job->image && !job->dwi)
		status = make_objects(job, err);
	return status == FX_OK ? fxi_coils_new(job->n_coils, job->sampling.n_k_dims, m, err, &job->coils) : status;
}

void fxi_phantom_clear(fxi_phantom_job *job)
{
	for (int64_t s = 0; job->slices && s < job->n_slices; s++)
		fxi_phantom_free(job->slices[s]);
	fx_free(job->slices);
	fxi_phantom_image_free(job->image);
	job->image = NULL;
	fxi_phantom_dwi_free(job->dwi);
	job->dwi = NULL;
	fxi_coils_free(job->coils);
	fx_free(job->shapes);
	job->slices = NULL;
	job->coils = NULL;
	job->shapes = NULL;
}

static int trajectory_kind(const fxi_sampling *s)
{
	switch (s->kind) {
	case FXI_CARTESIAN:
		return FX_TRAJ_CARTESIAN;
	case FXI_SPIRAL:
		return FX_TRAJ_SPIRAL;
	case FXI_RANDOM:
		return FX_TRAJ_OTHER;
	default:
		return s->golden ? FX_TRAJ_GOLDENANGLE : FX_TRAJ_RADIAL;
	}
}

static void limit(fx_limit *out, int64_t n, int64_t center)
{
	*out = (fx_limit){.present = true, .min = 0, .max = n - 1, .center = center};
}

/* Lines are counted from the first that is acquired; `center` is the line of k = 0, as scanners write it. */
static void limits(const fxi_phantom_job *job, fx_encoding *e)
{
	const fxi_sampling *s = &job->sampling;
	int64_t lines = s->n_steps[0] ? s->n_steps[0] : s->n_readouts;
	int64_t partitions = s->n_steps[1] ? s->n_steps[1] : 1;
	bool cartesian = s->kind == FXI_CARTESIAN;

	limit(&e->limits[FX_STEP_1], lines, cartesian ? s->matrix[1] / 2 - s->skipped[0] : lines / 2);
	limit(&e->limits[FX_STEP_2], partitions, partitions > 1 ? s->matrix[2] / 2 - s->skipped[1] : 0);
	limit(&e->limits[FX_SLICE], job->n_slices, job->n_slices / 2);
	limit(&e->limits[FX_REPETITION], job->n_repetitions, 0);
	limit(&e->limits[FX_AVERAGE], job->n_averages, 0);
}

int fxi_phantom_header(const fxi_phantom_job *job, fx_error *err, char **xml)
{
	fx_encoding e = {.has_recon = true, .trajectory = trajectory_kind(&job->sampling), .acceleration = {1, 1}};
	char interleaves[24], turns[32];
	/* what the gadget trajectory's kind=spiral needs to make the same one */
	fx_param spiral[] = {
		{(char *)"interleaves", FX_PARAM_LONG, (double)job->sampling.n_readouts, interleaves},
		{(char *)"turns", FX_PARAM_DOUBLE, job->sampling.kind == FXI_SPIRAL ? fxi_spiral_turns(&job->sampling) : 0, turns},
		{(char *)"equal_arcs", FX_PARAM_LONG, 1, (char *)"1"},
	};
	fx_header h = {
		.n_encodings = 1, .encodings = &e, .receiver_channels = job->n_coils, .field_t = FIELD_T,
		.h1_hz = FIELD_T * GAMMA_HZ_PER_T, .noise_bandwidth = job->noise_bandwidth,
		.measurement_id = (char *)"phantom", .patient_position = (char *)"HFS", .protocol = (char *)"fornix phantom",
	};

	if (job->dwi) {
		h.diffusion_dimension = FX_DIFFUSION_REPETITION;
		h.n_diffusion = job->dwi->n_volumes;
		h.diffusion = job->dwi->gradients;
	}
	for (int d = 0; d < 3; d++) {
		e.recon.matrix[d] = job->sampling.matrix[d];
		e.recon.fov_mm[d] = job->fov_mm[d];
		e.encoded.matrix[d] = job->encoded[d];
		e.encoded.fov_mm[d] = job->encoded_fov_mm[d];
	}
	e.acceleration[0] = (double)job->sampling.acceleration;
	if (!job->no_limits)
		limits(job, &e);
	if (job->sampling.kind == FXI_SPIRAL) {
		snprintf(interleaves, sizeof interleaves, "%lld", (long long)job->sampling.n_readouts);
		snprintf(turns, sizeof turns, "%.17g", spiral[1].number);
		e.description_id = (char *)"archimedean";
		e.description = (fx_params){3, spiral};
	}
	*xml = fxi_header_format(&h);
	return *xml ? FX_OK : fx_error_set(err, FX_ENOMEM, "no memory for the scan's header");
}
