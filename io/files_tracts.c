/* SPDX-License-Identifier: MIT */
/* files_tracts.c - the products of fibres: batches go to the format's writer as they come. */
#include "folder.h"

#include "tracts.h"

#include <fornix/diffusion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct product {
	fxi_product base;
	fxi_folder *folder;
	char *name;
	fxi_tract_writer *writer;
	int n_values;
	bool begun, has_riemann, has_seeds;
};

void fxi_tracts_text(const fx_tracts_info *info, char *text, size_t size)
{
	static const char *const metrics[] = {"inverse", "adjugate", "sharpened"};
	int at;

	if (info->method == FX_TRACK_STREAMLINE)
		at = snprintf(text, size, "streamlines, step %.6g mm", info->step_mm);
	else
		at = snprintf(text, size, "geodesics, metric %s, power %.6g, step %.6g mm", info->metric_kind >= 0 &&
			info->metric_kind <= FX_METRIC_SHARPENED ? metrics[info->metric_kind] : "unknown", info->power, info->step_mm);
	snprintf(text + at, size - (size_t)at, "; %.*s%s%s", FX_ORIGIN_TEXT, info->origin,
		info->caveats & FX_CAVEAT_SHOT_PHASE ? "; caveat: shots were combined without a phase reference" : "",
		info->caveats & FX_CAVEAT_PARTIAL ? "; caveat: the input broke off, volumes are missing" : "");
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ')
			*c = ' ';
}

static void free_product(fxi_product *self)
{
	struct product *p = (struct product *)self;

	if (p->writer)
		p->writer->abandon(p->writer);
	free(p->name);
	free(p);
}

static bool holds(const fx_array *a, int type, int64_t d0, int64_t d1)
{
	return a && a->type == type && a->dims[0] == d0 && (a->n_dims < 2 ? d1 == 1 : a->dims[1] >= d1);
}

int fxi_tracts_check(const char *name, int n_values, const fx_tracts *t, fx_error *err)
{
	const uint32_t *offsets;
	bool ok = holds(t->offsets, FX_U32, t->n + 1, 1);

	for (int64_t i = 0; ok && i < t->n; i++) {
		offsets = t->offsets->data;
		ok = offsets[i] <= offsets[i + 1];
	}
	if (ok) {
		offsets = t->offsets->data;
		ok = holds(t->points, FX_F32, 3, offsets[t->n]);
		ok = ok && (!t->riemann || (t->riemann->type == FX_F32 && t->riemann->dims[0] >= offsets[t->n]));
	}
	ok = ok && (n_values == 0 || holds(t->values, FX_F32, n_values, t->n));
	ok = ok && (!t->seeds || holds(t->seeds, FX_U32, t->n, 1));
	return ok ? FX_OK : fx_error_set(err, FX_EINVAL, "%s: the batch of fibres from number %lld on contradicts itself in the size of "
		"its arrays", name, (long long)t->first);
}

static int check(struct product *p, const fx_tracts *t, fx_error *err)
{
	int status = fxi_tracts_check(p->name, p->n_values, t, err);

	if (status != FX_OK)
		return status;
	if (p->begun && (p->has_riemann != (t->riemann != NULL) || p->has_seeds != (t->seeds != NULL)))
		return fx_error_set(err, FX_EINVAL, "%s: the batch of fibres from number %lld on holds other arrays than those before",
			p->name, (long long)t->first);
	p->begun = true;
	p->has_riemann = t->riemann != NULL;
	p->has_seeds = t->seeds != NULL;
	return FX_OK;
}

static int add_tracts(fxi_product *self, const fx_tracts *t, fx_error *err)
{
	struct product *p = (struct product *)self;
	int status;

	if (t->end || t->n == 0)
		return FX_OK;
	status = check(p, t, err);
	return status == FX_OK ? p->writer->add(p->writer, t, err) : status;
}

static int commit(fxi_product *self, fx_error *err)
{
	struct product *p = (struct product *)self;
	int status = p->writer->finish(p->writer, err);

	p->writer = NULL;
	if (status == FX_OK)
		status = fxi_folder_add(p->folder, p->name, err);
	free_product(self);
	return status;
}

int fxi_product_tracts(fxi_folder *folder, const fx_sink_options *options, fx_error *err, fxi_product **out)
{
	const fxi_tract_notes notes = {.warn = fxi_folder_warn, .arg = folder};
	const fx_tracts_info *info = options->tracts;
	struct product *p;
	char *path;
	int status;

	if (!info || info->n_values < 0 || info->n_values > FX_TRACT_VALUES)
		return fx_error_set(err, FX_EINVAL, "%s: a tract file needs the description of its set", options->name);
	p = calloc(1, sizeof *p);
	path = fxi_folder_path(folder, options->name);
	if (!p || !path || !(p->name = strdup(options->name))) {
		free(path);
		free(p);
		return fx_error_set(err, FX_ENOMEM, "out of memory while opening %s", options->name);
	}
	p->base = (fxi_product){.add_tracts = add_tracts, .commit = commit, .abandon = free_product};
	p->folder = folder;
	p->n_values = info->n_values;
	status = options->format == FX_FORMAT_TRK ? fxi_trk_writer(path, info, &notes, err, &p->writer) :
		options->format == FX_FORMAT_TRX ? fxi_trx_writer(path, info, &notes, err, &p->writer) :
		fxi_tck_writer(path, info, &notes, err, &p->writer);
	free(path);
	if (status != FX_OK) {
		free_product(&p->base);
		return status;
	}
	*out = &p->base;
	return FX_OK;
}
