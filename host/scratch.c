/* SPDX-License-Identifier: MIT */
/* scratch.c - work buffers for the threads of a parallel region; see the header. */
#include "scratch.h"

int fxi_scratch_new(fx_math *m, int64_t bytes, fxi_scratch *s)
{
	int n = m->n_threads > 1 ? m->n_threads : 1;
	int64_t step = (bytes + 63) / 64 * 64;

	*s = (fxi_scratch){.n_free = n};
	s->free = fx_alloc(n, sizeof *s->free);
	s->memory = bytes <= INT64_MAX - 64 ? fx_alloc(n, (size_t)step) : NULL;
	if (!s->free || !s->memory) {
		fx_free(s->free);
		fx_free(s->memory);
		*s = (fxi_scratch){0};
		return fx_math_fail(m, FX_ENOMEM, "no memory for %d work buffers of %.1f MB", n, (double)bytes / 1e6);
	}
	for (int i = 0; i < n; i++)
		s->free[i] = s->memory + i * step;
	pthread_mutex_init(&s->lock, NULL);
	return FX_OK;
}

void fxi_scratch_free(fxi_scratch *s)
{
	if (!s->memory)
		return;
	pthread_mutex_destroy(&s->lock);
	fx_free(s->free);
	fx_free(s->memory);
	*s = (fxi_scratch){0};
}

void *fxi_scratch_take(fxi_scratch *s)
{
	void *buffer;

	pthread_mutex_lock(&s->lock);
	buffer = s->free[--s->n_free];
	pthread_mutex_unlock(&s->lock);
	return buffer;
}

void fxi_scratch_give(fxi_scratch *s, void *buffer)
{
	pthread_mutex_lock(&s->lock);
	s->free[s->n_free++] = buffer;
	pthread_mutex_unlock(&s->lock);
}
