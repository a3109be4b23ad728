/* SPDX-License-Identifier: MIT */
/* doctor_scan.c - what a scan's header, counters and numbers say, each with the reason and the way out. */
#include "recon/doctor_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define METRES 2.0          /* a field of view below this many "mm" over several voxels is one in metres */
#define HUGE_SAMPLE 1e20    /* no receiver gives such numbers; uninitialised memory does */
#define OFF_RESONANCE_HZ 50.0 /* what shimming leaves in a head at 3 T, 0.4 ppm */
#define AT_T 3.0

void fxi_doctor_scan(fxi_doctor *d)
{
	int64_t n_imaging = 0, coils = 0;

	for (int64_t e = 0; e < d->n_encodings; e++) {
		n_imaging += d->seen[e].counts.readouts[FXI_READOUT_IMAGING];
		coils = d->seen[e].counts.max_coils > coils ? d->seen[e].counts.max_coils : coils;
	}
	if (d->n_strays > 0)
		fxi_found(d, FXI_REFUSAL, -1, "readouts", "%lld readouts (the first is %lld) are of an encoding that the header does not "
			"have: it has %lld", (long long)d->n_strays, (long long)d->first_stray, (long long)d->n_encodings);
	if (n_imaging == 0)
		fxi_found(d, FXI_REFUSAL, -1, "readouts", "no readout is part of an image: all are empty or noise, calibration and the like");
	if (d->n_noise == 0 && coils > 1)
		fxi_found(d, FXI_DOUBT, -1, "noise", "no noise readouts: %lld coils cannot be prewhitened", (long long)coils);
	else if (d->n_noise_without_dwell > 0)
		fxi_found(d, FXI_DOUBT, -1, "noise", "%lld noise readouts have no sample_time_us: their bandwidth is taken for the scan's",
			(long long)d->n_noise_without_dwell);
	else
		fxi_found(d, FXI_FINE, -1, "noise", "%lld noise readouts, %lld coils", (long long)d->n_noise, (long long)coils);
}

/* ---- coils and numbers ------------------------------------------------------------------------- */

static void judge_coils(fxi_doctor *d, int64_t e)
{
	const fxi_counts *c = &d->seen[e].counts;

	if (c->min_coils != c->max_coils)
		fxi_found(d, FXI_REFUSAL, e, "coils", "readouts have %lld to %lld coils; every one needs the same", (long long)c->min_coils,
			(long long)c->max_coils);
	else if (d->header->receiver_channels > 0 && d->header->receiver_channels != c->max_coils)
		fxi_found(d, FXI_DOUBT, e, "coils", "the header has %lld receiver channels, readouts have %lld: these count",
			(long long)d->header->receiver_channels, (long long)c->max_coils);
	else
		fxi_found(d, FXI_FINE, e, "coils", "%lld in every readout", (long long)c->max_coils);
}

static void judge_numbers(fxi_doctor *d, int64_t e)
{
	const struct fxi_seen *s = &d->seen[e];

	if (s->n_not_finite > 0)
		fxi_found(d, FXI_REFUSAL, e, "numbers", "%lld readouts (the first is %lld) hold samples or positions that are not finite: the "
			"file is damaged", (long long)s->n_not_finite, (long long)s->first_not_finite);
	else if (s->largest == 0)
		fxi_found(d, FXI_REFUSAL, e, "numbers", "every sample is 0: nothing was recorded");
	else if (s->largest > HUGE_SAMPLE)
		fxi_found(d, FXI_DOUBT, e, "numbers", "the largest sample is %.3g: that looks like memory that was never written",
			s->largest);
	else
		fxi_found(d, FXI_FINE, e, "numbers", "all finite, the largest %.3g", s->largest);
}

/* ---- geometry ---------------------------------------------------------------------------------- */

