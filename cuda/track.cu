/* SPDX-License-Identifier: MIT */
/*
 * track.cu - track_batch: starts, order, walk, judgement, collection. Where the halves' most possible points fit into a third of the memory that is
 * free, they are walked once, and written where there is room for that many; else twice: to count, and to write each kept fibre
 * where it belongs. Both give the same bytes. What misses every target is dropped here.
 */
#include "track.cuh"

#include <cmath>
#include <new>

#define SORT_FROM 16384       /* seeds below are in flight all at once, in whatever order */
#define QUADS_UP_TO 3         /* fibres that are shared by four threads: up to so many a warp's eight places; beyond, pairs do more a second */

struct batch {
	fx_math *m;
	const fx_track_plan *plan;
	const fxi_track_prepared *prepared;
	fxi_walk walk;
	fxi_track_gather gather;
};

static int walk_once(const batch *b, const fxi_walk *w)
{
	int lanes = b->plan->lanes, form = b->prepared->form;
	int64_t places = (int64_t)fxi_queue(b->m)->n_processors * 16 * 8; /* of fibres shared by four threads, 16 warps a multiprocessor */

	if (b->plan->method == FX_TRACK_STREAMLINE)
		return fxi_walk_along(b->m, w, form);
	if (lanes == 0)
		lanes = w->n_items * 8 <= places * QUADS_UP_TO ? 4 : 2;
	if (form == FX_TRACK_FORM_HALF)
		return fxi_walk_half(b->m, w, lanes);
	if (form == FX_TRACK_FORM_COMPACT)
		return fxi_walk_compact(b->m, w, lanes);
	if (form == FX_TRACK_FORM_TEXTURE || form == FX_TRACK_FORM_TEXTURE_HALF)
		return fxi_walk_texture(b->m, w, lanes);
	return fxi_walk_kernel(b->m, w, lanes);
}

/* All halves; the backward ones behind the forward ones where these decide how long those may be. */
static int walk_all(batch *b, float4 *points, const int64_t *bases)
{
	fxi_walk w = b->walk;
	int status;

	w.points = points;
	w.bases = bases;
	if (w.directions == 1 || w.max_length > 0) {
		w.n_items = b->gather.n;
		w.phase = 0;
		status = walk_once(b, &w);
		w.phase = 1;
		return status == FX_OK && w.directions == 2 ? walk_once(b, &w) : status;
	}
	w.n_items = 2 * b->gather.n;
	w.phase = 2;
	return walk_once(b, &w);
}

/* Bytes that may be taken: free, or in the pool and not in use. */
static int64_t room_left(fx_math *m)
{
	cudaMemPool_t pool;
	size_t left = 0, all = 0;
	uint64_t held = 0, used = 0;

	if (cudaMemGetInfo(&left, &all) != cudaSuccess || cudaDeviceGetDefaultMemPool(&pool, m->device) != cudaSuccess ||
		cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &held) != cudaSuccess ||
		cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used) != cudaSuccess) {
		cudaGetLastError();
		return 0;
	}
	return (int64_t)(left + (held - used));
}

static int new_arrays(fx_math *m, bool riemann, int64_t n, int64_t n_points, fx_track_arrays *out)
{
	const int64_t offsets[1] = {n + 1}, points[2] = {3, n_points}, values[2] = {FX_N_VALUES, n};
	int status = n > 0 ? fxi_cuda_array(m, FX_U32, 1, offsets, &out->offsets) : fxi_cuda_array_new(m, FX_U32, 1, offsets, &out->offsets);

	if (status == FX_OK)
		status = fxi_cuda_array(m, FX_F32, 2, points, &out->points);
	if (status == FX_OK && riemann)
		status = fxi_cuda_array(m, FX_F32, 1, &points[1], &out->riemann);
	if (status == FX_OK)
		status = fxi_cuda_array(m, FX_F32, 2, values, &out->values);
	if (status == FX_OK)
		status = fxi_cuda_array(m, FX_U32, 1, &values[1], &out->seeds);
	return status;
}

