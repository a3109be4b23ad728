/* SPDX-License-Identifier: MIT */
/* source.h - where a run's messages come from: a replayed file, a stream, a test. */
#ifndef FORNIX_STREAM_SOURCE_H
#define FORNIX_STREAM_SOURCE_H

#include <fornix/message.h>

typedef struct fxi_source fxi_source;
struct fxi_source {
	char *header_xml;       /**< the MRD XML header, owned by the source */
	const char *format;     /**< "MRD HDF5", "MRD stream", "NIfTI series" */
	unsigned kinds;         /**< what it gives: enum fx_kind bits; 0: what a scan consists of */
	char *note, *warning;   /**< what the user should know of how it was read, a sentence each, or NULL; owned */
	char *digest;           /**< of the input's content, for the record; NULL where there is none (a live stream) */
	/** The next message into *out (given away); *out NULL at the end of input. */
	int (*next)(fxi_source *self, fx_msg **out, fx_error *err);
	/** Set where `next` failed with FX_EDATA only because the input ended too early: what came before is whole. */
	bool cut_short;
	/** Makes a `next` that waits for more fail with FX_ECANCELED, now and from here on; from any thread. NULL: it never waits long. */
	void (*interrupt)(fxi_source *self);
	/** True where `next` has a message already, without waiting for anybody. NULL: not told. */
	bool (*ready)(const fxi_source *self);
	/** Share of the input already read, 0..1; negative where unknown. */
	double (*progress)(const fxi_source *self);
	void (*close)(fxi_source *self);  /**< frees the source too */
};

#endif
