/* SPDX-License-Identifier: MIT */
/* send_receive.c - what a server answers: images into a file, texts to the user, and the end of the session. */
#include "apps/send.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Servers mark failures differently: a severity word in front (FIRE's, Fornix's), or behind a place in brackets (Gadgetron's). */
static bool is_marked(const char *text, const char *word)
{
	const char *at = text[0] == '[' ? strstr(text, "] ") : NULL;
	size_t n = strlen(word);

	if (at)
		text = at + 2;
	return strncmp(text, word, n) == 0 && strchr(": \t", text[n]);
}

static void take_text(fxi_send *s, const char *text)
{
	int length = (int)strcspn(text, "\r\n");

	s->n_texts++;
	if (length > 1000)
		length = 1000;
	if (is_marked(text, "ERROR") || is_marked(text, "CRITICAL")) {
		if (s->n_errors++ == 0)
			snprintf(s->first_error, sizeof s->first_error, "%.*s", length, text);
		fxi_progress_line(&s->progress, "server: %.*s", length, text);
		return;
	}
	if (is_marked(text, "WARNING"))
		s->n_warnings++;
	if (!s->quiet && length > 0)
		fxi_progress_line(&s->progress, "server: %.*s", length, text);
}

static int take_image(fxi_send *s, fx_msg *msg, fx_error *err)
{
	const fx_sink_options options = {.format = FX_FORMAT_MRD, .name = s->name};
	const fx_image *image = fx_msg_image(msg);
	int status = FX_OK;

	s->n_images++;
	fxi_send_stats_received(s->stats, &image->head);
	if (s->files && !s->product)
		status = s->files->open(s->files, &options, err, &s->product);
	return s->product ? s->product->add(s->product, image, err) : status;
}

static int take(fxi_send *s, fxi_wire_message *m, fx_error *err)
{
	switch (m->id) {
	case FXI_MRD_CLOSE:
		atomic_store(&s->closed, true);
		return FX_OK;
	case FXI_MRD_TEXT:
		take_text(s, m->text);
		return FX_OK;
	case FXI_MRD_RESPONSE:
		s->n_answers++;
		puts(m->text);
		fflush(stdout);
		return FX_OK;
	case FXI_MRD_DEPENDENCY:
		s->n_answers++;
		if (s->query)
			puts(m->text);
		return FX_OK;
	case FXI_MRD_IMAGE:
		return take_image(s, m->data, err);
	default:
		s->n_others++;   /* readouts, headers: an image server has no call to send them */
		return FX_OK;
	}
}

void *fxi_send_receive(void *arg)
{
	fxi_send *s = arg;
	int status = FX_OK;

	while (status == FX_OK && !atomic_load(&s->closed)) {
		fxi_wire_message m;

		status = fxi_wire_read(s->in, &m, &s->failure);
		if (status == FX_OK)
			status = take(s, &m, &s->failure);
		fxi_wire_message_clear(&m);
	}
	/* What was received before is worth keeping, and going on receiving keeps the server from waiting. */
	if (status != FX_OK && fxi_wire_end(s->in) == FXI_WIRE_OPEN)
		atomic_store(&s->closed, fxi_wire_drain(s->in, 5));
	return NULL;
}
