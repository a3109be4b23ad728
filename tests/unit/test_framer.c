/* SPDX-License-Identifier: MIT */
#include <CUnit/CUnit.h>
#include <fornix/fornix.h>
#include <stdio.h>
#include <string.h>

/* What a framer did, as text: "0" a readout went to frame 0, "|0" frame 0 closed, "~|0" closed before the readout. */
struct run {
	fx_encoding encodings[2];
	fx_header header;
	fx_framer *f;
	fx_error err;
	int status;
	bool split_averages, split_segments;
	char log[4096];
};

static void limit(struct run *r, int counter, int64_t max)
{
	r->encodings[0].limits[counter] = (fx_limit){.present = true, .max = max};
}

static void start(struct run *r, int64_t per_frame, int64_t step, int64_t max_open)
{
	fx_framer_options options = {.readouts_per_frame = per_frame, .frame_step = step, .max_open = max_open,
		.split_averages = r->split_averages, .split_segments = r->split_segments};

	for (int i = 0; i < 2; i++)
		if (r->encodings[i].acceleration[0] == 0)
			r->encodings[i].acceleration[0] = r->encodings[i].acceleration[1] = 1;
	r->header.n_encodings = 2;
	r->header.encodings = r->encodings;
	CU_ASSERT_EQUAL_FATAL(fx_framer_new(&r->header, &options, &r->err, &r->f), FX_OK);
}

static void say(struct run *r, const char *mark, int64_t id)
{
	size_t used = strlen(r->log);

	snprintf(r->log + used, sizeof r->log - used, "%s%lld ", mark, (long long)id);
}

static void add(struct run *r, ISMRMRD_EncodingCounters idx, int flag)
{
	ISMRMRD_AcquisitionHeader head = {.idx = idx, .flags = flag ? (uint64_t)1 << (flag - 1) : 0};
	fx_framed out;

	head.encoding_space_ref = idx.user[0];
	r->status = fx_framer_add(r->f, &head, &r->err, &out);
	if (r->status != FX_OK)
		return;
	for (int64_t i = 0; i < out.n_before; i++)
		say(r, "~|", out.closed[i]);
	for (int64_t i = 0; i < out.n_frames; i++)
		say(r, "", out.frames[i]);
	for (int64_t i = out.n_before; i < out.n_closed; i++)
		say(r, "|", out.closed[i]);
}

/* "0! " frame 0 was open at the end and is short, "0. " it is not known to be. */
static void end(struct run *r)
{
	fx_framed out;
	bool *partial;

	CU_ASSERT_EQUAL_FATAL(fx_framer_end(r->f, &r->err, &out, &partial), FX_OK);
	for (int64_t i = 0; i < out.n_closed; i++)
		say(r, partial[i] ? "!" : ".", out.closed[i]);
	fx_free(partial);
	fx_framer_free(r->f);
}

#define ADD(r, flag, ...) add(r, (ISMRMRD_EncodingCounters){__VA_ARGS__}, flag)
#define EXPECT(r, text) do { CU_ASSERT_STRING_EQUAL((r)->log, text); \
	if (strcmp((r)->log, text)) fprintf(stderr, "\n  got  \"%s\"\n  want \"%s\" (%d)\n", (r)->log, text, __LINE__); \
	} while (0)

static void flags_close(void)
{
	struct run r = {0};

	limit(&r, FX_STEP_1, 78); /* promises more than comes: flags win */
	start(&r, 0, 0, 0);
	for (uint16_t slice = 0; slice < 2; slice++) {
		ADD(&r, ISMRMRD_ACQ_FIRST_IN_SLICE, .slice = slice);
		ADD(&r, 0, .slice = slice, .kspace_encode_step_1 = 1);
		ADD(&r, ISMRMRD_ACQ_LAST_IN_SLICE, .slice = slice, .kspace_encode_step_1 = 2);
	}
	EXPECT(&r, "0 0 0 |0 1 1 1 |1 ");
	ADD(&r, 0, .slice = 2); /* cut short: the frames before had three readouts */
	end(&r);
	EXPECT(&r, "0 0 0 |0 1 1 1 |1 2 !2 ");
}

static void one_flagged_readout_is_a_frame(void)
{
	struct run r = {0};

	start(&r, 0, 0, 0);
	ADD(&r, ISMRMRD_ACQ_LAST_IN_SLICE, 0);
	end(&r);
	EXPECT(&r, "0 |0 ");
}

