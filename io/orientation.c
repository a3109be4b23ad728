/* SPDX-License-Identifier: MIT */
/* orientation.c - which anatomical axis an index axis is nearest to; for formats that say "RAS" or "LPS" beside an affine. */
#include "tracts.h"

#include <math.h>
#include <string.h>

/* Inverse and determinant of 3 x 3; false where it is singular or not finite. */
static bool invert(double m[3][3], double out[3][3])
{
	double det = 0;

	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 3; j++) {
			int a = (j + 1) % 3, b = (j + 2) % 3, c = (i + 1) % 3, d = (i + 2) % 3;

			out[i][j] = m[a][c] * m[b][d] - m[a][d] * m[b][c];
		}
	for (int j = 0; j < 3; j++)
		det += m[0][j] * out[j][0];
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 3; j++) {
			out[i][j] /= det;
			if (!isfinite(out[i][j]))
				return false;
		}
	return det != 0;
}

bool fxi_affine_inverse(double affine[3][4], double inverse[3][4])
{
	double m[3][3], out[3][3];

	for (int i = 0; i < 3; i++)
		memcpy(m[i], affine[i], sizeof m[i]);
	if (!invert(m, out))
		return false;
	for (int i = 0; i < 3; i++) {
		inverse[i][3] = 0;
		for (int j = 0; j < 3; j++) {
			inverse[i][j] = out[i][j];
			inverse[i][3] -= out[i][j] * affine[j][3];
		}
		if (!isfinite(inverse[i][3]))
			return false;
	}
	return true;
}

/* The orthogonal factor of the polar decomposition, by Newton's iteration (Higham 1986): it converges quadratically. */
static bool nearest_rotation(double m[3][3])
{
	double inverse[3][3];

	for (int round = 0; round < 60; round++) {
		double change = 0;

		if (!invert(m, inverse))
			return false;
		for (int i = 0; i < 3; i++)
			for (int j = 0; j < 3; j++)
				change = fmax(change, fabs(m[i][j] - inverse[j][i]));
		for (int i = 0; i < 3; i++)
			for (int j = 0; j < 3; j++)
				inverse[j][i] = (m[i][j] + inverse[j][i]) / 2;
		for (int i = 0; i < 3; i++)
			for (int j = 0; j < 3; j++)
				m[i][j] = inverse[j][i];
		if (change < 1e-14)
			break;
	}
	return true;
}

bool fxi_orientation(double affine[3][4], int axis[3], bool flip[3])
{
	double m[3][3] = {{0}};
	double strength[3];
	bool done[3] = {false, false, false}, taken[3] = {false, false, false};

	for (int j = 0; j < 3; j++) {
		double length = sqrt(affine[0][j] * affine[0][j] + affine[1][j] * affine[1][j] + affine[2][j] * affine[2][j]);

		for (int i = 0; i < 3; i++)
			m[i][j] = affine[i][j] / length;
	}
	if (!nearest_rotation(m))
		return false;
	for (int j = 0; j < 3; j++)
		strength[j] = fmax(fabs(m[0][j]), fmax(fabs(m[1][j]), fabs(m[2][j])));
	/* The index axis with the clearest direction chooses first, so that two never claim the same one. */
	for (int turn = 0; turn < 3; turn++) {
		int j = done[0] ? done[1] ? 2 : 1 : 0, i = taken[0] ? taken[1] ? 2 : 1 : 0;

		for (int k = j + 1; k < 3; k++)
			if (!done[k] && strength[k] > strength[j])
				j = k;
		for (int k = i + 1; k < 3; k++)
			if (!taken[k] && fabs(m[k][j]) > fabs(m[i][j]))
				i = k;
		done[j] = taken[i] = true;
		axis[j] = i;
		flip[j] = m[i][j] < 0;
	}
	return true;
}