/* Judges what was walked and makes room for what is kept. */
static int judge(batch *b, fx_track_arrays *out, fx_track_counts *counts, int64_t *n_points)
{
	int64_t totals[4];
	int status = fxi_track_judge(b->m, &b->gather, totals);

	if (status != FX_OK)
		return status;
	*counts = (fx_track_counts){totals[2], totals[3]};
	*n_points = totals[1];
	if (totals[1] > UINT32_MAX)
		return fx_math_fail(b->m, FX_ENOTSUP, "%lld seeds gave %lld points, and a batch of fibres has room for 4294967295: track fewer "
			"seeds at a time", (long long)b->gather.n, (long long)totals[1]);
	return new_arrays(b->m, b->plan->method == FX_TRACK_GEODESIC, totals[0], totals[1], out);
}

static int walk_in_one(batch *b, int64_t n_halves, fx_track_arrays *out, fx_track_counts *counts)
{
	fxi_work points(b->m, n_halves * b->walk.cap, sizeof(float4));
	int64_t n_points;
	int status = points.status();

	if (status == FX_OK)
		status = walk_all(b, (float4 *)points.get(), nullptr);
	if (status == FX_OK)
		status = judge(b, out, counts, &n_points);
	return status == FX_OK ? fxi_track_collect(b->m, &b->gather, (const float4 *)points.get(), b->walk.cap, nullptr, out) : status;
}

static int walk_twice(batch *b, int64_t n_halves, fx_track_arrays *out, fx_track_counts *counts)
{
	fxi_work bases(b->m, n_halves, sizeof(int64_t));
	int64_t n_points = 0;
	int status = bases.status();

	if (status == FX_OK)
		status = walk_all(b, nullptr, nullptr);
	if (status == FX_OK)
		status = judge(b, out, counts, &n_points);
	if (status != FX_OK)
		return status;
	fxi_work points(b->m, n_points, sizeof(float4));
	status = points.status();
	if (status == FX_OK)
		status = fxi_track_bases(b->m, &b->gather, (int64_t *)bases.get());
	if (status == FX_OK && n_points > 0)
		status = walk_all(b, (float4 *)points.get(), (const int64_t *)bases.get());
	if (status == FX_OK)
		status = fxi_track_collect(b->m, &b->gather, (const float4 *)points.get(), 0, (const int64_t *)bases.get(), out);
	return status;
}

static void set_walk(batch *b, const fx_metric_arrays *metric, const fx_track_keep *keep, fxi_use *use)
{
	const fx_track_plan *p = b->plan;
	fxi_walk *w = &b->walk;

	w->view = b->prepared->view;
	w->directions = p->both_ways ? 2 : 1;
	w->max_steps = (int)(p->max_steps < INT32_MAX - 1 ? p->max_steps : INT32_MAX - 1);
	w->cap = (int64_t)w->max_steps + 1;
	w->integrator = p->integrator;
	w->stop_mask = p->stop_mask && w->view.mask;
	w->max_length = p->max_length;
	w->step_mm = p->step;
	w->stop_fa = (float)p->stop_fa;
	w->stop_md = (float)p->stop_md;
	w->cos_angle = p->stop_angle > 0 ? (float)cos(p->stop_angle * acos(-1.0) / 180) : -3;
	w->voxel = (float)p->voxel;
	if (p->stop_fa > 0)
		w->view.fa = (const float *)use->in(metric->fa);
	if (p->stop_md > 0)
		w->view.md = (const float *)use->in(metric->md);
	if (keep)
		w->view.bits = (const uint32_t *)use->in(keep->bits);
	w->rules = p->stop_fa > 0 || p->stop_md > 0 || p->stop_angle > 0 || p->max_length > 0 || keep;
	b->gather.directions = w->directions;
	b->gather.method = p->method;
	b->gather.min_length = (float)(p->min_length * (1 - 1e-6)); /* as on the host: whole numbers of steps round to either side */
	if (keep) {
		b->gather.keep = true;
		b->gather.any = keep->any;
		b->gather.all = keep->all;
	}
}

