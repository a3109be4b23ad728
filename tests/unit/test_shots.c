/* SPDX-License-Identifier: MIT */
/* test_shots.c - how many excitations a frame is made of, its diffusion counter, and what its image says of both. */
#include "unit/check.h"

#include <string.h>

struct closed {
	int64_t n, shots[16], diffusion[16], readouts[16];
	fx_msg *last;
};

static int take(void *arg, fx_open_frame *open)
{
	struct closed *c = arg;

	if (c->n < 16) {
		c->shots[c->n] = open->frame->n_shots;
		c->diffusion[c->n] = open->frame->diffusion;
		c->readouts[c->n] = open->frame->n_readouts;
	}
	c->n++;
	fx_drop(c->last);
	c->last = fx_msg_ref(open->msg);
	return FX_OK;
}

struct scan {
	fx_encoding encoding;
	fx_header header;
	fx_math *m;
	fx_collector *c;
	struct closed closed;
};

static void start(struct scan *s, int trajectory, int dimension)
{
	static const fx_collect_ops ops = {.close = take};
	fx_collect_options options = {.fov_factor = 1};

	memset(s, 0, sizeof *s);
	s->encoding.trajectory = trajectory;
	s->encoding.acceleration[0] = s->encoding.acceleration[1] = 1;
	for (int i = 0; i < 3; i++) {
		s->encoding.encoded.matrix[i] = s->encoding.recon.matrix[i] = i < 2 ? 4 : 1;
		s->encoding.encoded.fov_mm[i] = s->encoding.recon.fov_mm[i] = 8;
	}
	s->header = (fx_header){.n_encodings = 1, .encodings = &s->encoding, .diffusion_dimension = dimension};
	s->m = math_of(1);
	CU_ASSERT_EQUAL_FATAL(fx_collector_new(s->m, &s->header, &options, &ops, &s->closed, &s->c), FX_OK);
}

static void add(struct scan *s, ISMRMRD_EncodingCounters idx, uint32_t stamp, bool last)
{
	fx_msg *msg = fx_msg_new(FX_ACQUISITION);
	fx_acquisition *a = fx_msg_acquisition(msg);

	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_CF32, 4, 1, &a->data), FX_OK);
	a->head.idx = idx;
	a->head.acquisition_time_stamp = stamp;
	a->head.flags = last ? (uint64_t)1 << (ISMRMRD_ACQ_LAST_IN_SLICE - 1) : 0;
	CU_ASSERT_EQUAL(fx_collector_add(s->c, a, NULL, 0), FX_OK);
	fx_drop(msg);
}

static void end(struct scan *s)
{
	int64_t n_partial;

	CU_ASSERT_EQUAL(fx_collector_end(s->c, false, &n_partial), FX_OK);
	fx_collector_free(s->c);
	fx_drop(s->closed.last);
	s->closed.last = NULL;
	fx_math_free(s->m);
}

#define ADD(s, stamp, last, ...) add(s, (ISMRMRD_EncodingCounters){__VA_ARGS__}, stamp, last)

static void echo_planar(void)
{
	struct scan s;

	start(&s, FX_TRAJ_EPI, FX_DIFFUSION_NONE);
	for (uint16_t y = 0; y < 4; y++) /* one shot, whatever the stamps */
		ADD(&s, y, y == 3, .kspace_encode_step_1 = y);
	for (uint16_t y = 0; y < 12; y++) /* twelve of them: a list that grows */
		ADD(&s, 7, y == 11, .kspace_encode_step_1 = y % 4, .segment = y, .repetition = 1);
	for (uint16_t y = 0; y < 8; y++) /* two averages of one segment each */
		ADD(&s, 7, y == 7, .kspace_encode_step_1 = y % 4, .average = y / 4, .repetition = 2);
	CU_ASSERT_EQUAL_FATAL(s.closed.n, 3);
	CU_ASSERT_EQUAL(s.closed.shots[0], 1);
	CU_ASSERT_EQUAL(s.closed.shots[1], 12);
	CU_ASSERT_EQUAL(s.closed.shots[2], 2);
	CU_ASSERT_EQUAL(s.closed.diffusion[0], -1);
	end(&s);
}

