/* SPDX-License-Identifier: MIT */
/*
 * probe.h - a gadget that fails, stalls or emits where its properties say, and leaves a trace of what was done to it:
 * for the suites of the engine.
 */
#ifndef FORNIX_TESTS_PROBE_H
#define FORNIX_TESTS_PROBE_H

#include <fornix/fornix.h>

#include "stream/chain.h"

#include <stdatomic.h>

/* <probe>: takes and gives acquisitions. Properties: see probe.c. */
extern const fx_gadget probe_gadget;
/* <idle>: takes nothing, flushes. */
extern const fx_gadget idle_gadget;
/* <to_image>: takes acquisitions, gives images. <draw>: needs images. <either>: takes waveforms or text. */
extern const fx_gadget to_image_gadget, draw_gadget, either_gadget;
/* All of them, ends with NULL. */
extern const fx_gadget *const probe_gadgets[];

enum { PROBE_OPEN = 1, PROBE_FLUSH, PROBE_CLOSE };
#define PROBE_MAX 8192

/* What happened since probe_reset. */
extern struct probe_trace {
	atomic_int live, peak_live;       /* messages that exist, and the most at once */
	atomic_int made;
	atomic_int n_events;
	struct { int phase, tag; } events[PROBE_MAX];
	atomic_int out_of_order;          /* readouts that a probe saw out of turn */
	atomic_int emitted_after_stop;    /* what fx_emit returned once the run was being stopped; 1 before */
} probe_trace;

void probe_reset(void);
/* Events of that phase and tag; tag -1: any. */
int probe_count(int phase, int tag);
/* Place of the event among all; -1 where it never was. */
int probe_when(int phase, int tag);

/* An acquisition of `bytes` whose life is counted, with this scan_counter. NULL when memory is short. */
fx_msg *probe_message(uint32_t counter, int64_t bytes);

/* A source of `n` such messages; `fail_at` >= 0: its next fails there; `block_at` >= 0: it waits there for probe_unblock. */
typedef struct probe_source {
	fxi_source base;
	int64_t n, made, bytes, fail_at, block_at;
	atomic_bool unblock, blocked;
} probe_source;
void probe_source_init(probe_source *s, int64_t n, int64_t bytes);

/* "probe tag=1 | idle" as a chain; loading it must work. The registry has every gadget above. */
fxi_chain *probe_chain(const char *text, fxi_registry **registry);
/* Loads text with these input kinds; the status, with its sentence in *err. */
int probe_load(const char *text, unsigned input_kinds, fx_error *err, fxi_registry **registry, fxi_chain **out);

#endif