/* Memory for n seeds, cut into what the kernels are given. */
static char *carve(char *at, int64_t bytes, void **out)
{
	*out = at;
	return at + (bytes + 255) / 256 * 256;
}

static int run(batch *b, const float *d, const double *starts, fx_track_arrays *out, fx_track_counts *counts)
{
	int64_t n = b->gather.n, n_halves = n * b->walk.directions, per_half = b->walk.cap * (int64_t)sizeof(float4);
	fxi_work seeds(b->m, n * (int64_t)(sizeof(fxi_track_start) + sizeof(int64_t) + 2 * sizeof(uint32_t)) +
		n_halves * (int64_t)sizeof(fxi_track_half) + 4096, 1);
	void *start, *halves, *first, *place, *order, *small;
	int status = seeds.status();

	if (status != FX_OK)
		return status;
	char *at = carve((char *)seeds.get(), n * (int64_t)sizeof(fxi_track_start), &start);
	at = carve(at, n_halves * (int64_t)sizeof(fxi_track_half), &halves);
	at = carve(at, (n + 1) * (int64_t)sizeof(int64_t), &first);
	at = carve(at, (n + 1) * (int64_t)sizeof(uint32_t), &place);
	at = carve(at, n * (int64_t)sizeof(uint32_t), &order);
	carve(at, 256, &small);
	b->walk.starts = (const fxi_track_start *)start;
	b->walk.halves = (fxi_track_half *)halves;
	b->walk.ticket = (unsigned long long *)small;
	b->gather.starts = b->walk.starts;
	b->gather.halves = b->walk.halves;
	b->gather.first = (int64_t *)first;
	b->gather.place = (uint32_t *)place;
	b->gather.counts = b->walk.ticket + 1;
	status = fxi_track_begin(b->m, b->plan, &b->walk.view, d, starts, n, (fxi_track_start *)start);
	if (status == FX_OK && n >= SORT_FROM) {
		status = fxi_track_sort(b->m, &b->walk.view, b->walk.starts, n, (uint32_t *)order);
		b->walk.order = (const uint32_t *)order;
	}
	if (status != FX_OK)
		return status;
	return per_half <= room_left(b->m) / 3 / n_halves && !b->plan->count_first ? walk_in_one(b, n_halves, out, counts)
		: walk_twice(b, n_halves, out, counts);
}

int fxi_cuda_track_batch(fx_math *m, const fx_track_plan *plan, const fx_metric_arrays *metric, void *prepared, const fx_track_keep *keep,
	const fx_array *starts, fx_track_arrays *out, fx_track_counts *counts)
{
	batch b = {};
	fxi_use use(m);
	int64_t n = starts->dims[1];
	int status;

	*out = (fx_track_arrays){};
	*counts = (fx_track_counts){};
	if (n == 0)
		return new_arrays(m, plan->method == FX_TRACK_GEODESIC, 0, 0, out);
	b.m = m;
	b.plan = plan;
	b.prepared = (const fxi_track_prepared *)prepared;
	b.gather.n = n;
	const double *from = (const double *)use.in(starts);
	const float *d = (const float *)use.in(metric->d);
	if (plan->method == FX_TRACK_GEODESIC)
		use.in(metric->field);
	if (metric->mask)
		use.in(metric->mask);
	set_walk(&b, metric, keep, &use);
	status = use.ready();
	if (status == FX_OK)
		status = fxi_cuda_check(m, cudaStreamWaitEvent(fxi_stream_of(m), b.prepared->made, 0), "tracking");
	if (status == FX_OK)
		status = run(&b, d, from, out, counts);
	return status == FX_OK ? use.done("tracking") : status;
}
