/* SPDX-License-Identifier: MIT */
/*
 * log.h - the server's log. Where systemd connected stderr to its journal, entries go there with fields (FORNIX_SESSION,
 * FORNIX_GADGET, ...) that `journalctl FORNIX_SESSION=17` finds; else they are lines on stderr, one write each.
 */
#ifndef FORNIX_SERVE_LOG_H
#define FORNIX_SERVE_LOG_H

#include "stream/services.h"

typedef struct fxi_log fxi_log;

typedef struct fxi_log_field {
	const char *name;   /**< "CONFIG"; FORNIX_ is put in front */
	const char *value;  /**< a field without value is left out */
} fxi_log_field;

/**
 * journal: the socket of the journal; NULL: the system's, where stderr is connected to it (JOURNAL_STREAM). Entries below
 * `level` (enum fxi_level) are dropped. FX_ENOMEM.
 */
int fxi_log_open(const char *journal, int level, fx_error *err, fxi_log **out);
void fxi_log_close(fxi_log *log);
/** True where entries go to the journal. */
bool fxi_log_native(const fxi_log *log);
/**
 * One entry. session 0: the server's own; gadget may be NULL. Control characters that came from outside become '?', so that nobody
 * forges lines. Any thread may call.
 */
void fxi_log_write(const fxi_log *log, int level, uint64_t session, const char *gadget, const char *text,
	const fxi_log_field *fields, int n_fields);
/** The same with a formatted text and no fields. */
void fxi_log_say(const fxi_log *log, int level, uint64_t session, const char *fmt, ...) FX_PRINTF(4, 5);

#endif
