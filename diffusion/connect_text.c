/* SPDX-License-Identifier: MIT */
/* connect_text.c - connectivity.json and connectivity.csv: docs/connectivity.md is their description. */
#include "diffusion/connect.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct text {
	fx_text_fn write;
	void *arg;
	int status;
};

static void put(struct text *t, const char *format, ...) FX_PRINTF(2, 3);
static void put(struct text *t, const char *format, ...)
{
	char piece[1024];
	va_list args;

	if (t->status != FX_OK)
		return;
	va_start(args, format);
	vsnprintf(piece, sizeof piece, format, args);
	va_end(args);
	t->status = t->write(t->arg, piece);
}

/* A JSON string: quotes, backslashes and control characters are escaped; other bytes are taken for UTF-8. */
static void put_string(struct text *t, const char *value)
{
	char piece[8 * FXI_REGIONS_NAME];
	size_t n = 0;

	piece[n++] = '"';
	for (const unsigned char *p = (const unsigned char *)value; *p && n + 8 < sizeof piece; p++) {
		if (*p == '"' || *p == '\\')
			n += (size_t)snprintf(piece + n, sizeof piece - n, "\\%c", *p);
		else if (*p < 0x20 || *p == 0x7f)
			n += (size_t)snprintf(piece + n, sizeof piece - n, "\\u%04x", (unsigned)*p);
		else
			piece[n++] = (char)*p;
	}
	piece[n++] = '"';
	piece[n] = '\0';
	if (t->status == FX_OK)
		t->status = t->write(t->arg, piece);
}

/* A number, or `otherwise` where it is not finite: JSON has no NaN. */
static void put_number(struct text *t, double value, const char *otherwise)
{
	if (isfinite(value))
		put(t, "%.9g", value);
	else
		put(t, "%s", otherwise);
}

static void put_member(struct text *t, const char *name, double value)
{
	put(t, ", \"%s\": ", name);
	put_number(t, value, "null");
}

/* Fibres that joined each region, as source or target. */
static void put_regions(struct text *t, const fx_connect *c, const char *name, const fx_regions *r, bool targets)
{
	put(t, "  \"%s\": ", name);
	if (!r) {
		put(t, "null,\n");
		return;
	}
	put(t, "{\"file\": ");
	put_string(t, r->name);
	put(t, ", \"labels\": [");
	for (int64_t i = 0; i < r->n; i++) {
		int64_t n = 0;

		for (int64_t j = 0; j < c->n_pairs; j++)
			if ((targets ? c->pairs[j]->target : c->pairs[j]->source) == i + 1)
				n += c->pairs[j]->n_fibres;
		put(t, "%s{\"label\": %lld, \"n_voxels\": %lld, \"n_connections\": %lld}", i > 0 ? ", " : "",
			(long long)r->labels[i], (long long)r->n_voxels[i], (long long)n);
	}
	put(t, "]},\n");
}

static void put_measure(struct text *t, const fx_connect *c)
{
	char unit[64];

	if (c->info && c->info->method == FX_TRACK_GEODESIC) {
		fx_measure_unit(c->info->metric_kind, c->info->power, unit, sizeof unit);
		put(t, "  \"method\": \"geodesic\",\n  \"metric\": {\"kind\": \"%s\", \"power\": %.9g},\n",
			fxi_metric_name(c->info->metric_kind), c->info->power);
		put(t, "  \"measure\": {\"definition\": \"Euclidean length / Riemannian length\", \"unit\": \"%s\"},\n", unit);
		put(t, "  \"ranked_by\": \"measure, largest first\",\n");
	} else {
		put(t, "  \"method\": \"streamline\",\n  \"metric\": null,\n  \"measure\": null,\n");
		put(t, "  \"ranked_by\": \"length_mm, shortest first\",\n");
	}
}

static void put_caveats(struct text *t, const fx_connect *c)
{
	const char *between = "";

	put(t, "  \"caveats\": [");
	if (c->caveats & FX_CAVEAT_SHOT_PHASE) {
		put(t, "\"several shots a volume were combined without a phase reference\"");
		between = ", ";
	}
	if (c->caveats & FX_CAVEAT_PARTIAL)
		put(t, "%s\"the input broke off: volumes or fibres are missing\"", between);
	put(t, "],\n");
}

static void put_head(struct text *t, const fx_connect *c)
{
	put(t, "{\n  \"format\": \"fornix connectivity 1\",\n");
	put(t, "  \"note\": \"Any two points are joined by some geodesic, so a figure here is a measure and a rank among the fibres that "
		"were tracked, and no proof that the regions are connected; a pair that is missing was met by no fibre of this run, which "
		"is no proof of the contrary.\",\n");
	put_measure(t, c);
	put(t, "  \"origin\": ");
	put_string(t, c->info ? c->info->origin : "");
	put(t, ",\n");
	put_caveats(t, c);
	put(t, "  \"require\": \"%s\",\n", c->spec.require == FX_REQUIRE_ALL ? "all" : "any");
	put_regions(t, c, "sources", c->sources, false);
	put_regions(t, c, "targets", c->targets, true);
	put(t, "  \"exclude\": ");
	if (c->exclude)
		put_string(t, c->exclude->name);
	else
		put(t, "null");
	put(t, ",\n  \"best\": %lld,\n  \"most_families\": %lld,\n  \"cluster_mm\": %.9g,\n  \"degenerate_below\": %.9g,\n",
		(long long)c->spec.best, (long long)c->spec.families, c->cluster_mm, c->spec.degenerate);
	put(t, "  \"n_fibres\": %lld,\n  \"n_connected\": %lld,\n  \"n_excluded\": %lld,\n  \"n_incomplete\": %lld,\n"
		"  \"n_unusable\": %lld,\n", (long long)c->counts.n_fibres, (long long)c->counts.n_connected,
		(long long)c->counts.n_excluded, (long long)c->counts.n_incomplete, (long long)c->counts.n_unusable);
}

