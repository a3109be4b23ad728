/* SPDX-License-Identifier: MIT */
#include "apps/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BAR_CELLS 30
#define DRAW_S 0.1

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool fxi_progress_on_terminal(void)
{
	const char *term = getenv("TERM");

	return isatty(STDERR_FILENO) && !(term && strcmp(term, "dumb") == 0);
}

void fxi_progress_start(fxi_progress *p, bool bar)
{
	*p = (fxi_progress){.bar = bar && fxi_progress_on_terminal(), .start_s = now_s()};
	pthread_mutex_init(&p->lock, NULL);
}

double fxi_progress_seconds(const fxi_progress *p)
{
	return now_s() - p->start_s;
}

static void clear(fxi_progress *p)
{
	if (p->shown)
		fputs("\r\033[K", stderr);
	p->shown = false;
}

static void draw(fxi_progress *p, double fraction, int64_t n_messages)
{
	char cells[BAR_CELLS + 1];
	int full = fraction > 0 ? (int)(fraction * BAR_CELLS) : 0;

	if (full > BAR_CELLS)
		full = BAR_CELLS;
	memset(cells, '-', BAR_CELLS);
	memset(cells, '#', (size_t)full);
	cells[BAR_CELLS] = '\0';
	clear(p);
	if (fraction >= 1)
		fprintf(stderr, "[%s] all read, finishing  %.0f s", cells, fxi_progress_seconds(p));
	else if (fraction >= 0)
		fprintf(stderr, "[%s] %3.0f %%  %lld messages  %.0f s", cells, 100 * fraction, (long long)n_messages,
			fxi_progress_seconds(p));
	else
		fprintf(stderr, "%lld messages  %.0f s", (long long)n_messages, fxi_progress_seconds(p));
	fflush(stderr);
	p->shown = true;
}

void fxi_progress_update(fxi_progress *p, double fraction, int64_t n_messages)
{
	if (!p->bar)
		return;
	pthread_mutex_lock(&p->lock);
	if (now_s() - p->drawn_s >= DRAW_S) {
		draw(p, fraction, n_messages);
		p->drawn_s = now_s();
	}
	pthread_mutex_unlock(&p->lock);
}

void fxi_progress_line(fxi_progress *p, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	pthread_mutex_lock(&p->lock);
	clear(p);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	pthread_mutex_unlock(&p->lock);
	va_end(args);
}

void fxi_progress_end(fxi_progress *p)
{
	pthread_mutex_lock(&p->lock);
	clear(p);
	fflush(stderr);
	pthread_mutex_unlock(&p->lock);
	pthread_mutex_destroy(&p->lock);
}
