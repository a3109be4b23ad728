/* SPDX-License-Identifier: MIT */
/*
 * framer.c - which readouts make one image: the list of open frames, and frames that are counted, in windows that may
 * overlap. framer_counters.c holds the rules for all others.
 */
#include "framer.h"

#include <stdio.h>
#include <string.h>

#define DEFAULT_MAX_OPEN 256
/* Limits that promise more readouts than this in one frame are not believed: a bitmap of them would not fit. */
#define MAX_POSITIONS ((int64_t)1 << 26)

/* ---- what the header promises ---------------------------------------------------------------- */

int64_t fxi_limit_span(const fx_limit *limit)
{
	return limit->present ? limit->max - limit->min + 1 : 1;
}

int64_t fx_diffusion_counter(int dimension, const ISMRMRD_AcquisitionHeader *head)
{
	switch (dimension) {
	case FX_DIFFUSION_AVERAGE:
		return head->idx.average;
	case FX_DIFFUSION_SEGMENT:
		return head->idx.segment;
	default:
		return dimension >= FX_DIFFUSION_USER_0 && dimension <= FX_DIFFUSION_USER_7 ?
			head->idx.user[dimension - FX_DIFFUSION_USER_0] : -1;
	}
}

static int64_t expected_by_limits(const fx_encoding *e, bool own_average)
{
	int64_t n1 = fxi_limit_span(&e->limits[FX_STEP_1]), n2 = fxi_limit_span(&e->limits[FX_STEP_2]);
	int64_t averages = own_average ? 1 : fxi_limit_span(&e->limits[FX_AVERAGE]), n;

	/* An undersampled scan leaves out lines that its limits still count. */
	if (e->acceleration[0] > 1 || e->acceleration[1] > 1)
		return 0;
	if (n1 < 1 || n2 < 1 || averages < 1 || !fx_mul_size(n1, n2, &n) || !fx_mul_size(n, averages, &n))
		return 0;
	/* A count of 1 is what converters write that know nothing better. */
	return n > 1 && n <= MAX_POSITIONS ? n : 0;
}

/* Averages make frames of their own where they are diffusion weightings, or where that was asked for. */
static bool separate_averages(const fx_header *scan, const fx_framer_options *options)
{
	return scan->diffusion_dimension == FX_DIFFUSION_AVERAGE || (options && options->split_averages);
}

int64_t fx_framer_expected(const fx_header *scan, int64_t encoding, const fx_framer_options *options)
{
	if (options && options->readouts_per_frame > 0)
		return options->readouts_per_frame;
	if (encoding < 0 || encoding >= scan->n_encodings)
		return 0;
	return expected_by_limits(&scan->encodings[encoding], separate_averages(scan, options));
}

bool fx_is_auxiliary(const ISMRMRD_AcquisitionHeader *head)
{
	static const int auxiliary[] = {
		ISMRMRD_ACQ_IS_NOISE_MEASUREMENT, ISMRMRD_ACQ_IS_NAVIGATION_DATA, ISMRMRD_ACQ_IS_PHASECORR_DATA,
		ISMRMRD_ACQ_IS_HPFEEDBACK_DATA, ISMRMRD_ACQ_IS_RTFEEDBACK_DATA, ISMRMRD_ACQ_IS_DUMMYSCAN_DATA,
		ISMRMRD_ACQ_IS_SURFACECOILCORRECTIONSCAN_DATA, ISMRMRD_ACQ_IS_PHASE_STABILIZATION_REFERENCE,
		ISMRMRD_ACQ_IS_PHASE_STABILIZATION,
	};

	for (size_t i = 0; i < sizeof auxiliary / sizeof auxiliary[0]; i++)
		if (FX_FLAG(head->flags, auxiliary[i]))
			return true;
	return FX_FLAG(head->flags, ISMRMRD_ACQ_IS_PARALLEL_CALIBRATION) &&
		!FX_FLAG(head->flags, ISMRMRD_ACQ_IS_PARALLEL_CALIBRATION_AND_IMAGING);
}

