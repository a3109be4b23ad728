/* SPDX-License-Identifier: MIT */
/* phantom_options.c - words and lists of `fornix phantom` into numbers, each refused by its option's name. */
#include "apps/phantom_options.h"

#include <math.h>
#include <string.h>

#include <fornix/recon.h>

#define FOV_MM 240.0
#define THICKNESS_MM 5.0
#define BUNDLE_VOXEL_MM 2.5

static const char *const objects[] = {"shepp-logan", "ellipse", "shapes", "from-image", "ring", "crossing", "helix", NULL};
static const char *const units[] = {"auto", "cycles_per_voxel", "rad_per_voxel", "cycles_per_fov", "per_m", NULL};

fxi_phantom_options fxi_phantom_defaults(void)
{
	return (fxi_phantom_options){
		.coils = -1, .acceleration = -1, .repetitions = 1, .averages = 1, .slices = 1, .dwell = 4, .noise_dwell = 10, .noise_readouts = -1,
		.seed = 1, .dwi = fxi_phantom_dwi_defaults(),
	};
}

void fxi_phantom_options_clear(fxi_phantom_options *o)
{
	char **texts[] = {&o->output, &o->truth, &o->trajectory, &o->matrix, &o->fov, &o->oblique, &o->position, &o->unit,
		&o->partial, &o->delay, &o->field_map};

	for (size_t i = 0; i < G_N_ELEMENTS(texts); i++)
		g_clear_pointer(texts[i], g_free);
	g_clear_pointer(&o->shapes, g_strfreev);
	fxi_phantom_dwi_options_clear(&o->dwi);
}

