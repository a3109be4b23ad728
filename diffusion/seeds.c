/* SPDX-License-Identifier: MIT */
/*
 * seeds.c - where fibres start. Seeds are made in chunks as the tracker asks for them, so ten million of them take no memory, and
 * each depends on its own number alone.
 */
#include <fornix/diffusion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_SEEDS UINT32_MAX /* a fibre's seed number is a u32 */
/* Streams of fx_random_at. Places use the number of the place, directions that of the seed. */
enum { STREAM_X, STREAM_Y, STREAM_Z, STREAM_VOXEL, STREAM_POLE, STREAM_AZIMUTH };

struct fx_seeds {
	fx_math *m;
	fx_seeds_spec spec;
	fx_lattice lattice;
	fx_array *voxels;       /* region: u32 linear indices of its voxels */
	fx_array *sphere;       /* f64 {3, n_directions} */
	int64_t n_places, n_ways, next;
	int64_t cursor;         /* grid: candidate of the place given last */
	int64_t grid[3];        /* grid: candidates along each axis */
	double start[3], step[3]; /* grid: index of the first, and between them */
	double place[3], low[3], high[3];
};

/* ---- regions ---------------------------------------------------------------------------------- */

static bool belongs(const fx_array *region, int64_t i, double label)
{
	double v = region->type == FX_U8 ? ((const uint8_t *)region->data)[i]
		: region->type == FX_F32 ? (double)FX_F32_OF(region)[i] : FX_F64_OF(region)[i];

	return label != 0 ? v == label : v != 0 && !isnan(v);
}

static int check_region(fx_math *m, const fx_seeds_spec *spec)
{
	const fx_array *r = spec->region;

	if (!r || !spec->lattice || (r->type != FX_U8 && r->type != FX_F32 && r->type != FX_F64))
		return fx_math_fail(m, FX_EINVAL, "a region of seeds is u8, f32 or f64, with a lattice");
	for (int d = 0; d < 3; d++)
		if (r->dims[d] != spec->lattice->dims[d])
			return fx_math_fail(m, FX_EINVAL, "the region of seeds and its lattice differ in size");
	if (r->n > UINT32_MAX)
		return fx_math_fail(m, FX_EDATA, "a region of %lld voxels is beyond 2^32 - 1; crop it", (long long)r->n);
	return FX_OK;
}

static int nothing(fx_math *m, const fx_seeds_spec *spec)
{
	if (spec->label != 0)
		return fx_math_fail(m, FX_EDATA, "the region has no voxel of value %g to seed from", spec->label);
	return fx_math_fail(m, FX_EDATA, "the region to seed from is empty");
}

static int list_voxels(fx_seeds *s)
{
	const fx_array *r = s->spec.region;
	int64_t n = 0;

	for (int64_t i = 0; i < r->n; i++)
		n += belongs(r, i, s->spec.label);
	if (n == 0)
		return nothing(s->m, &s->spec);
	if (fx_array_new1(FX_U32, n, &s->voxels) != FX_OK)
		return fx_math_fail(s->m, FX_ENOMEM, "no memory for a region of %lld voxels", (long long)n);
	n = 0;
	for (int64_t i = 0; i < r->n; i++)
		if (belongs(r, i, s->spec.label))
			((uint32_t *)s->voxels->data)[n++] = (uint32_t)i;
	return FX_OK;
}

static void region_place(const fx_seeds *s, int64_t i, double place[3])
{
	const fx_seeds_spec *spec = &s->spec;
	const int64_t *dims = s->lattice.dims;
	int64_t n = s->voxels->n, v = i / (spec->count ? 1 : spec->per_voxel);
	uint64_t at = (uint64_t)i;
	double x[3];

	if (spec->count) {
		v = (int64_t)(((double)i + fx_random_at(spec->seed, STREAM_VOXEL, at)) / (double)spec->count * (double)n);
		v = v < n ? v : n - 1;
	}
	v = ((const uint32_t *)s->voxels->data)[v];
	x[0] = (double)(v % dims[0]);
	x[1] = (double)(v / dims[0] % dims[1]);
	x[2] = (double)(v / dims[0] / dims[1]);
	for (int d = 0; d < 3 && !spec->centred; d++)
		x[d] += fx_random_at(spec->seed, (uint64_t)d, at) - 0.5;
	fx_affine_apply(s->lattice.affine, x, place);
}

