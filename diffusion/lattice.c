/* SPDX-License-Identifier: MIT */
/*
 * lattice.c - voxel grids and where they lie: affines, their inverses and axes, and the way from MRD's geometry (LPS,
 * the position of the centre voxel) to one (RAS, the position of the first).
 */
#include <fornix/diffusion.h>

#include <math.h>
#include <string.h>

/* Headers round direction cosines to as few as three digits. */
#define UNIT_TOLERANCE 5e-3
/* |det| of unit axes below which they span no volume worth the name: a shear to within a millionth of flat. */
#define FLAT 1e-6

static double dot(const double a[3], const double b[3])
{
	return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static double determinant(double m[3][3])
{
	return m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
		m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
}

/* By cofactors; the caller has seen to it that det is not 0. */
static void invert(double m[3][3], double det, double out[3][3])
{
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 3; j++) {
			int r0 = (j + 1) % 3, r1 = (j + 2) % 3, c0 = (i + 1) % 3, c1 = (i + 2) % 3;

			out[i][j] = (m[r0][c0] * m[r1][c1] - m[r0][c1] * m[r1][c0]) / det;
		}
}

/* The affine's columns made unit vectors, their lengths in mm; false where they are not finite or span no volume. */
static bool unit_columns(const fx_lattice *l, double unit[3][3], double mm[3])
{
	fx_lattice_voxel_mm(l, mm);
	for (int a = 0; a < 3; a++) {
		if (!(isfinite(mm[a]) && mm[a] > 0))
			return false;
		for (int i = 0; i < 3; i++)
			unit[i][a] = l->affine[i][a] / mm[a];
	}
	return fabs(determinant(unit)) > FLAT;
}

int fx_lattice_inverse(const fx_lattice *l, double inverse[3][4], fx_error *err)
{
	double unit[3][3], mm[3], back[3][3];

	memset(inverse, 0, 12 * sizeof(double));
	if (!unit_columns(l, unit, mm) || !isfinite(l->affine[0][3] + l->affine[1][3] + l->affine[2][3]))
		return fx_error_set(err, FX_EDATA, "the image's affine cannot be inverted (axes %g %g %g, %g %g %g, %g %g %g mm): "
			"its voxels span no volume; repair the file's sform", l->affine[0][0], l->affine[1][0], l->affine[2][0],
			l->affine[0][1], l->affine[1][1], l->affine[2][1], l->affine[0][2], l->affine[1][2], l->affine[2][2]);
	invert(unit, determinant(unit), back);
	for (int a = 0; a < 3; a++) {
		double shift = 0;

		for (int i = 0; i < 3; i++) {
			inverse[a][i] = back[a][i] / mm[a];
			shift += inverse[a][i] * l->affine[i][3];
		}
		inverse[a][3] = -shift;
	}
	return FX_OK;
}

void fx_affine_apply(const double affine[3][4], const double x[3], double y[3])
{
	double out[3];

	for (int i = 0; i < 3; i++)
		out[i] = affine[i][0] * x[0] + affine[i][1] * x[1] + affine[i][2] * x[2] + affine[i][3];
	memcpy(y, out, sizeof out);
}

void fx_lattice_voxel_mm(const fx_lattice *l, double mm[3])
{
	for (int a = 0; a < 3; a++) {
		double axis[3] = {l->affine[0][a], l->affine[1][a], l->affine[2][a]};

		mm[a] = sqrt(dot(axis, axis));
	}
}

bool fx_lattice_axes(const fx_lattice *l, double axes[3][3])
{
	double mm[3], back[3][3];

	if (!unit_columns(l, axes, mm))
		return false;
	/* Newton's iteration for the orthogonal polar factor, X <- (X + X^-T) / 2 (Higham 1986): quadratic near the end. */
	for (int step = 0; step < 60; step++) {
		double change = 0;

		invert(axes, determinant(axes), back);
		for (int i = 0; i < 3; i++)
			for (int a = 0; a < 3; a++) {
				double next = 0.5 * (axes[i][a] + back[a][i]);

				change = fmax(change, fabs(next - axes[i][a]));
				axes[i][a] = next;
			}
		if (change < 1e-15)
			break;
	}
	return true;
}

