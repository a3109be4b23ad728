/* SPDX-License-Identifier: MIT */
/*
 * compare_tracts.c - see compare_tracts.h. Files are read in passes: once for numbers and lengths, once to draw the fibres whose
 * nearest is searched, and once more, a block at a time, for the other to be searched through. So memory does not grow with them, and
 * a drawn fibre is held against every one of the other set.
 */
#include "apps/compare_tracts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fornix/diffusion.h>
#include <json-glib/json-glib.h>

#include "apps/common.h"
#include "apps/json_file.h"
#include "diffusion/tract_distance.h"
#include "io/tracts.h"

#define BLOCK_POINTS (1 << 22)

/* What one file holds. */
struct summary {
	const char *path;
	int64_t fibres, empty, points;
	double total, shortest, longest;   /* lengths, mm */
};

/* Distances in one direction. */
struct way {
	int64_t n;                         /* of fibres that have one */
	double mean, median, p95, most;
};

static double length_of(const float *p, int64_t n)
{
	double length = 0;

	for (int64_t i = 1; i < n; i++) {
		double d2 = 0;

		for (int a = 0; a < 3; a++) {
			double d = (double)p[3 * i + a] - (double)p[3 * (i - 1) + a];

			d2 += d * d;
		}
		length += sqrt(d2);
	}
	return length;
}

static int summarise(const char *path, struct summary *s, fx_error *err)
{
	fxi_tract_reader *r;
	const float *points;
	int64_t n = 0;
	int status = fxi_tracts_open(path, err, &r);

	*s = (struct summary){.path = path, .shortest = (double)INFINITY};
	while (status == FX_OK && (status = fxi_tracts_next(r, err, &points, &n)) == FX_OK && n >= 0) {
		double length = length_of(points, n);

		s->fibres++;
		s->points += n;
		if (n == 0) {
			s->empty++;
			continue;
		}
		s->total += length;
		s->shortest = fmin(s->shortest, length);
		s->longest = fmax(s->longest, length);
	}
	fxi_tracts_close(r);
	return status;
}

/* `keep` fibres of all with points, evenly over the file. */
static int draw(const struct summary *s, int64_t keep, fxi_tract_set *set, fx_error *err)
{
	fxi_tract_reader *r;
	const float *points;
	int64_t n = 0, i = 0, all = s->fibres - s->empty;
	int status = fxi_tracts_open(s->path, err, &r);

	while (status == FX_OK && (status = fxi_tracts_next(r, err, &points, &n)) == FX_OK && n >= 0) {
		if (n == 0)
			continue;
		/* Doubles hold these products well enough to choose by, and never overflow. */
		if (floor((double)(i + 1) * (double)keep / (double)all) > floor((double)i * (double)keep / (double)all))
			status = fxi_tract_set_add(set, points, n, err);
		i++;
	}
	fxi_tracts_close(r);
	return status;
}

