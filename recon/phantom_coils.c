/* SPDX-License-Identifier: MIT */
/*
 * phantom_coils.c - coil maps made of a few plane waves, which keep a phantom's k-space in closed form.
 *
 * Two waves an axis, half a cycle per field of view apart, make a quarter of a cosine across it: bright on a coil's side,
 * dark on the other. A coil at p wants the weights e^{-i2pi q_j.p}; the nearest matrix with orthonormal columns (polar
 * decomposition) makes the sum of squares one everywhere. That leaves real maps, which would hide a missing
 * conjugate, so each coil has a constant phase and all share a slow ramp.
 */
#include "recon/phantom.h"

#include <complex.h>
#include <math.h>

#define PI 3.14159265358979323846
#define GOLDEN_ANGLE (PI * 0.76393202250021030359) /* 2 pi (1 - 1/phi) */
#define MAX_COILS 1024                             /* what an MRD channel mask holds */

void fxi_coils_free(fxi_coils *c)
{
	if (!c)
		return;
	fx_free(c->mix);
	fx_free(c);
}

/* Where coil i of n sits, in fields of view from the centre. */
static void position(int64_t i, int64_t n, int n_dims, double p[3])
{
	double ring = 0.6, z = 0, angle = PI / 4 + 2 * PI * (double)i / (double)n;

	if (n_dims == 3 && n > 4) {
		z = 1 - (2 * (double)i + 1) / (double)n;
		angle = GOLDEN_ANGLE * (double)i;
	}
	p[0] = ring * sqrt(1 - z * z) * cos(angle);
	p[1] = ring * sqrt(1 - z * z) * sin(angle);
	p[2] = ring * z;
}

/*
 * The unitary factor of the polar decomposition by Newton and Schulz: X <- X (3 - X^H X)/2 drives every singular value
 * in (0, sqrt 3) to 1. Small ones grow by 1.5 a step, so 80 steps serve condition numbers up to 1e12.
 */
static void orthonormal_columns(fx_cf64 *u, int64_t rows, int columns)
{
	double norm = 0;

	for (int64_t i = 0; i < rows * columns; i++)
		norm += creal(u[i] * conj(u[i]));
	for (int64_t i = 0; i < rows * columns; i++)
		u[i] /= sqrt(norm);
	for (int step = 0; step < 80; step++) {
		fx_cf64 gram[FXI_COIL_WAVES][FXI_COIL_WAVES] = {{0}};

		for (int64_t r = 0; r < rows; r++)
			for (int a = 0; a < columns; a++)
				for (int b = 0; b < columns; b++)
					gram[a][b] += conj(u[r * columns + a]) * u[r * columns + b];
		for (int64_t r = 0; r < rows; r++) {
			fx_cf64 row[FXI_COIL_WAVES];

			for (int b = 0; b < columns; b++) {
				row[b] = 1.5 * u[r * columns + b];
				for (int a = 0; a < columns; a++)
					row[b] -= 0.5 * u[r * columns + a] * gram[a][b];
			}
			for (int b = 0; b < columns; b++)
				u[r * columns + b] = row[b];
		}
	}
}

/* Waves in cycles per field of view: half a cycle apart, off centre by the shared ramp. */
static void waves(fxi_coils *c, int n_dims, double per_fov[FXI_COIL_WAVES][3])
{
	static const double ramp[3] = {0.06, -0.04, 0.05};
	int room = 1 << n_dims;

	c->n_waves = 1;
	while (2 * c->n_waves <= room && 2 * c->n_waves <= c->n_coils)
		c->n_waves *= 2;
	for (int j = 0; j < c->n_waves; j++)
		for (int d = 0; d < 3; d++) {
			bool split = (1 << d) < c->n_waves;

			per_fov[j][d] = split ? ramp[d] + (((j >> d) & 1) ? 0.25 : -0.25) : 0;
		}
}

int fxi_coils_new(int64_t n_coils, int n_dims, const int64_t matrix[3], fx_error *err, fxi_coils **out)
{
	double per_fov[FXI_COIL_WAVES][3];
	fxi_coils *c;

	*out = NULL;
	if (n_coils < 1 || n_coils > MAX_COILS)
		return fx_error_set(err, FX_EINVAL, "%lld coils: a scan has 1 to %d", (long long)n_coils, MAX_COILS);
	c = fx_alloc(1, sizeof *c);
	if (!c)
		return fx_error_set(err, FX_ENOMEM, "no memory for coil maps");
	c->n_coils = n_coils;
	waves(c, n_dims, per_fov);
	c->mix = fx_alloc(n_coils * c->n_waves, sizeof *c->mix);
	if (!c->mix) {
		fx_free(c);
		return fx_error_set(err, FX_ENOMEM, "no memory for the maps of %lld coils", (long long)n_coils);
	}
	for (int j = 0; j < c->n_waves; j++)
		for (int d = 0; d < n_dims; d++)
			c->q[j][d] = per_fov[j][d] / (double)matrix[d];
	for (int64_t i = 0; i < n_coils; i++) {
		double p[3], own = n_coils > 1 ? GOLDEN_ANGLE * (double)i : 0;

		position(i, n_coils, n_dims, p);
		for (int j = 0; j < c->n_waves; j++) {
			double turn = 0;

			for (int d = 0; d < n_dims; d++)
				turn += per_fov[j][d] * p[d];
			c->mix[i * c->n_waves + j] = cexp(I * (own - 2 * PI * turn));
		}
	}
	orthonormal_columns(c->mix, n_coils, c->n_waves);
	*out = c;
	return FX_OK;
}

void fxi_coils_at(const fxi_coils *c, const double x[3], fx_cf64 *maps)
{
	fx_cf64 wave[FXI_COIL_WAVES];

	for (int j = 0; j < c->n_waves; j++)
		wave[j] = cexp(I * 2 * PI * (c->q[j][0] * x[0] + c->q[j][1] * x[1] + c->q[j][2] * x[2])) / sqrt(c->n_waves);
	for (int64_t i = 0; i < c->n_coils; i++) {
		maps[i] = 0;
		for (int j = 0; j < c->n_waves; j++)
			maps[i] += c->mix[i * c->n_waves + j] * wave[j];
	}
}
