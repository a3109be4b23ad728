/* SPDX-License-Identifier: MIT */
/* wire_exit.c - see wire_exit.h. */
#include "wire_exit.h"

#include "../stream/queue.h"
#include "files.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define HELD_BYTES ((int64_t)256 << 20)

struct files {
	fxi_files base;
	fxi_wire_exit *exit;
};

struct fxi_wire_exit {
	struct files files;
	fxi_wire_out *out;
	fxi_wire_exit_options options;
	bool tapped;               /* images are taken where <write_mrd/> stands, not at the end */
	fxi_queue *queue;
	pthread_t thread;
	bool running;
	pthread_mutex_t putting;   /* the queue is for one putter at a time */
	pthread_mutex_t lock;      /* guards failure */
	fx_error failure;
	atomic_llong n_dropped;
};

/* ---- sending --------------------------------------------------------------------------------- */

static void *send_all(void *arg)
{
	fxi_wire_exit *e = arg;
	fx_msg *msg;

	while (fxi_queue_get(e->queue, &msg) == FX_OK && msg) {
		fx_error err = {0};
		const char *text = fx_msg_text(msg);
		int status = text ? fxi_wire_send_text(e->out, FXI_MRD_TEXT, text, e->options.nul, &err) :
			fxi_wire_send(e->out, msg, &err);

		if (status == FX_OK && e->options.sent)
			e->options.sent(e->options.sent_arg, msg);
		fx_drop(msg);
		if (status == FX_OK)
			continue;
		pthread_mutex_lock(&e->lock);
		fx_error_set(&e->failure, err.status, "%s", err.text);
		pthread_mutex_unlock(&e->lock);
		fxi_queue_abort(e->queue);
	}
	return NULL;
}

static int failure(fxi_wire_exit *e, int status, fx_error *err)
{
	pthread_mutex_lock(&e->lock);
	if (e->failure.status != FX_OK)
		status = fx_error_set(err, e->failure.status, "%s", e->failure.text);
	else if (status != FX_OK)
		fx_error_set(err, status, "no memory to send a message");
	pthread_mutex_unlock(&e->lock);
	return status;
}

int fxi_wire_exit_put(fxi_wire_exit *e, fx_msg *msg, fx_error *err)
{
	double waited_s = 0;
	int status;

	if (!msg)
		return fx_error_set(err, FX_ENOMEM, "no memory for a message");
	pthread_mutex_lock(&e->putting);
	status = fxi_queue_put(e->queue, msg, &waited_s);
	pthread_mutex_unlock(&e->putting);
	return status == FX_OK ? FX_OK : failure(e, status, err);
}

void fxi_wire_exit_abort(fxi_wire_exit *e)
{
	pthread_mutex_lock(&e->lock);
	fx_error_set(&e->failure, FX_ECANCELED, "stopped before everything was sent");
	pthread_mutex_unlock(&e->lock);
	fxi_queue_abort(e->queue);
}

int fxi_wire_exit_finish(fxi_wire_exit *e, fx_error *err)
{
	if (e->running) {
		fxi_queue_close(e->queue);
		pthread_join(e->thread, NULL);
		e->running = false;
	}
	return failure(e, FX_OK, err);
}

/* ---- what leaves the end of the chain --------------------------------------------------------- */

int fxi_wire_exit_output(void *exit, fx_msg *msg, fx_error *err)
{
	fxi_wire_exit *e = exit;
	unsigned kind = fx_msg_kind(msg);
	bool raw = kind == FX_ACQUISITION || kind == FX_WAVEFORM;

	if (kind == FX_TEXT || (kind == FX_IMAGE && !e->tapped) || (raw && e->options.raw))
		return fxi_wire_exit_put(e, msg, err);
	if (kind != FX_IMAGE)
		atomic_fetch_add(&e->n_dropped, 1);
	fx_drop(msg);
	return FX_OK;
}

int64_t fxi_wire_exit_dropped(const fxi_wire_exit *e)
{
	return atomic_load(&e->n_dropped);
}

/* ---- what gadgets write ----------------------------------------------------------------------- */

struct product {
	fxi_product base;
	fxi_wire_exit *exit;
};

