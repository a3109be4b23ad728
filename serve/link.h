/* SPDX-License-Identifier: MIT */
/*
 * link.h - what the supervisor and a worker say to each other: small records over a sequenced-packet socket, descriptors beside
 * them. Both ends are the same program, so a record is a C structure; its size and kind are checked all the same, since a worker
 * may have been damaged before it spoke.
 */
#ifndef FORNIX_SERVE_LINK_H
#define FORNIX_SERVE_LINK_H

#include "session.h"

#include <stdint.h>

/** The worker's end of the socket. */
#define FXI_LINK_FD 3

enum fxi_link_kind {
	/* from a worker */
	FXI_LINK_READY = 1,   /**< gpus: warm, waits for a client */
	FXI_LINK_ADMIT,       /**< ask: may I take that much memory? answered by GRANTED or REFUSED */
	FXI_LINK_NOISE_GET,   /**< text: measurement id; answered by NOISE */
	FXI_LINK_NOISE_PUT,   /**< text: measurement id, with a descriptor (noise_blob.h); answered by NOISE */
	FXI_LINK_CRASH,       /**< crash: sent from a signal handler, the last that is heard */
	FXI_LINK_OUTCOME,     /**< outcome: the session is over */
	/* to a worker */
	FXI_LINK_START,       /**< start, with the client's descriptor */
	FXI_LINK_STOP,        /**< end the session: the server is going down */
	FXI_LINK_GRANTED, FXI_LINK_REFUSED, /**< text: why not */
	FXI_LINK_NOISE        /**< noise.status, text where it failed; with a descriptor where some is kept */
};

#define FXI_LINK_GPUS 8

typedef struct fxi_link_gpus {
	int n, driver;
	struct {
		char name[96];
		int64_t memory_bytes;
		int capability;
	} list[FXI_LINK_GPUS];
} fxi_link_gpus;

typedef struct fxi_link_message {
	int kind;   /**< enum fxi_link_kind */
	int status; /**< of NOISE */
	union {
		fxi_link_gpus gpus;
		struct {
			int64_t host_bytes, gpu_bytes; /**< negative: the server's defaults */
		} ask;
		struct {
			int64_t host_bytes; /**< what the answer is good for */
		} granted;
		struct {
			uint64_t session;
			char peer[128];
		} start;
		struct {
			int signal;
			char thread[16]; /**< its name: the gadget's, where a gadget's thread it was */
		} crash;
		fxi_session_outcome outcome;
		char text[FX_ERROR_TEXT];
	} u;
} fxi_link_message;

/** Both ends, close-on-exec. FX_EIO. */
int fxi_link_pair(int ends[2], fx_error *err);
/** Sends a record, with `fd` beside it (stays the caller's; -1: none). False where the other end is gone or full. */
bool fxi_link_send(int link, const fxi_link_message *m, int fd);
/**
 * Receives one. 1: *m is there, *fd (close-on-exec, the caller's) came with it or is -1; 0: nothing yet (a socket that does
 * not block); -1: the other end is gone, or sent what is no record.
 */
int fxi_link_receive(int link, fxi_link_message *m, int *fd);

#endif
