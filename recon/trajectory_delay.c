/* SPDX-License-Identifier: MIT */
/*
 * trajectory_delay.c - gradients that come late: a trajectory shifted along its readouts, and how late they come, from
 * spokes that were read in opposite directions.
 */
#include <fornix/trajectory.h>

#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846
#define MOST_SPOKES 4096        /* looked at: their pairs are found by comparing all with all */
#define MOST_PAIRS 512
#define OPPOSED 0.99939083       /* cos 2 degrees */
#define STRAIGHT 1e-3            /* how far samples may lie off their spoke, of its length */
#define SEARCH 4.0               /* samples: the largest shift between two spokes that is looked for */

int fx_delay_parse(const char *text, fx_error *err, double us[3])
{
	const char *at = text;
	int n = 0;

	while (n < 3) {
		char *end;

		us[n] = strtod(at, &end);
		if (end == at || !isfinite(us[n]))
			return fx_error_set(err, FX_EINVAL, "delay_us '%.80s' is neither one number nor three between commas", text);
		n++;
		if (*end != ',') {
			at = end;
			break;
		}
		at = end + 1;
	}
	if (*at != '\0' || n == 2)
		return fx_error_set(err, FX_EINVAL, "delay_us '%.80s' is neither one number nor three between commas", text);
	if (n == 1)
		us[1] = us[2] = us[0];
	return FX_OK;
}

/* ---- shifting ------------------------------------------------------------------------------------ */

/* Axis d at time t (samples): the cubic through the four nearest samples, straight lines beyond the ends. */
static double at(const double *k, int64_t n, int d, double t, bool rests)
{
	int64_t i = (int64_t)floor(t), first = i - 1 < 0 ? 0 : i - 1;
	double sum = 0;

	if (n == 1)
		return k[d];
	if (t < 0)
		return rests ? k[d] : k[d] + t * (k[3 + d] - k[d]);
	if (t > (double)(n - 1))
		return k[3 * (n - 1) + d] + (t - (double)(n - 1)) * (k[3 * (n - 1) + d] - k[3 * (n - 2) + d]);
	if (n < 4) {
		i = i > n - 2 ? n - 2 : i;
		return k[3 * i + d] + (t - (double)i) * (k[3 * (i + 1) + d] - k[3 * i + d]);
	}
	first = first > n - 4 ? n - 4 : first;
	for (int p = 0; p < 4; p++) {
		double w = 1;

		for (int q = 0; q < 4; q++)
			if (q != p)
				w *= (t - (double)(first + q)) / (p - q);
		sum += w * k[3 * (first + p) + d];
	}
	return sum;
}

int fx_trajectory_delay(fx_math *m, fx_acquisition *a, const double shift[3])
{
	int64_t n = a->k->dims[1];
	const double *from = FX_F64_OF(a->k);
	double largest = 0;
	fx_array *k;
	bool rests;
	int status;

	if ((shift[0] == 0 && shift[1] == 0 && shift[2] == 0) || n == 0)
		return FX_OK;
	status = fx_array_new2(FX_F64, 3, n, &k);
	if (status != FX_OK)
		return fx_math_fail(m, status, "no memory for a trajectory of %lld samples", (long long)n);
	for (int64_t i = 0; i < 3 * n; i++)
		largest = fmax(largest, fabs(from[i]));
	rests = fabs(from[0]) <= 1e-6 * largest && fabs(from[1]) <= 1e-6 * largest && fabs(from[2]) <= 1e-6 * largest;
	for (int64_t j = 0; j < n; j++)
		for (int d = 0; d < 3; d++)
			FX_F64_OF(k)[3 * j + d] = at(from, n, d, (double)j - shift[d], rests);
	fx_slot_take(&a->k, k);
	return FX_OK;
}

/* ---- spokes and their opposites ------------------------------------------------------------------ */

struct spoke {
	const fx_acquisition *a;
	double u[3];     /* direction */
	double step;     /* cycles/voxel between samples */
	double center;   /* sample, with fraction, at k = 0 */
	bool used;
};

