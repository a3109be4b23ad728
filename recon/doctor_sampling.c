/* SPDX-License-Identifier: MIT */
/*
 * doctor_sampling.c - what a trajectory says: unit, edge, third column, centre, density.
 *
 * Density is judged without knowing the kind: samples fall into cells of 1/FOV, the size Nyquist asks for, and the
 * distance transform (Felzenszwalb & Huttenlocher, Theory of Computing 8:415, 2012) finds the largest hole among
 * the cells that the trajectory spans.
 */
#include "recon/doctor_parts.h"

#include <math.h>
#include <stdlib.h>

#define MOST_CELLS (64 << 20)
#define EDGE (0.5 + 1e-5)  /* as fx_trajectory_keep_inside */
#define COVERED 0.9        /* spokes and arms just 1/FOV apart leave up to 6 % of the cells to their neighbours */
#define FAR 1e12           /* squared cells: no sample seen */

static int64_t n_axes(const fxi_doctor *d, int64_t e)
{
	int64_t columns = d->seen[e].counts.columns;

	return columns >= 3 ? (d->header->encodings[e].encoded.matrix[2] > 1 ? 3 : 2) : columns;
}

/* ---- unit, sign, third column -------------------------------------------------------------------- */

static int judge_unit(fxi_doctor *d, int64_t e)
{
	const struct fxi_seen *s = &d->seen[e];
	const fx_space *space = &d->header->encodings[e].encoded;
	double max_abs[3] = {s->max_abs[0], s->max_abs[1], n_axes(d, e) == 3 ? s->max_abs[2] : 0}, best = 0;
	fx_error why = {0};
	fx_math m = {.err = &why};
	int unit;

	if (fx_unit_decide(&m, max_abs, space->matrix, space->fov_mm, &unit) != FX_OK) {
		fxi_found(d, FXI_REFUSAL, e, "units", "%s", why.text);
		return FX_UNIT_AUTO;
	}
	for (int a = 0; a < 3; a++)
		if (space->matrix[a] > 1)
			best = fmax(best, max_abs[a] * fx_unit_factor(unit, a, space->matrix, space->fov_mm) / 0.5);
	fxi_found(d, FXI_FINE, e, "units", "%s: the best-filled axis reaches %.3g of its Nyquist frequency (largest numbers %g, %g, %g)",
		fx_unit_name(unit), best, s->max_abs[0], s->max_abs[1], s->max_abs[2]);
	return unit;
}

static void judge_third(fxi_doctor *d, int64_t e)
{
	const struct fxi_seen *s = &d->seen[e];
	int64_t nz = d->header->encodings[e].encoded.matrix[2];

	if (s->counts.columns < 3) {
		if (nz > 1)
			fxi_found(d, FXI_DOUBT, e, "third column", "the matrix has %lld planes, but the trajectory %lld columns: kz is missing",
				(long long)nz, (long long)s->counts.columns);
		return;
	}
	if (s->counts.columns > 3)
		fxi_found(d, FXI_DOUBT, e, "third column", "the trajectory has %lld columns; those beyond the third are not looked at",
			(long long)s->counts.columns);
	if (nz > 1 && s->third_min >= 0 && s->third_max > 0)
		fxi_found(d, FXI_DOUBT, e, "third column", "it is taken for kz, the matrix having %lld planes, but it is never negative (%g to "
			"%g): is it a weight? third=ignore", (long long)nz, s->third_min, s->third_max);
	else if (nz > 1)
		fxi_found(d, FXI_FINE, e, "third column", "kz, %g to %g", s->third_min, s->third_max);
	else if (s->third_min < 0 && s->third_max > 0)
		fxi_found(d, FXI_DOUBT, e, "third column", "it goes from %g to %g, like kz, but the matrix has one plane: it is ignored",
			s->third_min, s->third_max);
	else
		fxi_found(d, FXI_FINE, e, "third column", "%g to %g and the matrix has one plane: not kz, ignored", s->third_min,
			s->third_max);
}

/* ---- edge and centre ------------------------------------------------------------------------------ */

static void judge_edge(fxi_doctor *d, int64_t e)
{
	const struct fxi_seen *s = &d->seen[e];
	int64_t n = 0, outside = 0;
	double worst = 0;

	for (int64_t i = 0; i < s->n_kept; i++) {
		const fx_array *k = s->kept[i].k;

		for (int64_t j = 0; j < k->dims[1]; j++) {
			double largest = 0;

			for (int a = 0; a < 3; a++)
				largest = fmax(largest, fabs(FX_F64_OF(k)[3 * j + a]));
			outside += largest > EDGE;
			worst = fmax(worst, largest);
		}
		n += k->dims[1];
	}
	if (outside > 0)
		fxi_found(d, FXI_DOUBT, e, "edge", "%lld of the first frame's %lld samples (%.1f %%) lie beyond the matrix, up to %.4g "
			"cycles/voxel: they are left out, unless outside=grow", (long long)outside, (long long)n,
			100 * (double)outside / (double)n, worst);
	else
		fxi_found(d, FXI_FINE, e, "edge", "no sample lies beyond +-1/2 cycles/voxel; the farthest at %.4g", worst);
}

