/* SPDX-License-Identifier: MIT */
/* fibres.h - tract sets and label images made by hand, for the tests of connections. */
#ifndef FORNIX_TESTS_FIBRES_H
#define FORNIX_TESTS_FIBRES_H

#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Fibres in the making; points grow as needed. */
typedef struct fibres {
	fx_tracts_info *info;
	int64_t n, n_points;
	float *points, *riemann;
	uint32_t offsets[4097], seeds[4096];
	float values[4096][FX_N_VALUES];
} fibres;

static inline fibres *fibres_new(const fx_lattice *l, int method, int metric_kind)
{
	static const char *const names[] = {"length_mm", "riemann", "measure", "drift", "stop_start", "stop_end", "seed_point"};
	fibres *f = calloc(1, sizeof *f);

	if (!f || !(f->info = fx_tracts_info_new()))
		CU_FAIL_FATAL("no memory for a test's fibres");
	f->info->lattice = *l;
	f->info->method = method;
	f->info->metric_kind = metric_kind;
	f->info->power = 1;
	f->info->n_values = FX_N_VALUES;
	for (int i = 0; i < FX_N_VALUES; i++)
		strcpy(f->info->names[i], names[i]);
	strcpy(f->info->origin, "a \"test\"");
	return f;
}

static inline void fibres_free(fibres *f)
{
	fx_tracts_info_unref(f->info);
	free(f->points);
	free(f->riemann);
	free(f);
}

/** Room for a fibre of n points: its points {3, n} and Riemannian lengths {n}, to be filled. Values are marks, but for the seed's place. */
static inline float *fibres_add(fibres *f, int64_t n, int64_t seed_point, uint32_t seed, float **riemann)
{
	float *p = realloc(f->points, (size_t)(f->n_points + n) * 3 * sizeof *p);
	float *r = realloc(f->riemann, (size_t)(f->n_points + n) * sizeof *r);

	if (!p || !r || f->n == 4096)
		CU_FAIL_FATAL("no room for a test's fibre");
	f->points = p;
	f->riemann = r;
	p += 3 * f->n_points;
	*riemann = r + f->n_points;
	f->n_points += n;
	f->seeds[f->n] = seed;
	for (int i = 0; i < FX_VALUE_SEED; i++)
		f->values[f->n][i] = (float)(100 + i);
	f->values[f->n][FX_VALUE_SEED] = (float)seed_point;
	f->offsets[++f->n] = (uint32_t)f->n_points;
	return p;
}

/** A straight fibre of n points in RAS mm under a metric that costs `cost` a mm. */
static inline void fibres_line(fibres *f, const double from[3], const double to[3], int64_t n, double cost, int64_t seed_point,
	uint32_t seed)
{
	double length = sqrt(pow(to[0] - from[0], 2) + pow(to[1] - from[1], 2) + pow(to[2] - from[2], 2));
	float *riemann, *p = fibres_add(f, n, seed_point, seed, &riemann);

	for (int64_t i = 0; i < n; i++) {
		double t = n > 1 ? (double)i / (double)(n - 1) : 0;

		for (int c = 0; c < 3; c++)
			p[3 * i + c] = (float)(from[c] + t * (to[c] - from[c]));
		riemann[i] = (float)(t * length * cost);
	}
}

/** Fibres [first, first + n) as a message; drop it. Streamlines come without Riemannian lengths. */
static inline fx_msg *fibres_batch(const fibres *f, int64_t first, int64_t n)
{
	fx_msg *msg = fx_msg_new(FX_TRACTS);
	fx_tracts *t = msg ? fx_msg_tracts(msg) : NULL;
	int64_t from = f->offsets[first], n_points = f->offsets[first + n] - from;

	if (!t || fx_array_new1(FX_U32, n + 1, &t->offsets) != FX_OK || fx_array_new2(FX_F32, 3, n_points, &t->points) != FX_OK
		|| fx_array_new1(FX_F32, n_points, &t->riemann) != FX_OK || fx_array_new1(FX_U32, n, &t->seeds) != FX_OK
		|| fx_array_new2(FX_F32, FX_N_VALUES, n, &t->values) != FX_OK)
		CU_FAIL_FATAL("no memory for a test's batch");
	t->info = fx_tracts_info_ref(f->info);
	t->first = first;
	t->n = n;
	for (int64_t i = 0; i <= n; i++)
		((uint32_t *)t->offsets->data)[i] = f->offsets[first + i] - (uint32_t)from;
	if (n_points > 0) {
		memcpy(t->points->data, f->points + 3 * from, (size_t)n_points * 3 * sizeof(float));
		memcpy(t->riemann->data, f->riemann + from, (size_t)n_points * sizeof(float));
	}
	if (n > 0) {
		memcpy(t->seeds->data, f->seeds + first, (size_t)n * sizeof(uint32_t));
		memcpy(t->values->data, f->values + first, (size_t)n * sizeof f->values[0]);
	}
	if (f->info->method == FX_TRACK_STREAMLINE)
		fx_slot_take(&t->riemann, NULL);
	return msg;
}

/** The end mark. */
static inline fx_msg *fibres_end(const fibres *f)
{
	fx_msg *msg = fx_msg_new(FX_TRACTS);

	if (!msg)
		CU_FAIL_FATAL("no memory for an end mark");
	fx_msg_tracts(msg)->info = fx_tracts_info_ref(f->info);
	fx_msg_tracts(msg)->end = true;
	fx_msg_tracts(msg)->first = f->n;
	return msg;
}

/** A cube of n^3 voxels of this edge, voxel (0, 0, 0) at the origin, axes along RAS. */
static inline fx_lattice cube_lattice(int64_t n, double mm)
{
	fx_lattice l = {.dims = {n, n, n}, .has_affine = true};

	for (int i = 0; i < 3; i++)
		l.affine[i][i] = mm;
	return l;
}

/** Label of a voxel. */
typedef int (*label_of)(const int64_t v[3]);

static inline fx_array *label_image(const fx_lattice *l, label_of label)
{
	fx_array *a = NULL;

	if (fx_array_new(FX_F32, 3, l->dims, &a) != FX_OK)
		CU_FAIL_FATAL("no memory for a label image");
	for (int64_t i = 0; i < a->n; i++)
		FX_F32_OF(a)[i] = (float)label((int64_t[]){i % l->dims[0], i / l->dims[0] % l->dims[1], i / l->dims[0] / l->dims[1]});
	return a;
}

static inline fx_regions *regions_of(const fx_lattice *l, label_of label, const char *name, const char *wanted, int use)
{
	fx_array *image = label_image(l, label);
	fx_regions *r = NULL;
	fx_error err = {0};

	if (fx_regions_new(image, (const double (*)[4])l->affine, true, name, wanted, use, &err, &r) != FX_OK) {
		printf("\n%s\n", err.text);
		CU_FAIL_FATAL("a test's regions could not be made");
	}
	fx_array_unref(image);
	return r;
}

#endif