GOptionEntry *fxi_phantom_entries(fxi_phantom_options *o)
{
	const GOptionEntry entries[] = {
		{"output", 'o', 0, G_OPTION_ARG_FILENAME, &o->output, "The raw scan to write; - for standard output with --stream",
			"FILE"},
		{"truth", 0, 0, G_OPTION_ARG_FILENAME, &o->truth, "Where the voxel averages go (FILE_truth.nii.gz beside the scan)",
			"FILE"},
		{"no-truth", 0, 0, G_OPTION_ARG_NONE, &o->no_truth, "Write no truth and compute no ceiling", NULL},
		{"stream", 0, 0, G_OPTION_ARG_NONE, &o->stream, "Write an MRD stream instead of HDF5", NULL},
		{"trajectory", 't', 0, G_OPTION_ARG_STRING, &o->trajectory,
			"cartesian, radial, spiral, stack-of-stars, radial3d or random (cartesian)", "NAME"},
		{"matrix", 0, 0, G_OPTION_ARG_STRING, &o->matrix, "Voxels along each axis (128,128,1; 64,64,64 for 3-D trajectories; bundles 64,64,24)",
			"X,Y,Z"},
		{"shape", 0, 0, G_OPTION_ARG_STRING_ARRAY, &o->shapes, "One ellipsoid of kind `shapes`: amplitude, centre and half axes "
			"in halves of the field of view, Euler angles z-x-z in degrees; may be given often", "A,x,y,z,a,b,c[,t,u,v]"},
		{"field-map", 0, 0, G_OPTION_ARG_FILENAME, &o->field_map, "from-image: off-resonance in Hz, on the image's voxels; every sample "
			"is then a plain sum, so keep it small", "FILE.nii"},
		{"te-ms", 0, 0, G_OPTION_ARG_DOUBLE, &o->te, "With --field-map: time from excitation to k = 0 (0)", "MS"},
		{"coils", 0, 0, G_OPTION_ARG_INT, &o->coils, "Receiver coils; 1 is a coil that sees all alike (1; bundles 8)", "N"},
		{"acceleration", 0, 0, G_OPTION_ARG_INT, &o->acceleration, "Spiral: arms this many times farther apart than Nyquist asks, coils "
			"calibrated by the full set, ahead of the scan (1; bundles seen by 4 coils or more 2)", "R"},
		{"readouts", 0, 0, G_OPTION_ARG_INT, &o->readouts,
			"Readouts of a frame; stack-of-stars: spokes of a partition (as Nyquist asks)", "N"},
		{"samples", 0, 0, G_OPTION_ARG_INT, &o->samples, "Samples of a readout (twice the matrix; spiral: as Nyquist asks)",
			"N"},
		{"golden", 0, 0, G_OPTION_ARG_NONE, &o->golden, "Golden angle (radial3d: golden means), going on from frame to frame",
			NULL},
		{"full-turn", 0, 0, G_OPTION_ARG_NONE, &o->full_turn, "Radial trajectories: equal spokes fill a whole turn, so that each "
			"has an opposite", NULL},
		{"delay-us", 0, 0, G_OPTION_ARG_STRING, &o->delay, "Gradients come this late; the trajectory that is written does "
			"not know (0,0,0)", "X,Y,Z"},
		{"oversampling", 0, 0, G_OPTION_ARG_DOUBLE, &o->oversampling, "Cartesian readout oversampling (1)", "X"},
		{"partial-fourier", 0, 0, G_OPTION_ARG_STRING, &o->partial, "Cartesian: acquired share of lines and partitions, "
			"0.5 to 1 (1,1)", "Y,Z"},
		{"echo", 0, 0, G_OPTION_ARG_DOUBLE, &o->echo, "Cartesian: acquired share of the readout, 0.5 to 1 (1)", "X"},
		{"attach-trajectory", 0, 0, G_OPTION_ARG_NONE, &o->attach, "Write a trajectory for Cartesian readouts too", NULL},
		{"no-trajectory", 0, 0, G_OPTION_ARG_NONE, &o->detach, "Write no trajectory, as scanners do whose users know it", NULL},
		{"units", 0, 0, G_OPTION_ARG_STRING, &o->unit,
			"Unit of the trajectory: cycles_per_voxel, cycles_per_fov, rad_per_voxel or per_m (cycles_per_voxel)", "NAME"},
		{"columns", 0, 0, G_OPTION_ARG_INT, &o->columns, "Columns of the trajectory, 2 or 3 (the axes of the scan)", "N"},
		{"noise", 0, 0, G_OPTION_ARG_DOUBLE, &o->noise,
			"Standard deviation of the noise in the real and in the imaginary part of a sample (0)", "SIGMA"},
		{"noise-correlation", 0, 0, G_OPTION_ARG_DOUBLE, &o->correlation, "Between neighbouring coils, 0 to below 1 (0)", "R"},
		{"noise-spread", 0, 0, G_OPTION_ARG_DOUBLE, &o->gain_spread, "How unlike the coils' noise is, 0 for equal (0)", "X"},
		{"noise-readouts", 0, 0, G_OPTION_ARG_INT, &o->noise_readouts, "Noise readouts ahead of the scan (0; bundles with noise 8)", "N"},
		{"noise-dwell-us", 0, 0, G_OPTION_ARG_DOUBLE, &o->noise_dwell, "Their dwell time (10)", "US"},
		{"noise-bandwidth", 0, 0, G_OPTION_ARG_DOUBLE, &o->noise_bandwidth,
			"Their bandwidth relative to the nominal one, as the header tells it (not told, 1)", "X"},
		{"dwell-us", 0, 0, G_OPTION_ARG_DOUBLE, &o->dwell, "Dwell time of the scan (4)", "US"},
		{"seed", 0, 0, G_OPTION_ARG_INT64, &o->seed, "Of noise and random trajectories (1)", "N"},
		{"repetitions", 0, 0, G_OPTION_ARG_INT, &o->repetitions, "Frames of the same object (1)", "N"},
		{"averages", 0, 0, G_OPTION_ARG_INT, &o->averages, "Averages of each frame (1)", "N"},
		{"slices", 0, 0, G_OPTION_ARG_INT, &o->slices, "2-D slices, planes of the 3-D object (1)", "N"},
		{"interleaved-slices", 0, 0, G_OPTION_ARG_NONE, &o->interleaved, "Slices take turns, readout by readout", NULL},
		{"slice-spacing-mm", 0, 0, G_OPTION_ARG_DOUBLE, &o->spacing, "Between centres of slices (the thickness)", "MM"},
		{"fov-mm", 0, 0, G_OPTION_ARG_STRING, &o->fov, "Field of view; 2-D: the third is the slice's thickness (cubic voxels, "
			"240 along the longest axis; 5 thick)", "X,Y,Z"},
		{"oblique", 0, 0, G_OPTION_ARG_STRING, &o->oblique, "Turns of the field of view about x, then y, then z, in degrees "
			"(0,0,0)", "X,Y,Z"},
		{"position-mm", 0, 0, G_OPTION_ARG_STRING, &o->position, "Centre of the middle voxel, LPS (0,0,0)", "X,Y,Z"},
		{"no-flags", 0, 0, G_OPTION_ARG_NONE, &o->no_flags, "Leave the FIRST and LAST flags out", NULL},
		{"no-limits", 0, 0, G_OPTION_ARG_NONE, &o->no_limits, "Leave the header's encoding limits out", NULL},
		{"threads", 0, 0, G_OPTION_ARG_INT, &o->threads, "Threads (every processor)", "N"},
	};
	GArray *all = g_array_new(TRUE, FALSE, sizeof *entries); /* ends in zeros, as GLib wants it */

	g_array_append_vals(all, entries, G_N_ELEMENTS(entries));
	fxi_phantom_dwi_entries(&o->dwi, all);
	return (GOptionEntry *)g_array_free(all, FALSE);
}