static void judge_centre(fxi_doctor *d, int64_t e)
{
	const struct fxi_seen *s = &d->seen[e];
	int64_t n_off = 0, n_missed = 0, told = 0, found = 0;
	double cell = 0;

	for (int a = 0; a < 3; a++)
		cell = fmax(cell, 1 / (double)d->header->encodings[e].encoded.matrix[a] < 1 ?
			1 / (double)d->header->encodings[e].encoded.matrix[a] : 0);
	for (int64_t i = 0; i < s->n_kept; i++) {
		const double *k = FX_F64_OF(s->kept[i].k);
		int64_t least = 0, n = s->kept[i].k->dims[1];
		double smallest = INFINITY;

		for (int64_t j = 0; j < n; j++) {
			double r = k[3 * j] * k[3 * j] + k[3 * j + 1] * k[3 * j + 1];

			if (r < smallest) {
				smallest = r;
				least = j;
			}
		}
		if (sqrt(smallest) > cell) {
			n_missed++;
		} else if (llabs(least - (int64_t)s->kept[i].head.center_sample) > 1) {
			if (n_off++ == 0) {
				told = s->kept[i].head.center_sample;
				found = least;
			}
		}
	}
	if (n_missed == s->n_kept)
		fxi_found(d, FXI_DOUBT, e, "centre", "no readout of the first frame comes within 1/FOV of the centre of k-space: the image's "
			"mean is not measured");
	else if (n_off > 0)
		fxi_found(d, FXI_DOUBT, e, "centre", "in %lld readouts of the first frame center_sample is not where the trajectory is nearest to "
			"k = 0 (the first: %lld, nearest is %lld); the trajectory counts", (long long)n_off, (long long)told, (long long)found);
	else
		fxi_found(d, FXI_FINE, e, "centre", "center_sample is where the trajectory is nearest to k = 0");
}

/* ---- density --------------------------------------------------------------------------------------- */

/* Squared distances along one line: the lower envelope of parabolas (Felzenszwalb & Huttenlocher, section 2). */
static void transform_line(const double *f, int64_t n, double *out, int64_t *at, double *from)
{
	int64_t k = 0;

	at[0] = 0;
	from[0] = -INFINITY;
	from[1] = INFINITY;
	for (int64_t q = 1; q < n; q++) {
		double s;

		for (;;) {
			double dq = (double)q, dv = (double)at[k];

			s = (f[q] + dq * dq - f[at[k]] - dv * dv) / (2 * (dq - dv));
			if (s > from[k])
				break;
			k--;
		}
		k++;
		at[k] = q;
		from[k] = s;
		from[k + 1] = INFINITY;
	}
	k = 0;
	for (int64_t q = 0; q < n; q++) {
		double away;

		while (from[k + 1] < (double)q)
			k++;
		away = (double)(q - at[k]);
		out[q] = away * away + f[at[k]];
	}
}

/* Squared distance, in cells, to the nearest cell that holds 0; in place, `scratch` has room for one line four times. */
static void transform(double *cells, const int64_t n[3], double *scratch)
{
	int64_t stride = 1;

	for (int a = 0; a < 3; a++) {
		int64_t lines = n[0] * n[1] * n[2] / n[a];
		double *f = scratch, *out = f + n[a], *from = out + n[a];
		int64_t *at = (int64_t *)(from + n[a] + 1);

		for (int64_t l = 0; n[a] > 1 && l < lines; l++) {
			double *line = cells + l % stride + l / stride * stride * n[a];

			for (int64_t i = 0; i < n[a]; i++)
				f[i] = line[i * stride];
			transform_line(f, n[a], out, at, from);
			for (int64_t i = 0; i < n[a]; i++)
				line[i * stride] = out[i];
		}
		stride *= n[a];
	}
}

/* Marks cells that hold a sample; `reach` is how far the trajectory goes along each axis. Cell i is k = (i - n/2)/n. */
static int64_t fill(const struct fxi_seen *s, const int64_t n[3], double *cells, double reach[3])
{
	int64_t total = n[0] * n[1] * n[2], hit = 0;

	for (int64_t i = 0; i < total; i++)
		cells[i] = FAR;
	for (int64_t i = 0; i < s->n_kept; i++) {
		const double *k = FX_F64_OF(s->kept[i].k);

		for (int64_t j = 0; j < s->kept[i].k->dims[1]; j++, k += 3) {
			int64_t at = 0, stride = 1;
			bool inside = true;

			for (int a = 0; a < 3; a++) {
				int64_t c = llround(k[a] * (double)n[a]) + n[a] / 2;

				inside = inside && fabs(k[a]) <= EDGE;
				c = c < 0 ? 0 : c >= n[a] ? n[a] - 1 : c;
				at += stride * c;
				stride *= n[a];
			}
			if (!inside)
				continue;
			for (int a = 0; a < 3; a++)
				reach[a] = fmax(reach[a], fabs(k[a]));
			hit += cells[at] > 0;
			cells[at] = 0;
		}
	}
	return hit;
}

