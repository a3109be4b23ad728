/* SPDX-License-Identifier: MIT */
/*
 * framer_counters.c - frames by LAST flags, else by the encoding limits' count, else by counters that move on. Files in
 * the wild get each of these wrong, so what is seen decides what is believed, and a readout that fits nothing is an
 * error that tells the way out.
 */
#include "framer.h"

static int refuse_late(const fx_framer *f, const ISMRMRD_AcquisitionHeader *head, const fxi_closed *closed, fx_error *err)
{
	static const char *const reasons[] = {
		[FXI_CLOSE_FLAG] = "by its LAST flag",
		[FXI_CLOSE_LIMITS] = "by the count of the header's encodingLimits",
		[FXI_CLOSE_REPETITION] = "since the repetition moved on",
		[FXI_CLOSE_PHASE] = "since the phase moved on",
		[FXI_CLOSE_SET] = "since the set moved on",
		[FXI_CLOSE_DIFFUSION] = "since the diffusion counter moved on",
	};
	char text[192];

	fxi_framer_describe(f, head, text, sizeof text);
	return fx_error_set(err, FX_EDATA, "%s comes after its frame was complete with %lld readouts, %s; if the scan runs "
		"on without counting repetitions, or flags and counters cannot be relied on, set readouts_per_frame",
		text, (long long)closed->n_readouts, reasons[closed->reason]);
}

static bool inside(const fx_limit *limit, int64_t value)
{
	return limit->present ? value >= limit->min && value <= limit->max : value == 0;
}

static int64_t first_of(const fx_limit *limit)
{
	return limit->present ? limit->min : 0;
}

/* Looks at a readout before it is placed: are flags in use, do its counters keep to the limits? */
static void learn(fxi_framer_encoding *e, const ISMRMRD_AcquisitionHeader *head)
{
	static const int unit_flags[] = {
		ISMRMRD_ACQ_FIRST_IN_SLICE, ISMRMRD_ACQ_LAST_IN_SLICE, ISMRMRD_ACQ_FIRST_IN_CONTRAST,
		ISMRMRD_ACQ_LAST_IN_CONTRAST, ISMRMRD_ACQ_FIRST_IN_PHASE, ISMRMRD_ACQ_LAST_IN_PHASE,
		ISMRMRD_ACQ_FIRST_IN_REPETITION, ISMRMRD_ACQ_LAST_IN_REPETITION, ISMRMRD_ACQ_FIRST_IN_SET,
		ISMRMRD_ACQ_LAST_IN_SET,
	};

	/* Whoever flags the first readout of a unit flags the last one too. */
	for (size_t i = 0; i < sizeof unit_flags / sizeof unit_flags[0]; i++)
		e->flagged = e->flagged || FX_FLAG(head->flags, unit_flags[i]);
	if (!inside(&e->limits[FX_STEP_1], head->idx.kspace_encode_step_1) ||
	    !inside(&e->limits[FX_STEP_2], head->idx.kspace_encode_step_2) ||
	    !inside(&e->limits[FX_AVERAGE], head->idx.average))
		e->expected = 0;
}

/* Sets a bit; true where it was clear. */
static bool set_bit(uint64_t *bits, int64_t i)
{
	uint64_t bit = (uint64_t)1 << (i & 63);
	bool was_clear = !(bits[i >> 6] & bit);

	bits[i >> 6] |= bit;
	return was_clear;
}

/* Notes which position of the limits' grid a readout fills. */
static int note_position(const fxi_framer_encoding *e, fxi_open_frame *frame, const ISMRMRD_AcquisitionHeader *head,
	fx_error *err)
{
	const fx_limit *l = e->limits;
	int64_t n1 = fxi_limit_span(&l[FX_STEP_1]), n2 = fxi_limit_span(&l[FX_STEP_2]), segment;
	int64_t i1 = head->idx.kspace_encode_step_1 - first_of(&l[FX_STEP_1]);
	int64_t i2 = head->idx.kspace_encode_step_2 - first_of(&l[FX_STEP_2]);
	int64_t average = head->idx.average - first_of(&l[FX_AVERAGE]);

	if (e->expected == 0 || e->flagged)
		return FX_OK;
	if (!frame->positions) {
		frame->positions = fx_alloc(e->expected / 64 + 1, sizeof *frame->positions);
		frame->segments = fx_alloc(e->n_segments / 64 + 1, sizeof *frame->segments);
		if (!frame->positions || !frame->segments)
			return fx_error_set(err, FX_ENOMEM, "no memory to count the %lld readouts of a frame", (long long)e->expected);
	}
	frame->n_positions += set_bit(frame->positions, (average * n2 + i2) * n1 + i1);
	segment = head->idx.segment - first_of(&l[FX_SEGMENT]);
	if (segment >= 0 && segment < e->n_segments)
		frame->n_segments += set_bit(frame->segments, segment);
	return FX_OK;
}