static void put_family(struct text *t, const fx_connect *c, const struct fxi_pair *p, int64_t i)
{
	const struct fxi_family *f = &p->families[i];
	const struct fxi_connection *k = p->kept[f->leader];
	bool geodesic = c->info->method == FX_TRACK_GEODESIC;

	put(t, "%s\n        {\"family\": %lld, \"n_fibres\": %lld, \"representative_rank\": %lld", i > 0 ? "," : "", (long long)i + 1,
		(long long)f->n_fibres, (long long)f->leader + 1);
	put_member(t, "best_measure", k->measure);
	put_member(t, "least_measure", geodesic ? f->worst : NAN);
	put_member(t, "length_mm", k->length_mm);
	put_member(t, "spread_mm", f->spread_mm);
	put_member(t, "jacobi", k->jacobi);
	put(t, ", \"degenerate\": %s}", f->degenerate ? "true" : "false");
}

static void put_fibre(struct text *t, const struct fxi_pair *p, int64_t i)
{
	const struct fxi_connection *k = p->kept[i];

	put(t, "%s\n        {\"rank\": %lld, \"family\": %lld", i > 0 ? "," : "", (long long)i + 1, (long long)k->family + 1);
	put_member(t, "measure", k->measure);
	put_member(t, "length_mm", k->length_mm);
	put_member(t, "riemann", k->riemann);
	put_member(t, "jacobi", k->jacobi);
	put(t, ", \"conjugate_points\": ");
	if (isnan(k->jacobi))
		put(t, "null");
	else
		put(t, "%lld", (long long)k->conjugate);
	put(t, ", \"degenerate\": %s, \"seed\": %lld, \"fibre\": %lld, \"n_points\": %lld}", k->degenerate ? "true" : "false",
		(long long)k->seed, (long long)k->fibre, (long long)k->n_points);
}

static void put_pair(struct text *t, const fx_connect *c, const struct fxi_pair *p)
{
	put(t, "    {\"source\": %lld, \"target\": %lld, \"n_fibres\": %lld", (long long)fxi_connect_source_label(c, p->source),
		(long long)fxi_connect_target_label(c, p->target), (long long)p->n_fibres);
	put_member(t, "best_measure", p->n_kept > 0 ? p->kept[0]->measure : NAN);
	put(t, ", \"n_in_other_families\": %lld,\n      \"families\": [", (long long)p->n_dropped);
	for (int64_t i = 0; i < p->n_families; i++)
		put_family(t, c, p, i);
	put(t, "],\n      \"fibres\": [");
	for (int64_t i = 0; i < p->n_kept; i++)
		put_fibre(t, p, i);
	put(t, "]}");
}

int fx_connect_json(const fx_connect *c, fx_text_fn write, void *arg)
{
	struct text t = {write, arg, FX_OK};

	put_head(&t, c);
	put(&t, "  \"pairs\": [");
	for (int64_t i = 0; i < c->n_pairs; i++) {
		put(&t, i > 0 ? ",\n" : "\n");
		put_pair(&t, c, c->pairs[i]);
	}
	put(&t, "]\n}\n");
	return t.status;
}

static void put_cell(struct text *t, double value)
{
	put(t, ",");
	put_number(t, value, "");
}

int fx_connect_csv(const fx_connect *c, fx_text_fn write, void *arg)
{
	struct text t = {write, arg, FX_OK};
	int64_t tract = 0;

	put(&t, "source,target,rank,family,representative,degenerate,measure,length_mm,riemann,jacobi,conjugate_points,seed,fibre,tract\n");
	for (int64_t i = 0; i < c->n_pairs; i++)
		for (int64_t j = 0; j < c->pairs[i]->n_kept; j++) {
			const struct fxi_connection *k = c->pairs[i]->kept[j];

			put(&t, "%lld,%lld,%lld,%lld,%d,%d", (long long)fxi_connect_source_label(c, c->pairs[i]->source),
				(long long)fxi_connect_target_label(c, c->pairs[i]->target), (long long)j + 1, (long long)k->family + 1,
				k->leads, k->degenerate);
			put_cell(&t, k->measure);
			put_cell(&t, k->length_mm);
			put_cell(&t, k->riemann);
			put_cell(&t, k->jacobi);
			put_cell(&t, isnan(k->jacobi) ? NAN : (double)k->conjugate);
			put(&t, ",%lld,%lld,%lld\n", (long long)k->seed, (long long)k->fibre, (long long)tract++);
		}
	return t.status;
}