/* The one LAST flag of a repetition ends every slice's frame; of a contrast, only slices that have as many readouts. */
static void flags_cover_other_frames(void)
{
	struct run r = {0}, s = {0};

	start(&r, 0, 0, 0);
	for (uint16_t line = 0; line < 2; line++)
		for (uint16_t slice = 0; slice < 2; slice++)
			ADD(&r, line && slice ? ISMRMRD_ACQ_LAST_IN_REPETITION : 0, .slice = slice, .kspace_encode_step_1 = line);
	ADD(&r, ISMRMRD_ACQ_LAST_IN_MEASUREMENT, .repetition = 1);
	end(&r);
	EXPECT(&r, "0 1 0 1 |0 |1 2 |2 ");
	start(&s, 0, 0, 0);
	for (uint16_t line = 0; line < 2; line++)
		for (uint16_t slice = 0; slice < 2; slice++)
			ADD(&s, line ? ISMRMRD_ACQ_LAST_IN_CONTRAST : 0, .slice = slice, .kspace_encode_step_1 = line);
	end(&s);
	EXPECT(&s, "0 1 0 |0 1 |1 ");
}

static void averages_accumulate(void)
{
	struct run r = {0}, s = {0};

	/* the end of the first of two averages ends nothing */
	limit(&r, FX_AVERAGE, 1);
	start(&r, 0, 0, 0);
	for (uint16_t average = 0; average < 2; average++)
		for (uint16_t line = 0; line < 2; line++)
			ADD(&r, line ? ISMRMRD_ACQ_LAST_IN_SLICE : 0, .average = average, .kspace_encode_step_1 = line);
	end(&r);
	EXPECT(&r, "0 0 0 0 |0 ");
	/* by the limits' count */
	limit(&s, FX_STEP_1, 1);
	limit(&s, FX_AVERAGE, 1);
	start(&s, 0, 0, 0);
	for (uint16_t average = 0; average < 2; average++)
		for (uint16_t line = 0; line < 2; line++)
			ADD(&s, 0, .average = average, .kspace_encode_step_1 = line);
	end(&s);
	EXPECT(&s, "0 0 0 0 |0 ");
}

/* Asked for, averages and segments are frames: by flags, by the limits' count without them, and interleaved. */
static void averages_and_segments_apart(void)
{
	struct run r = {0}, s = {0}, t = {0};

	r.split_averages = true;
	limit(&r, FX_AVERAGE, 1);
	start(&r, 0, 0, 0);
	for (uint16_t average = 0; average < 2; average++)
		for (uint16_t line = 0; line < 2; line++)
			ADD(&r, line ? ISMRMRD_ACQ_LAST_IN_SLICE : 0, .average = average, .kspace_encode_step_1 = line);
	end(&r);
	EXPECT(&r, "0 0 |0 1 1 |1 ");
	s.split_averages = true;
	limit(&s, FX_STEP_1, 1);
	limit(&s, FX_AVERAGE, 1);
	start(&s, 0, 0, 0);
	for (uint16_t line = 0; line < 2; line++)
		for (uint16_t average = 0; average < 2; average++)
			ADD(&s, 0, .average = average, .kspace_encode_step_1 = line);
	end(&s);
	EXPECT(&s, "0 1 0 |0 1 |1 ");
	t.split_segments = true;
	limit(&t, FX_SEGMENT, 1);
	start(&t, 0, 0, 0);
	for (uint16_t line = 0; line < 4; line++)
		ADD(&t, 0, .segment = line & 1, .kspace_encode_step_1 = line);
	ADD(&t, 0, .repetition = 1);
	end(&t);
	EXPECT(&t, "0 1 0 1 ~|0 ~|1 2 .2 ");
}

static void limits_close(void)
{
	struct run r = {0};

	limit(&r, FX_STEP_1, 1);
	limit(&r, FX_STEP_2, 1);
	start(&r, 0, 0, 0);
	CU_ASSERT_EQUAL(fx_framer_expected(&r.header, 0, NULL), 4);
	CU_ASSERT_EQUAL(fx_framer_expected(&r.header, 1, NULL), 0);
	/* phases interleave: they wait for their count */
	for (uint16_t i = 0; i < 4; i++)
		for (uint16_t phase = 0; phase < 2; phase++)
			ADD(&r, 0, .phase = phase, .kspace_encode_step_1 = i & 1, .kspace_encode_step_2 = i >> 1);
	EXPECT(&r, "0 1 0 1 0 1 0 |0 1 |1 ");
	ADD(&r, 0, .repetition = 1);
	end(&r);
	EXPECT(&r, "0 1 0 1 0 1 0 |0 1 |1 2 !2 ");
}