static void judge_geometry(fxi_doctor *d, int64_t e)
{
	const struct fxi_seen *s = &d->seen[e];
	const fx_space *space = &d->header->encodings[e].encoded;
	bool unknown = false, metres = false;

	for (int a = 0; a < 3; a++) {
		bool several = space->matrix[a] > 1;

		unknown = unknown || (several && !(space->fov_mm[a] > 0));
		metres = metres || (several && space->fov_mm[a] > 0 && space->fov_mm[a] < METRES);
	}
	if (unknown)
		fxi_found(d, FXI_DOUBT, e, "geometry", "the encoded field of view is %g x %g x %g mm: sizes of voxels are not known, and "
			"a trajectory in 1/m cannot be read", space->fov_mm[0], space->fov_mm[1], space->fov_mm[2]);
	if (metres)
		fxi_found(d, FXI_DOUBT, e, "geometry", "the encoded field of view is %g x %g x %g mm for %lld x %lld x %lld voxels: it looks "
			"like metres; voxels will come out a thousand times too small", space->fov_mm[0], space->fov_mm[1],
			space->fov_mm[2], (long long)space->matrix[0], (long long)space->matrix[1], (long long)space->matrix[2]);
	if (s->n_bad_directions > 0)
		fxi_found(d, FXI_DOUBT, e, "geometry", "%lld readouts have read, phase and slice directions that are not of length 1 and at "
			"right angles: images will not know where they lie", (long long)s->n_bad_directions);
	if (!unknown && !metres && s->n_bad_directions == 0)
		fxi_found(d, FXI_FINE, e, "geometry", "field of view %g x %g x %g mm, directions orthonormal", space->fov_mm[0],
			space->fov_mm[1], space->fov_mm[2]);
}

/* ---- frames and counters ----------------------------------------------------------------------- */

static int compare_places(const void *p, const void *q)
{
	return memcmp(p, q, sizeof(struct fxi_place));
}

static void judge_frames(fxi_doctor *d, int64_t e)
{
	const struct fxi_seen *s = &d->seen[e];
	const fx_limit *step = &d->header->encodings[e].limits[FX_STEP_1];

	if (s->n_beyond_limits > 0)
		fxi_found(d, FXI_DOUBT, e, "frames", "%lld readouts have counters beyond the header's encodingLimits: the limits are wrong, "
			"and with them where a frame ends", (long long)s->n_beyond_limits);
	if (s->n_last_flags == 0 && !step->present)
		fxi_found(d, FXI_DOUBT, e, "frames", "neither LAST flags nor encodingLimits say where a frame ends: it ends where a counter "
			"moves on, or with the input; the property readouts_per_frame counts instead");
	else if (s->n_last_flags == 0)
		fxi_found(d, FXI_FINE, e, "frames", "no LAST flags: frames end by the header's encodingLimits");
	else
		fxi_found(d, FXI_FINE, e, "frames", "%lld readouts carry a LAST flag", (long long)s->n_last_flags);
}

static void judge_counters(fxi_doctor *d, int64_t e)
{
	struct fxi_seen *s = &d->seen[e];
	int64_t n = 0;

	qsort(s->places, (size_t)s->n_places, sizeof *s->places, compare_places);
	for (int64_t i = 1; i < s->n_places; i++)
		n += compare_places(&s->places[i - 1], &s->places[i]) == 0;
	if (n == 0)
		fxi_found(d, FXI_FINE, e, "counters", "no two readouts have the same");
	else if (s->n_with_trajectory > 0)
		fxi_found(d, FXI_FINE, e, "counters", "%lld readouts repeat the counters of another; their trajectories count", (long long)n);
	else
		fxi_found(d, FXI_DOUBT, e, "counters", "%lld readouts repeat the counters of another: the same line twice is averaged",
			(long long)n);
}

/* ---- readout ----------------------------------------------------------------------------------- */

static void judge_trajectory_word(fxi_doctor *d, int64_t e)
{
	const struct fxi_seen *s = &d->seen[e];
	const fx_encoding *encoding = &d->header->encodings[e];
	int64_t n = s->counts.readouts[FXI_READOUT_IMAGING];
	const char *word = fx_trajectory_kind_name(encoding->trajectory);
	bool cartesian = encoding->trajectory == FX_TRAJ_CARTESIAN || encoding->trajectory == FX_TRAJ_EPI;

	if (s->n_with_trajectory > 0 && s->n_with_trajectory < n)
		fxi_found(d, FXI_REFUSAL, e, "trajectory", "%lld of %lld imaging readouts have a trajectory, the others none",
			(long long)s->n_with_trajectory, (long long)n);
	else if (s->n_lengths_differ > 0)
		fxi_found(d, FXI_REFUSAL, e, "trajectory", "%lld readouts have a trajectory of another length or number of columns",
			(long long)s->n_lengths_differ);
	else if (s->n_with_trajectory == 0 && !cartesian)
		fxi_found(d, FXI_DOUBT, e, "trajectory", "the header says %s, but readouts carry no trajectory: the gadget trajectory takes one "
			"from file=, or makes one by kind=", word);
	else if (s->n_with_trajectory > 0 && cartesian)
		fxi_found(d, FXI_DOUBT, e, "trajectory", "the header says %s, but readouts carry a trajectory: choose the pipeline by what you "
			"know of the scan", word);
	else
		fxi_found(d, FXI_FINE, e, "trajectory", "%s, %s", word,
			s->n_with_trajectory > 0 ? "in every imaging readout" : "no trajectory needed");
}

