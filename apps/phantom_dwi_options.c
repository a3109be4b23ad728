/* SPDX-License-Identifier: MIT */
/* phantom_dwi_options.c - the part of `fornix phantom`'s command line that belongs to fibre bundles. */
#include "apps/phantom_dwi.h"

#include <math.h>

#define VOLUMES 65536 /* what MRD's counter of repetitions holds */

fxi_phantom_dwi_options fxi_phantom_dwi_defaults(void)
{
	return (fxi_phantom_dwi_options){
		.directions = -1, .b0s = -1, .shots = -1, .detail = -1, .bvalue = -1, .snr = -1, .radius = -1, .width = -1, .height = -1,
		.pitch = -1, .turns = -1, .angle = -1, .length = -1, .lake = -1, .head = -1, .along = -1, .across = -1,
	};
}

void fxi_phantom_dwi_entries(fxi_phantom_dwi_options *o, GArray *entries)
{
	const GOptionEntry own[] = {
		{"directions", 0, 0, G_OPTION_ARG_INT, &o->directions, "ring, crossing, helix: weighted volumes, over a half sphere (30)", "N"},
		{"bvalue", 0, 0, G_OPTION_ARG_DOUBLE, &o->bvalue, "Their b-value in s/mm^2 (1000)", "B"},
		{"b0s", 0, 0, G_OPTION_ARG_INT, &o->b0s, "Volumes without weighting, spread between them, one first (5)", "N"},
		{"snr", 0, 0, G_OPTION_ARG_DOUBLE, &o->snr, "SNR of fibres in the reconstructed b0 image; sets --noise (no noise)", "X"},
		{"shots", 0, 0, G_OPTION_ARG_INT, &o->shots, "Shots of a volume's slice, each with a phase of its own; spiral: its "
			"readouts (1)", "N"},
		{"no-shot-phase", 0, 0, G_OPTION_ARG_NONE, &o->no_shot_phase, "Weighted volumes get no phase from motion", NULL},
		{"images", 0, 0, G_OPTION_ARG_FILENAME, &o->images, "Write the series as images too, with .bval and .bvec beside (Rician "
			"noise by --snr)", "FILE.nii.gz"},
		{"radius-mm", 0, 0, G_OPTION_ARG_DOUBLE, &o->radius, "Of a ring's or helix's centre line", "MM"},
		{"width-mm", 0, 0, G_OPTION_ARG_DOUBLE, &o->width, "Diameter of bundles", "MM"},
		{"height-mm", 0, 0, G_OPTION_ARG_DOUBLE, &o->height, "Of a ring that is a wide and high shell instead of a torus (torus)", "MM"},
		{"pitch-mm", 0, 0, G_OPTION_ARG_DOUBLE, &o->pitch, "Rise of a helix in a turn", "MM"},
		{"turns", 0, 0, G_OPTION_ARG_DOUBLE, &o->turns, "Of a helix (1.25)", "N"},
		{"length-mm", 0, 0, G_OPTION_ARG_DOUBLE, &o->length, "Of crossing bundles", "MM"},
		{"angle-deg", 0, 0, G_OPTION_ARG_DOUBLE, &o->angle, "Between crossing bundles, up to 90 (60)", "DEG"},
		{"lake-mm", 0, 0, G_OPTION_ARG_DOUBLE, &o->lake, "Radius of a ball of free water beside the bundles (none)", "MM"},
		{"head-mm", 0, 0, G_OPTION_ARG_DOUBLE, &o->head, "Radius of the cylinder of tissue round it all; 0: bundles in air", "MM"},
		{"along", 0, 0, G_OPTION_ARG_DOUBLE, &o->along, "Diffusivity along fibres, um^2/ms (1.7)", "D"},
		{"across", 0, 0, G_OPTION_ARG_DOUBLE, &o->across, "Diffusivity across fibres, um^2/ms (0.3)", "D"},
		{"detail", 0, 0, G_OPTION_ARG_INT, &o->detail, "Points along each axis that a voxel's signal is the mean of (3)", "N"},
	};

	g_array_append_vals(entries, own, G_N_ELEMENTS(own));
}

void fxi_phantom_dwi_options_clear(fxi_phantom_dwi_options *o)
{
	g_clear_pointer(&o->images, g_free);
}

bool fxi_phantom_dwi_options_given(const fxi_phantom_dwi_options *o)
{
	const double values[] = {o->directions, o->b0s, o->shots, o->detail, o->bvalue, o->snr, o->radius, o->width, o->height, o->pitch,
		o->turns, o->angle, o->length, o->lake, o->head, o->along, o->across};

	for (size_t i = 0; i < G_N_ELEMENTS(values); i++)
		if (values[i] != -1)
			return true;
	return o->images || o->no_shot_phase;
}

