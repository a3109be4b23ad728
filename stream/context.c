/* SPDX-License-Identifier: MIT */
/* context.c - the services of gadget.h, as a gadget sees them. */
#include "context.h"
#include "move.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN 3        /* of one sentence, this many are logged as they come; the rest is counted */
#define MOST_KEPT 100  /* different sentences a gadget may leave in the record */

static _Thread_local fx_ctx *current;

struct fx_sink {
	fxi_product *product;
};

int fxi_context_init(fx_ctx *ctx, fx_error *err)
{
	ctx->record = fxi_record_new();
	if (!ctx->record)
		return fx_error_set(err, FX_ENOMEM, "no memory for the record of '%s'", ctx->label);
	return FX_OK;
}

void fxi_context_clear(fx_ctx *ctx)
{
	for (int64_t i = 0; i < ctx->n_warnings; i++)
		free(ctx->warnings[i].text);
	free(ctx->warnings);
	for (int64_t i = 0; i < ctx->n_warning_texts; i++)
		free(ctx->warning_texts[i]);
	free(ctx->warning_texts);
	fxi_record_free(ctx->record);
}

void fxi_context_enter(fx_ctx *ctx)
{
	current = ctx;
}

/* ---- failing and passing on ------------------------------------------------------------------ */

int fx_fail(fx_ctx *ctx, int status, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fx_error_setv(&ctx->err, status, fmt, args);
	va_end(args);
	return status;
}

fx_error *fx_err(fx_ctx *ctx)
{
	return &ctx->err;
}

/* What leaves the chain is on the host. */
static int to_host(fx_ctx *ctx, fx_msg **msg)
{
	fx_math *math = NULL;
	int status;

	if (!fxi_on_device(ctx->chain))
		return FX_OK;
	status = fxi_context_device(ctx, &math);
	if (status == FX_OK)
		return fxi_msg_move(msg, FX_HOST, math);
	fx_drop(*msg);
	return status;
}

int fxi_context_pass(fx_ctx *ctx, fx_msg *msg)
{
	fxi_chain *c = ctx->chain;
	fx_error err = {0};
	int status;

	if (fxi_stopping(c)) {
		fx_drop(msg);
		return FX_ECANCELED;
	}
	if (ctx->out) {
		status = fxi_queue_put(ctx->out, msg, &ctx->waiting_s);
		return status == FX_ENOMEM ? fx_fail(ctx, status, "no memory to hand a message on") : status;
	}
	if (!c->options.output) {
		fx_drop(msg);
		return FX_OK;
	}
	status = to_host(ctx, &msg);
	if (status != FX_OK)
		return status;
	status = c->options.output(c->options.output_arg, msg, &err);
	if (status != FX_OK) /* not this gadget's fault: the cause stands as the output explains it */
		fxi_chain_fail(c, NULL, status, err.text);
	return status;
}

int fx_emit(fx_ctx *ctx, fx_msg *msg)
{
	if (!msg)
		return fx_fail(ctx, FX_ENOMEM, "no memory for a message");
	if (ctx->opening) {
		fx_drop(msg);
		return fx_fail(ctx, FX_EINVAL, "gave a message from open, before the gadgets behind it are there");
	}
	if (!(fx_msg_kind(msg) & ctx->gadget->gives)) {
		fx_fail(ctx, FX_EINVAL, "gave a message of kind %s, which its descriptor does not list",
			fx_kind_name(fx_msg_kind(msg)));
		fx_drop(msg);
		return FX_EINVAL;
	}
	ctx->n_out++;
	return fxi_context_pass(ctx, msg);
}

bool fx_wanted(fx_ctx *ctx, unsigned kind)
{
	return (ctx->wanted & kind) != 0;
}

bool fx_stopped(fx_ctx *ctx)
{
	return fxi_stopping(ctx->chain);
}

bool fx_input_cut(fx_ctx *ctx)
{
	return atomic_load_explicit(&ctx->chain->input_cut, memory_order_acquire);
}