static int word(const char *option, const char *text, const char *const *words, fx_error *err, int *out)
{
	char *list;

	for (int i = 0; words[i]; i++)
		if (strcmp(text, words[i]) == 0) {
			*out = i;
			return FX_OK;
		}
	list = g_strjoinv(", ", (char **)words);
	fx_error_set(err, FX_EINVAL, "%s '%.100s' is none of: %s", option, text, list);
	g_free(list);
	return FX_EINVAL;
}

/* `least` to `most` numbers between commas; those not given keep what they have. */
static int numbers(const char *option, const char *text, int least, int most, fx_error *err, double *out)
{
	char **parts;
	int n, status = FX_OK;

	if (!text)
		return FX_OK;
	parts = g_strsplit(text, ",", -1);
	n = (int)g_strv_length(parts);
	if (n < least || n > most)
		status = fx_error_set(err, FX_EINVAL, "%s '%.200s' has %d numbers between commas; at least %d and at most %d "
			"belong there", option, text, n, least, most);
	for (int i = 0; i < n && status == FX_OK; i++) {
		char *end;

		out[i] = g_ascii_strtod(parts[i], &end);
		if (*parts[i] == '\0' || *end != '\0' || !isfinite(out[i]))
			status = fx_error_set(err, FX_EINVAL, "%s: '%.100s' is no number", option, parts[i]);
	}
	g_strfreev(parts);
	return status;
}

static int read_matrix(const char *text, bool volume, bool bundles, fx_error *err, int64_t matrix[3])
{
	double edge = volume || bundles ? 64 : 128, values[3] = {edge, edge, bundles ? 24 : volume ? 64 : 1};
	int status = numbers("--matrix", text, 3, 3, err, values);

	for (int d = 0; d < 3 && status == FX_OK; d++) {
		if (values[d] < 1 || values[d] > 65535 || values[d] != floor(values[d]))
			status = fx_error_set(err, FX_EINVAL, "--matrix %.100s: each is a whole number from 1 to 65535", text);
		else
			matrix[d] = (int64_t)values[d];
	}
	return status;
}

static int read_shapes(char *const *texts, fx_error *err, fxi_phantom_job *job)
{
	int64_t n = texts ? g_strv_length((char **)texts) : 0;

	if (job->object != FXI_OBJECT_SHAPES)
		return n == 0 ? FX_OK : fx_error_set(err, FX_EINVAL, "--shape belongs to the kind 'shapes'");
	if (n == 0)
		return fx_error_set(err, FX_EINVAL, "the kind 'shapes' needs at least one --shape");
	job->shapes = fx_alloc(n, sizeof *job->shapes);
	if (!job->shapes)
		return fx_error_set(err, FX_ENOMEM, "no memory for %lld shapes", (long long)n);
	job->n_shapes = n;
	for (int64_t i = 0; i < n; i++) {
		double v[10] = {0};
		int status = numbers("--shape", texts[i], 7, 10, err, v);

		if (status != FX_OK)
			return status;
		job->shapes[i] = (fxi_ellipsoid){.amplitude = v[0], .centre = {v[1], v[2], v[3]}, .half_axes = {v[4], v[5], v[6]},
			.angle_deg = {v[7], v[8], v[9]}};
	}
	return FX_OK;
}

static int check(const char *option, double value, double least, double most, fx_error *err)
{
	if (value >= least && value <= most)
		return FX_OK;
	return fx_error_set(err, FX_EINVAL, "%s %g: it takes %g to %g", option, value, least, most);
}

