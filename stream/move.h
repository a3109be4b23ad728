/* SPDX-License-Identifier: MIT */
/* move.h - a message's arrays to where the gadget that gets it computes. */
#ifndef FORNIX_STREAM_MOVE_H
#define FORNIX_STREAM_MOVE_H

#include <fornix/backend.h>
#include <fornix/message.h>

#define FXI_MSG_ARRAYS 12 /* no payload has more */

/** Where the payload keeps its arrays, NULL ones too; returns how many. What freeing, sharing, counting and moving have in common. */
int fxi_msg_arrays(fx_msg *m, fx_array **list[FXI_MSG_ARRAYS]);

/**
 * FX_HOST: every array of the message; FX_DEVICE: the volumes of a frame, to math's device. *msg is made the caller's own where
 * something has to move. On failure *msg is dropped and NULL, and math->err says why.
 */
int fxi_msg_move(fx_msg **msg, int place, fx_math *math);

#endif
