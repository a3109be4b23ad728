/* SPDX-License-Identifier: MIT */
/*
 * harness.h - one gadget or a short chain under test: push messages in, collect what comes out. Built on the real
 * engine, so a gadget that fails, hangs or stops early makes the test fail.
 */
#ifndef FORNIX_TESTS_HARNESS_H
#define FORNIX_TESTS_HARNESS_H

#include <fornix/fornix.h>

typedef struct harness {
	int status;          /* of the run */
	fx_error err;
	fx_msg **out;        /* what left the last gadget, in order */
	int64_t n_out;
} harness;

/**
 * Runs `chain` ("gadget property=value property=value | gadget ...") on the given messages (owned: consumed) with
 * this MRD XML header. Always fills *h; release with harness_free. Fails the test after 60 s.
 */
void harness_run(harness *h, const char *chain, const char *header_xml, fx_msg **messages, int64_t n_messages);
void harness_free(harness *h);

/** An acquisition of zeros: samples x coils, with an f32 trajectory of `dims` per sample where dims > 0. */
fx_msg *harness_acquisition(int64_t samples, int64_t coils, int64_t dims);
/** A minimal MRD header: matrix, field of view in mm, trajectory word ("spiral"), encodingLimits of step_1 0..n-1 (0: none). Free with free(). */
char *harness_header(const int64_t matrix[3], const double fov_mm[3], const char *trajectory, int64_t n_readouts);

#endif
