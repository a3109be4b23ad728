/* SPDX-License-Identifier: MIT */
/*
 * admission.c - memory in bytes, the host's and the GPU's, is given to sessions before they compute: what does not fit waits for a
 * session to end, and what can never fit is refused at once. First come, first served: a large session is not overtaken for ever.
 */
#include "supervisor_parts.h"

#include <stdio.h>

static void answer(const fxi_worker *w, int kind, const char *text)
{
	fxi_link_message m = {.kind = kind};

	if (kind == FXI_LINK_GRANTED)
		m.u.granted.host_bytes = w->host_bytes;
	else
		snprintf(m.u.text, sizeof m.u.text, "%s", text);
	fxi_link_send(w->link, &m, -1); /* where it is gone, its end is seen elsewhere */
}

static double gib(int64_t bytes)
{
	return (double)bytes / (double)(INT64_C(1) << 30);
}

/* bound 0: none. */
static bool fits(int64_t used, int64_t more, int64_t bound)
{
	return bound == 0 || used + more <= bound;
}

static int64_t share(int64_t asked, int64_t session, int64_t bound, int n_sessions)
{
	if (asked >= 0)
		return asked;
	return session > 0 ? session : bound / n_sessions;
}

static void grant(fxi_supervisor *s, fxi_worker *w)
{
	w->asks = false;
	w->host_bytes = w->ask_host;
	w->gpu_bytes = w->ask_gpu;
	s->host_used += w->host_bytes;
	s->gpu_used += w->gpu_bytes;
	answer(w, FXI_LINK_GRANTED, NULL);
}

/* Who asked first; NULL where nobody waits. */
static fxi_worker *first_asking(const fxi_supervisor *s)
{
	fxi_worker *first = NULL;

	for (int i = 0; i < s->n_workers; i++) {
		fxi_worker *w = &s->workers[i];

		if (w->state == FXI_WORKER_BUSY && w->asks && (!first || w->asked_at < first->asked_at))
			first = w;
	}
	return first;
}

void fxi_admission_ask(fxi_supervisor *s, fxi_worker *w, int64_t host_bytes, int64_t gpu_bytes)
{
	const fxi_supervisor_options *o = s->options;
	char text[256];

	fxi_admission_release(s, w); /* a second question replaces the first */
	w->ask_host = share(host_bytes, o->session_host_bytes, o->host_bytes, o->n_sessions);
	w->ask_gpu = share(gpu_bytes, o->session_gpu_bytes, s->gpu_bytes, o->n_sessions);
	if (!fits(0, w->ask_host, o->host_bytes) || !fits(0, w->ask_gpu, s->gpu_bytes)) {
		snprintf(text, sizeof text, "this configuration takes %.1f GiB of memory and %.1f GiB of a GPU's; the server gives %.1f and "
			"%.1f to all its sessions together", gib(w->ask_host), gib(w->ask_gpu), gib(o->host_bytes), gib(s->gpu_bytes));
		answer(w, FXI_LINK_REFUSED, text);
		return;
	}
	w->asks = true;
	w->asked_at = fxi_clock_s();
	fxi_admission_tend(s, w->asked_at);
	if (w->asks)
		fxi_log_say(s->log, FXI_INFO, w->session, "waits for %.1f GiB of memory and %.1f GiB of a GPU's: %.1f and %.1f are taken",
			gib(w->ask_host), gib(w->ask_gpu), gib(s->host_used), gib(s->gpu_used));
}

void fxi_admission_release(fxi_supervisor *s, fxi_worker *w)
{
	s->host_used -= w->host_bytes;
	s->gpu_used -= w->gpu_bytes;
	w->host_bytes = w->gpu_bytes = 0;
	w->asks = false;
}

void fxi_admission_tend(fxi_supervisor *s, double now)
{
	const fxi_supervisor_options *o = s->options;
	fxi_worker *w;

	while ((w = first_asking(s)) && fits(s->host_used, w->ask_host, o->host_bytes) && fits(s->gpu_used, w->ask_gpu, s->gpu_bytes))
		grant(s, w);
	for (int i = 0; i < s->n_workers; i++) {
		w = &s->workers[i];
		if (w->state != FXI_WORKER_BUSY || !w->asks || now - w->asked_at < o->wait_s)
			continue;
		w->asks = false;
		answer(w, FXI_LINK_REFUSED, "the server is busy: other sessions have taken its memory; try again when they have ended");
	}
}
