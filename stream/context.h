/* SPDX-License-Identifier: MIT */
/*
 * context.h - the inside of a live chain: a context per gadget (what gadget.h calls fx_ctx) and what they share.
 * Fields of a context belong to its gadget's thread while the chain runs; those of the chain say what guards them.
 */
#ifndef FORNIX_STREAM_CONTEXT_H
#define FORNIX_STREAM_CONTEXT_H

#include "chain.h"
#include "queue.h"
#include "record.h"

#include <pthread.h>
#include <stdatomic.h>

/* One sentence a gadget warned with, and how often. */
struct fxi_warning {
	char *text;
	int64_t n;
};

struct fx_ctx {
	struct fxi_chain *chain;
	int64_t index;
	const fx_gadget *gadget;
	char *label;           /* the gadget's name, name#2 where there are several */
	int line;              /* of its element */
	void *state;
	int64_t n_properties;
	char **names, **texts; /* properties in table order: names borrowed, texts in force (strings in state point here) */
	unsigned wanted;       /* kinds that gadgets further down take */
	bool was_set;          /* some --set names it */

	fx_error err;
	fx_math *math;
	char place[16];        /* where it computed: "host", "cuda:0"; "" where it was never opened */
	fx_math *device;       /* of a host gadget in a run on a device: what fetches arrays from there; NULL until needed */
	fxi_queue *in;         /* its own */
	fxi_queue *out;        /* the next gadget's; NULL for the last */
	bool opening, opened;

	int64_t n_in, n_out;
	double busy_s, open_s, waiting_s;
	int64_t queue_peak_bytes;
	fxi_record *record;
	struct fxi_warning *warnings;
	int64_t n_warnings, n_unkept;
	char **warning_texts;  /* made when the run is over */
	int64_t n_warning_texts;
};

struct fxi_chain {
	int64_t n_stages;
	int64_t first;         /* stages in front of this one stand idle: never opened, without queue and thread */
	fx_ctx *stages;
	unsigned input_kinds;
	atomic_bool stop;      /* asked from outside, or a gadget failed */
	atomic_bool input_cut; /* the source ended too early; set before the first queue is closed */
	atomic_bool noise_only;/* all readouts were noise; likewise */
	atomic_bool noise_kept;/* fx_noise_put left some */
	int wake_fd;           /* eventfd that takes a stop out of a signal handler */
	bool ran;

	/* constant while it runs */
	const fx_header *header;
	fxi_services services;
	fxi_run_options options;
	fx_backend_choice choice; /* options.backend is its name */
	fxi_source *source;

	pthread_mutex_t lock;  /* guards what follows */
	pthread_cond_t changed;
	int64_t turn;          /* the stage that may open, from `first` on; n_stages when all are open */
	int64_t n_running;     /* stages whose thread has not ended */
	int64_t n_completed;   /* stages that flushed well */
	fx_error failure;      /* the first cause */
};

static inline bool fxi_stopping(const fxi_chain *c)
{
	return atomic_load_explicit(&c->stop, memory_order_acquire);
}

/** Makes *array (owned) one on the host, for whoever keeps or writes it. */
int fxi_context_fetch(fx_ctx *ctx, fx_array **array);
/** The run's backend where it is a device's, for a gadget that does not compute there itself. */
int fxi_context_device(fx_ctx *ctx, fx_math **out);
/** "cuda" or "cuda:N" into the device's number; false for any other name (math.c). */
bool fxi_cuda_device(const char *name, int *device);
/** Makes the chain's choice of a backend of what its options ask for; a failure is the chain's. */
int fxi_chain_choose(fxi_chain *c);
/** True where the run was given a device's backend: gadgets that can compute there do. */
bool fxi_on_device(const fxi_chain *c);
/** Where a stage's records and warnings are made, and unmade. */
int fxi_context_init(fx_ctx *ctx, fx_error *err);
void fxi_context_clear(fx_ctx *ctx);
/** Makes this the context of the calling thread, so that warnings of products and cache find their gadget. */
void fxi_context_enter(fx_ctx *ctx);
/** Hands a message on, whatever its kind: to the next gadget, the run's output, or nowhere. Consumes it. */
int fxi_context_pass(fx_ctx *ctx, fx_msg *msg);
/** Keeps and logs a warning. */
void fxi_context_warn(fx_ctx *ctx, const char *text);
/** Makes warning_texts of what was kept, and logs how often what was not shown came. */
void fxi_context_finish(fx_ctx *ctx);
/** For fxi_files and fxi_cache: a warning of whatever gadget this thread works for; arg is the chain. */
void fxi_chain_warn(void *arg, const char *text);

/** A line to the run's log, if there is one; gadget NULL: the engine's own. */
void fxi_chain_log(const fxi_chain *c, int level, const char *gadget, const char *text);
/** Records a failure where it is the first cause, and stops everything. ctx NULL: not a gadget's. */
void fxi_chain_fail(fxi_chain *c, const fx_ctx *ctx, int status, const char *text);

/**
 * Refuses a chain whose kinds do not meet, naming file, line and a gadget that would help. *first is the stage where the
 * input enters: those in front of it have nothing to do.
 */
int fxi_kinds_check(const fxi_pipeline *p, const fx_ctx *stages, fxi_registry *registry, unsigned input_kinds,
	fx_error *err, int64_t *first);
/** "acquisition, weighted and frame"; "nothing" for 0. */
void fxi_kinds_text(unsigned kinds, const char *last_word, char *text, size_t size);

#endif
