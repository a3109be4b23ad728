/* SPDX-License-Identifier: MIT */
/* connect_jacobi.c - the Jacobi determinant of a cut fibre, along the geodesic that it began as. */
#include "diffusion/connect.h"
#include "diffusion/jacobi.h"

#include <math.h>
#include <string.h>

#define STEP_VOXELS 0.25   /* RK4 in double on a field that is linear between voxels: its kinks, not the step, are what is left */
#define MOST_STEPS 40000
#define APART_VOXELS 0.5   /* neighbours end about half a voxel away: far above the field's single precision, within what it resolves */

/* Index coordinates of the points, and the derivative of the path at its start. */
static void begin(const double (*to_index)[4], const struct fxi_connection *k, double x0[3], double v0[3],
	double *voxels)
{
	double x[3][3] = {{0}}, last[3] = {0}, arc[3] = {0};
	int n = 1;

	*voxels = 0;
	for (int64_t i = 0; i < k->n_points; i++) {
		double here[3], step = 0;

		fx_affine_apply(to_index, (const double[]){k->points[3 * i], k->points[3 * i + 1], k->points[3 * i + 2]}, here);
		for (int c = 0; c < 3 && i > 0; c++)
			step += (here[c] - last[c]) * (here[c] - last[c]);
		*voxels += sqrt(step);
		/* three points at least a tenth of a voxel apart: a cut leaves stubs, whose direction is mostly rounding */
		if (i == 0)
			memcpy(x[0], here, sizeof here);
		else if (n < 3 && *voxels >= arc[n - 1] + 0.1) {
			memcpy(x[n], here, sizeof here);
			arc[n++] = *voxels;
		}
		memcpy(last, here, sizeof last);
	}
	memcpy(x0, x[0], sizeof x[0]);
	for (int c = 0; c < 3; c++) {
		if (n == 3) { /* of the parabola through them: second order, as the chord is not */
			double a = arc[1], b = arc[2];

			v0[c] = (b * b * (x[1][c] - x[0][c]) - a * a * (x[2][c] - x[0][c])) / (a * b * (b - a));
		} else {
			v0[c] = last[c] - x[0][c];
		}
	}
}

void fxi_connection_jacobi(const struct fx_connect *c, struct fxi_connection *k)
{
	const fx_metric *metric = c->metric ? fx_msg_metric(c->metric) : NULL;
	double to_index[3][4], x0[3], v0[3], voxels, end[3], away = 0;
	fx_error unsaid = {0};
	int64_t n_steps;
	fxi_jacobi j;

	if (k->asked || !metric || !k->lengths)
		return;
	k->asked = true;
	if (fx_lattice_inverse(&metric->lattice, to_index, &unsaid) != FX_OK)
		return;
	begin((const double (*)[4])to_index, k, x0, v0, &voxels);
	n_steps = (int64_t)fmin(ceil(voxels / STEP_VOXELS) + 1, MOST_STEPS);
	if (!fxi_jacobi_along(fxi_metric_sampled, metric, x0, v0, k->riemann, n_steps, APART_VOXELS, &j))
		return;
	fx_affine_apply(metric->lattice.affine, j.end, end);
	for (int i = 0; i < 3; i++)
		away += (end[i] - (double)k->points[3 * (k->n_points - 1) + i]) * (end[i] - (double)k->points[3 * (k->n_points - 1) + i]);
	if (!(sqrt(away) <= c->cluster_mm)) /* another path by now: its determinant says nothing of this one */
		return;
	k->jacobi = j.determinant;
	k->conjugate = j.conjugate;
	k->degenerate = fabs(j.determinant) < c->spec.degenerate;
}