bool fx_is_calibration(const ISMRMRD_AcquisitionHeader *head)
{
	ISMRMRD_AcquisitionHeader rest = *head;

	rest.flags &= ~(UINT64_C(1) << (ISMRMRD_ACQ_IS_PARALLEL_CALIBRATION - 1));
	return fx_is_auxiliary(head) && !fx_is_auxiliary(&rest);
}

/* ---- life ------------------------------------------------------------------------------------ */

int fx_framer_new(const fx_header *scan, const fx_framer_options *options, fx_error *err, fx_framer **out)
{
	fx_framer *f;

	*out = NULL;
	if (options->readouts_per_frame < 0 || options->frame_step < 0 || options->max_open < 0)
		return fx_error_set(err, FX_EINVAL, "readouts_per_frame, frame_step and max_open must not be negative");
	if (options->frame_step > options->readouts_per_frame)
		return fx_error_set(err, FX_EINVAL, "a frame_step of %lld would leave out readouts between frames of %lld; "
			"make it at most readouts_per_frame",
			(long long)options->frame_step, (long long)options->readouts_per_frame);
	f = fx_alloc(1, sizeof *f);
	if (!f)
		return fx_error_set(err, FX_ENOMEM, "no memory for sorting readouts into frames");
	f->options = *options;
	if (f->options.frame_step == 0)
		f->options.frame_step = f->options.readouts_per_frame;
	if (f->options.max_open == 0)
		f->options.max_open = DEFAULT_MAX_OPEN;
	f->n_encodings = scan->n_encodings;
	f->diffusion_dimension = scan->diffusion_dimension;
	f->own_average = separate_averages(scan, options);
	f->own_segment = scan->diffusion_dimension == FX_DIFFUSION_SEGMENT || options->split_segments;
	f->encodings = fx_alloc(scan->n_encodings, sizeof *f->encodings);
	if (!f->encodings) {
		fx_framer_free(f);
		return fx_error_set(err, FX_ENOMEM, "no memory for sorting readouts into frames");
	}
	for (int64_t i = 0; i < scan->n_encodings; i++) {
		fxi_framer_encoding *e = &f->encodings[i];

		memcpy(e->limits, scan->encodings[i].limits, sizeof e->limits);
		e->expected = expected_by_limits(&scan->encodings[i], f->own_average);
		if (f->own_average)
			e->limits[FX_AVERAGE].present = false;
		if (f->own_segment)
			e->limits[FX_SEGMENT].present = false;
		e->n_segments = fxi_limit_span(&e->limits[FX_SEGMENT]);
		/* Segment numbers are 16 bits: other limits are nonsense. */
		if (e->n_segments < 1 || e->n_segments > 65536)
			e->n_segments = 1;
	}
	*out = f;
	return FX_OK;
}

static void release_frame(fxi_open_frame *frame)
{
	fx_free(frame->positions);
	fx_free(frame->segments);
}

void fx_framer_free(fx_framer *f)
{
	if (!f)
		return;
	for (int64_t i = 0; i < f->n_open; i++)
		release_frame(&f->open[i]);
	fx_free(f->encodings);
	fx_free(f->open);
	fx_free(f->frames);
	fx_free(f->closed);
	fx_free(f->streams);
	fxi_closed_free(&f->complete);
	fx_free(f);
}

/* A longer copy of a list, which it frees; NULL, and the list untouched, where memory is short. */
static void *grown(void *list, int64_t used, int64_t capacity, size_t size)
{
	void *larger = fx_alloc(capacity, size);

	if (!larger)
		return NULL;
	if (used > 0)
		memcpy(larger, list, (size_t)used * size);
	fx_free(list);
	return larger;
}

