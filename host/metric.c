/* SPDX-License-Identifier: MIT */
/*
 * metric.c - metric_build: g, its derivatives, and the maps that tracking stops by, row by row in three passes:
 * each voxel alone; differences of g; continuation beyond the mask, which reads only voxels inside it.
 */
#include "host.h"

#include <fornix/diffusion.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "kernels/metric.h"

#define W FXI_METRIC_LANES

struct job {
	const fx_metric_plan *plan;
	int64_t dims[3];
	const float *tensors;
	const uint8_t *given, *flags; /* or NULL */
	float *field, *d, *fa, *md, *g; /* g: f32 {6, x, y, z} in index space */
	uint8_t *mask;
	double to_g[3][3];            /* A^T: g' = A^T g A */
	fx_math *m;
	_Atomic int64_t n_inside, n_floored, n_bad, n_csf, n_above;
	atomic_bool canceled;
};

/* The three values of D, floored, as those of g. */
static void values_of_metric(const fx_metric_plan *p, double values[3][W], double co[3][W])
{
	for (int l = 0; l < W; l++) {
		double det = values[0][l] * values[1][l] * values[2][l];

		for (int i = 0; i < 3; i++) {
			double v = values[i][l];

			if (p->kind == FX_METRIC_ADJUGATE)
				v /= det;
			else if (p->kind == FX_METRIC_SHARPENED)
				v = pow(v, p->power);
			co[i][l] = 1 / v;
		}
	}
}

struct lanes_of_row {
	double d[6][W], values[3][W], vectors[9][W];
	bool in[W];
};

/* Voxels that the caller leaves out, or whose tensor says nothing, become the unit tensor and stay outside. */
static int64_t load(const struct job *j, int64_t at, int n, struct lanes_of_row *r, int64_t *n_above)
{
	int64_t n_bad = 0;

	for (int l = 0; l < W; l++) {
		const float *from = j->tensors + 6 * (l < n ? at + l : at);
		bool wanted = l < n && (!j->given || j->given[at + l]) &&
			(!j->flags || !(j->flags[at + l] & j->plan->skip_flags));
		bool finite = wanted;

		/* Eigenvalues beyond this have no meaning in um^2/ms, and their squares would overflow. */
		for (int c = 0; wanted && c < 6; c++)
			finite = finite && fabsf(from[c]) < 1e12f;
		r->in[l] = finite;
		n_bad += wanted && !finite;
		*n_above += finite && ((double)from[0] + (double)from[2] + (double)from[5]) / 3 > j->plan->count_md;
		for (int c = 0; c < 6; c++)
			r->d[c][l] = finite ? (double)from[c] : c == 0 || c == 2 || c == 5;
	}
	return n_bad;
}

/* Floors the eigenvalues; a tensor without a positive one, and fluid where it is masked, leave the mask. */
static void judge(struct job *j, struct lanes_of_row *r, double fa[W], double md[W], bool floored[W])
{
	const fx_metric_plan *p = j->plan;
	int64_t n_bad = 0, n_csf = 0;

	for (int l = 0; l < W; l++) {
		double v[3], mean, spread = 0, square = 0;

		mean = (r->values[0][l] + r->values[1][l] + r->values[2][l]) / 3;
		floored[l] = false;
		if (r->in[l] && !(fmax(r->values[0][l], fmax(r->values[1][l], r->values[2][l])) > 0)) {
			r->in[l] = false;
			n_bad++;
		} else if (r->in[l] && mean > p->csf_md) {
			r->in[l] = false;
			n_csf++;
		}
		for (int i = 0; i < 3; i++) {
			/* not(>=): NaN cannot come here, but would be floored too */
			if (!(r->values[i][l] >= p->floor)) {
				r->values[i][l] = p->floor;
				floored[l] = true;
			}
			v[i] = r->values[i][l];
		}
		md[l] = (v[0] + v[1] + v[2]) / 3;
		for (int i = 0; i < 3; i++) {
			spread += (v[i] - md[l]) * (v[i] - md[l]);
			square += v[i] * v[i];
		}
		fa[l] = sqrt(1.5 * spread / square);
	}
	atomic_fetch_add(&j->n_bad, n_bad);
	atomic_fetch_add(&j->n_csf, n_csf);
}