/* ---- grids ------------------------------------------------------------------------------------ */

/* Index coordinates of a candidate; true where its voxel is in the region. */
static bool grid_index(const fx_seeds *s, int64_t candidate, double x[3])
{
	const int64_t *dims = s->lattice.dims;
	int64_t at[3] = {candidate % s->grid[0], candidate / s->grid[0] % s->grid[1], candidate / s->grid[0] / s->grid[1]};
	int64_t v[3];

	for (int d = 0; d < 3; d++) {
		x[d] = s->start[d] + s->step[d] * (double)at[d];
		v[d] = (int64_t)floor(x[d] + 0.5);
		v[d] = v[d] < 0 ? 0 : v[d] < dims[d] ? v[d] : dims[d] - 1;
	}
	return belongs(s->spec.region, v[0] + dims[0] * (v[1] + dims[1] * v[2]), s->spec.label);
}

static int count_grid(fx_seeds *s)
{
	const int64_t *dims = s->lattice.dims;
	double mm[3], x[3], candidates = 1;
	int64_t n;

	fx_lattice_voxel_mm(&s->lattice, mm);
	if (!(s->spec.spacing_mm > 0) || isinf(s->spec.spacing_mm))
		return fx_math_fail(s->m, FX_EINVAL, "a grid of seeds wants a spacing above 0 mm");
	for (int d = 0; d < 3; d++) {
		double along;

		s->step[d] = s->spec.spacing_mm / mm[d];
		along = fmax(1, floor((double)dims[d] / s->step[d] * (1 + 1e-12)));
		candidates *= along;
		if (!(candidates <= MOST_SEEDS))
			return fx_math_fail(s->m, FX_EDATA, "a grid of %g mm has more than 2^32 - 1 places; choose it wider",
				s->spec.spacing_mm);
		s->grid[d] = (int64_t)along;
		s->start[d] = ((double)(dims[d] - 1) - s->step[d] * (along - 1)) / 2;
	}
	n = s->grid[0] * s->grid[1] * s->grid[2];
	for (int64_t i = 0; i < n; i++)
		s->n_places += grid_index(s, i, x);
	s->cursor = -1;
	return s->n_places ? FX_OK : nothing(s->m, &s->spec);
}

static void grid_place(fx_seeds *s, double place[3])
{
	const fx_lattice *l = &s->lattice;
	double x[3];

	while (!grid_index(s, ++s->cursor, x))
		;
	fx_affine_apply(l->affine, x, place);
}

/* ---- balls and lists -------------------------------------------------------------------------- */

static void unit_vector(uint64_t seed, uint64_t pole, uint64_t azimuth, uint64_t at, double v[3])
{
	double z = 2 * fx_random_at(seed, pole, at) - 1, r = sqrt(1 - z * z), a = 2 * M_PI * fx_random_at(seed, azimuth, at);

	v[0] = r * cos(a);
	v[1] = r * sin(a);
	v[2] = z;
}

static void ball_place(const fx_seeds *s, int64_t i, double place[3])
{
	const fx_seeds_spec *spec = &s->spec;
	double v[3], r = spec->radius * cbrt(fx_random_at(spec->seed, STREAM_X, (uint64_t)i));

	unit_vector(spec->seed, STREAM_Y, STREAM_Z, (uint64_t)i, v);
	for (int d = 0; d < 3; d++)
		place[d] = spec->centre[d] + r * v[d];
}

