/* SPDX-License-Identifier: MIT */
/*
 * nufft_template.h - included by nufft.c with REAL, POINT and FN set for one precision.
 *
 * A sample touches width[1] * width[2] rows of width[0] cells. The row length is a constant in every copy of the loops, so
 * that a row is a few vectors held in registers.
 */
#define INLINE static inline __attribute__((always_inline))

/* Kernel values along one axis. */
INLINE void FN(values)(const fxi_nufft_grid *g, int axis, REAL u, REAL *out)
{
	const REAL *c = g->coefficients;

	if (g->width[axis] == 1) {
		out[0] = 1;
		return;
	}
	for (int j = 0; j < FXI_WIDTHS; j++)
		out[j] = c[j];
	for (int d = 1; d <= g->degree; d++) {
		c += FXI_WIDTHS;
#pragma omp simd
		for (int j = 0; j < FXI_WIDTHS; j++)
			out[j] = out[j] * u + c[j];
	}
}

/* Offsets, in reals, of the rows that start at `cell` along an axis of n cells, wrapping. */
INLINE void FN(rows)(int64_t cell, int width, int64_t n, int64_t stride, int64_t *out)
{
	for (int j = 0; j < width; j++) {
		out[j] = cell * stride;
		if (++cell == n)
			cell = 0;
	}
}

struct FN(footprint) {
	REAL x[FXI_WIDTHS], y[FXI_WIDTHS], z[FXI_WIDTHS];
	int64_t row_y[FXI_WIDTHS], row_z[FXI_WIDTHS];
	int y0, y1, z0, z1; /* rows that the task owns */
};

/* False where the task owns nothing of this sample's footprint. */
INLINE _Bool FN(clip)(const fxi_nufft_grid *g, const fxi_nufft_part *p, const POINT *at, struct FN(footprint) *f)
{
	int64_t first, low, high;

	f->y0 = f->z0 = 0;
	f->y1 = g->width[1];
	f->z1 = g->width[2];
	if (p->axis == 0)
		return 1;
	first = at->cell[p->axis] - p->origin;
	low = p->low - first > 0 ? p->low - first : 0;
	high = p->high - first < g->width[p->axis] ? p->high - first : g->width[p->axis];
	if (p->axis == 1) {
		f->y0 = (int)low;
		f->y1 = (int)high;
	} else {
		f->z0 = (int)low;
		f->z1 = (int)high;
	}
	return low < high;
}

INLINE void FN(prepare)(const fxi_nufft_grid *g, const POINT *at, struct FN(footprint) *f)
{
	int64_t pitch = g->fine[0] * g->components;

	FN(values)(g, 0, at->u[0], f->x);
	FN(values)(g, 1, at->u[1], f->y);
	FN(values)(g, 2, at->u[2], f->z);
	FN(rows)(at->cell[1], g->width[1], g->fine[1], pitch, f->row_y);
	FN(rows)(at->cell[2], g->width[2], g->fine[2], pitch * g->fine[1], f->row_z);
}

INLINE void FN(spread_point)(const fxi_nufft_grid *g, const struct FN(footprint) *f, const int width, const int components,
	int64_t cell, const REAL *value, REAL *fine)
{
	REAL row[2 * FXI_WIDTHS];
	int64_t first = cell * components, n = g->fine[0] * components;

	for (int i = 0; i < width; i++)
		for (int r = 0; r < components; r++)
			row[components * i + r] = f->x[i] * value[r];
	if (first + components * width <= n) {
		for (int z = f->z0; z < f->z1; z++)
			for (int y = f->y0; y < f->y1; y++) {
				REAL *to = fine + f->row_z[z] + f->row_y[y] + first;
				REAL k = f->z[z] * f->y[y];

#pragma omp simd
				for (int i = 0; i < components * width; i++)
					to[i] += k * row[i];
			}
		return;
	}
	for (int z = f->z0; z < f->z1; z++)
		for (int y = f->y0; y < f->y1; y++) {
			REAL *to = fine + f->row_z[z] + f->row_y[y];
			REAL k = f->z[z] * f->y[y];

			for (int i = 0; i < components * width; i++)
				to[(first + i) % n] += k * row[i];
		}
}