/* Limits that the readouts contradict, or that count 1, close nothing. */
static void limits_that_are_not_believed(void)
{
	struct run outside = {0}, one = {0}, same = {0}, accelerated = {0};

	limit(&outside, FX_STEP_1, 1);
	limit(&one, FX_STEP_1, 0);
	limit(&same, FX_STEP_1, 3);
	limit(&accelerated, FX_STEP_1, 7);
	accelerated.encodings[0].acceleration[0] = 2;
	accelerated.encodings[0].acceleration[1] = 1;
	start(&outside, 0, 0, 0);
	start(&one, 0, 0, 0);
	start(&same, 0, 0, 0);
	start(&accelerated, 0, 0, 0);
	for (uint16_t i = 0; i < 4; i++) {
		ADD(&outside, 0, .kspace_encode_step_1 = i + 1);
		ADD(&one, 0, 0);
		ADD(&same, 0, 0);
		ADD(&accelerated, 0, .kspace_encode_step_1 = 2 * i);
	}
	ADD(&accelerated, 0, .phase = 1);
	end(&outside);
	end(&one);
	end(&same);
	end(&accelerated);
	EXPECT(&outside, "0 0 0 0 .0 ");
	EXPECT(&one, "0 0 0 0 .0 ");
	EXPECT(&same, "0 0 0 0 .0 ");
	EXPECT(&accelerated, "0 0 0 0 ~|0 1 .1 ");
}

/* Segments that share the lines out, and segments that bring every line again. */
static void segments_accumulate(void)
{
	struct run shared = {0}, repeated = {0}, interleaved = {0};
	struct run *all[] = {&shared, &repeated, &interleaved};

	for (int i = 0; i < 3; i++) {
		limit(all[i], FX_STEP_1, 3);
		limit(all[i], FX_SEGMENT, 1);
		start(all[i], 0, 0, 0);
	}
	for (uint16_t i = 0; i < 4; i++)
		ADD(&shared, 0, .kspace_encode_step_1 = i, .segment = i / 2);
	for (uint16_t i = 0; i < 8; i++)
		ADD(&repeated, 0, .kspace_encode_step_1 = i % 4, .segment = i / 4);
	for (uint16_t i = 0; i < 8; i++)
		ADD(&interleaved, 0, .kspace_encode_step_1 = i / 2, .segment = i % 2);
	for (int i = 0; i < 3; i++)
		end(all[i]);
	EXPECT(&shared, "0 0 0 0 |0 ");
	EXPECT(&repeated, "0 0 0 0 0 0 0 0 |0 ");
	EXPECT(&interleaved, "0 0 0 0 0 0 0 0 |0 ");
}

static void counters_that_move_on_close(void)
{
	struct run r = {0};

	start(&r, 0, 0, 0);
	ADD(&r, 0, .slice = 0);
	ADD(&r, 0, .slice = 1);
	ADD(&r, 0, .slice = 0, .contrast = 1); /* contrasts and slices interleave */
	ADD(&r, 0, .slice = 0);
	ADD(&r, 0, .slice = 0, .repetition = 1);
	ADD(&r, 0, .slice = 1, .repetition = 1);
	ADD(&r, 0, .slice = 0, .repetition = 1, .set = 1);
	EXPECT(&r, "0 1 2 0 ~|0 3 ~|1 4 ~|3 5 ");
	ADD(&r, 0, .slice = 0, .repetition = 1);
	CU_ASSERT_EQUAL(r.status, FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(r.err.text, "the set moved on"));
	CU_ASSERT_PTR_NOT_NULL(strstr(r.err.text, "readouts_per_frame"));
	end(&r);
}

static void a_late_readout_is_an_error(void)
{
	struct run r = {0};

	limit(&r, FX_STEP_1, 1);
	start(&r, 0, 0, 0);
	for (uint16_t rep = 0; rep < 500; rep++) {
		ADD(&r, 0, .repetition = rep);
		ADD(&r, 0, .repetition = rep, .kspace_encode_step_1 = 1);
	}
	CU_ASSERT_EQUAL(r.status, FX_OK);
	for (uint16_t rep = 0; rep < 500; rep++) {
		r.err = (fx_error){0};
		ADD(&r, 0, .repetition = rep);
		CU_ASSERT_EQUAL(r.status, FX_EDATA);
	}
	CU_ASSERT_PTR_NOT_NULL(strstr(r.err.text, "complete with 2 readouts"));
	end(&r);
}

static void open_frames_are_bounded(void)
{
	struct run r = {0};

	start(&r, 0, 0, 20);
	for (uint16_t slice = 0; slice < 20; slice++)
		ADD(&r, 0, .slice = slice);
	CU_ASSERT_EQUAL(r.status, FX_OK);
	ADD(&r, 0, .slice = 20);
	CU_ASSERT_EQUAL(r.status, FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(r.err.text, "max_open"));
	end(&r);
}

static void counted_frames(void)
{
	struct run r = {0}, s = {0};

	start(&r, 3, 0, 0);
	for (uint16_t i = 0; i < 7; i++) /* flags and repetitions do not matter */
		ADD(&r, i == 1 ? ISMRMRD_ACQ_LAST_IN_SLICE : 0, .repetition = i / 2);
	end(&r);
	EXPECT(&r, "0 0 0 |0 1 1 1 |1 2 !2 ");
	/* interleaved slices are counted on their own */
	start(&s, 2, 0, 0);
	for (uint16_t i = 0; i < 4; i++)
		ADD(&s, 0, .slice = i % 2);
	end(&s);
	EXPECT(&s, "0 1 0 |0 1 |1 ");
}