/* Cells within the ellipsoid that the trajectory reaches (a box where its corners are sampled): how many, and the worst. */
static int64_t within(const int64_t n[3], const double *cells, const double reach[3], double *worst)
{
	int64_t at = 0, inside = 0;

	*worst = 0;
	for (int64_t z = 0; z < n[2]; z++)
		for (int64_t y = 0; y < n[1]; y++)
			for (int64_t x = 0; x < n[0]; x++, at++) {
				const int64_t i[3] = {x, y, z};
				double r = 0;

				for (int a = 0; a < 3; a++) {
					/* half a cell short of the reach: the outermost cells may be cut */
					double far = reach[a] - 0.5 / (double)n[a], k = (double)(i[a] - n[a] / 2) / (double)n[a];

					if (n[a] > 1 && k != 0)
						r += far > 0 ? k * k / (far * far) : INFINITY;
				}
				if (r > 1)
					continue;
				inside++;
				*worst = fmax(*worst, cells[at]);
			}
	return inside;
}

static void judge_density(fxi_doctor *d, int64_t e)
{
	const struct fxi_seen *s = &d->seen[e];
	const int64_t *n = d->header->encodings[e].encoded.matrix;
	int64_t total, hit, inside, longest = n[0] > n[1] ? n[0] : n[1];
	double *cells, *scratch, reach[3] = {0}, worst, share;

	longest = n[2] > longest ? n[2] : longest;
	if (!fx_mul_size(n[0], n[1], &total) || !fx_mul_size(total, n[2], &total) || total > MOST_CELLS) {
		fxi_found(d, FXI_UNTOLD, e, "density", "the matrix is too large to be looked at cell by cell");
		return;
	}
	cells = fx_alloc(total, sizeof *cells);
	scratch = fx_alloc(4 * (longest + 2), sizeof *scratch);
	if (!cells || !scratch) {
		fx_free(cells);
		fx_free(scratch);
		fxi_found(d, FXI_UNTOLD, e, "density", "there is no memory to look at %lld cells of k-space", (long long)total);
		return;
	}
	hit = fill(s, n, cells, reach);
	transform(cells, n, scratch);
	inside = within(n, cells, reach, &worst);
	share = inside > 0 ? (double)hit / (double)inside : 0;
	/* an empty cell between full ones is a gap of at most 2/FOV, which rounding alone makes of a spacing just above 1/FOV */
	if (hit == 0 || inside == 0)
		fxi_found(d, FXI_UNTOLD, e, "density", "no sample of the first frame lies on the matrix");
	else if (worst > 1)
		fxi_found(d, FXI_DOUBT, e, "density", "the largest hole in the first frame's k-space is %.1f/FOV wide where Nyquist asks for "
			"1/FOV, and %.0f %% of the cells within reach hold a sample: undersampled about %.1f-fold (%lld readouts)",
			2 * sqrt(worst), 100 * fmin(share, 1), share < 1 ? 1 / share : 1, (long long)s->n_kept);
	else if (share < COVERED)
		fxi_found(d, FXI_DOUBT, e, "density", "%.0f %% of the cells of 1/FOV within reach of the first frame hold a sample: undersampled "
			"about %.1f-fold, though no hole is wider than 2/FOV (%lld readouts)", 100 * share, 1 / share, (long long)s->n_kept);
	else
		fxi_found(d, FXI_FINE, e, "density", "no hole in the first frame's k-space is wider than 2/FOV; %.0f %% of the cells within reach "
			"hold a sample (%lld readouts)", 100 * fmin(share, 1), (long long)s->n_kept);
	fx_free(cells);
	fx_free(scratch);
}

void fxi_doctor_sampling(fxi_doctor *d, int64_t e)
{
	struct fxi_seen *s = &d->seen[e];
	const fx_encoding *encoding = &d->header->encodings[e];
	int unit = judge_unit(d, e);
	fx_error why = {0};
	fx_math m = {.err = &why};

	fxi_found(d, FXI_UNTOLD, e, "sign", "a trajectory and its negative differ by a half turn of the image, and data of a real "
		"object fit both: compare an image with what you know of the object");
	judge_third(d, e);
	if (unit == FX_UNIT_AUTO || s->n_not_finite > 0 || s->n_lengths_differ > 0 || s->n_with_trajectory <
		s->counts.readouts[FXI_READOUT_IMAGING])
		return;
	for (int64_t i = 0; i < s->n_kept; i++) {
		fx_array *none = NULL;
		int status = fx_array_new2(FX_CF32, s->kept[i].traj->dims[1], 0, &none); /* only its length is asked for */

		s->kept[i].data = none;
		if (status == FX_OK)
			status = fx_trajectory_convert(&m, &s->kept[i], encoding, unit, (int)n_axes(d, e), encoding->encoded.matrix);
		fx_array_unref(none);
		s->kept[i].data = NULL;
		if (status != FX_OK) {
			d->short_of_memory = d->short_of_memory || status == FX_ENOMEM;
			if (status != FX_ENOMEM)
				fxi_found(d, FXI_REFUSAL, e, "units", "%s", why.text);
			return;
		}
	}
	judge_edge(d, e);
	judge_centre(d, e);
	judge_density(d, e);
}
