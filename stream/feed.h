/* SPDX-License-Identifier: MIT */
/* feed.h - the source's messages into the first gadget's queue, on the thread of fxi_chain_run. */
#ifndef FORNIX_STREAM_FEED_H
#define FORNIX_STREAM_FEED_H

#include "context.h"

#define FXI_PROGRESS_S 0.1

typedef struct fxi_feeder {
	fxi_source *source;
	int64_t n_messages, n_noise, n_readouts; /**< noise is among the readouts */
	double told_s;                           /**< when progress was told last */
} fxi_feeder;

/** Feeds until the source ends, fails, or the chain stops; the queue is closed where the input ended. */
void fxi_feed(fxi_chain *c, fxi_feeder *f);
/** Tells the caller how far the source is, ten times a second at most. */
void fxi_feed_progress(const fxi_chain *c, fxi_feeder *f);

#endif