/* The image goes on down the chain; what is sent shares its samples. */
static int send_image(fxi_product *self, const fx_image *image, fx_error *err)
{
	fx_msg *msg = fx_msg_new(FX_IMAGE);
	int status = msg ? FX_OK : FX_ENOMEM;

	if (msg) {
		fx_image *copy = fx_msg_image(msg);

		copy->head = image->head;
		copy->data = fx_array_ref(image->data);
		for (int64_t i = 0; i < image->n_meta && status == FX_OK; i++)
			status = fx_image_set_meta(copy, image->meta[i].name, image->meta[i].value);
	}
	if (status == FX_OK)
		return fxi_wire_exit_put(((struct product *)self)->exit, msg, err);
	fx_drop(msg);
	return fx_error_set(err, status, "no memory to send an image");
}

static int drop_image(fxi_product *self, const fx_image *image, fx_error *err)
{
	(void)self;
	(void)image;
	(void)err;
	return FX_OK;
}

static int drop_volume(fxi_product *self, const fx_volume *volume, fx_error *err)
{
	(void)self;
	(void)volume;
	(void)err;
	return FX_OK;
}

static int drop_tracts(fxi_product *self, const fx_tracts *tracts, fx_error *err)
{
	(void)self;
	(void)tracts;
	(void)err;
	return FX_OK;
}

static int drop_text(fxi_product *self, const char *text, fx_error *err)
{
	(void)self;
	(void)text;
	(void)err;
	return FX_OK;
}

static int drop_scan(fxi_product *self, fx_msg *readout, fx_error *err)
{
	(void)self;
	(void)readout;
	(void)err;
	return FX_OK;
}

static int commit(fxi_product *self, fx_error *err)
{
	(void)err;
	free(self);
	return FX_OK;
}

static void abandon(fxi_product *self)
{
	free(self);
}

static int open_product(fxi_files *self, const fx_sink_options *options, fx_error *err, fxi_product **out)
{
	fxi_wire_exit *e = ((struct files *)self)->exit;
	struct product *p;

	*out = NULL;
	if (options->format != FX_FORMAT_MRD && e->options.other)
		return e->options.other->open(e->options.other, options, err, out);
	p = calloc(1, sizeof *p);
	if (!p)
		return fx_error_set(err, FX_ENOMEM, "out of memory while opening %s", options->name);
	p->exit = e;
	p->base = (fxi_product){.add = options->format == FX_FORMAT_MRD ? send_image : drop_image, .add_volume = drop_volume,
		.add_tracts = drop_tracts, .add_text = drop_text, .add_scan = drop_scan, .commit = commit, .abandon = abandon};
	*out = &p->base;
	return FX_OK;
}

fxi_files *fxi_wire_exit_files(fxi_wire_exit *e)
{
	return &e->files.base;
}

/* ---- life ------------------------------------------------------------------------------------ */

static bool writes_images(const fxi_pipeline *p)
{
	for (int64_t i = 0; i < p->n_stages; i++)
		if (strcmp(p->stages[i].gadget, "write_mrd") == 0)
			return true;
	return false;
}

/* Signals are for the thread that called the run. */
static bool start(fxi_wire_exit *e)
{
	sigset_t all, before;
	bool started;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	started = pthread_create(&e->thread, NULL, send_all, e) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}

int fxi_wire_exit_new(fxi_wire_out *out, const fxi_pipeline *pipeline, const fxi_wire_exit_options *options, fx_error *err,
	fxi_wire_exit **exit)
{
	fxi_wire_exit *e = calloc(1, sizeof *e);

	*exit = NULL;
	if (!e)
		return fx_error_set(err, FX_ENOMEM, "out of memory while preparing to send");
	e->out = out;
	e->options = *options;
	e->tapped = pipeline && writes_images(pipeline);
	e->files.base.open = open_product;
	e->files.base.read_table = fxi_files_read_table;
	e->files.base.read_nifti = fxi_files_read_nifti;
	e->files.exit = e;
	pthread_mutex_init(&e->putting, NULL);
	pthread_mutex_init(&e->lock, NULL);
	e->queue = fxi_queue_new(options->held_bytes > 0 ? options->held_bytes : HELD_BYTES);
	e->running = e->queue && start(e);
	if (!e->running) {
		fxi_wire_exit_free(e);
		return fx_error_set(err, FX_ENOMEM, "no memory, or no thread, for sending");
	}
	*exit = e;
	return FX_OK;
}

void fxi_wire_exit_free(fxi_wire_exit *e)
{
	if (!e)
		return;
	if (e->running) {
		fxi_queue_abort(e->queue);
		pthread_join(e->thread, NULL);
	}
	fxi_queue_free(e->queue);
	pthread_mutex_destroy(&e->lock);
	pthread_mutex_destroy(&e->putting);
	free(e);
}
