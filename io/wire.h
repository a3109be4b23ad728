/* SPDX-License-Identifier: MIT */
/*
 * wire.h - MRD messages over a descriptor, both ways: a socket, a pipe or a file. mrd_wire.h has the format. Nothing that
 * comes is believed before it is checked; nothing goes out in pieces: a message is one writev.
 */
#ifndef FORNIX_IO_WIRE_H
#define FORNIX_IO_WIRE_H

#include "mrd_wire.h"

/** Bounds of one direction. All zero: only those of the format and of the machine's memory. */
typedef struct fxi_wire_limits {
	int64_t message_bytes; /**< of one message's body; larger ones are refused before memory is asked for */
	double idle_s;         /**< the longest wait for the other side to send, or to take, one more byte */
	double deadline_s;     /**< on fxi_now_s's clock: nothing is waited for beyond it */
} fxi_wire_limits;

/* ---- coming in ------------------------------------------------------------------------------- */

/** One thread reads; interrupt may come from any. */
typedef struct fxi_wire_in fxi_wire_in;

/** Why no more can be read. */
enum fxi_wire_end {
	FXI_WIRE_OPEN = 0,
	FXI_WIRE_CUT,         /**< the stream ended, or the connection was lost, without a close message */
	FXI_WIRE_SILENT,      /**< idle_s or deadline_s passed */
	FXI_WIRE_INTERRUPTED, /**< between two messages: what follows can be read after fxi_wire_resume */
	FXI_WIRE_REFUSED,     /**< a message was not taken, but the next one can be found: fxi_wire_drain goes on */
	FXI_WIRE_LOST         /**< where the next message begins is not known any more; or reading failed */
};

/** What a message brought; what its id does not have is zero. */
typedef struct fxi_wire_message {
	int id;               /**< enum fxi_mrd_id */
	int64_t offset;       /**< of its id, in bytes from the start of the stream */
	char *text;           /**< of ids 1, 2, 3, 5, 6, 7 and 1019, NUL-terminated; NULs counted in its length are taken off */
	bool nul;             /**< its length counted a NUL, as FIRE's do (ids 2, 3, 5) */
	uint64_t correlation; /**< of a query or its response */
	fx_msg *data;         /**< of ids 1008, 1022, 1026: the message for a chain */
} fxi_wire_message;

/**
 * Reads from fd, which stays the caller's. `name` is for messages; n_prefix bytes (at most 64) were read already; total_bytes
 * is the stream's length, 0 where unknown; limits may be NULL.
 */
int fxi_wire_in_new(int fd, const char *name, const void *prefix, size_t n_prefix, int64_t total_bytes,
	const fxi_wire_limits *limits, fx_error *err, fxi_wire_in **out);
void fxi_wire_in_free(fxi_wire_in *in);
/**
 * The next message into *m (overwritten; cleared on failure). Messages of kinds that nobody here wants but whose length is
 * known (ids 8, 1018) are passed over. FX_EDATA, FX_EIO, FX_ENOTSUP, FX_ENOMEM name stream, kind and byte; FX_ECANCELED after an
 * interrupt, or a signal whose handler does not restart reads. fxi_wire_end says whether reading can go on.
 */
int fxi_wire_read(fxi_wire_in *in, fxi_wire_message *m, fx_error *err);
/** True where a whole readout was taken from the stream already: the next read will not wait. */
bool fxi_wire_ready(const fxi_wire_in *in);
void fxi_wire_message_clear(fxi_wire_message *m);
/** enum fxi_wire_end: why the last read failed. */
int fxi_wire_end(const fxi_wire_in *in);
/**
 * Wakes a read that waits between two messages, now and until fxi_wire_resume. One that waits inside a message gets two more
 * seconds for the rest of it. From any thread.
 */
void fxi_wire_interrupt(fxi_wire_in *in);
void fxi_wire_resume(fxi_wire_in *in, const fxi_wire_limits *limits);
/**
 * Reads and drops until the close message (true), the end of the stream, or `quiet_s` without a byte. What is no message any more is
 * dropped as bytes.
 */
bool fxi_wire_drain(fxi_wire_in *in, double quiet_s);
/** Whether data may come (true when new): in front of a header they are refused, and passed over. */
void fxi_wire_allow_data(fxi_wire_in *in, bool allowed);
/** Bytes taken from the stream so far. */
int64_t fxi_wire_in_bytes(const fxi_wire_in *in);
/** What messages call the stream. */
const char *fxi_wire_in_name(const fxi_wire_in *in);
/** The name of a message id, NULL where it has none. */
const char *fxi_wire_id_name(int id);

/* ---- going out ------------------------------------------------------------------------------- */

/** Any thread may send: a message goes out whole, behind the one before it. */
typedef struct fxi_wire_out fxi_wire_out;

/** Writes to fd, which stays the caller's. A socket should have TCP_NODELAY (fxi_wire_prepare). limits may be NULL. */
int fxi_wire_out_new(int fd, const char *name, const fxi_wire_limits *limits, fx_error *err, fxi_wire_out **out);
void fxi_wire_out_free(fxi_wire_out *out);
/** Nothing is waited for beyond that time any more (fxi_now_s's clock); also of a send under way, from any thread. */
void fxi_wire_out_deadline(fxi_wire_out *out, double deadline_s);
/** TCP_NODELAY and keep-alive on a TCP socket; other descriptors are left as they are. */
void fxi_wire_prepare(int fd);
/* FX_EIO with the system's reason where the other side is gone or takes nothing within the limits; then nothing more is sent. */
/** A configuration's name, at most 1023 bytes. */
int fxi_wire_send_config_name(fxi_wire_out *out, const char *name, fx_error *err);
/** FXI_MRD_CONFIG_TEXT, _HEADER or _TEXT; `nul` counts the closing NUL into the length. */
int fxi_wire_send_text(fxi_wire_out *out, int id, const char *text, bool nul, fx_error *err);
int fxi_wire_send_query(fxi_wire_out *out, uint64_t correlation, const char *text, fx_error *err);
int fxi_wire_send_response(fxi_wire_out *out, uint64_t correlation, const char *text, fx_error *err);
int fxi_wire_send_dependency(fxi_wire_out *out, const char *xml, fx_error *err);
/** An acquisition, image, waveform or text (borrowed, on the host). FX_EINVAL for other kinds, or where header and data disagree. */
int fxi_wire_send(fxi_wire_out *out, fx_msg *msg, fx_error *err);
int fxi_wire_send_close(fxi_wire_out *out, fx_error *err);
int64_t fxi_wire_out_bytes(fxi_wire_out *out);

#endif
