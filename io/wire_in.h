/* SPDX-License-Identifier: MIT */
/* wire_in.h - the inside of a reader: bytes and lengths (wire_in.c), and what messages are made of (wire_read.c). */
#ifndef FORNIX_IO_WIRE_IN_H
#define FORNIX_IO_WIRE_IN_H

#include "wire.h"

#include "../stream/pool.h"

#include <stdatomic.h>

#define FXI_WIRE_TEXT_BYTES ((uint64_t)16 << 20)

struct fxi_wire_in {
	int fd, wake_fd;
	bool socket, file;           /* what fd is; neither: a pipe, a terminal */
	char *name;
	fxi_wire_limits limits;
	int end;                     /* enum fxi_wire_end */
	atomic_bool interrupted;
	bool no_data;                /* data are refused for now */
	bool in_message;             /* past the first byte of its id */
	int message_id;
	int64_t total;               /* of the stream; 0: unknown */
	int64_t offset;              /* of the next byte to be handed out */
	int64_t message_offset;
	int64_t message_end;         /* where the message ends; 0: not known yet */
	size_t at, have;
	unsigned char *buffer;
	/* where readouts are made: messages, and arrays of about one size each */
	fxi_pool *messages, *samples, *trajectories;
};

/** "NAME, acquisition message at byte 1234: ..." */
int fxi_wire_bad(const fxi_wire_in *in, int status, fx_error *err, const char *fmt, ...) FX_PRINTF(4, 5);
/** Up to `bytes` into `to` (dropped where NULL); fewer only at the end of the stream, and then that is in `end`. */
int fxi_wire_bytes(fxi_wire_in *in, void *to, uint64_t bytes, uint64_t *done, fx_error *err);
/** The same, but the stream's end is an error: it was cut short. */
int fxi_wire_need(fxi_wire_in *in, void *to, uint64_t bytes, fx_error *err);
/** That `bytes` more belong to the message: whether they may, before anything of that size is allocated. */
int fxi_wire_room(fxi_wire_in *in, int64_t bytes, fx_error *err);
/** A length of `length_bytes` bytes. */
int fxi_wire_length(fxi_wire_in *in, size_t length_bytes, fx_error *err, uint64_t *out);

#endif
