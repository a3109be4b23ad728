/* SPDX-License-Identifier: MIT */
/* resample.c - a volume from elsewhere in the same space, brought onto a frame's grid by the two affines. */
#include <fornix/recon.h>

#include <math.h>

bool fx_frame_affine(const fx_frame *frame, double affine[3][4])
{
	const fx_geometry *g = &frame->geometry;
	const float *directions[3] = {g->read_dir, g->phase_dir, g->slice_dir};

	for (int i = 0; i < 3; i++)
		affine[i][3] = (double)g->position[i];
	for (int d = 0; d < 3; d++) {
		double length2 = 0, voxel = g->matrix[d] > 0 ? g->fov_mm[d] / (double)g->matrix[d] : 0;

		for (int i = 0; i < 3; i++)
			length2 += (double)directions[d][i] * (double)directions[d][i];
		if (!(fabs(length2 - 1) < 0.01) || !(voxel > 0 || frame->grid[d] == 1))
			return false;
		if (!(voxel > 0))
			voxel = 1; /* of the one plane that there is */
		for (int i = 0; i < 3; i++) {
			affine[i][d] = voxel * (double)directions[d][i];
			affine[i][3] -= (double)(frame->grid[d] / 2) * affine[i][d];
		}
	}
	for (int i = 0; i < 2; i++) /* LPS to RAS */
		for (int j = 0; j < 4; j++)
			affine[i][j] = -affine[i][j];
	return true;
}

/* inverse(a) of the 3x3 part; false where it has none. */
static bool invert(double a[3][4], double out[3][3])
{
	double det = 0, size = 1;

	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 3; j++) {
			int p = (j + 1) % 3, q = (j + 2) % 3, r = (i + 1) % 3, s = (i + 2) % 3;

			out[i][j] = a[p][r] * a[q][s] - a[p][s] * a[q][r]; /* cofactor of a[j][i] */
		}
	for (int j = 0; j < 3; j++) {
		det += a[0][j] * out[j][0];
		size *= sqrt(a[0][j] * a[0][j] + a[1][j] * a[1][j] + a[2][j] * a[2][j]);
	}
	if (!isfinite(det) || !(fabs(det) > 1e-6 * size))
		return false;
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 3; j++)
			out[i][j] /= det;
	return true;
}

struct job {
	const fx_array *volume;
	const int64_t *dims;
	double map[3][4];      /* index on the new grid to index in the volume */
	int64_t n_points[3];   /* averaged over a voxel, along each axis */
	float *out;
	int64_t *inside;       /* voxels of each row that lie in the volume */
};

static double interpolate(const fx_array *v, const double at[3])
{
	int64_t low[3], high[3];
	double part[3], sum = 0;

	for (int d = 0; d < 3; d++) {
		double top = (double)(v->dims[d] - 1), x = at[d] < 0 ? 0 : at[d] > top ? top : at[d];

		low[d] = (int64_t)x;
		high[d] = low[d] + 1 < v->dims[d] ? low[d] + 1 : low[d];
		part[d] = x - (double)low[d];
	}
	for (int c = 0; c < 8; c++) {
		int64_t x = c & 1 ? high[0] : low[0], y = c & 2 ? high[1] : low[1], z = c & 4 ? high[2] : low[2];
		double w = (c & 1 ? part[0] : 1 - part[0]) * (c & 2 ? part[1] : 1 - part[1]) *
			(c & 4 ? part[2] : 1 - part[2]);

		sum += w * (double)FX_F32_OF(v)[x + v->dims[0] * (y + v->dims[1] * z)];
	}
	return sum;
}

static void to_volume(const struct job *j, const double index[3], double at[3])
{
	for (int d = 0; d < 3; d++)
		at[d] = j->map[d][0] * index[0] + j->map[d][1] * index[1] + j->map[d][2] * index[2] + j->map[d][3];
}

static double voxel_mean(const struct job *j, const double centre[3])
{
	const int64_t *n = j->n_points;
	double sum = 0;

	for (int64_t i = 0; i < n[0] * n[1] * n[2]; i++) {
		int64_t point[3] = {i % n[0], i / n[0] % n[1], i / n[0] / n[1]};
		double index[3], at[3];

		for (int d = 0; d < 3; d++)
			index[d] = centre[d] + ((double)point[d] + 0.5) / (double)n[d] - 0.5;
		to_volume(j, index, at);
		sum += interpolate(j->volume, at);
	}
	return sum / (double)(n[0] * n[1] * n[2]);
}

static void row(void *arg, int64_t r)
{
	struct job *j = arg;

	for (int64_t x = 0; x < j->dims[0]; x++) {
		double index[3] = {(double)x, (double)(r % j->dims[1]), (double)(r / j->dims[1])}, at[3];
		bool inside = true;

		to_volume(j, index, at);
		for (int d = 0; d < 3; d++)
			inside = inside && at[d] >= -0.5 && at[d] <= (double)j->volume->dims[d] - 0.5;
		j->inside[r] += inside;
		j->out[r * j->dims[0] + x] = (float)voxel_mean(j, index);
	}
}

static void plan(struct job *j, double affine[3][4], double inverse[3][3], double out_affine[3][4])
{
	for (int i = 0; i < 3; i++)
		for (int c = 0; c < 4; c++) {
			j->map[i][c] = 0;
			for (int l = 0; l < 3; l++)
				j->map[i][c] += inverse[i][l] * (out_affine[l][c] - (c == 3 ? affine[l][3] : 0));
		}
	for (int d = 0; d < 3; d++) { /* as many points as the new voxel crosses old ones */
		double longest = 0;

		for (int i = 0; i < 3; i++)
			longest = fmax(longest, j->volume->dims[i] > 1 ? fabs(j->map[i][d]) : 0);
		j->n_points[d] = longest > 1.001 ? (int64_t)fmin(ceil(longest - 1e-3), 16) : 1;
	}
}

int fx_resample_affine(fx_math *m, const fx_array *volume, double affine[3][4], const int64_t dims[3],
	double out_affine[3][4], fx_array **out, double *inside)
{
	struct job j = {.volume = volume, .dims = dims};
	double inverse[3][3];
	int64_t count = 0, rows = dims[1] * dims[2];

	*out = NULL;
	if (volume->type != FX_F32 || volume->n == 0 || volume->n != volume->dims[0] * volume->dims[1] * volume->dims[2])
		return fx_math_fail(m, FX_EINVAL, "only an f32 volume {x,y,z} with voxels can be resampled");
	if (!invert(affine, inverse))
		return fx_math_fail(m, FX_EDATA, "the volume's affine has no inverse: its sform or qform is damaged");
	plan(&j, affine, inverse, out_affine);
	j.inside = fx_alloc(rows, sizeof *j.inside);
	if (!j.inside || fx_array_new(FX_F32, 3, dims, out) != FX_OK) {
		fx_free(j.inside);
		return fx_math_fail(m, FX_ENOMEM, "no memory to resample a volume to %lld x %lld x %lld voxels",
			(long long)dims[0], (long long)dims[1], (long long)dims[2]);
	}
	j.out = FX_F32_OF(*out);
	fx_parallel(m->n_threads, rows, row, &j);
	for (int64_t r = 0; r < rows; r++)
		count += j.inside[r];
	fx_free(j.inside);
	*inside = (*out)->n > 0 ? (double)count / (double)(*out)->n : 0;
	return FX_OK;
}
