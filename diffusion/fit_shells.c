/* SPDX-License-Identifier: MIT */
/* fit_shells.c - the b-values of a table in words. Scanners write 995 and 1005 for one shell, and none of them 0 for b0. */
#include "fit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shell {
	double sum, first;
	int64_t n;
};

struct walk {
	double *b;            /* sorted, of the volumes asked for */
	int64_t n, at;
	double b0_max;
};

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static bool start(struct walk *w, const fx_series_info *info, const int64_t *use, double b0_max)
{
	*w = (struct walk){.b = fx_alloc(info->n_volumes + 1, sizeof(double)), .b0_max = b0_max};
	if (!w->b)
		return false;
	for (int64_t i = 0; i < info->n_volumes; i++)
		if (!use || use[i] >= 0)
			w->b[w->n++] = info->gradients[i].b;
	qsort(w->b, (size_t)w->n, sizeof(double), compare);
	return true;
}

static bool next(struct walk *w, struct shell *s)
{
	*s = (struct shell){0};
	if (w->at == w->n)
		return false;
	s->first = w->b[w->at];
	while (w->at < w->n) {
		double b = w->b[w->at];

		if (s->first <= w->b0_max ? b > w->b0_max : b - s->first > fmax(50, 0.05 * s->first))
			break;
		s->sum += b;
		s->n++;
		w->at++;
	}
	return true;
}

void fxi_shells_text(const fx_series_info *info, const int64_t *use, double b0_max, char *text, size_t size)
{
	struct walk w;
	struct shell s;
	size_t length = 0;

	if (size == 0)
		return;
	snprintf(text, size, "no volumes");
	if (!start(&w, info, use, b0_max))
		return;
	while (next(&w, &s)) {
		char one[64];
		int n = snprintf(one, sizeof one, "%s%.0f (%lld)", length ? ", " : "b ",
			s.first <= b0_max ? 0 : s.sum / (double)s.n, (long long)s.n);

		if (length + (size_t)n + sizeof ", ..." > size) {
			snprintf(text + length, size - length, ", ...");
			break;
		}
		memcpy(text + length, one, (size_t)n + 1);
		length += (size_t)n;
	}
	fx_free(w.b);
}

int64_t fxi_shells_count(const fx_series_info *info, const int64_t *use, double b0_max)
{
	struct walk w;
	struct shell s;
	int64_t n = 0;

	if (!start(&w, info, use, b0_max))
		return 0;
	while (next(&w, &s))
		n++;
	fx_free(w.b);
	return n;
}

void fx_shells_text(const fx_series_info *info, double b0_max, char *text, size_t size)
{
	fxi_shells_text(info, NULL, b0_max, text, size);
}