static int count_places(fx_seeds *s)
{
	const fx_seeds_spec *spec = &s->spec;
	int status = FX_OK;

	if (spec->source == FX_SEEDS_REGION || spec->source == FX_SEEDS_GRID) {
		status = check_region(s->m, spec);
		if (status == FX_OK)
			s->lattice = *spec->lattice;
	}
	if (status != FX_OK)
		return status;
	if (spec->count < 0 || spec->per_voxel < 0)
		return fx_math_fail(s->m, FX_EINVAL, "a negative number of seeds");
	switch (spec->source) {
	case FX_SEEDS_GRID:
		return count_grid(s);
	case FX_SEEDS_REGION:
		status = list_voxels(s);
		if (status == FX_OK && !spec->count && !fx_mul_size(s->voxels->n, spec->per_voxel, &s->n_places))
			return fx_math_fail(s->m, FX_EDATA, "%lld seeds in each of %lld voxels are too many",
				(long long)spec->per_voxel, (long long)s->voxels->n);
		s->n_places = spec->count ? spec->count : s->n_places;
		return status;
	case FX_SEEDS_BALL:
		if (!(spec->radius >= 0) || isinf(spec->radius))
			return fx_math_fail(s->m, FX_EINVAL, "a ball of seeds wants a radius of 0 mm or more");
		s->n_places = spec->count;
		return FX_OK;
	default:
		if (!spec->list || spec->list->type != FX_F64 || (spec->list->dims[0] != 3 && spec->list->dims[0] != 6))
			return fx_math_fail(s->m, FX_EINVAL, "a list of seeds is f64 {3 or 6, n}");
		s->n_places = spec->list->dims[1];
		return FX_OK;
	}
}

static int count_ways(fx_seeds *s)
{
	const fx_seeds_spec *spec = &s->spec;
	int status = FX_OK;

	if (spec->directions == FX_DIRECTIONS_GIVEN && (spec->source != FX_SEEDS_LIST || spec->list->dims[0] != 6))
		return fx_math_fail(s->m, FX_EINVAL, "directions are to be those given, but %s", spec->source == FX_SEEDS_LIST
			? "the seeds have three columns; give x y z dx dy dz" : "only a list of seeds can have them");
	s->n_ways = 1;
	if (spec->n_directions > MOST_SEEDS)
		return fx_math_fail(s->m, FX_EDATA, "%lld directions are more than 2^32 - 1 seeds", (long long)spec->n_directions);
	if (spec->directions == FX_DIRECTIONS_SPHERE || spec->directions == FX_DIRECTIONS_BOTH) {
		status = fx_fibonacci_sphere(spec->n_directions, &s->sphere);
		if (status != FX_OK)
			return fx_math_fail(s->m, status, "cannot lay %lld directions on a sphere", (long long)spec->n_directions);
		s->n_ways = spec->n_directions + (spec->directions == FX_DIRECTIONS_BOTH);
	} else if (spec->directions == FX_DIRECTIONS_RANDOM) {
		s->n_ways = spec->n_directions;
		if (s->n_ways < 1)
			return fx_math_fail(s->m, FX_EINVAL, "%lld random directions: give at least one", (long long)s->n_ways);
	}
	return status;
}

