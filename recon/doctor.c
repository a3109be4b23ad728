/* SPDX-License-Identifier: MIT */
/* doctor.c - gathers what the doctor judges, readout by readout, in memory that only the first frame's trajectory can grow. */
#include "recon/doctor_parts.h"

#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MOST_PLACES (16 << 20)  /* readouts whose counters are compared */
#define MOST_KEPT (1 << 20)     /* readouts of a frame whose trajectory is looked at */

static const char *const verdicts[] = {"ok", "cannot be told", "warning", "refusal"};
static const char *const types[] = {"noise", "calibration", "navigation", "other", "empty", "imaging"};

const char *fxi_verdict_name(int verdict)
{
	return verdict >= FXI_FINE && verdict <= FXI_REFUSAL ? verdicts[verdict] : "?";
}

const char *fxi_readout_type_name(int type)
{
	return type >= 0 && type < FXI_N_READOUT_TYPES ? types[type] : "?";
}

int fxi_doctor_new(const fx_header *header, fx_error *err, fxi_doctor **out)
{
	fxi_doctor *d = fx_alloc(1, sizeof *d);

	*out = NULL;
	if (d) {
		d->header = header;
		d->n_encodings = header->n_encodings;
		d->seen = fx_alloc(header->n_encodings > 0 ? header->n_encodings : 1, sizeof *d->seen);
	}
	if (!d || !d->seen) {
		fxi_doctor_free(d);
		return fx_error_set(err, FX_ENOMEM, "no memory to look at a scan");
	}
	*out = d;
	return FX_OK;
}

void fxi_doctor_free(fxi_doctor *d)
{
	if (!d)
		return;
	for (int64_t e = 0; d->seen && e < d->n_encodings; e++) {
		struct fxi_seen *s = &d->seen[e];

		for (int64_t i = 0; i < s->n_kept; i++) {
			fx_array_unref(s->kept[i].traj);
			fx_array_unref(s->kept[i].k);
		}
		fx_free(s->kept);
		fx_free(s->places);
		fx_free(s->energy);
	}
	fx_free(d->seen);
	fx_free(d->findings);
	fx_free(d);
}

/* Room for one more. */
static bool more(void **list, int64_t n, int64_t *room, size_t size)
{
	int64_t wanted = *room > 0 ? 2 * *room : 64;
	void *grown;

	if (n < *room)
		return true;
	grown = fx_alloc(wanted, size);
	if (!grown)
		return false;
	if (n > 0)
		memcpy(grown, *list, (size_t)n * size);
	fx_free(*list);
	*list = grown;
	*room = wanted;
	return true;
}

void fxi_found(fxi_doctor *d, int verdict, int64_t encoding, const char *aspect, const char *fmt, ...)
{
	fxi_finding *f;
	va_list args;

	if (!more((void **)&d->findings, d->n_findings, &d->room, sizeof *d->findings)) {
		d->short_of_memory = true;
		return;
	}
	f = &d->findings[d->n_findings++];
	f->verdict = verdict;
	f->encoding = encoding;
	f->aspect = aspect;
	va_start(args, fmt);
	vsnprintf(f->text, sizeof f->text, fmt, args);
	va_end(args);
}

/* ---- one readout ----------------------------------------------------------------------------------- */

static int type_of(const fx_acquisition *a)
{
	const ISMRMRD_AcquisitionHeader *h = &a->head;

	if (FX_FLAG(h->flags, ISMRMRD_ACQ_IS_NOISE_MEASUREMENT))
		return FXI_READOUT_NOISE;
	if (a->data->dims[0] == 0)
		return FXI_READOUT_EMPTY;
	if (fx_is_calibration(h))
		return FXI_READOUT_CALIBRATION;
	if (FX_FLAG(h->flags, ISMRMRD_ACQ_IS_NAVIGATION_DATA) || FX_FLAG(h->flags, ISMRMRD_ACQ_IS_RTFEEDBACK_DATA) ||
		FX_FLAG(h->flags, ISMRMRD_ACQ_IS_HPFEEDBACK_DATA))
		return FXI_READOUT_NAVIGATION;
	return fx_is_auxiliary(h) ? FXI_READOUT_OTHER : FXI_READOUT_IMAGING;
}

