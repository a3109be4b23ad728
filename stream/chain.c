/* SPDX-License-Identifier: MIT */
/* chain.c - a pipeline's names and texts turned into live gadgets; run.c runs them. */
#include "context.h"
#include "nearest.h"
#include "property.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define PLACE_TEXT 256

/* "file:line: <gadget>", or the --set that it came from. */
static void place(const fxi_pipeline *p, const fx_ctx *ctx, const fxi_setting *s, char text[PLACE_TEXT])
{
	if (s && s->line == 0)
		snprintf(text, PLACE_TEXT, "--set %.64s.%.64s: <%s>", ctx->label, s->name, ctx->label);
	else
		snprintf(text, PLACE_TEXT, "%.160s:%d: <%s>", p->file, s ? s->line : ctx->line, ctx->label);
}

/* Says what the name was probably meant to be: here, or on another gadget of the chain. */
static int unknown_property(const fxi_pipeline *p, const fx_ctx *stages, const fx_ctx *ctx, const fxi_setting *s,
	fx_error *err)
{
	const char *nearest = fxi_property_nearest(ctx->gadget->props, s->name);
	char where[PLACE_TEXT];

	place(p, ctx, s, where);
	for (int64_t i = 0; i < p->n_stages; i++)
		if (fxi_property_find(stages[i].gadget->props, s->name))
			return fx_error_set(err, FX_EINVAL, "%s has no property '%s', but <%s> in this pipeline has", where,
				s->name, stages[i].label);
	if (nearest)
		return fx_error_set(err, FX_EINVAL, "%s has no property '%.64s'; did you mean '%s'?", where, s->name,
			nearest);
	if (ctx->n_properties == 0)
		return fx_error_set(err, FX_EINVAL, "%s has no property '%.64s', nor any other", where, s->name);
	return fx_error_set(err, FX_EINVAL, "%s has no property '%.64s' ('fornix describe %s' lists them)", where,
		s->name, ctx->gadget->name);
}

static int set_property(const fxi_pipeline *p, fx_ctx *ctx, const fx_prop *prop, const char *text,
	const fxi_setting *s, fx_error *err)
{
	/* Paths on the command line are relative to where the user is, those in a file to the file. */
	const char *folder = s && s->line != 0 ? p->folder : NULL;
	fx_error why = {0};
	char where[PLACE_TEXT];
	int status = fxi_property_set(prop, ctx->state, text, folder, &ctx->texts[prop - ctx->gadget->props], &why);

	if (status == FX_OK)
		return FX_OK;
	place(p, ctx, s, where);
	return fx_error_set(err, status, "%s: %.760s", where, why.text);
}

static int set_properties(const fxi_pipeline *p, const fx_ctx *stages, fx_ctx *ctx, const fxi_stage *stage,
	fx_error *err)
{
	const fx_prop *props = ctx->gadget->props;
	int status = FX_OK;

	for (int64_t i = 0; status == FX_OK && i < ctx->n_properties; i++)
		status = set_property(p, ctx, &props[i], props[i].def, NULL, err);
	for (int64_t i = 0; status == FX_OK && i < stage->n_settings; i++) {
		const fxi_setting *s = &stage->settings[i];
		const fx_prop *prop = fxi_property_find(props, s->name);

		if (!prop)
			return unknown_property(p, stages, ctx, s, err);
		ctx->was_set = ctx->was_set || s->line == 0;
		status = set_property(p, ctx, prop, s->value, s, err);
	}
	return status;
}

/* "fhd", or "fhd#2" for the second where a pipeline has several. */
static char *make_label(const fxi_pipeline *p, int64_t index)
{
	const char *name = p->stages[index].gadget;
	int64_t n = 0, which = 0;
	char *label;

	for (int64_t i = 0; i < p->n_stages; i++)
		if (strcmp(p->stages[i].gadget, name) == 0) {
			n++;
			if (i <= index)
				which++;
		}
	if (n == 1)
		return strdup(name);
	return asprintf(&label, "%s#%lld", name, (long long)which) < 0 ? NULL : label;
}

