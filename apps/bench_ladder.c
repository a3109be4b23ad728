/* SPDX-License-Identifier: MIT */
/*
 * bench_ladder.c - the chapter's loops as they stand there: libm's sine and cosine, phases in single precision, pointers that the
 * compiler must take to alias, as it had to in the original.
 */
#include "apps/bench_ladder.h"

#include <math.h>

#define TWO_PI 6.2831853071795864769f

void fxi_ladder_sequential(fxi_ladder *l)
{
	for (int64_t m = 0; m < l->n_samples; m++) {
		l->r_mu[m] = l->r_phi[m] * l->r_d[m] + l->i_phi[m] * l->i_d[m];
		l->i_mu[m] = l->r_phi[m] * l->i_d[m] - l->i_phi[m] * l->r_d[m];
		for (int64_t n = 0; n < l->n_voxels; n++) {
			float phase = TWO_PI * (l->kx[m] * l->x[n] + l->ky[m] * l->y[n] + l->kz[m] * l->z[n]);
			float c = cosf(phase), s = sinf(phase);

			l->r_out[n] += l->r_mu[m] * c - l->i_mu[m] * s;
			l->i_out[n] += l->i_mu[m] * c + l->r_mu[m] * s;
		}
	}
}

static void make_mu(fxi_ladder *l)
{
	for (int64_t m = 0; m < l->n_samples; m++) {
		l->r_mu[m] = l->r_phi[m] * l->r_d[m] + l->i_phi[m] * l->i_d[m];
		l->i_mu[m] = l->r_phi[m] * l->i_d[m] - l->i_phi[m] * l->r_d[m];
	}
}

void fxi_ladder_fissioned(fxi_ladder *l)
{
	make_mu(l);
	for (int64_t m = 0; m < l->n_samples; m++)
		for (int64_t n = 0; n < l->n_voxels; n++) {
			float phase = TWO_PI * (l->kx[m] * l->x[n] + l->ky[m] * l->y[n] + l->kz[m] * l->z[n]);
			float c = cosf(phase), s = sinf(phase);

			l->r_out[n] += l->r_mu[m] * c - l->i_mu[m] * s;
			l->i_out[n] += l->i_mu[m] * c + l->r_mu[m] * s;
		}
}

void fxi_ladder_gather(fxi_ladder *l)
{
	make_mu(l);
	for (int64_t n = 0; n < l->n_voxels; n++)
		for (int64_t m = 0; m < l->n_samples; m++) {
			float phase = TWO_PI * (l->kx[m] * l->x[n] + l->ky[m] * l->y[n] + l->kz[m] * l->z[n]);
			float c = cosf(phase), s = sinf(phase);

			l->r_out[n] += l->r_mu[m] * c - l->i_mu[m] * s;
			l->i_out[n] += l->i_mu[m] * c + l->r_mu[m] * s;
		}
}

void fxi_ladder_registers(fxi_ladder *l)
{
	make_mu(l);
	for (int64_t n = 0; n < l->n_voxels; n++) {
		float x = l->x[n], y = l->y[n], z = l->z[n], r_sum = l->r_out[n], i_sum = l->i_out[n];

		for (int64_t m = 0; m < l->n_samples; m++) {
			float phase = TWO_PI * (l->kx[m] * x + l->ky[m] * y + l->kz[m] * z);
			float c = cosf(phase), s = sinf(phase);

			r_sum += l->r_mu[m] * c - l->i_mu[m] * s;
			i_sum += l->i_mu[m] * c + l->r_mu[m] * s;
		}
		l->r_out[n] = r_sum;
		l->i_out[n] = i_sum;
	}
}
