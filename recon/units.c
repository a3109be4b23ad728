/* SPDX-License-Identifier: MIT */
/*
 * units.c - which unit a trajectory is written in. MRD names none, so the decision rests on how much of the matrix's
 * k-space each unit would fill, and a doubtful case is an error that says what to set.
 */
#include <fornix/recon.h>

#include <math.h>
#include <stdio.h>

#define PI 3.14159265358979323846

/* A unit is a candidate where the best-filled axis reaches this much of its Nyquist frequency. */
#define FILL_MIN 0.3
#define FILL_MAX 1.2
/* Two candidates are about equally near when the better is not nearer to 1 by this factor. */
#define MARGIN 1.5

static const char *const names[] = {
	[FX_UNIT_AUTO] = "auto",
	[FX_UNIT_CYCLES_PER_VOXEL] = "cycles/voxel",
	[FX_UNIT_RAD_PER_VOXEL] = "rad/voxel",
	[FX_UNIT_CYCLES_PER_FOV] = "cycles/FOV",
	[FX_UNIT_PER_M] = "1/m",
};

const char *fx_unit_name(int unit)
{
	return unit >= FX_UNIT_AUTO && unit <= FX_UNIT_PER_M ? names[unit] : "?";
}

double fx_unit_factor(int unit, int axis, const int64_t matrix[3], const double fov_mm[3])
{
	switch (unit) {
	case FX_UNIT_CYCLES_PER_VOXEL:
		return 1;
	case FX_UNIT_RAD_PER_VOXEL:
		return 1 / (2 * PI);
	case FX_UNIT_CYCLES_PER_FOV:
		return matrix[axis] > 0 ? 1 / (double)matrix[axis] : NAN;
	case FX_UNIT_PER_M:
		return matrix[axis] > 0 && fov_mm[axis] > 0 ? fov_mm[axis] / 1000 / (double)matrix[axis] : NAN;
	default:
		return NAN;
	}
}

/* How much of its Nyquist frequency (0.5 cycles/voxel) the best-filled axis would reach; NaN where not computable. */
static double filling(int unit, const double max_abs[3], const int64_t matrix[3], const double fov_mm[3])
{
	double best = 0;

	for (int axis = 0; axis < 3; axis++) {
		double f;

		if (matrix[axis] <= 1)
			continue;
		f = max_abs[axis] * fx_unit_factor(unit, axis, matrix, fov_mm) / 0.5;
		if (isnan(f))
			return NAN;
		best = fmax(best, f);
	}
	return best;
}

/* "cycles/voxel fills 0.50, cycles/FOV fills 0.48", every unit that can be computed. */
static void list_fillings(const double fill[], char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (int unit = FX_UNIT_CYCLES_PER_VOXEL; unit <= FX_UNIT_PER_M; unit++) {
		if (isnan(fill[unit]) || used >= size)
			continue;
		used += (size_t)snprintf(text + used, size - used, "%s%s fills %.3g", used ? ", " : "", names[unit], fill[unit]);
	}
}

static int check_extent(fx_math *m, const double max_abs[3], const int64_t matrix[3])
{
	bool any = false, encoded = false;

	for (int axis = 0; axis < 3; axis++) {
		if (!isfinite(max_abs[axis]) || max_abs[axis] < 0)
			return fx_math_fail(m, FX_EDATA, "the trajectory holds numbers that are not finite on axis %d; "
				"repair or replace the file's trajectory", axis);
		if (matrix[axis] <= 1)
			continue;
		encoded = true;
		any = any || max_abs[axis] > 0;
	}
	if (!encoded)
		return fx_math_fail(m, FX_EDATA, "the encoded matrix is %lld x %lld x %lld: a trajectory needs an axis of "
			"more than one voxel; correct encodedSpace/matrixSize in the header",
			(long long)matrix[0], (long long)matrix[1], (long long)matrix[2]);
	if (!any)
		return fx_math_fail(m, FX_EDATA, "the trajectory is zero in every sample along all encoded axes; was it "
			"written to the file at all?");
	return FX_OK;
}

int fx_unit_decide(fx_math *m, const double max_abs[3], const int64_t matrix[3], const double fov_mm[3], int *unit)
{
	double fill[FX_UNIT_PER_M + 1], nearest = INFINITY, second = INFINITY;
	int best = FX_UNIT_AUTO, status;
	char text[256];

	*unit = FX_UNIT_AUTO;
	status = check_extent(m, max_abs, matrix);
	if (status != FX_OK)
		return status;
	for (int u = FX_UNIT_CYCLES_PER_VOXEL; u <= FX_UNIT_PER_M; u++) {
		double distance;

		fill[u] = filling(u, max_abs, matrix, fov_mm);
		if (!(fill[u] >= FILL_MIN && fill[u] <= FILL_MAX))
			continue;
		distance = fabs(log(fill[u]));
		/* Two names for the same factor (1/m and a field of view of 1 m) are no contradiction. */
		if (best != FX_UNIT_AUTO && fabs(fill[u] / fill[best] - 1) < 1e-6)
			continue;
		if (distance < nearest) {
			second = nearest;
			nearest = distance;
			best = u;
		} else if (distance < second) {
			second = distance;
		}
	}
	list_fillings(fill, text, sizeof text);
	if (best == FX_UNIT_AUTO)
		return fx_math_fail(m, FX_EDATA, "no unit makes sense of a trajectory with largest |k| of %g, %g, %g on a "
			"matrix of %lld x %lld x %lld: of the best-filled axis' Nyquist frequency, %s (%.1f to %.1f is expected); "
			"correct the header's matrix, or set the trajectory's unit",
			max_abs[0], max_abs[1], max_abs[2], (long long)matrix[0], (long long)matrix[1], (long long)matrix[2],
			text, FILL_MIN, FILL_MAX);
	if (second - nearest < log(MARGIN))
		return fx_math_fail(m, FX_EDATA, "the unit of a trajectory with largest |k| of %g, %g, %g on a matrix of "
			"%lld x %lld x %lld is ambiguous: of the best-filled axis' Nyquist frequency, %s; set the trajectory's unit "
			"to the right one",
			max_abs[0], max_abs[1], max_abs[2], (long long)matrix[0], (long long)matrix[1], (long long)matrix[2], text);
	*unit = best;
	return FX_OK;
}