static void sliding_windows(void)
{
	struct run r = {0}, more = {0}, few = {0}, every = {0};

	start(&r, 4, 2, 0);
	for (int i = 0; i < 8; i++)
		ADD(&r, 0, 0);
	end(&r); /* the window of the last two readouts lies within frame 2 */
	EXPECT(&r, "0 0 0 1 0 1 |0 1 2 1 2 |1 2 3 2 3 |2 ");
	start(&more, 4, 2, 0);
	for (int i = 0; i < 5; i++)
		ADD(&more, 0, 0);
	end(&more); /* readout 5 is in no complete window, and frame 2 lies within frame 1 */
	EXPECT(&more, "0 0 0 1 0 1 |0 1 2 !1 ");
	start(&few, 4, 2, 0);
	for (int i = 0; i < 3; i++)
		ADD(&few, 0, 0);
	end(&few);
	EXPECT(&few, "0 0 0 1 !0 ");
	start(&every, 2, 1, 0);
	for (int i = 0; i < 3; i++)
		ADD(&every, 0, 0);
	end(&every);
	EXPECT(&every, "0 0 1 |0 1 2 |1 ");
}

static void encodings_are_separate(void)
{
	struct run r = {0};

	start(&r, 0, 0, 0);
	ADD(&r, 0, .user = {0});
	ADD(&r, 0, .user = {1}, .repetition = 1);
	ADD(&r, 0, .user = {0});
	ADD(&r, 0, .user = {2});
	CU_ASSERT_EQUAL(r.status, FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(r.err.text, "encoding space 2"));
	end(&r);
	EXPECT(&r, "0 1 0 .0 .1 ");
}

static void wrong_options(void)
{
	fx_header header = {0};
	fx_error err = {0};
	fx_framer *f;

	CU_ASSERT_EQUAL(fx_framer_new(&header, &(fx_framer_options){.readouts_per_frame = 2, .frame_step = 3}, &err, &f), FX_EINVAL);
	CU_ASSERT_EQUAL(fx_framer_new(&header, &(fx_framer_options){.readouts_per_frame = -1}, &err, &f), FX_EINVAL);
	CU_ASSERT_PTR_NULL(f);
	fx_framer_free(NULL);
}

static void auxiliary_readouts(void)
{
	ISMRMRD_AcquisitionHeader head = {0};

	CU_ASSERT_FALSE(fx_is_auxiliary(&head));
	head.flags = (uint64_t)1 << (ISMRMRD_ACQ_IS_NOISE_MEASUREMENT - 1);
	CU_ASSERT_TRUE(fx_is_auxiliary(&head));
	head.flags = (uint64_t)1 << (ISMRMRD_ACQ_IS_PARALLEL_CALIBRATION - 1);
	CU_ASSERT_TRUE(fx_is_auxiliary(&head));
	head.flags |= (uint64_t)1 << (ISMRMRD_ACQ_IS_PARALLEL_CALIBRATION_AND_IMAGING - 1);
	CU_ASSERT_FALSE(fx_is_auxiliary(&head));
	head.flags = (uint64_t)1 << (ISMRMRD_ACQ_IS_SURFACECOILCORRECTIONSCAN_DATA - 1);
	CU_ASSERT_TRUE(fx_is_auxiliary(&head));
	head.flags = (uint64_t)1 << (ISMRMRD_ACQ_IS_REVERSE - 1) | (uint64_t)1 << (ISMRMRD_ACQ_USER1 - 1);
	CU_ASSERT_FALSE(fx_is_auxiliary(&head));
}

static CU_TestInfo tests[] = {
	{"LAST flags close, whatever the limits say", flags_close},
	{"one flagged readout is a frame", one_flagged_readout_is_a_frame},
	{"flags cover other frames", flags_cover_other_frames},
	{"averages accumulate", averages_accumulate},
	{"averages and segments apart", averages_and_segments_apart},
	{"limits close, phases interleaved", limits_close},
	{"limits that are not believed", limits_that_are_not_believed},
	{"segments accumulate", segments_accumulate},
	{"counters that move on close", counters_that_move_on_close},
	{"a late readout is an error", a_late_readout_is_an_error},
	{"open frames are bounded", open_frames_are_bounded},
	{"counted frames", counted_frames},
	{"sliding windows", sliding_windows},
	{"encodings are separate", encodings_are_separate},
	{"wrong options", wrong_options},
	{"auxiliary readouts", auxiliary_readouts},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_framer = {"framer", NULL, NULL, NULL, NULL, tests};