/* Room for one more open frame and for closing all of them, so that what follows cannot fail half-way. */
static int reserve(fx_framer *f, fx_error *err)
{
	int64_t capacity = f->capacity ? 2 * f->capacity : 8;

	if (f->n_open == f->capacity) {
		fxi_open_frame *open = grown(f->open, f->n_open, capacity, sizeof *open);
		int64_t *frames = open ? grown(f->frames, 0, capacity, sizeof *frames) : NULL;
		int64_t *closed = frames ? grown(f->closed, 0, capacity, sizeof *closed) : NULL;

		/* Lists that did grow replace the old ones even where another did not. */
		f->open = open ? open : f->open;
		f->frames = frames ? frames : f->frames;
		f->closed = closed ? closed : f->closed;
		if (!closed)
			return fx_error_set(err, FX_ENOMEM, "no memory for %lld open frames", (long long)capacity);
		f->capacity = capacity;
	}
	if (fxi_closed_reserve(&f->complete, f->n_open + 1) != FX_OK)
		return fx_error_set(err, FX_ENOMEM, "no memory to remember %lld complete frames", (long long)f->complete.n);
	return FX_OK;
}

/* ---- messages -------------------------------------------------------------------------------- */

void fxi_framer_describe(const fx_framer *f, const ISMRMRD_AcquisitionHeader *head, char *text, size_t size)
{
	const ISMRMRD_EncodingCounters *c = &head->idx;

	snprintf(text, size, "imaging readout %lld (scan_counter %u, encoding %u, slice %u, contrast %u, phase %u, "
		"repetition %u, set %u)", (long long)f->n_readouts, head->scan_counter, head->encoding_space_ref, c->slice,
		c->contrast, c->phase, c->repetition, c->set);
}

int fxi_framer_open(fx_framer *f, const ISMRMRD_AcquisitionHeader *head, const fxi_frame_key *key, fx_error *err,
	fxi_open_frame **out)
{
	char text[192];

	if (f->n_open >= f->options.max_open) {
		fxi_framer_describe(f, head, text, sizeof text);
		return fx_error_set(err, FX_EDATA, "%s opens a further frame while %lld are not complete yet, as many as "
			"max_open allows; raise max_open if the memory allows it, or set readouts_per_frame if frames are not "
			"recognised as complete", text, (long long)f->n_open);
	}
	*out = &f->open[f->n_open++];
	**out = (fxi_open_frame){.key = *key, .id = f->next_id++};
	return FX_OK;
}

void fxi_framer_collect(fx_framer *f, bool remember, fx_framed *out)
{
	int64_t kept = 0;

	for (int64_t i = 0; i < f->n_open; i++) {
		fxi_open_frame *o = &f->open[i];

		if (o->reason == 0) {
			f->open[kept++] = *o;
			continue;
		}
		out->closed[out->n_closed++] = o->id;
		if (remember)
			fxi_closed_add(&f->complete, &(fxi_closed){.key = o->key, .reason = o->reason, .n_readouts = o->n});
		if (o->reason == FXI_CLOSE_FLAG) {
			f->encodings[o->key.encoding].flagged = true;
			f->encodings[o->key.encoding].flagged_readouts = o->n;
		}
		release_frame(o);
	}
	f->n_open = kept;
}

/* ---- counted ---------------------------------------------------------------------------------- */

static fxi_stream *find_stream(fx_framer *f, const fxi_frame_key *key)
{
	int64_t capacity = f->streams_capacity ? 2 * f->streams_capacity : 8;

	for (int64_t i = 0; i < f->n_streams; i++)
		if (fxi_key_same(&f->streams[i].key, key))
			return &f->streams[i];
	if (f->n_streams == f->streams_capacity) {
		fxi_stream *streams = grown(f->streams, f->n_streams, capacity, sizeof *streams);

		if (!streams)
			return NULL;
		f->streams = streams;
		f->streams_capacity = capacity;
	}
	f->streams[f->n_streams] = (fxi_stream){.key = *key};
	return &f->streams[f->n_streams++];
}