static int check_ranges(const fxi_phantom_options *o, fx_error *err)
{
	const struct {
		const char *option;
		double value, least, most;
	} ranges[] = {
		{"--coils", o->coils == -1 ? 1 : o->coils, 1, 1024}, {"--acceleration", o->acceleration == -1 ? 1 : o->acceleration, 1, 64}, {"--repetitions", o->repetitions, 1, 65536}, {"--averages", o->averages, 1, 65536},
		{"--slices", o->slices, 1, 65535}, {"--noise-readouts", o->noise_readouts == -1 ? 0 : o->noise_readouts, 0, 1e6}, {"--columns", o->columns, 0, 3},
		{"--noise", o->noise, 0, 1e30}, {"--noise-correlation", o->correlation, 0, 0.9999},
		{"--noise-spread", o->gain_spread, 0, 100}, {"--dwell-us", o->dwell, 1e-3, 1e6},
		{"--noise-dwell-us", o->noise_dwell, 1e-3, 1e6}, {"--noise-bandwidth", o->noise_bandwidth, 0, 10},
		{"--slice-spacing-mm", o->spacing, 0, 1e6}, {"--threads", o->threads, 0, 4096},
		{"--te-ms", o->te, 0, 1e6}, {"--readouts", o->readouts, 0, 65536}, {"--samples", o->samples, 0, 65535},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(ranges); i++)
		if (check(ranges[i].option, ranges[i].value, ranges[i].least, ranges[i].most, err) != FX_OK)
			return FX_EINVAL;
	return FX_OK;
}

static int read_lists(const fxi_phantom_options *o, fx_error *err, fxi_phantom_job *job)
{
	fxi_sampling *s = &job->sampling;
	bool volume = s->kind == FXI_STACK_OF_STARS || s->kind == FXI_RADIAL3D;
	bool bundles = job->object >= FXI_OBJECT_RING;
	int status = read_matrix(o->matrix, volume, bundles, err, s->matrix);
	int64_t longest = 1;

	if (status == FX_OK)
		status = numbers("--partial-fourier", o->partial, 1, 2, err, s->partial_fourier);
	for (int d = 0; d < 3; d++)
		longest = s->matrix[d] > longest ? s->matrix[d] : longest;
	for (int d = 0; d < 3; d++)
		job->fov_mm[d] = bundles ? BUNDLE_VOXEL_MM * (double)s->matrix[d] : d == 2 && s->matrix[2] == 1 ? THICKNESS_MM :
			FOV_MM * (double)s->matrix[d] / (double)longest;
	if (status == FX_OK)
		status = numbers("--fov-mm", o->fov, 3, 3, err, job->fov_mm);
	for (int d = 0; d < 3 && status == FX_OK; d++)
		if (!(job->fov_mm[d] >= 0))
			status = fx_error_set(err, FX_EINVAL, "--fov-mm %g: it must not be negative", job->fov_mm[d]);
	if (status == FX_OK && job->unit == FX_UNIT_PER_M && !(job->fov_mm[0] > 0 && job->fov_mm[1] > 0 && job->fov_mm[2] > 0))
		status = fx_error_set(err, FX_EINVAL, "--units per_m needs a field of view above 0");
	if (status == FX_OK)
		status = numbers("--oblique", o->oblique, 3, 3, err, job->oblique_deg);
	if (status == FX_OK)
		status = numbers("--position-mm", o->position, 3, 3, err, job->position_mm);
	if (status == FX_OK)
		status = numbers("--delay-us", o->delay, 3, 3, err, s->shift);
	for (int d = 0; d < 3; d++)
		s->shift[d] /= o->dwell;
	if (status == FX_OK && s->kind == FXI_RANDOM && o->delay)
		status = fx_error_set(err, FX_EINVAL, "--delay-us: random samples follow no path along which to be late");
	job->slice_spacing_mm = o->spacing > 0 || bundles ? o->spacing : job->fov_mm[2];
	return status;
}

/* Coils cannot be told from an accelerated scan alone: the full set of readouts, which calibrates them, goes ahead. */
static int accelerate(const fxi_phantom_options *o, fx_error *err, fxi_phantom_job *job)
{
	fxi_sampling *s = &job->sampling;

	s->acceleration = o->acceleration > 0 ? o->acceleration : job->object >= FXI_OBJECT_RING && job->n_coils >= 4 &&
		s->kind == FXI_SPIRAL && !job->detach ? 2 : 1;
	if (s->acceleration == 1)
		return FX_OK;
	if (s->kind != FXI_SPIRAL || s->golden || job->detach || job->object < FXI_OBJECT_IMAGE)
		return fx_error_set(err, FX_EINVAL, "--acceleration is for spirals of equal angles with a trajectory, of an image or of bundles");
	if (s->n_readouts == 0)
		return fx_error_set(err, FX_EINVAL, "--acceleration needs the number of --readouts too");
	job->n_calibrations = s->n_readouts * s->acceleration;
	return FX_OK;
}