static int search(const fxi_tract_set *drawn, const char *path, int n_threads, double *nearest, fx_error *err)
{
	fxi_tract_reader *r;
	fxi_tract_set block = {0};
	const float *points;
	int64_t n = 0;
	int status = fxi_tracts_open(path, err, &r);

	while (status == FX_OK && n >= 0) {
		status = fxi_tracts_next(r, err, &points, &n);
		if (status == FX_OK && n > 0)
			status = fxi_tract_set_add(&block, points, n, err);
		if (status == FX_OK && block.n > 0 && (n < 0 || block.n_points >= BLOCK_POINTS)) {
			status = fxi_tract_nearest(drawn, &block, n_threads, nearest, err);
			fxi_tract_set_clear(&block);
		}
	}
	fxi_tract_set_free(&block);
	fxi_tracts_close(r);
	return status;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Sorts the distances. Quantiles are the sample at or above. */
static struct way way_of(double *d, int64_t n)
{
	struct way w = {.n = n, .mean = (double)NAN, .median = (double)NAN, .p95 = (double)NAN, .most = (double)NAN};
	double sum = 0;

	if (n == 0)
		return w;
	qsort(d, (size_t)n, sizeof *d, ascending);
	for (int64_t i = 0; i < n; i++)
		sum += d[i];
	w.mean = sum / (double)n;
	w.median = (d[(n - 1) / 2] + d[n / 2]) / 2;
	w.p95 = d[(int64_t)ceil(0.95 * (double)n) - 1];
	w.most = d[n - 1];
	return w;
}

static int one_way(const struct summary *from, const struct summary *to, const fxi_tracts_options *o, struct way *w, fx_error *err)
{
	int64_t all = from->fibres - from->empty, keep = o->max_fibres > 0 && o->max_fibres < all ? o->max_fibres : all;
	double *nearest = fx_alloc(keep + 1, sizeof *nearest);
	fxi_tract_set drawn = {0};
	int status = nearest ? FX_OK : fx_error_set(err, FX_ENOMEM, "no memory for %lld distances", (long long)keep);

	if (status == FX_OK && keep > 0)
		status = draw(from, keep, &drawn, err);
	for (int64_t i = 0; status == FX_OK && i < keep; i++)
		nearest[i] = (double)INFINITY;
	if (status == FX_OK)
		status = search(&drawn, to->path, o->n_threads, nearest, err);
	if (status == FX_OK)
		*w = way_of(nearest, to->fibres > to->empty ? drawn.n : 0);
	fxi_tract_set_free(&drawn);
	fx_free(nearest);
	return status;
}

static int in_pairs(const struct summary *a, const struct summary *b, struct way *w, fx_error *err)
{
	fxi_tract_reader *ra = NULL, *rb = NULL;
	const float *pa, *pb;
	double *d = fx_alloc(a->fibres + 1, sizeof *d);
	int64_t n = 0, n_a, n_b;
	int status = d ? FX_OK : fx_error_set(err, FX_ENOMEM, "no memory for %lld distances", (long long)a->fibres);

	if (status == FX_OK && a->fibres != b->fibres)
		status = fx_error_set(err, FX_EDATA, "%s has %lld fibres and %s %lld: they do not pair; compare them without --paired", a->path,
			(long long)a->fibres, b->path, (long long)b->fibres);
	if (status == FX_OK)
		status = fxi_tracts_open(a->path, err, &ra);
	if (status == FX_OK)
		status = fxi_tracts_open(b->path, err, &rb);
	for (int64_t i = 0; status == FX_OK && i < a->fibres; i++) {
		status = fxi_tracts_next(ra, err, &pa, &n_a);
		if (status == FX_OK)
			status = fxi_tracts_next(rb, err, &pb, &n_b);
		if (status == FX_OK && (n_a == 0) != (n_b == 0))
			d[n++] = (double)INFINITY; /* something against nothing */
		else if (status == FX_OK && n_a > 0)
			d[n++] = fx_tract_distance(pa, n_a, pb, n_b);
	}
	if (status == FX_OK)
		*w = way_of(d, n);
	fxi_tracts_close(ra);
	fxi_tracts_close(rb);
	fx_free(d);
	return status;
}

/* ---- what is said ---------------------------------------------------------------------------- */

static void print_set(const char *name, const struct summary *s)
{
	int64_t n = s->fibres - s->empty;

	printf("%-10s %lld fibres, %lld points", name, (long long)s->fibres, (long long)s->points);
	if (n > 0)
		printf("; lengths %.4g to %.4g mm, mean %.4g mm", s->shortest, s->longest, s->total / (double)n);
	if (s->empty > 0)
		printf("; %lld without points", (long long)s->empty);
	printf("\n");
}

static void print_way(const char *name, const struct way *w, int64_t all)
{
	if (w->n == 0) {
		printf("%-10s no fibre, so no distance\n", name);
		return;
	}
	printf("%-10s mean %.4g mm, median %.4g, 95th percentile %.4g, most %.4g", name, w->mean, w->median, w->p95, w->most);
	if (w->n < all)
		printf("  (of %lld of %lld fibres)", (long long)w->n, (long long)all);
	printf("\n");
}

static void add_number(JsonBuilder *b, const char *name, double value)
{
	json_builder_set_member_name(b, name);
	if (isfinite(value))
		json_builder_add_double_value(b, value);
	else
		json_builder_add_null_value(b);
}

static void add_count(JsonBuilder *b, const char *name, int64_t value)
{
	json_builder_set_member_name(b, name);
	json_builder_add_int_value(b, value);
}

static void json_set(JsonBuilder *b, const char *name, const struct summary *s)
{
	json_builder_set_member_name(b, name);
	json_builder_begin_object(b);
	json_builder_set_member_name(b, "file");
	json_builder_add_string_value(b, s->path);
	add_count(b, "fibres", s->fibres);
	add_count(b, "empty", s->empty);
	add_count(b, "points", s->points);
	add_number(b, "mean_length_mm", s->total / (double)(s->fibres - s->empty));
	add_number(b, "shortest_mm", s->shortest);
	add_number(b, "longest_mm", s->fibres > s->empty ? s->longest : (double)NAN);
	json_builder_end_object(b);
}

static void json_way(JsonBuilder *b, const char *name, const struct way *w)
{
	json_builder_set_member_name(b, name);
	json_builder_begin_object(b);
	add_count(b, "fibres", w->n);
	add_number(b, "mean_mm", w->mean);
	add_number(b, "median_mm", w->median);
	add_number(b, "p95_mm", w->p95);
	add_number(b, "max_mm", w->most);
	json_builder_end_object(b);
}

static void print_json(const fxi_tracts_options *o, const struct summary s[2], const struct way w[2], double distance, bool within)
{
	JsonBuilder *b = json_builder_new();

	json_builder_begin_object(b);
	json_set(b, "tracts", &s[0]);
	json_set(b, "reference", &s[1]);
	json_way(b, o->paired ? "pairs" : "to_reference", &w[0]);
	if (!o->paired)
		json_way(b, "from_reference", &w[1]);
	add_number(b, "distance_mm", distance);
	if (o->max_distance >= 0) {
		add_number(b, "max_distance_mm", o->max_distance);
		json_builder_set_member_name(b, "within");
		json_builder_add_boolean_value(b, within);
	}
	json_builder_end_object(b);
	fxi_json_print(b);
}

static void print_text(const fxi_tracts_options *o, const struct summary s[2], const struct way w[2])
{
	print_set("tracts", &s[0]);
	print_set("reference", &s[1]);
	if (o->paired) {
		print_way("in pairs", &w[0], s[0].fibres - s[0].empty);
		return;
	}
	print_way("A to B", &w[0], s[0].fibres - s[0].empty);
	print_way("B to A", &w[1], s[1].fibres - s[1].empty);
}

int fxi_compare_tracts(const char *a, const char *b, const fxi_tracts_options *o)
{
	struct summary s[2] = {{0}};
	struct way w[2] = {{0}};
	fx_error err = {0};
	double distance;
	bool within;
	int status = summarise(a, &s[0], &err);

	if (status == FX_OK)
		status = summarise(b, &s[1], &err);
	if (status == FX_OK && o->paired)
		status = in_pairs(&s[0], &s[1], &w[0], &err);
	for (int i = 0; status == FX_OK && !o->paired && i < 2; i++)
		status = one_way(&s[i], &s[1 - i], o, &w[i], &err);
	if (status != FX_OK) {
		fxi_apps_say("compare: %s", err.text);
		return FXI_EXIT_FAILED;
	}
	/* Two sets without fibres are alike; one without is infinitely far. */
	distance = o->paired ? w[0].mean : fmax(w[0].mean, w[1].mean);
	if (isnan(distance))
		distance = s[0].fibres - s[0].empty == s[1].fibres - s[1].empty ? 0 : (double)INFINITY;
	within = o->max_distance < 0 || distance <= o->max_distance;
	if (o->json)
		print_json(o, s, w, distance, within);
	else
		print_text(o, s, w);
	if (!within)
		fxi_apps_say("compare: the mean distance, %.6g mm, is beyond %.6g mm", distance, o->max_distance);
	return within ? FXI_EXIT_DONE : FXI_EXIT_FAILED;
}