/* True where the readout is straight, even and passes k = 0. */
static bool as_spoke(const fx_acquisition *a, struct spoke *s)
{
	const double *k = FX_F64_OF(a->k);
	int64_t n = a->k->dims[1];
	double step[3], norm = 0, along = 0, off = 0, worst = 0;

	if (n < 8 || n != a->data->dims[0])
		return false;
	for (int d = 0; d < 3; d++) {
		step[d] = (k[3 * (n - 1) + d] - k[d]) / (double)(n - 1);
		norm += step[d] * step[d];
		along -= k[d] * step[d];
	}
	if (!(norm > 0))
		return false;
	*s = (struct spoke){.a = a, .step = sqrt(norm), .center = along / norm};
	for (int d = 0; d < 3; d++) {
		s->u[d] = step[d] / s->step;
		off += pow(k[d] + s->center * step[d], 2);
	}
	for (int64_t j = 0; j < n; j++)
		for (int d = 0; d < 3; d++)
			worst = fmax(worst, fabs(k[3 * j + d] - k[d] - (double)j * step[d]));
	return worst < STRAIGHT * s->step * (double)n && sqrt(off) < 0.5 * s->step && s->center > 1 &&
		s->center < (double)(n - 2);
}

static bool same_object(const struct spoke *p, const struct spoke *q)
{
	const ISMRMRD_AcquisitionHeader *a = &p->a->head, *b = &q->a->head;

	return a->idx.slice == b->idx.slice && a->idx.contrast == b->idx.contrast && a->idx.phase == b->idx.phase &&
		a->idx.set == b->idx.set && a->encoding_space_ref == b->encoding_space_ref &&
		p->a->data->dims[0] == q->a->data->dims[0] && p->a->data->dims[1] == q->a->data->dims[1] &&
		fabs(p->step / q->step - 1) < 1e-2;
}

/* The most opposed unused spoke behind i; -1 where none is opposed well enough. */
static int64_t opposite(const struct spoke *s, int64_t n, int64_t i)
{
	double best = -OPPOSED;
	int64_t found = -1;

	for (int64_t j = i + 1; j < n; j++) {
		double c = s[i].u[0] * s[j].u[0] + s[i].u[1] * s[j].u[1] + s[i].u[2] * s[j].u[2];

		if (c < best && !s[j].used && same_object(&s[i], &s[j])) {
			best = c;
			found = j;
		}
	}
	return found;
}

/* ---- the shift between two ------------------------------------------------------------------------- */

/* |sum_x w_x e^{i2pi x d/n}|^2: how well projections that are d samples of phase slope apart agree. */
static double agreement(const fx_cf64 *w, int64_t n, double d)
{
	fx_cf64 sum = 0;

	for (int64_t x = 0; x < n; x++) {
		double turn = 2 * PI * (double)(x - n / 2) * d / (double)n;

		sum += w[x] * (cos(turn) + I * sin(turn));
	}
	return creal(sum) * creal(sum) + cimag(sum) * cimag(sum);
}

static double best_shift(const fx_cf64 *w, int64_t n)
{
	const double golden = 0.61803398874989484820;
	double best = 0, most = -1, low, high;

	/* the peak is about two samples wide: a quarter of one finds it */
	for (double d = -SEARCH; d <= SEARCH; d += 0.25) {
		double value = agreement(w, n, d);

		if (value > most) {
			most = value;
			best = d;
		}
	}
	low = best - 0.25;
	high = best + 0.25;
	while (high - low > 1e-6) {
		double p = high - golden * (high - low), q = low + golden * (high - low);

		if (agreement(w, n, p) > agreement(w, n, q))
			high = q;
		else
			low = p;
	}
	return (low + high) / 2;
}

/* Samples of a readout in {n, 1, 1, coils}, mirrored about the sample `mirror`/2 where it is not negative. */
static int projections(fx_math *m, const fx_acquisition *a, int64_t mirror, fx_array **out)
{
	int64_t n = a->data->dims[0], coils = a->data->dims[1];
	int status = fx_array_new4(FX_CF32, n, 1, 1, coils, out);

	if (status != FX_OK)
		return fx_math_fail(m, status, "no memory for the projections of a spoke");
	for (int64_t c = 0; c < coils; c++)
		for (int64_t j = 0; j < n; j++) {
			int64_t from = mirror < 0 ? j : mirror - j;

			if (from >= 0 && from < n)
				FX_CF32_OF(*out)[j + n * c] = FX_CF32_OF(a->data)[from + n * c];
		}
	return m->ops->fft(m, *out, -1, 1);
}

/*
 * The late-coming of spoke p (and of its opposite q), in samples along it. p holds f(j - cp - s); q, mirrored about M/2, holds
 * f(j - M + cq + s): the transforms' quotient turns by 2 pi x (cp + cq - M + 2 s)/n, with minus in front.
 */