static void store(float *to, int stride, double from[6][W], int l)
{
	for (int c = 0; c < 6; c++)
		to[(int64_t)stride * l + c] = (float)from[c][l];
}

static void tensors_of_row(void *arg, int64_t row)
{
	struct job *j = arg;
	const fx_metric_plan *p = j->plan;
	struct lanes_of_row r;
	double co[3][W], turned[6][W], g[6][W], fa[W], md[W];
	bool floored[W];
	int64_t n_inside = 0, n_floored = 0, n_bad = 0, n_above = 0;

	if (atomic_load(&j->canceled))
		return;
	for (int64_t x = 0; x < j->dims[0]; x += W) {
		int64_t at = row * j->dims[0] + x;
		int n = (int)(j->dims[0] - x < W ? j->dims[0] - x : W);

		n_bad += load(j, at, n, &r, &n_above);
		FXI_PICK(fxi_metric_eigen)(r.d, r.values, r.vectors);
		judge(j, &r, fa, md, floored);
		values_of_metric(p, r.values, co);
		FXI_PICK(fxi_metric_compose)(co, r.vectors, turned);
		FXI_PICK(fxi_metric_turn)(&j->to_g[0][0], turned, g);
		FXI_PICK(fxi_metric_compose)(r.values, r.vectors, turned);
		for (int l = 0; l < n; l++) {
			j->mask[at + l] = r.in[l];
			if (!r.in[l])
				continue;
			n_inside++;
			n_floored += floored[l];
			store(j->field + 24 * at, 24, g, l);
			store(j->g + 6 * at, 6, g, l);
			if (floored[l])
				store(j->d + 6 * at, 6, turned, l);
			else /* as it came, to the bit */
				memcpy(j->d + 6 * (at + l), j->tensors + 6 * (at + l), 6 * sizeof *j->d);
			j->fa[at + l] = (float)fa[l];
			j->md[at + l] = (float)md[l];
		}
	}
	atomic_fetch_add(&j->n_inside, n_inside);
	atomic_fetch_add(&j->n_floored, n_floored);
	atomic_fetch_add(&j->n_bad, n_bad);
	atomic_fetch_add(&j->n_above, n_above);
	if (j->m->stopped && j->m->stopped(j->m->stopped_arg))
		atomic_store(&j->canceled, true);
}

/* True where the voxel `by` steps along the axis is in the volume and the mask. */
static bool has(const struct job *j, int64_t at, int64_t index, int axis, int64_t stride, int by)
{
	return index + by >= 0 && index + by < j->dims[axis] && j->mask[at + by * stride];
}

/* The derivative of g along one axis, as sum of weight times neighbour; second order where there is room. */
static void difference(const struct job *j, int64_t at, int64_t index, int axis, int64_t stride, float *out)
{
	const float *g = j->g + 6 * at;
	bool up = has(j, at, index, axis, stride, 1), down = has(j, at, index, axis, stride, -1);
	int64_t s = 6 * stride;

	for (int c = 0; c < 6; c++)
		out[c] = 0;
	if (up && down) {
		for (int c = 0; c < 6; c++)
			out[c] = 0.5f * (g[c + s] - g[c - s]);
	} else if (up || down) {
		int way = up ? 1 : -1;
		float sign = (float)way;
		const float *near = g + way * s, *far = g + 2 * way * s;

		if (has(j, at, index, axis, stride, 2 * way))
			for (int c = 0; c < 6; c++)
				out[c] = sign * (2 * (near[c] - g[c]) - 0.5f * (far[c] - g[c]));
		else
			for (int c = 0; c < 6; c++)
				out[c] = sign * (near[c] - g[c]);
	}
}

static void gradients_of_row(void *arg, int64_t row)
{
	struct job *j = arg;
	int64_t y = row % j->dims[1], z = row / j->dims[1], plane = j->dims[0] * j->dims[1];

	if (atomic_load(&j->canceled))
		return;
	for (int64_t x = 0; x < j->dims[0]; x++) {
		int64_t at = row * j->dims[0] + x;
		float *field = j->field + 24 * at;

		if (!j->mask[at])
			continue;
		difference(j, at, x, 0, 1, field + 6);
		difference(j, at, y, 1, j->dims[0], field + 12);
		difference(j, at, z, 2, plane, field + 18);
	}
}