static void range(int64_t value, bool first, int64_t *min, int64_t *max)
{
	if (first || value < *min)
		*min = value;
	if (first || value > *max)
		*max = value;
}

static struct fxi_place place_of(const ISMRMRD_AcquisitionHeader *h)
{
	return (struct fxi_place){{[FX_STEP_1] = h->idx.kspace_encode_step_1, [FX_STEP_2] = h->idx.kspace_encode_step_2,
		[FX_AVERAGE] = h->idx.average, [FX_SLICE] = h->idx.slice, [FX_CONTRAST] = h->idx.contrast, [FX_PHASE] = h->idx.phase,
		[FX_REPETITION] = h->idx.repetition, [FX_SET] = h->idx.set, [FX_SEGMENT] = h->idx.segment}};
}

/* Directions that are not of length 1 and at right angles to 1e-3 (they are single numbers, often rounded to four digits). */
static bool directions_bad(const ISMRMRD_AcquisitionHeader *h)
{
	double v[3][3];

	for (int d = 0; d < 3; d++) {
		v[0][d] = (double)h->read_dir[d];
		v[1][d] = (double)h->phase_dir[d];
		v[2][d] = (double)h->slice_dir[d];
	}
	for (int p = 0; p < 3; p++)
		for (int q = p; q < 3; q++) {
			double dot = v[p][0] * v[q][0] + v[p][1] * v[q][1] + v[p][2] * v[q][2];

			if (!(fabs(dot - (p == q)) < 1e-3))
				return true;
		}
	return false;
}

static bool same_frame(const ISMRMRD_AcquisitionHeader *a, const ISMRMRD_AcquisitionHeader *b)
{
	return a->idx.slice == b->idx.slice && a->idx.contrast == b->idx.contrast && a->idx.phase == b->idx.phase &&
		a->idx.repetition == b->idx.repetition && a->idx.set == b->idx.set;
}

/* Numbers that are not finite; widens the largest magnitude. */
static void look_at_numbers(struct fxi_seen *s, const fx_acquisition *a)
{
	const float *v = (const float *)a->data->data;
	bool finite = true;

	for (int64_t i = 0; i < 2 * a->data->n; i++) {
		finite = finite && isfinite(v[i]);
		if (isfinite(v[i]))
			s->largest = fmax(s->largest, fabs((double)v[i]));
	}
	for (int64_t i = 0; a->traj && i < a->traj->n; i++)
		finite = finite && isfinite(FX_F32_OF(a->traj)[i]);
	if (!finite && s->n_not_finite++ == 0)
		s->first_not_finite = a->head.scan_counter;
}

static void look_at_trajectory(struct fxi_seen *s, const fx_acquisition *a)
{
	int64_t columns = a->traj->dims[0];
	const float *t = FX_F32_OF(a->traj);

	if (s->n_with_trajectory++ == 0) {
		s->counts.columns = columns;
		s->third_min = INFINITY;
		s->third_max = -INFINITY;
	}
	if (a->traj->dims[1] != a->data->dims[0] || columns != s->counts.columns)
		s->n_lengths_differ++;
	for (int64_t i = 0; i < a->traj->dims[1]; i++)
		for (int64_t d = 0; d < columns && d < 3; d++) {
			double k = (double)t[d + columns * i];

			if (!isfinite(k))
				continue;
			s->max_abs[d] = fmax(s->max_abs[d], fabs(k));
			if (d == 2) {
				s->third_min = fmin(s->third_min, k);
				s->third_max = fmax(s->third_max, k);
			}
		}
}

/* Where along a Cartesian readout the energy of the first frame lies. */
static int add_energy(struct fxi_seen *s, const fx_acquisition *a)
{
	int64_t n = a->data->dims[0];

	if (!s->energy) {
		s->energy = fx_alloc(n, sizeof *s->energy);
		if (!s->energy)
			return FX_ENOMEM;
		s->n_energy = n;
	}
	for (int64_t i = 0; i < a->data->n && n == s->n_energy; i++) {
		double re = (double)crealf(FX_CF32_OF(a->data)[i]), im = (double)cimagf(FX_CF32_OF(a->data)[i]);

		if (isfinite(re) && isfinite(im))
			s->energy[i % n] += re * re + im * im;
	}
	return FX_OK;
}