/* True while the limits' count can still tell that a frame is complete. */
static bool follows_limits(const fxi_framer_encoding *e, const fxi_open_frame *frame)
{
	if (e->expected == 0 || e->flagged)
		return false;
	/* Positions that come again, without segments to tell them apart, mean that the counters do not count. */
	return frame->n_positions == frame->n || e->n_segments > 1;
}

static bool complete_by_limits(const fxi_framer_encoding *e, const fxi_open_frame *frame)
{
	if (!follows_limits(e, frame) || frame->n_positions < e->expected)
		return false;
	/* Segments either share the positions out among them, or each brings all of them. */
	if (frame->n == e->expected)
		return frame->n_segments == e->n_segments || e->n_segments == 1;
	return frame->n == e->expected * e->n_segments;
}

/* Closes what a counter that moved on leaves behind, within the same slice and contrast. */
static void close_left_behind(fx_framer *f, const fxi_framer_encoding *e, const fxi_frame_key *key)
{
	for (int64_t i = 0; i < f->n_open; i++) {
		fxi_open_frame *o = &f->open[i];

		if (o->key.encoding != key->encoding || o->key.slice != key->slice || o->key.contrast != key->contrast)
			continue;
		if (o->key.repetition != key->repetition)
			o->reason = FXI_CLOSE_REPETITION;
		else if (e->flagged || follows_limits(e, o))
			continue; /* phases and sets may interleave: these frames have a better sign to wait for */
		else if (o->key.phase != key->phase)
			o->reason = FXI_CLOSE_PHASE;
		else if (o->key.set != key->set)
			o->reason = FXI_CLOSE_SET;
		else if (o->key.diffusion != key->diffusion)
			o->reason = FXI_CLOSE_DIFFUSION;
	}
}

/* True where a LAST flag of this readout, which belongs to `own`, covers the open frame `o`. */
static bool covered(uint64_t flags, bool last_average, const fxi_open_frame *own, const fxi_open_frame *o)
{
	if (FX_FLAG(flags, ISMRMRD_ACQ_LAST_IN_MEASUREMENT))
		return true;
	if (o->key.encoding != own->key.encoding || o->key.repetition != own->key.repetition)
		return false;
	if (FX_FLAG(flags, ISMRMRD_ACQ_LAST_IN_REPETITION))
		return true;
	/* Averages accumulate: the end of one that is not the last ends no frame. */
	if (!last_average)
		return false;
	if (FX_FLAG(flags, ISMRMRD_ACQ_LAST_IN_SLICE) && o == own)
		return true;
	/* Interleaved slices flag each slice's own last readout: those that lag behind are not complete yet. */
	if (o->n < own->n)
		return false;
	return (FX_FLAG(flags, ISMRMRD_ACQ_LAST_IN_PHASE) && o->key.phase == own->key.phase) ||
		(FX_FLAG(flags, ISMRMRD_ACQ_LAST_IN_SET) && o->key.set == own->key.set) ||
		(FX_FLAG(flags, ISMRMRD_ACQ_LAST_IN_CONTRAST) && o->key.contrast == own->key.contrast);
}

static void close_by_flags(fx_framer *f, const fxi_framer_encoding *e, const ISMRMRD_AcquisitionHeader *head,
	const fxi_open_frame *own)
{
	const fx_limit *averages = &e->limits[FX_AVERAGE];
	bool last_average = !averages->present || head->idx.average >= averages->max;

	for (int64_t i = 0; i < f->n_open; i++)
		if (covered(head->flags, last_average, own, &f->open[i]))
			f->open[i].reason = FXI_CLOSE_FLAG;
}

int fxi_framer_by_counters(fx_framer *f, const ISMRMRD_AcquisitionHeader *head, const fxi_frame_key *key, fx_error *err,
	fx_framed *out)
{
	fxi_framer_encoding *e = &f->encodings[key->encoding];
	const fxi_closed *late = fxi_closed_find(&f->complete, key);
	fxi_open_frame *own = NULL;
	int status = FX_OK;

	if (late)
		return refuse_late(f, head, late, err);
	learn(e, head);
	close_left_behind(f, e, key);
	fxi_framer_collect(f, true, out);
	out->n_before = out->n_closed;
	for (int64_t i = f->n_open - 1; i >= 0 && !own; i--)
		if (fxi_key_same(&f->open[i].key, key))
			own = &f->open[i];
	if (!own)
		status = fxi_framer_open(f, head, key, err, &own);
	if (status != FX_OK)
		return status;
	own->n++;
	status = note_position(e, own, head, err);
	if (status != FX_OK)
		return status;
	out->frames[out->n_frames++] = own->id;
	close_by_flags(f, e, head, own);
	if (own->reason == 0 && complete_by_limits(e, own))
		own->reason = FXI_CLOSE_LIMITS;
	fxi_framer_collect(f, true, out);
	return FX_OK;
}
