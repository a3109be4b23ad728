/* SPDX-License-Identifier: MIT */
/*
 * kinds.c - whether what each gadget needs can reach it, found out when a pipeline is loaded and not after the
 * patient has left.
 */
#include "context.h"

#include <glib.h>
#include <stdio.h>
#include <string.h>

void fxi_kinds_text(unsigned kinds, const char *last_word, char *text, size_t size)
{
	size_t used = 0;

	if (!kinds) {
		snprintf(text, size, "nothing");
		return;
	}
	for (unsigned bit = 1; bit && kinds; bit <<= 1) {
		if (!(kinds & bit))
			continue;
		kinds &= ~bit;
		if (used < size)
			used += (size_t)snprintf(text + used, size - used, "%s%s", used == 0 ? "" : kinds ? ", " : last_word,
				fx_kind_name(bit));
	}
}

/*
 * What is there behind a gadget. What it takes is gone unless it gives it too, and a kind it both takes and gives
 * it only passes on: a gadget that may see frames does not make them.
 */
static unsigned behind(const fx_gadget *g, unsigned there)
{
	unsigned made = g->gives & ~g->takes, passed_on = g->gives & g->takes & there;

	return (there & ~g->takes) | made | passed_on;
}

static bool can_work(const fx_gadget *g, unsigned there)
{
	if (g->needs)
		return (g->needs & ~there) == 0;
	return g->takes == 0 || (g->takes & there) != 0;
}

/* A gadget that makes `kind`, one that could work right here before others; NULL where nobody does. */
static const fx_gadget *maker(fxi_registry *registry, unsigned kind, unsigned there)
{
	char **names = fxi_registry_names(registry);
	const fx_gadget *best = NULL;

	for (int i = 0; names[i]; i++) {
		const fx_gadget *g;

		if (fxi_registry_find(registry, names[i], NULL, &g) != FX_OK || !(g->gives & ~g->takes & kind))
			continue;
		if (!best || (!can_work(best, there) && can_work(g, there)))
			best = g;
	}
	g_strfreev(names);
	return best;
}

static int refuse(const char *file, const fx_ctx *ctx, fxi_registry *registry, unsigned there, fx_error *err)
{
	const fx_gadget *g = ctx->gadget, *help = NULL;
	unsigned missing = g->needs ? g->needs & ~there : g->takes;
	char needs[128], reaches[128], advice[160];

	fxi_kinds_text(missing, g->needs ? " and " : " or ", needs, sizeof needs);
	fxi_kinds_text(there, " and ", reaches, sizeof reaches);
	for (unsigned bit = 1; bit && !help; bit <<= 1)
		if (missing & bit)
			help = maker(registry, bit, there);
	if (help)
		snprintf(advice, sizeof advice, "put <%s/> in front of it", help->name);
	else
		snprintf(advice, sizeof advice, "no gadget here makes that");
	return fx_error_set(err, FX_EINVAL, "%s:%d: <%s> needs %s, but what reaches it is %s: %s", file, ctx->line,
		ctx->label, needs, reaches, advice);
}

/*
 * Where an input comes in that is not a scan: in front of the first gadget that it gives work. A scan enters at the
 * front, whatever the first gadget thinks of it: raw data that nobody took up would be lost without a word.
 */
static int64_t entrance(const fxi_pipeline *p, const fx_ctx *stages, unsigned input_kinds)
{
	if (input_kinds & FX_ACQUISITION)
		return 0;
	for (int64_t i = 0; i < p->n_stages; i++)
		if (can_work(stages[i].gadget, input_kinds))
			return i;
	return 0;
}

int fxi_kinds_check(const fxi_pipeline *p, const fx_ctx *stages, fxi_registry *registry, unsigned input_kinds,
	fx_error *err, int64_t *first)
{
	unsigned there = input_kinds;

	*first = entrance(p, stages, input_kinds);
	for (int64_t i = *first; i < p->n_stages; i++) {
		if (!can_work(stages[i].gadget, there))
			return refuse(p->file, &stages[i], registry, there, err);
		there = behind(stages[i].gadget, there);
	}
	return FX_OK;
}
