/* SPDX-License-Identifier: MIT */
/* nufft_template.h - included by nufft.c with REAL, POINT, PICK and FN set for one precision. */

static void FN(fill_point)(const struct points *p, const double *k, int64_t m, POINT *to)
{
	to->index = (uint32_t)m;
	for (int a = 0; a < 3; a++) {
		double u;

		to->cell[a] = 0;
		to->u[a] = 0;
		if (a < p->shape.n_axes) {
			to->cell[a] = cell_of(p->shape.fine[a], p->grid.width[a], k[3 * m + p->shape.order[a]], &u);
			to->u[a] = (REAL)u;
		}
	}
}

/* Counting sort by tile: `start` holds each tile's first place and is moved on to its end. */
static void FN(sort)(struct points *p, const double *k, int64_t *start)
{
	POINT *sorted = p->sorted;

	for (int64_t m = 0; m < p->n; m++) {
		POINT point;

		FN(fill_point)(p, k, m, &point);
		sorted[start[tile_of(p, point.cell)]++] = point;
	}
}

struct FN(job) {
	const struct points *p;
	const struct task *tasks;
	int64_t n_batches, n_coils, n_samples;
	const REAL *in;
	REAL *out;
};

static void FN(spread_task)(void *arg, int64_t i)
{
	const struct FN(job) *j = arg;
	const struct points *p = j->p;
	const struct task *t = j->tasks + i / j->n_batches;
	int64_t coil = i % j->n_batches * FXI_NUFFT_COILS, left = j->n_coils - coil;
	fxi_nufft_part part = t->part;

	part.n_coils = (int)(left < FXI_NUFFT_COILS ? left : FXI_NUFFT_COILS);
	part.sample_stride = j->n_samples * p->grid.components;
	part.fine_stride = p->cells * p->grid.components;
	PICK(fxi_nufft_spread)(&p->grid, &part, (const POINT *)p->sorted + t->first, j->in + coil * part.sample_stride,
		j->out + coil * part.fine_stride);
}

static void FN(gather_task)(void *arg, int64_t i)
{
	const struct FN(job) *j = arg;
	const struct points *p = j->p;
	int64_t first = i / j->n_batches * GATHER_POINTS;
	int64_t coil = i % j->n_batches * FXI_NUFFT_COILS, left = j->n_coils - coil;
	fxi_nufft_part part = {.n = p->n - first < GATHER_POINTS ? p->n - first : GATHER_POINTS};

	part.n_coils = (int)(left < FXI_NUFFT_COILS ? left : FXI_NUFFT_COILS);
	part.sample_stride = j->n_samples * p->grid.components;
	part.fine_stride = p->cells * p->grid.components;
	PICK(fxi_nufft_gather)(&p->grid, &part, (const POINT *)p->sorted + first, j->in + coil * part.fine_stride,
		j->out + coil * part.sample_stride);
}
