/* SPDX-License-Identifier: MIT */
/* vfft.c - how a length is split into radices, and the twiddle factors, rounded once from double. */
#include "vfft.h"

#include <math.h>

/* The twos in as few radices up to 16 as there can be, of about one size; then odd primes in rising order. */
static void split(fxi_vfft *plan)
{
	int64_t rest = plan->n;
	int twos = 0;

	for (; rest % 2 == 0; rest /= 2)
		twos++;
	for (int stages = (twos + 3) / 4; stages > 0; stages--) {
		int take = (twos + stages - 1) / stages;

		plan->stage[plan->n_stages++].radix = 1 << take;
		twos -= take;
	}
	for (int64_t p = 3; rest > 1; p += 2) {
		if (p * p > rest)
			p = rest;
		for (; rest % p == 0; rest /= p)
			plan->stage[plan->n_stages++].radix = (int)p;
	}
	for (int i = 0; i < plan->n_stages; i++) {
		int radix = plan->stage[i].radix;

		if (radix > 5 && radix % 2 && radix > plan->largest_odd)
			plan->largest_odd = radix;
	}
}

static float *put_root(float *at, int64_t turn, int64_t of)
{
	double angle = -2 * M_PI * (double)(turn % of) / (double)of;

	at[0] = (float)cos(angle);
	at[1] = (float)sin(angle);
	return at + 2;
}

int fxi_vfft_new(int64_t n, fxi_vfft *plan)
{
	int64_t left = n, size = 2 * n;
	float *at;

	*plan = (fxi_vfft){.n = n};
	if (n < 1 || n > (INT64_C(1) << 30))
		return FX_EINVAL;
	split(plan);
	for (int i = 0; i < plan->n_stages; i++) {
		int64_t r = plan->stage[i].radix;

		size += 2 * (r - 1) * (left / r) + 2 * r;
		left /= r;
	}
	plan->tables = at = fx_alloc(size, sizeof(float));
	if (!at)
		return FX_ENOMEM;
	plan->half = at;
	for (int64_t j = 0; j < n; j++)
		at = put_root(at, j, 2 * n);
	left = n;
	for (int i = 0; i < plan->n_stages; i++) {
		int64_t r = plan->stage[i].radix, m = left / r;

		plan->stage[i].twiddles = at;
		for (int64_t p = 1; p < m; p++)
			for (int64_t k = 1; k < r; k++)
				at = put_root(at, p * k, left);
		plan->stage[i].roots = at;
		for (int64_t j = 0; j < r; j++) {
			at = put_root(at, j, r);
			at[-1] = -at[-1]; /* butterfly_odd wants + sin */
		}
		left = m;
	}
	return FX_OK;
}

void fxi_vfft_free(fxi_vfft *plan)
{
	fx_free(plan->tables);
	*plan = (fxi_vfft){0};
}