static int load_stage(const fxi_pipeline *p, fxi_registry *registry, fx_ctx *ctx, fx_error *err)
{
	const fxi_stage *stage = &p->stages[ctx->index];
	fx_error why = {0};
	int status = fxi_registry_find(registry, stage->gadget, &why, &ctx->gadget);

	if (status != FX_OK)
		return fx_error_set(err, status, "%.160s:%d: %.800s", p->file, stage->line, why.text);
	ctx->line = stage->line;
	ctx->label = make_label(p, ctx->index);
	ctx->n_properties = fxi_properties_count(ctx->gadget->props);
	ctx->state = fx_alloc(1, ctx->gadget->state_size);
	ctx->names = fx_alloc(ctx->n_properties, sizeof *ctx->names);
	ctx->texts = fx_alloc(ctx->n_properties, sizeof *ctx->texts);
	if (!ctx->label || !ctx->state || !ctx->names || !ctx->texts)
		return fx_error_set(err, FX_ENOMEM, "no memory for gadget '%s'", stage->gadget);
	for (int64_t i = 0; i < ctx->n_properties; i++)
		ctx->names[i] = (char *)(uintptr_t)ctx->gadget->props[i].name;
	return fxi_context_init(ctx, err);
}

static int load_stages(fxi_chain *c, const fxi_pipeline *p, fxi_registry *registry, fx_error *err)
{
	unsigned wanted = 0;
	int status = FX_OK;

	for (int64_t i = 0; status == FX_OK && i < c->n_stages; i++) {
		c->stages[i].chain = c;
		c->stages[i].index = i;
		status = load_stage(p, registry, &c->stages[i], err);
	}
	/* All are known now, so that an unknown property can name the gadget that has it. */
	for (int64_t i = 0; status == FX_OK && i < c->n_stages; i++)
		status = set_properties(p, c->stages, &c->stages[i], &p->stages[i], err);
	for (int64_t i = c->n_stages - 1; status == FX_OK && i >= 0; i--) {
		c->stages[i].wanted = wanted;
		wanted |= c->stages[i].gadget->takes;
	}
	return status;
}

int fxi_chain_new(const fxi_pipeline *p, fxi_registry *registry, unsigned input_kinds, fx_error *err, fxi_chain **out)
{
	pthread_condattr_t attr;
	fxi_chain *c;
	int status;

	*out = NULL;
	if (p->n_stages == 0)
		return fx_error_set(err, FX_EINVAL, "%s: a pipeline needs at least one gadget", p->file);
	c = fx_alloc(1, sizeof *c);
	if (!c)
		return fx_error_set(err, FX_ENOMEM, "no memory for the pipeline %s", p->file);
	c->input_kinds = input_kinds;
	atomic_init(&c->stop, false);
	pthread_mutex_init(&c->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->changed, &attr);
	pthread_condattr_destroy(&attr);
	c->wake_fd = eventfd(0, EFD_CLOEXEC);
	c->stages = fx_alloc(p->n_stages, sizeof *c->stages);
	c->n_stages = c->stages ? p->n_stages : 0;
	if (!c->stages || c->wake_fd < 0)
		status = fx_error_set(err, FX_ENOMEM, "no memory or file handles for the pipeline %s", p->file);
	else
		status = load_stages(c, p, registry, err);
	if (status == FX_OK)
		status = fxi_kinds_check(p, c->stages, registry, input_kinds, err, &c->first);
	if (status != FX_OK) {
		fxi_chain_free(c);
		return status;
	}
	*out = c;
	return FX_OK;
}

void fxi_chain_free(fxi_chain *c)
{
	if (!c)
		return;
	for (int64_t i = 0; i < c->n_stages; i++) {
		fx_ctx *ctx = &c->stages[i];

		fxi_context_clear(ctx);
		for (int64_t j = 0; ctx->texts && j < ctx->n_properties; j++)
			free(ctx->texts[j]);
		fx_free(ctx->texts);
		fx_free(ctx->names);
		fx_free(ctx->state);
		free(ctx->label);
	}
	fx_free(c->stages);
	if (c->wake_fd >= 0)
		close(c->wake_fd);
	pthread_cond_destroy(&c->changed);
	pthread_mutex_destroy(&c->lock);
	fx_free(c);
}

const fx_backend_choice *fxi_chain_backend(const fxi_chain *c)
{
	return &c->choice;
}

int64_t fxi_chain_n_stages(const fxi_chain *c)
{
	return c->n_stages;
}

void fxi_chain_stage(const fxi_chain *c, int64_t i, fxi_stage_report *out)
{
	const fx_ctx *ctx = &c->stages[i];

	*out = (fxi_stage_report){
		.gadget = ctx->label,
		.place = ctx->place,
		.idle = i < c->first,
		.n_in = ctx->n_in, .n_out = ctx->n_out,
		.busy_s = ctx->busy_s, .open_s = ctx->open_s, .waiting_s = ctx->waiting_s,
		.queue_peak_bytes = ctx->queue_peak_bytes,
		.record = ctx->record,
		.n_properties = ctx->n_properties,
		.property_names = ctx->names, .property_values = ctx->texts,
		.n_warnings = ctx->n_warning_texts, .warnings = ctx->warning_texts,
	};
}