const fx_header *fx_scan(fx_ctx *ctx)
{
	return ctx->chain->header;
}

fx_math *fx_math_of(fx_ctx *ctx)
{
	return ctx->math;
}

/* ---- log and warnings ------------------------------------------------------------------------ */

void fxi_chain_log(const fxi_chain *c, int level, const char *gadget, const char *text)
{
	if (c->services.log)
		c->services.log(c->services.log_arg, level, gadget, text);
}

void fx_info(fx_ctx *ctx, const char *fmt, ...)
{
	char text[FX_ERROR_TEXT];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	fxi_chain_log(ctx->chain, FXI_INFO, ctx->label, text);
}

/* The kept warning of that text, made where it is new; NULL where no more are kept. */
static struct fxi_warning *keep_warning(fx_ctx *ctx, const char *text)
{
	struct fxi_warning *grown;
	char *copy;

	for (int64_t i = 0; i < ctx->n_warnings; i++)
		if (strcmp(ctx->warnings[i].text, text) == 0)
			return &ctx->warnings[i];
	if (ctx->n_warnings == MOST_KEPT)
		return NULL;
	copy = strdup(text);
	grown = copy ? realloc(ctx->warnings, (size_t)(ctx->n_warnings + 1) * sizeof *grown) : NULL;
	if (!grown) {
		free(copy);
		return NULL;
	}
	ctx->warnings = grown;
	grown[ctx->n_warnings] = (struct fxi_warning){.text = copy};
	return &grown[ctx->n_warnings++];
}

void fxi_context_warn(fx_ctx *ctx, const char *text)
{
	struct fxi_warning *w = keep_warning(ctx, text);

	if (w && ++w->n > SHOWN)
		return;
	if (!w)
		ctx->n_unkept++;
	fxi_chain_log(ctx->chain, FXI_WARNING, ctx->label, text);
}

void fx_warn(fx_ctx *ctx, const char *fmt, ...)
{
	char text[FX_ERROR_TEXT];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	fxi_context_warn(ctx, text);
}

void fxi_chain_warn(void *arg, const char *text)
{
	if (current && current->chain == arg)
		fxi_context_warn(current, text);
	else
		fxi_chain_log(arg, FXI_WARNING, NULL, text);
}

void fxi_context_finish(fx_ctx *ctx)
{
	char **texts = calloc((size_t)ctx->n_warnings + 1, sizeof *texts);
	int64_t n = 0;

	for (int64_t i = 0; texts && i < ctx->n_warnings; i++) {
		const struct fxi_warning *w = &ctx->warnings[i];

		if (w->n == 1)
			texts[n] = strdup(w->text);
		else if (asprintf(&texts[n], "%s (%lld times)", w->text, (long long)w->n) < 0)
			texts[n] = NULL;
		if (!texts[n])
			break;
		if (w->n > SHOWN)
			fxi_chain_log(ctx->chain, FXI_WARNING, ctx->label, texts[n]);
		n++;
	}
	if (texts && ctx->n_unkept > 0 &&
		asprintf(&texts[n], "and %lld further warnings that are not kept", (long long)ctx->n_unkept) >= 0)
		n++;
	ctx->warning_texts = texts;
	ctx->n_warning_texts = n;
}

/* ---- record ---------------------------------------------------------------------------------- */

static void check_recorded(fx_ctx *ctx, const char *key, int status)
{
	if (status == FX_EINVAL)
		fx_warn(ctx, "'%s' is recorded with different types; only the first is kept", key);
	else if (status != FX_OK)
		fx_warn(ctx, "no memory to record '%s'", key);
}

void fx_record_number(fx_ctx *ctx, const char *key, double value)
{
	check_recorded(ctx, key, fxi_record_number(ctx->record, key, value));
}

void fx_record_numbers(fx_ctx *ctx, const char *key, const double *values, int64_t n)
{
	check_recorded(ctx, key, fxi_record_numbers(ctx->record, key, values, n));
}

void fx_record_text(fx_ctx *ctx, const char *key, const char *value)
{
	check_recorded(ctx, key, fxi_record_text(ctx->record, key, value));
}