/* Off-resonance turns the phase by up to this many cycles from a readout's first sample to its last. */
static void judge_blur(fxi_doctor *d, int64_t e)
{
	const fxi_counts *c = &d->seen[e].counts;
	double field = d->header->field_t > 0 ? d->header->field_t : AT_T;
	double hz = OFF_RESONANCE_HZ * field / AT_T, ms = (double)c->max_samples * c->dwell_us / 1000, cycles = hz * ms / 1000;

	if (!(c->dwell_us > 0))
		fxi_found(d, FXI_UNTOLD, e, "blur", "sample_time_us is %g: how long a readout takes, and so what off-resonance does, is not "
			"known", c->dwell_us);
	else if (cycles > 0.5)
		fxi_found(d, FXI_DOUBT, e, "blur", "a readout takes %.2f ms: an off-resonance of %.0f Hz (0.4 ppm at %.3g T%s) turns its end by "
			"%.2f cycles, and blurs", ms, hz, field, d->header->field_t > 0 ? "" : ", assumed", cycles);
	else
		fxi_found(d, FXI_FINE, e, "blur", "a readout takes %.2f ms: an off-resonance of %.0f Hz (0.4 ppm at %.3g T%s) turns its end by "
			"%.2f cycles", ms, hz, field, d->header->field_t > 0 ? "" : ", assumed", cycles);
}

static void judge_cartesian_centre(fxi_doctor *d, int64_t e)
{
	const struct fxi_seen *s = &d->seen[e];
	int64_t peak = 0, told = s->first.center_sample;

	if (!s->energy)
		return;
	for (int64_t i = 1; i < s->n_energy; i++)
		if (s->energy[i] > s->energy[peak])
			peak = i;
	/* echoes shift by a sample or two; an asymmetric one by far more */
	if (llabs(peak - told) > 2)
		fxi_found(d, FXI_DOUBT, e, "centre", "center_sample is %lld of %lld, but the signal is largest at sample %lld",
			(long long)told, (long long)s->n_energy, (long long)peak);
	else
		fxi_found(d, FXI_FINE, e, "centre", "center_sample is %lld of %lld, and the signal is largest at sample %lld",
			(long long)told, (long long)s->n_energy, (long long)peak);
}

/* Lines and partitions of the first frame against the matrix. */
static void judge_lines(fxi_doctor *d, int64_t e)
{
	const struct fxi_seen *s = &d->seen[e];
	const fx_encoding *encoding = &d->header->encodings[e];
	int64_t full = encoding->encoded.matrix[1] * encoding->encoded.matrix[2], n = 0;
	struct fxi_place *lines = fx_alloc(s->n_kept > 0 ? s->n_kept : 1, sizeof *lines);

	if (!lines) {
		d->short_of_memory = true;
		return;
	}
	for (int64_t i = 0; i < s->n_kept; i++) {
		lines[i].counter[0] = s->kept[i].head.idx.kspace_encode_step_1;
		lines[i].counter[1] = s->kept[i].head.idx.kspace_encode_step_2;
	}
	qsort(lines, (size_t)s->n_kept, sizeof *lines, compare_places);
	for (int64_t i = 0; i < s->n_kept; i++)
		n += i == 0 || compare_places(&lines[i - 1], &lines[i]) != 0;
	fx_free(lines);
	if (n < full)
		fxi_found(d, FXI_DOUBT, e, "density", "the first frame has %lld of the matrix's %lld lines (the header tells of %g x %g-fold "
			"acceleration): the others are taken for 0", (long long)n, (long long)full, encoding->acceleration[0],
			encoding->acceleration[1]);
	else
		fxi_found(d, FXI_FINE, e, "density", "the first frame has all %lld lines of the matrix", (long long)full);
}

void fxi_doctor_encoding(fxi_doctor *d, int64_t e)
{
	const struct fxi_seen *s = &d->seen[e];

	if (!s->has_first) {
		fxi_found(d, FXI_DOUBT, e, "readouts", "no readout is part of an image of this encoding");
		return;
	}
	judge_coils(d, e);
	judge_numbers(d, e);
	judge_geometry(d, e);
	judge_frames(d, e);
	judge_counters(d, e);
	judge_trajectory_word(d, e);
	if (s->n_with_trajectory > 0 || d->header->encodings[e].trajectory > FX_TRAJ_EPI)
		judge_blur(d, e);
	if (s->n_with_trajectory == 0 && d->header->encodings[e].trajectory == FX_TRAJ_CARTESIAN) {
		judge_cartesian_centre(d, e);
		judge_lines(d, e);
	}
}