int fx_seeds_new(fx_math *m, const fx_seeds_spec *spec, fx_seeds **out)
{
	fx_seeds *s = calloc(1, sizeof *s);
	int64_t n;
	int status;

	if (!s)
		return fx_math_fail(m, FX_ENOMEM, "no memory for seeds");
	s->m = m;
	s->spec = *spec;
	fx_array_ref(s->spec.list);
	fx_array_ref(s->spec.region);
	for (int d = 0; d < 3; d++) {
		s->low[d] = INFINITY;
		s->high[d] = -INFINITY;
	}
	status = count_places(s);
	if (status == FX_OK)
		status = count_ways(s);
	if (status == FX_OK && (!fx_mul_size(s->n_places, s->n_ways, &n) || n > MOST_SEEDS))
		status = fx_math_fail(m, FX_EDATA, "%lld places with %lld directions each are more than 2^32 - 1 seeds",
			(long long)s->n_places, (long long)s->n_ways);
	if (status == FX_OK && n == 0)
		status = fx_math_fail(m, FX_EDATA, "no seeds: the list is empty, or their number is 0");
	if (status == FX_OK && spec->source == FX_SEEDS_REGION && spec->centred && s->n_places > s->voxels->n &&
		spec->directions != FX_DIRECTIONS_RANDOM)
		status = fx_math_fail(m, FX_EINVAL, "%lld seeds at the centres of %lld voxels would give the same fibres again; place them at "
			"random, or one a voxel", (long long)s->n_places, (long long)s->voxels->n);
	if (status != FX_OK) {
		fx_seeds_free(s);
		return status;
	}
	*out = s;
	return FX_OK;
}

void fx_seeds_free(fx_seeds *s)
{
	if (!s)
		return;
	fx_array_unref(s->spec.list);
	fx_array_unref(s->spec.region);
	fx_array_unref(s->voxels);
	fx_array_unref(s->sphere);
	free(s);
}

int64_t fx_seeds_count(const fx_seeds *s)
{
	return s->n_places * s->n_ways;
}

/* ---- handing out ------------------------------------------------------------------------------ */

static void find_place(fx_seeds *s, int64_t i)
{
	switch (s->spec.source) {
	case FX_SEEDS_REGION:
		region_place(s, i, s->place);
		break;
	case FX_SEEDS_BALL:
		ball_place(s, i, s->place);
		break;
	case FX_SEEDS_GRID:
		grid_place(s, s->place);
		break;
	default:
		memcpy(s->place, FX_F64_OF(s->spec.list) + s->spec.list->dims[0] * i, sizeof s->place);
	}
	for (int d = 0; d < 3; d++) {
		s->low[d] = fmin(s->low[d], s->place[d]);
		s->high[d] = fmax(s->high[d], s->place[d]);
	}
}

static void find_direction(const fx_seeds *s, int64_t seed, double v[3])
{
	int64_t place = seed / s->n_ways, way = seed % s->n_ways;

	v[0] = v[1] = v[2] = 0;
	if (s->spec.directions == FX_DIRECTIONS_BOTH)
		way--;
	if (s->spec.directions == FX_DIRECTIONS_GIVEN)
		memcpy(v, FX_F64_OF(s->spec.list) + 6 * place + 3, 3 * sizeof *v);
	else if (s->spec.directions == FX_DIRECTIONS_RANDOM)
		unit_vector(s->spec.seed, STREAM_POLE, STREAM_AZIMUTH, (uint64_t)seed, v);
	else if (s->sphere && way >= 0)
		memcpy(v, FX_F64_OF(s->sphere) + 3 * way, 3 * sizeof *v);
}

int fx_seeds_next(fx_seeds *s, int64_t most, fx_array **out, int64_t *first)
{
	int64_t left = fx_seeds_count(s) - s->next, n = most < left ? most : left;
	fx_array *seeds = NULL;

	*out = NULL;
	*first = s->next;
	if (n <= 0)
		return FX_OK;
	if (fx_array_new2(FX_F64, 6, n, &seeds) != FX_OK)
		return fx_math_fail(s->m, FX_ENOMEM, "no memory for %lld seeds", (long long)n);
	for (int64_t i = 0; i < n; i++, s->next++) {
		double *seed = FX_F64_OF(seeds) + 6 * i;

		if (s->next % s->n_ways == 0)
			find_place(s, s->next / s->n_ways);
		memcpy(seed, s->place, sizeof s->place);
		find_direction(s, s->next, seed + 3);
	}
	*out = seeds;
	return FX_OK;
}

void fx_seeds_box(const fx_seeds *s, double low[3], double high[3])
{
	memcpy(low, s->low, sizeof s->low);
	memcpy(high, s->high, sizeof s->high);
}
