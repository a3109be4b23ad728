/* SPDX-License-Identifier: MIT */
/* wire_pieces.h - a message as the pieces that go over the wire one behind the other; samples stay where they are. */
#ifndef FORNIX_IO_WIRE_PIECES_H
#define FORNIX_IO_WIRE_PIECES_H

#include "mrd_wire.h"

#include <sys/uio.h>

#define FXI_WIRE_PIECES 3
#define FXI_WIRE_HEAD_BYTES (2 + 340 + 8)

typedef struct fxi_wire_pieces {
	struct iovec piece[FXI_WIRE_PIECES]; /**< the first is `head` */
	int n;
	unsigned char head[FXI_WIRE_HEAD_BYTES];
	char *meta;                          /**< owned */
} fxi_wire_pieces;

/** A message of an id and a text behind a length of 4 or 8 bytes, which counts `more` bytes beyond strlen (1: the NUL). */
void fxi_wire_pieces_text(fxi_wire_pieces *p, int id, int length_bytes, const char *text, size_t more);
/**
 * An acquisition, image, waveform or text, which has to stay until the pieces are sent. FX_EINVAL for other kinds, or where header and
 * data disagree; `name` of the stream is for messages.
 */
int fxi_wire_pieces_of(fxi_wire_pieces *p, const char *name, fx_msg *msg, fx_error *err);
void fxi_wire_pieces_clear(fxi_wire_pieces *p);
/** Appends to the head. */
void fxi_wire_pieces_put(fxi_wire_pieces *p, const void *data, size_t bytes);

#endif