INLINE void FN(spread_width)(const fxi_nufft_grid *g, const fxi_nufft_part *p, const POINT *points, const REAL *samples,
	REAL *fine, const int width, const int components)
{
	struct FN(footprint) f;

	for (int64_t m = 0; m < p->n; m++) {
		const POINT *at = points + m;

		if (!FN(clip)(g, p, at, &f))
			continue;
		FN(prepare)(g, at, &f);
		for (int c = 0; c < p->n_coils; c++)
			FN(spread_point)(g, &f, width, components, at->cell[0],
				samples + c * p->sample_stride + (int64_t)at->index * components, fine + c * p->fine_stride);
	}
}

INLINE void FN(gather_point)(const fxi_nufft_grid *g, const struct FN(footprint) *f, const int width, const int components,
	int64_t cell, const REAL *fine, REAL *value)
{
	REAL row[2 * FXI_WIDTHS] = {0}, sum[2] = {0};
	int64_t first = cell * components, n = g->fine[0] * components;

	for (int z = 0; z < g->width[2]; z++)
		for (int y = 0; y < g->width[1]; y++) {
			const REAL *from = fine + f->row_z[z] + f->row_y[y];
			REAL k = f->z[z] * f->y[y];

			if (first + components * width <= n) {
#pragma omp simd
				for (int i = 0; i < components * width; i++)
					row[i] += k * from[first + i];
			} else {
				for (int i = 0; i < components * width; i++)
					row[i] += k * from[(first + i) % n];
			}
		}
	for (int i = 0; i < width; i++)
		for (int r = 0; r < components; r++)
			sum[r] += f->x[i] * row[components * i + r];
	for (int r = 0; r < components; r++)
		value[r] = sum[r];
}

INLINE void FN(gather_width)(const fxi_nufft_grid *g, const fxi_nufft_part *p, const POINT *points, const REAL *fine,
	REAL *samples, const int width, const int components)
{
	struct FN(footprint) f;

	for (int64_t m = 0; m < p->n; m++) {
		const POINT *at = points + m;

		FN(prepare)(g, at, &f);
		for (int c = 0; c < p->n_coils; c++)
			FN(gather_point)(g, &f, width, components, at->cell[0], fine + c * p->fine_stride,
				samples + c * p->sample_stride + (int64_t)at->index * components);
	}
}

/*
 * Copies for a few row lengths only: a kernel that is narrower than its copy has zeros in the last cells (columns of the
 * coefficients beyond its width are 0), which costs less than a copy of the loops for every width takes to compile.
 */
#define COPY(w) \
	do { \
		if (g->components == 2) \
			CALL(w, 2); \
		else \
			CALL(w, 1); \
	} while (0)
#define EACH_WIDTH \
	if (g->width[0] <= 1) \
		COPY(1); \
	else if (g->width[0] <= 4) \
		COPY(4); \
	else if (g->width[0] <= 6) \
		COPY(6); \
	else if (g->width[0] <= 8) \
		COPY(8); \
	else \
		COPY(FXI_WIDTHS);

void FN(fxi_nufft_spread)(const fxi_nufft_grid *g, const fxi_nufft_part *p, const POINT *points, const REAL *samples,
	REAL *fine)
{
#define CALL(w, components) FN(spread_width)(g, p, points, samples, fine, w, components)
	EACH_WIDTH
#undef CALL
}

void FN(fxi_nufft_gather)(const fxi_nufft_grid *g, const fxi_nufft_part *p, const POINT *points, const REAL *fine,
	REAL *samples)
{
#define CALL(w, components) FN(gather_width)(g, p, points, fine, samples, w, components)
	EACH_WIDTH
#undef CALL
}

#undef INLINE
#undef COPY
#undef EACH_WIDTH