static int check_ranges(const fxi_phantom_dwi_options *o, fx_error *err)
{
	const struct {
		const char *option;
		double value, least, most;
	} ranges[] = {
		{"--directions", o->directions, 0, VOLUMES}, {"--b0s", o->b0s, 0, VOLUMES}, {"--shots", o->shots, 1, 65536},
		{"--detail", o->detail, 1, 32}, {"--bvalue", o->bvalue, 1e-3, 1e6}, {"--snr", o->snr, 0, 1e9},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(ranges); i++)
		if (ranges[i].value != -1 && !(ranges[i].value >= ranges[i].least && ranges[i].value <= ranges[i].most))
			return fx_error_set(err, FX_EINVAL, "%s %g: it takes %g to %g", ranges[i].option, ranges[i].value, ranges[i].least,
				ranges[i].most);
	return FX_OK;
}

static void take(double value, double *out)
{
	if (value != -1)
		*out = value;
}

static int read_object(const fxi_phantom_dwi_options *o, const fxi_phantom_job *job, fx_error *err, fxi_dwi_object *out)
{
	const double fov_mm[3] = {job->fov_mm[0], job->fov_mm[1], job->fov_mm[2] * (double)job->n_slices};

	fxi_dwi_defaults(job->object - FXI_OBJECT_RING, fov_mm, out);
	take(o->radius, &out->radius);
	take(o->width, &out->width);
	take(o->height, &out->height);
	take(o->pitch, &out->pitch);
	take(o->turns, &out->turns);
	take(o->length, &out->length);
	take(o->angle, &out->angle_deg);
	take(o->lake, &out->lake_mm);
	take(o->head, &out->head_mm);
	take(o->along, &out->along);
	take(o->across, &out->across);
	return fxi_dwi_check(out, err);
}

/* A stack of slices for all but 3-D trajectories. */
static int fit(const fxi_phantom_dwi_options *o, fx_error *err, fxi_phantom_job *job)
{
	fxi_sampling *s = &job->sampling;
	int64_t planes = s->matrix[2];

	if (job->n_slices > 1 || job->n_repetitions > 1 || job->n_averages > 1)
		return fx_error_set(err, FX_EINVAL, "--slices, --repetitions and --averages: slices are the third size of --matrix, repetitions the "
			"volumes, and each is measured once");
	if (s->kind != FXI_STACK_OF_STARS && s->kind != FXI_RADIAL3D) {
		job->n_slices = planes;
		s->matrix[2] = 1;
		job->fov_mm[2] /= (double)planes;
		if (!(job->slice_spacing_mm > 0))
			job->slice_spacing_mm = job->fov_mm[2];
	}
	if (s->kind == FXI_SPIRAL && o->shots > 0 && s->n_readouts > 0 && s->n_readouts != o->shots)
		return fx_error_set(err, FX_EINVAL, "--readouts %lld: a spiral's readouts are its --shots", (long long)s->n_readouts);
	if (s->kind == FXI_SPIRAL && s->n_readouts == 0)
		s->n_readouts = o->shots > 0 ? o->shots : 1;
	return FX_OK;
}

int fxi_phantom_dwi_load(const fxi_phantom_dwi_options *o, fx_error *err, fxi_phantom_job *job)
{
	int64_t n_b0 = o->b0s >= 0 ? o->b0s : 5, n_directions = o->directions >= 0 ? o->directions : 30;
	int status = check_ranges(o, err);
	fxi_phantom_dwi *dwi;

	if (status == FX_OK && (n_b0 + n_directions < 1 || n_b0 + n_directions > VOLUMES))
		status = fx_error_set(err, FX_EINVAL, "--b0s and --directions: %lld volumes; MRD's counter holds 1 to %d",
			(long long)(n_b0 + n_directions), VOLUMES);
	if (status == FX_OK)
		status = fit(o, err, job);
	if (status != FX_OK)
		return status;
	dwi = job->dwi = fx_alloc(1, sizeof *dwi);
	if (dwi)
		dwi->gradients = fx_alloc(n_b0 + n_directions, sizeof *dwi->gradients);
	if (!dwi || !dwi->gradients)
		return fx_error_set(err, FX_ENOMEM, "no memory for %lld gradients", (long long)(n_b0 + n_directions));
	job->n_repetitions = dwi->n_volumes = n_b0 + n_directions;
	fxi_dwi_gradients(n_b0, n_directions, o->bvalue > 0 ? o->bvalue : 1000, dwi->gradients);
	dwi->snr = o->snr > 0 ? o->snr : 0;
	dwi->n_shots = o->shots > 0 ? o->shots : 1;
	dwi->shot_phase = !o->no_shot_phase;
	dwi->images = g_strdup(o->images);
	dwi->grid = (fxi_dwi_grid){.detail = o->detail > 0 ? o->detail : 3, .n_threads = job->n_threads};
	return read_object(o, job, err, &dwi->object);
}
