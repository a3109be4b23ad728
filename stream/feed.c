/* SPDX-License-Identifier: MIT */
/*
 * feed.c - the source's messages into the first gadget's queue. What the source has at hand without waiting goes in together: a
 * short readout alone costs more to hand over, with a lock and a thread woken, than to read.
 */
#include "feed.h"


#define MOST_AT_ONCE 64

void fxi_feed_progress(const fxi_chain *c, fxi_feeder *f)
{
	double now;

	if (!c->options.progress)
		return;
	now = fxi_now_s();
	if (now - f->told_s < FXI_PROGRESS_S)
		return;
	f->told_s = now;
	c->options.progress(c->options.progress_arg, f->source->progress ? f->source->progress(f->source) : -1,
		f->n_messages);
}

static void count(fxi_feeder *f, fx_msg *msg)
{
	const fx_acquisition *a = fx_msg_kind(msg) == FX_ACQUISITION ? fx_msg_acquisition(msg) : NULL;

	f->n_messages++;
	f->n_readouts += a != NULL;
	f->n_noise += a && FX_FLAG(a->head.flags, ISMRMRD_ACQ_IS_NOISE_MEASUREMENT);
}

/* The end of input; what it was has to be known before the gadgets flush. */
static void close_input(fxi_chain *c, const fxi_feeder *f, fxi_queue *in)
{
	atomic_store_explicit(&c->noise_only, f->n_noise > 0 && f->n_noise == f->n_readouts, memory_order_release);
	fxi_queue_close(in);
}

/* The next message, and those that the source has already. Fewer, and what came before a failure is in the batch all the same. */
static int gather(const fxi_chain *c, fxi_feeder *f, fx_msg *batch[MOST_AT_ONCE], int64_t *n, bool *ended, fx_error *err)
{
	fxi_source *s = f->source;

	*n = 0;
	do {
		fx_msg *msg = NULL;
		int status = s->next(s, &msg, err);

		if (status != FX_OK)
			return status;
		*ended = !msg;
		if (msg) {
			count(f, msg);
			batch[(*n)++] = msg;
		}
	} while (!*ended && *n < MOST_AT_ONCE && s->ready && s->ready(s) && !fxi_stopping(c));
	return FX_OK;
}

void fxi_feed(fxi_chain *c, fxi_feeder *f)
{
	fxi_queue *in = c->stages[c->first].in;
	fx_msg *batch[MOST_AT_ONCE];
	double waited_s = 0;
	bool ended = false;

	while (!fxi_stopping(c)) {
		fx_error err = {0};
		int64_t n;
		int status = gather(c, f, batch, &n, &ended, &err), put;

		put = fxi_queue_put_all(in, batch, n, &waited_s);
		if (status == FX_EDATA && f->source->cut_short && put == FX_OK) {
			/* a lost connection, a client that stopped: what is open is flushed, and gadgets decide what it is worth */
			atomic_store_explicit(&c->input_cut, true, memory_order_release);
			fxi_chain_log(c, FXI_WARNING, NULL, err.text);
			ended = true;
		} else if (status != FX_OK || put != FX_OK) {
			fxi_chain_fail(c, NULL, put != FX_OK ? put : status, put != FX_OK ? NULL : err.text);
			return;
		}
		if (ended) {
			close_input(c, f, in);
			return;
		}
		fxi_feed_progress(c, f);
	}
}
