/* SPDX-License-Identifier: MIT */
/* mrd_stream_write.h - messages as an MRD stream (mrd_wire.h). */
#ifndef FORNIX_IO_MRD_STREAM_WRITE_H
#define FORNIX_IO_MRD_STREAM_WRITE_H

#include <fornix/message.h>
#include <stdio.h>

/* FX_EIO with the system's reason where writing fails; `name` of the stream is for messages. */

/** The MRD XML header, which comes first. */
int fxi_mrd_write_header(FILE *f, const char *name, const char *header_xml, fx_error *err);
/** An acquisition, image, waveform or text (borrowed). FX_EINVAL for other kinds, or where header and data disagree. */
int fxi_mrd_write(FILE *f, const char *name, fx_msg *msg, fx_error *err);
/** The close message, and a flush. */
int fxi_mrd_write_close(FILE *f, const char *name, fx_error *err);

#endif