void fx_record_count(fx_ctx *ctx, const char *key, int64_t more)
{
	check_recorded(ctx, key, fxi_record_count(ctx->record, key, more));
}

/* ---- files and cache ------------------------------------------------------------------------- */

int fx_sink_open(fx_ctx *ctx, const fx_sink_options *options, fx_sink **out)
{
	fxi_files *files = ctx->chain->services.files;
	fx_sink *sink;
	int status;

	*out = NULL;
	if (!files)
		return fx_fail(ctx, FX_EINVAL, "wants to write '%s', but this run has no output folder", options->name);
	if (!options->name || options->name[0] == '\0' || options->name[0] == '.' || strchr(options->name, '/'))
		return fx_fail(ctx, FX_EINVAL, "'%s' is no name for a file inside the output folder",
			options->name ? options->name : "");
	sink = fx_alloc(1, sizeof *sink);
	if (!sink)
		return fx_fail(ctx, FX_ENOMEM, "no memory to write '%s'", options->name);
	status = files->open(files, options, &ctx->err, &sink->product);
	if (status != FX_OK) {
		fx_free(sink);
		return status;
	}
	*out = sink;
	return FX_OK;
}

static int cannot_hold(fx_ctx *ctx, const char *what)
{
	return fx_fail(ctx, FX_EINVAL, "a file of this format does not hold %s", what);
}

int fx_sink_add(fx_ctx *ctx, fx_sink *sink, const fx_image *image)
{
	return sink->product->add ? sink->product->add(sink->product, image, &ctx->err) : cannot_hold(ctx, "images");
}

int fx_sink_volume(fx_ctx *ctx, fx_sink *sink, const fx_volume *volume)
{
	return sink->product->add_volume ? sink->product->add_volume(sink->product, volume, &ctx->err) :
		cannot_hold(ctx, "a volume");
}

int fx_sink_tracts(fx_ctx *ctx, fx_sink *sink, const fx_tracts *tracts)
{
	return sink->product->add_tracts ? sink->product->add_tracts(sink->product, tracts, &ctx->err) :
		cannot_hold(ctx, "tracts");
}

int fx_sink_scan(fx_ctx *ctx, fx_sink *sink, fx_msg *msg)
{
	return sink->product->add_scan ? sink->product->add_scan(sink->product, msg, &ctx->err) : cannot_hold(ctx, "readouts");
}

int fx_sink_text(fx_ctx *ctx, fx_sink *sink, const char *text)
{
	return sink->product->add_text ? sink->product->add_text(sink->product, text, &ctx->err) : cannot_hold(ctx, "text");
}

int fx_write_volume(fx_ctx *ctx, const char *name, const fx_volume *volume)
{
	fx_sink_options options = {.format = FX_FORMAT_VOLUME, .name = name};
	fx_sink *sink;
	int status = fx_sink_open(ctx, &options, &sink);

	if (status != FX_OK)
		return status;
	status = fx_sink_volume(ctx, sink, volume);
	if (status == FX_OK)
		return fx_sink_commit(ctx, sink);
	fx_sink_abandon(sink);
	return status;
}

int fx_sink_commit(fx_ctx *ctx, fx_sink *sink)
{
	fxi_product *product = sink->product;

	fx_free(sink);
	return product->commit(product, &ctx->err);
}

int fx_sink_write(fx_ctx *ctx, fx_sink **sink, const fx_sink_options *options, fx_msg *msg)
{
	int status = *sink ? FX_OK : fx_sink_open(ctx, options, sink);

	if (status == FX_OK)
		status = fx_sink_add(ctx, *sink, fx_msg_image(msg));
	if (status != FX_OK) {
		fx_drop(msg);
		return fx_fail(ctx, status, "cannot write %s", options->name);
	}
	return fx_emit(ctx, msg);
}

int fx_sink_finish(fx_ctx *ctx, fx_sink **sink)
{
	fx_sink *finished = *sink;

	*sink = NULL;
	return finished ? fx_sink_commit(ctx, finished) : FX_OK;
}