static int add_counted(fx_framer *f, const ISMRMRD_AcquisitionHeader *head, const fxi_frame_key *key, fx_error *err,
	fx_framed *out)
{
	fxi_frame_key stream_key = *key;
	fxi_stream *stream;
	fxi_open_frame *opened;

	stream_key.repetition = 0; /* counted frames run on across repetitions */
	stream = find_stream(f, &stream_key);
	if (!stream)
		return fx_error_set(err, FX_ENOMEM, "no memory for sorting readouts into frames");
	if (stream->n++ % f->options.frame_step == 0) {
		int status = fxi_framer_open(f, head, &stream_key, err, &opened);

		if (status != FX_OK)
			return status;
	}
	for (int64_t i = 0; i < f->n_open; i++) {
		fxi_open_frame *o = &f->open[i];

		if (!fxi_key_same(&o->key, &stream_key))
			continue;
		out->frames[out->n_frames++] = o->id;
		if (++o->n == f->options.readouts_per_frame)
			o->reason = FXI_CLOSE_LIMITS;
	}
	fxi_framer_collect(f, false, out);
	return FX_OK;
}

/* ---- the two calls ----------------------------------------------------------------------------- */

int fx_framer_add(fx_framer *f, const ISMRMRD_AcquisitionHeader *head, fx_error *err, fx_framed *out)
{
	int64_t diffusion = fx_diffusion_counter(f->diffusion_dimension, head);
	ISMRMRD_AcquisitionHeader own = *head;
	fxi_frame_key key = {
		.encoding = head->encoding_space_ref, .slice = head->idx.slice, .contrast = head->idx.contrast,
		.phase = head->idx.phase, .repetition = head->idx.repetition, .set = head->idx.set,
		.diffusion = (uint16_t)(diffusion > 0 ? diffusion : 0),
		.average = f->options.split_averages ? head->idx.average : 0,
		.segment = f->options.split_segments ? head->idx.segment : 0,
	};
	int status;

	/* What tells frames apart counts no averages or segments of a frame. */
	if (f->own_average)
		own.idx.average = 0;
	if (f->own_segment)
		own.idx.segment = 0;

	*out = (fx_framed){0};
	f->n_readouts++;
	if (key.encoding >= f->n_encodings)
		return fx_error_set(err, FX_EDATA, "imaging readout %lld (scan_counter %u) names encoding space %u, but the header "
			"has %lld; correct its encoding_space_ref or the header",
			(long long)f->n_readouts, head->scan_counter, head->encoding_space_ref, (long long)f->n_encodings);
	status = reserve(f, err);
	if (status != FX_OK)
		return status;
	out->frames = f->frames;
	out->closed = f->closed;
	if (f->options.readouts_per_frame > 0)
		return add_counted(f, &own, &key, err, out);
	return fxi_framer_by_counters(f, &own, &key, err, out);
}

/*
 * Of the windows that a stream still has open, all but the oldest lie within it; and the oldest brings something new
 * only where readouts came after the end of the window before it.
 */
static bool brings_readouts(const fx_framer *f, int64_t i)
{
	const fxi_open_frame *o = &f->open[i];
	int64_t n = 0;

	for (int64_t j = 0; j < i; j++)
		if (fxi_key_same(&f->open[j].key, &o->key))
			return false;
	for (int64_t j = 0; j < f->n_streams; j++)
		if (fxi_key_same(&f->streams[j].key, &o->key))
			n = f->streams[j].n;
	return n == o->n || o->n > f->options.readouts_per_frame - f->options.frame_step;
}

int fx_framer_end(fx_framer *f, fx_error *err, fx_framed *out, bool **partial)
{
	bool counted = f->options.readouts_per_frame > 0;

	*out = (fx_framed){.closed = f->closed};
	*partial = fx_alloc(f->n_open + 1, sizeof **partial);
	if (!*partial)
		return fx_error_set(err, FX_ENOMEM, "no memory for %lld open frames", (long long)f->n_open);
	for (int64_t i = 0; i < f->n_open; i++) {
		const fxi_open_frame *o = &f->open[i];
		const fxi_framer_encoding *e = &f->encodings[o->key.encoding];
		int64_t known = e->flagged_readouts ? e->flagged_readouts : e->expected;

		if (counted && !brings_readouts(f, i))
			continue;
		(*partial)[out->n_closed] = counted || o->n < known;
		out->closed[out->n_closed++] = o->id;
	}
	for (int64_t i = 0; i < f->n_open; i++)
		release_frame(&f->open[i]);
	f->n_open = 0;
	return FX_OK;
}
