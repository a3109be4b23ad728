/* SPDX-License-Identifier: MIT */
/*
 * tensor.c - algebra of one symmetric 3 x 3 matrix, in double. Eigenvectors come from Jacobi's rotations: they stay
 * orthogonal where eigenvalues meet, as they do in every isotropic voxel, and small eigenvalues beside large ones keep
 * their digits.
 */
#include <fornix/diffusion.h>

#include <math.h>

#define MAX_SWEEPS 32 /* five do for matrices of ordinary range */

static double largest(const double *v, int n)
{
	double most = 0;

	for (int i = 0; i < n; i++) {
		if (!isfinite(v[i]))
			return NAN;
		most = fmax(most, fabs(v[i]));
	}
	return most;
}

/* One rotation that makes a[p][q] 0; columns of v turn with it. */
static void rotate(double a[3][3], double v[3][3], int p, int q)
{
	double theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
	double t = (theta < 0 ? -1 : 1) / (fabs(theta) + sqrt(theta * theta + 1));
	double c = 1 / sqrt(t * t + 1), s = t * c, step = t * a[p][q];
	int r = 3 - p - q;
	double rp = a[r][p], rq = a[r][q];

	a[p][p] -= step;
	a[q][q] += step;
	a[p][q] = a[q][p] = 0;
	a[r][p] = a[p][r] = c * rp - s * rq;
	a[r][q] = a[q][r] = s * rp + c * rq;
	for (int i = 0; i < 3; i++) {
		double vp = v[i][p], vq = v[i][q];

		v[i][p] = c * vp - s * vq;
		v[i][q] = s * vp + c * vq;
	}
}

/* Demmel & Veselic (1992): to stop relative to the two diagonal elements keeps the small eigenvalues' digits. */
static bool negligible(double a[3][3], int p, int q)
{
	return fabs(a[p][q]) <= 0x1p-54 * sqrt(fabs(a[p][p])) * sqrt(fabs(a[q][q]));
}

static void sort_into(double a[3][3], double v[3][3], double scale, double values[3], double vectors[3][3])
{
	int order[3] = {0, 1, 2};

	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 2 - i; j++)
			if (a[order[j]][order[j]] < a[order[j + 1]][order[j + 1]]) {
				int swap = order[j];

				order[j] = order[j + 1];
				order[j + 1] = swap;
			}
	for (int i = 0; i < 3; i++) {
		int most = 0;
		double sign;

		values[i] = scale * a[order[i]][order[i]];
		for (int k = 1; k < 3; k++)
			if (fabs(v[k][order[i]]) > fabs(v[most][order[i]]))
				most = k;
		sign = v[most][order[i]] < 0 ? -1 : 1;
		for (int k = 0; k < 3; k++)
			vectors[i][k] = sign * v[k][order[i]];
	}
}

void fx_tensor_eigen(const double d[6], double values[3], double vectors[3][3])
{
	double v[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, a[3][3], scale = 1, most = largest(d, 6);
	int exponent, n_turned = 1;

	if (!(most > 0)) {
		for (int i = 0; i < 3; i++) {
			values[i] = most; /* 0 or NaN */
			for (int k = 0; k < 3; k++)
				vectors[i][k] = i == k;
		}
		return;
	}
	frexp(most, &exponent);
	scale = ldexp(1, exponent - 1); /* a power of 2: nothing is rounded, nor do squares overflow */
	a[0][0] = d[0] / scale;
	a[0][1] = a[1][0] = d[1] / scale;
	a[1][1] = d[2] / scale;
	a[0][2] = a[2][0] = d[3] / scale;
	a[1][2] = a[2][1] = d[4] / scale;
	a[2][2] = d[5] / scale;
	for (int sweep = 0; sweep < MAX_SWEEPS && n_turned > 0; sweep++) {
		n_turned = 0;
		for (int p = 0; p < 2; p++)
			for (int q = p + 1; q < 3; q++)
				if (!negligible(a, p, q)) {
					rotate(a, v, p, q);
					n_turned++;
				}
	}
	sort_into(a, v, scale, values, vectors);
}

double fx_tensor_fa(const double values[3])
{
	double most = largest(values, 3), v[3], mean = 0, spread = 0, sum = 0;

	if (!(most > 0))
		return most;
	for (int i = 0; i < 3; i++) {
		v[i] = values[i] / most;
		mean += v[i] / 3;
	}
	for (int i = 0; i < 3; i++) {
		spread += (v[i] - mean) * (v[i] - mean);
		sum += v[i] * v[i];
	}
	return sqrt(1.5 * spread / sum);
}

bool fx_tensor_inverse(const double d[6], double inverse[6])
{
	double most = largest(d, 6), scale, xx, xy, yy, xz, yz, zz, det, terms;
	int exponent;

	if (!(most > 0))
		return false;
	frexp(most, &exponent);
	scale = ldexp(1, exponent - 1);
	xx = d[0] / scale, xy = d[1] / scale, yy = d[2] / scale, xz = d[3] / scale, yz = d[4] / scale, zz = d[5] / scale;
	inverse[0] = yy * zz - yz * yz;
	inverse[1] = xz * yz - xy * zz;
	inverse[2] = xx * zz - xz * xz;
	inverse[3] = xy * yz - xz * yy;
	inverse[4] = xy * xz - xx * yz;
	inverse[5] = xx * yy - xy * xy;
	det = xx * inverse[0] + xy * inverse[1] + xz * inverse[3];
	/* A determinant below the rounding of its own terms is not known to differ from 0. */
	terms = fabs(xx) * (fabs(yy * zz) + yz * yz) + fabs(xy) * (fabs(xz * yz) + fabs(xy * zz)) +
		fabs(xz) * (fabs(xy * yz) + fabs(xz * yy));
	if (!(fabs(det) > 4 * 0x1p-52 * terms))
		return false;
	for (int i = 0; i < 6; i++) {
		inverse[i] = inverse[i] / det / scale;
		if (!isfinite(inverse[i]))
			return false;
	}
	return true;
}

void fx_tensor_turn(const double r[3][3], const double d[6], double out[6])
{
	const double a[3][3] = {{d[0], d[1], d[3]}, {d[1], d[2], d[4]}, {d[3], d[4], d[5]}};
	static const int at[6][2] = {{0, 0}, {0, 1}, {1, 1}, {0, 2}, {1, 2}, {2, 2}};
	double ra[3][3];

	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 3; j++)
			ra[i][j] = r[i][0] * a[0][j] + r[i][1] * a[1][j] + r[i][2] * a[2][j];
	for (int e = 0; e < 6; e++) {
		const double *row = ra[at[e][0]], *column = r[at[e][1]];

		out[e] = row[0] * column[0] + row[1] * column[1] + row[2] * column[2];
	}
}

bool fx_tensor_raise(double d[6], double floor)
{
	double values[3], v[3][3], raised[6] = {0};

	fx_tensor_eigen(d, values, v);
	if (!(values[2] < floor))
		return false;
	for (int i = 0; i < 3; i++) {
		double l = fmax(values[i], floor);

		raised[0] += l * v[i][0] * v[i][0];
		raised[1] += l * v[i][0] * v[i][1];
		raised[2] += l * v[i][1] * v[i][1];
		raised[3] += l * v[i][0] * v[i][2];
		raised[4] += l * v[i][1] * v[i][2];
		raised[5] += l * v[i][2] * v[i][2];
	}
	for (int e = 0; e < 6; e++)
		d[e] = raised[e];
	return true;
}