int fxi_phantom_read_options(const fxi_phantom_options *o, const char *kind, fx_error *err, fxi_phantom_job *job)
{
	const char *kinds[FXI_RANDOM + 2] = {NULL};
	int status = word("kind", kind, objects, err, &job->object);

	for (int i = 0; i <= FXI_RANDOM; i++)
		kinds[i] = fxi_sampling_name(i);
	if (status == FX_OK)
		status = word("--trajectory", o->trajectory ? o->trajectory : job->object >= FXI_OBJECT_RING ? "spiral" : "cartesian", kinds, err,
			&job->sampling.kind);
	job->unit = FX_UNIT_CYCLES_PER_VOXEL;
	if (status == FX_OK && o->unit)
		status = word("--units", o->unit, units, err, &job->unit);
	if (status == FX_OK && job->unit == FX_UNIT_AUTO)
		status = fx_error_set(err, FX_EINVAL, "--units auto is for reading; name one to write");
	if (status == FX_OK && job->object == FXI_OBJECT_IMAGE && (o->fov || o->oblique || o->position || o->spacing > 0))
		status = fx_error_set(err, FX_EINVAL, "--fov-mm, --oblique, --position-mm and --slice-spacing-mm: an image says itself where "
			"it lies");
	if (status == FX_OK && job->object != FXI_OBJECT_IMAGE && (o->field_map || o->te > 0))
		status = fx_error_set(err, FX_EINVAL, "--field-map and --te-ms belong to the kind 'from-image'");
	if (status == FX_OK && job->object < FXI_OBJECT_RING && fxi_phantom_dwi_options_given(&o->dwi))
		status = fx_error_set(err, FX_EINVAL, "options of bundles, such as --directions and --snr, belong to the kinds ring, crossing and "
			"helix");
	if (status == FX_OK && o->noise > 0 && o->dwi.snr > 0)
		status = fx_error_set(err, FX_EINVAL, "--noise and --snr both say how much noise there is; give one");
	if (status == FX_OK && !o->output)
		status = fx_error_set(err, FX_EINVAL, "-o FILE is missing");
	if (status == FX_OK && o->attach && o->detach)
		status = fx_error_set(err, FX_EINVAL, "--attach-trajectory and --no-trajectory contradict each other");
	if (status == FX_OK && strcmp(o->output, "-") == 0 && !o->stream)
		status = fx_error_set(err, FX_EINVAL, "HDF5 cannot go to standard output; add --stream");
	if (status == FX_OK)
		status = check_ranges(o, err);
	if (status == FX_OK)
		status = read_lists(o, err, job);
	if (status != FX_OK)
		return status;
	job->sampling.n_readouts = o->readouts;
	job->sampling.n_samples = o->samples;
	job->sampling.golden = o->golden;
	job->sampling.full_turn = o->full_turn;
	job->sampling.seed = (uint64_t)o->seed;
	job->sampling.oversampling = o->oversampling;
	job->sampling.echo = o->echo;
	job->n_coils = o->coils > 0 ? o->coils : job->object >= FXI_OBJECT_RING ? 8 : 1;
	job->n_slices = o->slices;
	job->n_repetitions = o->repetitions;
	job->n_averages = o->averages;
	job->interleaved = o->interleaved;
	job->no_flags = o->no_flags;
	job->no_limits = o->no_limits;
	job->attach = o->attach;
	job->detach = o->detach;
	job->columns = o->columns;
	job->noise = (fxi_noise){.sigma = o->noise, .correlation = o->correlation, .gain_spread = o->gain_spread,
		.seed = (uint64_t)o->seed};
	job->n_noise_readouts = o->noise_readouts >= 0 ? o->noise_readouts : job->object >= FXI_OBJECT_RING &&
		(o->noise > 0 || o->dwi.snr > 0) ? 8 : 0;
	job->dwell_us = o->dwell;
	job->noise_dwell_us = o->noise_dwell;
	job->noise_bandwidth = o->noise_bandwidth;
	job->n_threads = o->threads > 0 ? o->threads : fx_processors();
	status = read_shapes(o->shapes, err, job);
	if (status == FX_OK && job->object >= FXI_OBJECT_RING)
		status = fxi_phantom_dwi_load(&o->dwi, err, job);
	return status == FX_OK ? accelerate(o, err, job) : status;
}