/* Adds a neighbour's 24 + 6 + 2 numbers to the sums. */
static void add_neighbour(const struct job *j, int64_t at, double sums[32])
{
	for (int c = 0; c < 24; c++)
		sums[c] += (double)j->field[24 * at + c];
	for (int c = 0; c < 6; c++)
		sums[24 + c] += (double)j->d[6 * at + c];
	sums[30] += (double)j->fa[at];
	sums[31] += (double)j->md[at];
}

/*
 * A voxel outside next to the mask takes the mean of its neighbours inside: those that share a face, else an edge, else
 * a corner. Where there is none g is NaN, so that no fibre can use it.
 */
static void continue_voxel(const struct job *j, int64_t x, int64_t y, int64_t z)
{
	int64_t at = (z * j->dims[1] + y) * j->dims[0] + x;
	double sums[4][32] = {{0}};
	int count[4] = {0}, order = 1;

	for (int dz = -1; dz <= 1; dz++)
		for (int dy = -1; dy <= 1; dy++)
			for (int dx = -1; dx <= 1; dx++) {
				int64_t to = at + (dz * j->dims[1] + dy) * j->dims[0] + dx;
				int away = (dx != 0) + (dy != 0) + (dz != 0);

				if (x + dx < 0 || x + dx >= j->dims[0] || y + dy < 0 || y + dy >= j->dims[1] || z + dz < 0 ||
					z + dz >= j->dims[2] || !j->mask[to])
					continue;
				count[away]++;
				add_neighbour(j, to, sums[away]);
			}
	while (order < 4 && count[order] == 0)
		order++;
	for (int c = 0; c < 24; c++)
		j->field[24 * at + c] = order < 4 ? (float)(sums[order][c] / count[order]) : NAN;
	for (int c = 0; c < 6; c++)
		j->d[6 * at + c] = order < 4 ? (float)(sums[order][24 + c] / count[order]) : NAN;
	j->fa[at] = order < 4 ? (float)(sums[order][30] / count[order]) : 0;
	j->md[at] = order < 4 ? (float)(sums[order][31] / count[order]) : 0;
}

static void continue_row(void *arg, int64_t row)
{
	struct job *j = arg;

	if (atomic_load(&j->canceled))
		return;
	for (int64_t x = 0; x < j->dims[0]; x++)
		if (!j->mask[row * j->dims[0] + x])
			continue_voxel(j, x, row % j->dims[1], row / j->dims[1]);
}

int fxi_host_metric_build(fx_math *m, const fx_metric_plan *plan, const fx_array *tensors, const fx_array *mask,
	const fx_array *flags, const fx_metric_arrays *out, fx_metric_counts *counts)
{
	int64_t n_rows = tensors->dims[2] * tensors->dims[3], n_voxels = tensors->dims[1] * n_rows;
	struct job j = {.plan = plan, .tensors = tensors->data, .given = mask ? mask->data : NULL,
		.flags = flags ? flags->data : NULL, .field = out->field->data, .d = out->d->data, .fa = out->fa->data,
		.md = out->md->data, .mask = out->mask->data, .m = m};

	for (int i = 0; i < 3; i++) {
		j.dims[i] = tensors->dims[i + 1];
		for (int k = 0; k < 3; k++)
			j.to_g[i][k] = plan->to_mm[k][i];
	}
	j.g = fx_alloc(n_voxels, 6 * sizeof *j.g);
	if (!j.g)
		return fx_math_fail(m, FX_ENOMEM, "no memory for the inverse tensors of %lld voxels", (long long)n_voxels);
	fx_parallel(m->n_threads, n_rows, tensors_of_row, &j);
	fx_parallel(m->n_threads, n_rows, gradients_of_row, &j);
	fx_free(j.g);
	fx_parallel(m->n_threads, n_rows, continue_row, &j);
	*counts = (fx_metric_counts){.n_inside = j.n_inside, .n_floored = j.n_floored, .n_bad = j.n_bad, .n_csf = j.n_csf,
		.n_above = j.n_above};
	return fx_math_check(m);
}