bool fx_lattice_same(const fx_lattice *a, const fx_lattice *b, double tolerance_mm)
{
	for (int i = 0; i < 3; i++)
		if (a->dims[i] != b->dims[i])
			return false;
	for (int corner = 0; corner < 8; corner++) {
		double x[3], p[3], q[3], away = 0;

		for (int i = 0; i < 3; i++)
			x[i] = (corner >> i) & 1 ? (double)a->dims[i] - 0.5 : -0.5;
		fx_affine_apply(a->affine, x, p);
		fx_affine_apply(b->affine, x, q);
		for (int i = 0; i < 3; i++)
			away += (p[i] - q[i]) * (p[i] - q[i]);
		if (!(sqrt(away) < tolerance_mm))
			return false;
	}
	return true;
}

/* ---- MRD's geometry --------------------------------------------------------------------------- */

bool fx_image_axes(const ISMRMRD_ImageHeader *h, double axes[3][3])
{
	for (int i = 0; i < 3; i++) {
		axes[0][i] = h->read_dir[i];
		axes[1][i] = h->phase_dir[i];
		axes[2][i] = h->slice_dir[i];
	}
	for (int a = 0; a < 3; a++) {
		if (!(fabs(sqrt(dot(axes[a], axes[a])) - 1) < UNIT_TOLERANCE))
			return false;
		for (int b = 0; b < a; b++)
			if (!(fabs(dot(axes[a], axes[b])) < UNIT_TOLERANCE))
				return false;
	}
	/* Gram-Schmidt takes the rounding out, so that a file's sform and qform can agree exactly. */
	for (int a = 0; a < 3; a++) {
		double norm;

		for (int b = 0; b < a; b++) {
			double overlap = dot(axes[a], axes[b]);

			for (int i = 0; i < 3; i++)
				axes[a][i] -= overlap * axes[b][i];
		}
		norm = sqrt(dot(axes[a], axes[a]));
		for (int i = 0; i < 3; i++)
			axes[a][i] /= norm;
	}
	return true;
}

void fx_lattice_of_image(const fx_image *first_slice, const double slice_step_mm[3], int64_t n_slices, fx_lattice *out)
{
	const ISMRMRD_ImageHeader *h = &first_slice->head;
	bool three_d = h->matrix_size[2] > 1;
	double axes[3][3], steps[3][3], mm[3];
	bool usable = fx_image_axes(h, axes);

	memset(out, 0, sizeof *out);
	for (int a = 0; a < 3; a++) {
		out->dims[a] = a == 2 && !three_d ? n_slices : h->matrix_size[a];
		mm[a] = (double)h->field_of_view[a] / (h->matrix_size[a] > 0 ? h->matrix_size[a] : 1);
		usable = usable && isfinite(h->position[a]);
		for (int i = 0; i < 3; i++)
			steps[a][i] = usable ? axes[a][i] * mm[a] : 0;
	}
	if (!three_d && slice_step_mm) {
		memcpy(steps[2], slice_step_mm, sizeof steps[2]);
		mm[2] = sqrt(dot(steps[2], steps[2]));
	}
	for (int a = 0; a < 3; a++) {
		usable = usable && isfinite(mm[a]) && mm[a] > 0;
		mm[a] = isfinite(mm[a]) && mm[a] > 0 ? mm[a] : 1;
	}
	out->has_affine = usable;
	for (int i = 0; i < 3; i++) {
		/* LPS to RAS turns the first two axes round. */
		double sign = i < 2 ? -1 : 1, origin = h->position[i];

		for (int a = 0; a < 3; a++) {
			/* A slice is its own centre; along every other axis the position is that of voxel floor(N/2). */
			double centre = a == 2 && !three_d ? 0 : (double)(out->dims[a] / 2);

			origin -= centre * steps[a][i];
			out->affine[i][a] = usable ? sign * steps[a][i] : i == a ? mm[a] : 0;
		}
		out->affine[i][3] = usable ? sign * origin : 0;
	}
}