static int pair_shift(fx_math *m, const struct spoke *p, const struct spoke *q, double *shift)
{
	int64_t n = p->a->data->dims[0], coils = p->a->data->dims[1];
	double centers = p->center + q->center;
	int64_t mirror = llround(centers);
	fx_array *a = NULL, *b = NULL;
	fx_cf64 *w = fx_alloc(n, sizeof *w);
	int status = w ? FX_OK : fx_math_fail(m, FX_ENOMEM, "no memory to compare two spokes");

	if (status == FX_OK)
		status = projections(m, p->a, -1, &a);
	if (status == FX_OK)
		status = projections(m, q->a, mirror, &b);
	if (status == FX_OK) {
		for (int64_t c = 0; c < coils; c++)
			for (int64_t x = 0; x < n; x++)
				w[x] += (fx_cf64)FX_CF32_OF(a)[x + n * c] * conj((fx_cf64)FX_CF32_OF(b)[x + n * c]);
		*shift = (best_shift(w, n) - centers + (double)mirror) / 2;
	}
	fx_array_unref(a);
	fx_array_unref(b);
	fx_free(w);
	return status;
}

/* ---- all pairs --------------------------------------------------------------------------------------- */

struct fit {
	double normal[3][3], right[3], square;
	int64_t n;
};

static void fit_add(struct fit *f, const double u[3], double shift)
{
	for (int d = 0; d < 3; d++) {
		for (int e = 0; e < 3; e++)
			f->normal[d][e] += u[d] * u[d] * u[e] * u[e];
		f->right[d] += u[d] * u[d] * shift;
	}
	f->square += shift * shift;
	f->n++;
}

/* Cholesky of the axes that pairs tell of. */
static void fit_solve(const struct fit *f, fx_delay_report *report)
{
	double l[3][3] = {{0}}, y[3] = {0}, x[3] = {0}, misfit = f->square;

	for (int d = 0; d < 3; d++) {
		double pivot = f->normal[d][d];

		for (int e = 0; e < d; e++) {
			if (!report->known[e])
				continue;
			l[d][e] = f->normal[d][e];
			for (int k = 0; k < e; k++)
				l[d][e] -= l[d][k] * l[e][k];
			l[d][e] /= l[e][e];
			pivot -= l[d][e] * l[d][e];
		}
		if (f->normal[d][d] < 1e-3 * (double)f->n)
			continue;
		if (pivot < 1e-2 * f->normal[d][d]) { /* all along one line: which axis is late cannot be told */
			memset(report->known, 0, sizeof report->known);
			return;
		}
		report->known[d] = true;
		l[d][d] = sqrt(pivot);
		y[d] = f->right[d];
		for (int e = 0; e < d; e++)
			y[d] -= l[d][e] * y[e];
		y[d] /= l[d][d];
	}
	for (int d = 2; d >= 0; d--) {
		if (!report->known[d])
			continue;
		x[d] = y[d];
		for (int e = d + 1; e < 3; e++)
			x[d] -= l[e][d] * x[e];
		x[d] /= l[d][d];
		misfit -= y[d] * y[d];
	}
	memcpy(report->shift, x, sizeof x);
	report->residual = sqrt(fmax(misfit, 0) / (double)f->n);
}

int fx_delay_estimate(fx_math *m, fx_acquisition *const *list, int64_t n, fx_delay_report *report)
{
	struct spoke *spokes = fx_alloc(MOST_SPOKES, sizeof *spokes);
	struct fit fit = {{{0}}, {0}, 0, 0};
	int status = FX_OK;

	memset(report, 0, sizeof *report);
	if (!spokes)
		return fx_math_fail(m, FX_ENOMEM, "no memory to find opposed spokes");
	for (int64_t i = 0; i < n && report->n_spokes < MOST_SPOKES; i++)
		if (as_spoke(list[i], &spokes[report->n_spokes]))
			report->n_spokes++;
	for (int64_t i = 0; status == FX_OK && i < report->n_spokes && fit.n < MOST_PAIRS; i++) {
		int64_t j = spokes[i].used ? -1 : opposite(spokes, report->n_spokes, i);
		double shift;

		if (j < 0)
			continue;
		spokes[i].used = spokes[j].used = true;
		status = pair_shift(m, &spokes[i], &spokes[j], &shift);
		if (status == FX_OK)
			fit_add(&fit, spokes[i].u, shift);
	}
	report->n_pairs = fit.n;
	if (status == FX_OK && fit.n > 0)
		fit_solve(&fit, report);
	fx_free(spokes);
	return status;
}