void fx_sink_abandon(fx_sink *sink)
{
	if (!sink)
		return;
	sink->product->abandon(sink->product);
	fx_free(sink);
}

int fx_read_table(fx_ctx *ctx, const char *path, fx_array **values, fx_array **lengths)
{
	fxi_files *files = ctx->chain->services.files;

	*values = *lengths = NULL;
	if (!files || !files->read_table)
		return fx_fail(ctx, FX_EINVAL, "wants to read '%s', but this run has no files", path);
	return files->read_table(files, path, &ctx->err, values, lengths);
}

int fx_read_nifti(fx_ctx *ctx, const char *path, fx_array **data, double affine[3][4], bool *has_affine)
{
	fxi_files *files = ctx->chain->services.files;

	*data = NULL;
	if (!files || !files->read_nifti)
		return fx_fail(ctx, FX_EINVAL, "wants to read '%s', but this run has no files", path);
	return files->read_nifti(files, path, &ctx->err, data, affine, has_affine);
}

bool fxi_on_device(const fxi_chain *c)
{
	int device;

	return fxi_cuda_device(c->options.backend, &device);
}

int fxi_context_device(fx_ctx *ctx, fx_math **out)
{
	const fxi_run_options *o = &ctx->chain->options;
	int status = FX_OK;

	if (!ctx->device)
		status = fx_math_new(o->backend, o->n_threads, &ctx->err, &ctx->device);
	*out = ctx->device;
	return status;
}

int fxi_context_fetch(fx_ctx *ctx, fx_array **array)
{
	fx_math *math = ctx->math;
	fx_array *here = NULL;
	int status = FX_OK;

	if ((*array)->place == FX_HOST)
		return FX_OK;
	if (fx_math_on_host(math))
		status = fxi_context_device(ctx, &math);
	if (status == FX_OK)
		status = math->ops->download(math, *array, &here);
	if (status == FX_OK)
		fx_slot_take(array, here);
	return status;
}

static int check_key(fx_ctx *ctx, const char *key)
{
	if (key[0] != '\0' && strspn(key, "0123456789abcdef-") == strlen(key))
		return FX_OK;
	return fx_fail(ctx, FX_EINVAL, "'%.80s' is no key for the cache: a digest of 0-9, a-f and -", key);
}

int fx_cache_get(fx_ctx *ctx, const char *key, fx_array **out)
{
	fxi_cache *cache = ctx->chain->services.cache;
	int status = check_key(ctx, key);

	*out = NULL;
	if (status != FX_OK || !cache)
		return status;
	status = cache->get(cache, key, out, &ctx->err);
	/* What is kept is on the host; who asks gets it where it computes. */
	if (status == FX_OK && *out && ctx->math) {
		fx_array *kept = *out;

		*out = NULL;
		status = ctx->math->ops->upload(ctx->math, kept, out);
		fx_array_unref(kept);
	}
	return status;
}

int fx_cache_put(fx_ctx *ctx, const char *key, fx_array *array)
{
	fxi_cache *cache = ctx->chain->services.cache;
	int status = check_key(ctx, key);

	if (status != FX_OK || !cache)
		return status;
	array = fx_array_ref(array);
	status = fxi_context_fetch(ctx, &array);
	if (status == FX_OK)
		status = cache->put(cache, key, array, &ctx->err);
	fx_array_unref(array);
	return status;
}

/* Where the run computes is settled once, before any gadget is opened: from here on nothing falls back. */
int fxi_chain_choose(fxi_chain *c)
{
	const char *asked = c->options.backend ? c->options.backend : "auto";
	fx_error err = {0};
	int status = fx_backend_choose(asked, &c->choice, &err);

	c->options.backend = c->choice.name;
	if (status != FX_OK)
		fxi_chain_fail(c, NULL, status, err.text);
	else if (strcmp(asked, "auto") == 0) /* else whoever asked by name knows */
		fxi_chain_log(c, FXI_INFO, NULL, c->choice.why);
	return status;
}
