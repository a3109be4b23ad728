/* SPDX-License-Identifier: MIT */
/*
 * nufft_crowded.h - included by nufft.c: spreading of crowded tiles in single precision.
 *
 * A cell that thousands of samples are added to, one after the other, drifts: in single precision F^H D of radial lines was off by
 * 2e-5, and ten iterations of conjugate gradients made 2e-4 of the image of that. So a crowded tile is summed in groups of samples on a
 * patch of its own, the groups in double, and the grid gets the sum once.
 */

/** Samples of a group, and from how many in a task on there are groups. */
#define GROUP 512
#define GROUPED 512

/* A tile with its rim, as a grid of its own. */
struct patch {
	int64_t origin[3], size[3];
	int64_t pitch, cells;  /* of a row: kernels write zeros beyond their width, which must not wrap */
};

/* Along an axis of one tile footprints wrap, as on the grid. */
static int64_t beyond(const struct points *p)
{
	return p->n_tiles[0] == 1 ? 0 : FXI_WIDTHS - p->grid.width[0];
}

static int64_t longest(const struct points *p, int axis)
{
	int64_t fine = p->shape.fine[axis], tiles = p->n_tiles[axis];

	return tiles == 1 ? fine : (fine + tiles - 1) / tiles + p->grid.width[axis] - 1;
}

static void patch_of(const struct points *p, const fxi_point_f32 *first, struct patch *patch)
{
	for (int a = 0; a < 3; a++) {
		int64_t fine = p->shape.fine[a], tiles = p->n_tiles[a], tile = p->tile[a][first->cell[a]];

		patch->origin[a] = tiles == 1 ? 0 : tile * fine / tiles;
		patch->size[a] = tiles == 1 ? fine : (tile + 1) * fine / tiles - patch->origin[a] + p->grid.width[a] - 1;
	}
	patch->pitch = patch->size[0] + beyond(p);
	patch->cells = patch->pitch * patch->size[1] * patch->size[2];
}

/* Bytes that a thread works in: the points of a group, and for every coil the patch in single and in double. */
static int64_t patch_bytes(const struct points *p, int64_t n_coils)
{
	int64_t cells = (longest(p, 0) + beyond(p)) * longest(p, 1) * longest(p, 2) * p->grid.components;

	return GROUP * (int64_t)sizeof(fxi_point_f32) + (n_coils < FXI_NUFFT_COILS ? n_coils : FXI_NUFFT_COILS) * cells *
		(int64_t)(sizeof(double) + sizeof(float));
}

/* What a group left in `single`, which is cleared, to `sums`, or where it is the only one (sums NULL) to the grid. */
static void collect(const struct points *p, const fxi_nufft_part *part, const struct patch *patch, float *single, double *sums,
	float *fine)
{
	int comps = p->grid.components;
	int64_t row = patch->size[0] * comps, pitch = p->shape.fine[0] * comps, low[3] = {0}, high[3] = {0, patch->size[1], patch->size[2]};

	if (part->axis > 0) {
		low[part->axis] = part->low;
		high[part->axis] = part->high;
	}
	for (int c = 0; c < part->n_coils; c++)
		for (int64_t z = low[2]; z < high[2]; z++)
			for (int64_t y = low[1]; y < high[1]; y++) {
				int64_t at = comps * (c * patch->cells + patch->pitch * (y + patch->size[1] * z));
				float *to = fine + c * part->fine_stride + pitch * ((patch->origin[1] + y) % p->shape.fine[1] +
					p->shape.fine[1] * ((patch->origin[2] + z) % p->shape.fine[2]));

				for (int64_t i = 0; i < row && sums && single; i++)
					sums[at + i] += (double)single[at + i];
				for (int64_t i = 0, x = patch->origin[0] * comps; i < row && !(sums && single); i++, x = x + 1 < pitch ? x + 1 : 0)
					to[x] += single ? single[at + i] : (float)sums[at + i];
				memset(single ? (void *)(single + at) : (void *)(sums + at), 0, (size_t)row * (single ? sizeof(float) : sizeof(double)));
			}
}

struct crowd {
	struct job_f32 job;
	fxi_scratch scratch;
};

static void spread_crowded(void *arg, int64_t i)
{
	struct crowd *crowd = arg;
	const struct job_f32 *j = &crowd->job;
	const struct points *p = j->p;
	const struct task *t = j->tasks + i / j->n_batches;
	const fxi_point_f32 *points = (const fxi_point_f32 *)p->sorted + t->first;
	int64_t coil = i % j->n_batches * FXI_NUFFT_COILS, left = j->n_coils - coil;
	fxi_nufft_part part = t->part, some = t->part;
	fxi_nufft_grid grid = p->grid;
	fxi_point_f32 *group;
	struct patch patch;
	float *single, *out = j->out + coil * p->cells * p->grid.components;
	double *sums;

	if (part.n <= GROUPED) {
		spread_task_f32(&crowd->job, i);
		return;
	}
	patch_of(p, points, &patch);
	part.n_coils = some.n_coils = (int)(left < FXI_NUFFT_COILS ? left : FXI_NUFFT_COILS);
	part.fine_stride = p->cells * p->grid.components;
	some.sample_stride = j->n_samples * p->grid.components;
	some.fine_stride = patch.cells * p->grid.components;
	some.origin = 0;
	for (int a = 0; a < 3; a++)
		grid.fine[a] = a == 0 ? patch.pitch : patch.size[a];
	sums = fxi_scratch_take(&crowd->scratch);
	single = (float *)(sums + part.n_coils * some.fine_stride);
	group = (fxi_point_f32 *)(single + part.n_coils * some.fine_stride);
	for (int64_t first = 0; first < part.n; first += GROUP) {
		some.n = part.n - first < GROUP ? part.n - first : GROUP;
		for (int64_t k = 0; k < some.n; k++) {
			group[k] = points[first + k];
			for (int a = 0; a < 3; a++)
				group[k].cell[a] -= (int32_t)patch.origin[a];
		}
		FXI_PICK(fxi_nufft_spread_f32)(&grid, &some, group, j->in + coil * some.sample_stride, single);
		collect(p, &part, &patch, single, part.n > GROUP ? sums : NULL, out);
	}
	if (part.n > GROUP)
		collect(p, &part, &patch, NULL, sums, out);
	fxi_scratch_give(&crowd->scratch, sums);
}

static bool has_crowds(const struct points *p)
{
	for (int64_t i = 0; i < p->n_tasks; i++)
		if (p->tasks[i].part.n > GROUPED)
			return true;
	return false;
}