/* Head and trajectory of a readout of the first frame. */
static int keep(struct fxi_seen *s, const fx_acquisition *a)
{
	if (s->n_kept == MOST_KEPT) {
		s->n_left_out++;
		return FX_OK;
	}
	if (!more((void **)&s->kept, s->n_kept, &s->kept_room, sizeof *s->kept))
		return FX_ENOMEM;
	s->kept[s->n_kept] = (fx_acquisition){.head = a->head, .traj = fx_array_ref(a->traj)};
	s->n_kept++;
	return a->traj ? FX_OK : add_energy(s, a);
}

static int look_at_imaging(struct fxi_seen *s, const fx_encoding *e, const fx_acquisition *a)
{
	bool first = !s->has_first, beyond = false;
	struct fxi_place place = place_of(&a->head);

	if (first) {
		s->first = a->head;
		s->has_first = true;
		s->counts.dwell_us = (double)a->head.sample_time_us;
	}
	range(a->data->dims[0], first, &s->counts.min_samples, &s->counts.max_samples);
	for (int c = 0; c < FX_N_COUNTERS; c++) {
		range(place.counter[c], first, &s->counts.min[c], &s->counts.max[c]);
		beyond = beyond || (e->limits[c].present &&
			(place.counter[c] < e->limits[c].min || place.counter[c] > e->limits[c].max));
	}
	s->n_beyond_limits += beyond;
	s->n_bad_directions += directions_bad(&a->head);
	s->n_last_flags += FX_FLAG(a->head.flags, ISMRMRD_ACQ_LAST_IN_SLICE) || FX_FLAG(a->head.flags,
		ISMRMRD_ACQ_LAST_IN_REPETITION) || FX_FLAG(a->head.flags, ISMRMRD_ACQ_LAST_IN_MEASUREMENT);
	look_at_numbers(s, a);
	if (a->traj)
		look_at_trajectory(s, a);
	if (s->n_places < MOST_PLACES) {
		if (!more((void **)&s->places, s->n_places, &s->places_room, sizeof *s->places))
			return FX_ENOMEM;
		s->places[s->n_places++] = place;
	}
	return same_frame(&a->head, &s->first) ? keep(s, a) : FX_OK;
}

int fxi_doctor_add(fxi_doctor *d, const fx_acquisition *a, fx_error *err)
{
	struct fxi_seen *s;
	int type = type_of(a), status = FX_OK;
	int64_t n = 0;

	if (type == FXI_READOUT_NOISE) {
		d->n_noise++;
		d->n_noise_without_dwell += !(a->head.sample_time_us > 0);
	}
	if (a->head.encoding_space_ref >= d->n_encodings) {
		if (d->n_strays++ == 0)
			d->first_stray = a->head.scan_counter;
		return FX_OK;
	}
	s = &d->seen[a->head.encoding_space_ref];
	for (int t = 0; t < FXI_N_READOUT_TYPES; t++)
		n += s->counts.readouts[t];
	s->counts.readouts[type]++;
	range(a->data->dims[1], n == 0, &s->counts.min_coils, &s->counts.max_coils);
	if (type == FXI_READOUT_IMAGING)
		status = look_at_imaging(s, &d->header->encodings[a->head.encoding_space_ref], a);
	return status == FX_OK ? FX_OK : fx_error_set(err, status, "no memory to look at readout %u", a->head.scan_counter);
}

const fxi_counts *fxi_doctor_counts(const fxi_doctor *d, int64_t encoding)
{
	return &d->seen[encoding].counts;
}

int fxi_doctor_end(fxi_doctor *d, fx_error *err, fxi_report *report)
{
	fxi_doctor_scan(d);
	for (int64_t e = 0; e < d->n_encodings; e++) {
		fxi_doctor_encoding(d, e);
		if (d->seen[e].n_with_trajectory > 0)
			fxi_doctor_sampling(d, e);
	}
	if (d->short_of_memory)
		return fx_error_set(err, FX_ENOMEM, "no memory to judge a scan");
	*report = (fxi_report){.n_findings = d->n_findings, .findings = d->findings};
	return FX_OK;
}
