/* SPDX-License-Identifier: MIT */
/*
 * bench_track_field.c - the field and the seeds of `fornix bench track`: the ring about the long axis whose geodesics are exact circles, so that fibres
 * neither leave nor settle in one place; seeds are spread over the whole field, and start tangentially.
 */
#include <math.h>
#include <stdio.h>

#include "apps/bench_track.h"

/* uniform in [0, 1): number i of the stream */
static double random_of(int64_t i, uint64_t stream)
{
	return fx_random_at(1, stream, (uint64_t)i);
}

/* Tangential tensor times (r/r_0)^2, r_0 half the shorter radius, held above a twentieth so that the axis has a tensor. */
static void fill_tensors(const fxi_track_options *o, float *d)
{
	const int64_t *n = o->matrix;
	double cy = (double)(n[1] - 1) / 2, cz = (double)(n[2] - 1) / 2, r0 = fmax(1, fmin(cy, cz) / 2);

	for (int64_t z = 0; z < n[2]; z++)
		for (int64_t y = 0; y < n[1]; y++) {
			double v = (double)y - cy, w = (double)z - cz, r = hypot(v, w), s = fmax(0.05, r * r / (r0 * r0));
			double c = r > 0 ? v / r : 1, t = r > 0 ? w / r : 0;

			for (int64_t x = 0; x < n[0]; x++) {
				float *to = d + 6 * ((z * n[1] + y) * n[0] + x);

				to[0] = to[2] = to[5] = (float)(0.3 * s);
				to[2] += (float)(1.4 * s * t * t);
				to[4] = (float)(-1.4 * s * t * c);
				to[5] += (float)(1.4 * s * c * c);
			}
		}
}

static void fill_seeds(const fxi_track_options *o, double *to)
{
	double cy = (double)(o->matrix[1] - 1) / 2, cz = (double)(o->matrix[2] - 1) / 2, most = fmin(cy, cz);

	for (int64_t i = 0; i < o->n_seeds; i++, to += 6) {
		double angle = 2 * acos(-1) * random_of(i, 0), r = most * (0.5 + 0.35 * random_of(i, 1));

		to[0] = (double)(o->matrix[0] - 1) * random_of(i, 2);
		to[1] = cy + r * cos(angle);
		to[2] = cz + r * sin(angle);
		to[3] = 0;
		to[4] = -sin(angle);
		to[5] = cos(angle);
	}
}

int fxi_track_prepare(fxi_track_bench *b)
{
	const fxi_track_options *o = b->o;
	const int64_t dims[4] = {6, o->matrix[0], o->matrix[1], o->matrix[2]};
	const fx_metric_spec spec = {.kind = FX_METRIC_INVERSE, .floor = 0.01};
	fx_msg *msg = fx_msg_new(FX_TENSORS);
	fx_tensors *t = msg ? fx_msg_tensors(msg) : NULL;
	fx_math *m = NULL;
	double start;
	int status = fx_math_new("host", o->n_threads, b->err, &m);

	if (status == FX_OK && (!t || fx_array_new(FX_F32, 4, dims, &t->d) != FX_OK ||
		fx_array_new2(FX_F64, 6, o->n_seeds, &b->seeds) != FX_OK))
		status = fx_error_set(b->err, FX_ENOMEM, "no memory for %lld x %lld x %lld voxels", (long long)dims[1], (long long)dims[2],
			(long long)dims[3]);
	if (status == FX_OK) {
		t->lattice = (fx_lattice){.dims = {dims[1], dims[2], dims[3]}};
		for (int a = 0; a < 3; a++)
			t->lattice.affine[a][a] = 1;
		fill_tensors(o, t->d->data);
		fill_seeds(o, b->seeds->data);
		start = fxi_bench_clock_s(CLOCK_MONOTONIC);
		status = fx_metric_build(m, t, &spec, &b->metric);
		start = fxi_bench_clock_s(CLOCK_MONOTONIC) - start;
		printf("metric of %lld x %lld x %lld voxels: %.0f ms\n\n", (long long)dims[1], (long long)dims[2], (long long)dims[3], 1e3 * start);
		json_builder_set_member_name(b->json, "metric_seconds");
		json_builder_add_double_value(b->json, start);
	}
	fx_drop(msg);
	fx_math_free(m);
	return status;
}

void fxi_track_drop(fxi_track_bench *b)
{
	fx_drop(b->metric);
	fx_array_unref(b->seeds);
}

void fxi_track_put(JsonBuilder *j, const char *name, double value)
{
	json_builder_set_member_name(j, name);
	json_builder_add_double_value(j, value);
}

int fxi_track_ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}