static void every_other_kind(void)
{
	static const int kinds[] = {FX_TRAJ_CARTESIAN, FX_TRAJ_RADIAL, FX_TRAJ_GOLDENANGLE, FX_TRAJ_SPIRAL, FX_TRAJ_OTHER};

	for (int k = 0; k < 5; k++) {
		struct scan s;

		start(&s, kinds[k], FX_DIFFUSION_NONE);
		for (uint16_t y = 0; y < 4; y++)
			ADD(&s, 100u + y, y == 3, .kspace_encode_step_1 = y);
		for (uint16_t y = 0; y < 4; y++) /* one excitation, read four times */
			ADD(&s, 200, y == 3, .kspace_encode_step_1 = y, .repetition = 1);
		for (uint16_t y = 0; y < 4; y++) /* no stamps: not told that it is one */
			ADD(&s, 0, y == 3, .kspace_encode_step_1 = y, .repetition = 2);
		ADD(&s, 0, true, .repetition = 3); /* a single readout is a single shot */
		for (uint16_t y = 0; y < 3; y++) /* the last differs */
			ADD(&s, y == 2 ? 301 : 300, y == 2, .kspace_encode_step_1 = y, .repetition = 4);
		CU_ASSERT_EQUAL_FATAL(s.closed.n, 5);
		CU_ASSERT_EQUAL(s.closed.shots[0], 4);
		CU_ASSERT_EQUAL(s.closed.shots[1], 1);
		CU_ASSERT_EQUAL(s.closed.shots[2], 4);
		CU_ASSERT_EQUAL(s.closed.shots[3], 1);
		CU_ASSERT_EQUAL(s.closed.shots[4], 3);
		end(&s);
	}
}

/* Frames are told apart by the diffusion counter too, whichever it is; and only by it. */
static void diffusion_counters(void)
{
	static const int dimensions[] = {FX_DIFFUSION_USER_0 + 3, FX_DIFFUSION_AVERAGE, FX_DIFFUSION_SEGMENT};

	for (int d = 0; d < 3; d++) {
		struct scan s;

		start(&s, FX_TRAJ_EPI, dimensions[d]);
		for (uint16_t v = 0; v < 3; v++)
			for (uint16_t y = 0; y < 4; y++) {
				ISMRMRD_EncodingCounters idx = {.kspace_encode_step_1 = y, .average = d == 1 ? v : 0, .segment = d == 2 ? v : 0};

				idx.user[3] = d == 0 ? v : 0;
				add(&s, idx, 5, false); /* no flags: the counter that moves on closes */
			}
		CU_ASSERT_EQUAL(s.closed.n, 2);
		end(&s);
		CU_ASSERT_EQUAL_FATAL(s.closed.n, 3);
		for (int v = 0; v < 3; v++) {
			CU_ASSERT_EQUAL(s.closed.diffusion[v], v);
			CU_ASSERT_EQUAL(s.closed.readouts[v], 4);
			CU_ASSERT_EQUAL(s.closed.shots[v], 1);
		}
	}
}

static void what_the_image_says(void)
{
	struct scan s;
	fx_msg *image = NULL;
	fx_array *volume = NULL;

	start(&s, FX_TRAJ_EPI, FX_DIFFUSION_USER_0);
	for (uint16_t y = 0; y < 4; y++) {
		ISMRMRD_EncodingCounters idx = {.kspace_encode_step_1 = y, .segment = y / 2};

		idx.user[0] = 17;
		add(&s, idx, 5, y == 3);
	}
	CU_ASSERT_EQUAL_FATAL(s.closed.n, 1);
	CU_ASSERT_EQUAL_FATAL(fx_array_new4(FX_CF32, 4, 4, 1, 1, &volume), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_frame_image(s.m, fx_msg_frame(s.closed.last), volume, &image), FX_OK);
	CU_ASSERT_STRING_EQUAL(fx_image_get_meta(fx_msg_image(image), "fornix.shots"), "2");
	CU_ASSERT_STRING_EQUAL(fx_image_get_meta(fx_msg_image(image), "fornix.diffusion"), "17");
	fx_drop(image);
	fx_msg_frame(s.closed.last)->n_shots = 0; /* of a frame that nobody counted, and of no diffusion scan */
	fx_msg_frame(s.closed.last)->diffusion = -1;
	CU_ASSERT_EQUAL_FATAL(fx_frame_image(s.m, fx_msg_frame(s.closed.last), volume, &image), FX_OK);
	CU_ASSERT_EQUAL(fx_msg_image(image)->n_meta, 0);
	fx_drop(image);
	fx_array_unref(volume);
	end(&s);
}

static CU_TestInfo tests[] = {
	{"echo-planar shots", echo_planar},
	{"shots of every other kind", every_other_kind},
	{"frames by the diffusion counter", diffusion_counters},
	{"what the image says", what_the_image_says},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_shots = {"shots", NULL, NULL, NULL, NULL, tests};
