/* SPDX-License-Identifier: MIT */
/* fftw_lock.c - the lock around FFTW's planner; see the header. */
#include "fftw_lock.h"

#include <pthread.h>

static pthread_mutex_t planner = PTHREAD_MUTEX_INITIALIZER;

void fxi_fftw_lock(void)
{
	pthread_mutex_lock(&planner);
}

void fxi_fftw_unlock(void)
{
	pthread_mutex_unlock(&planner);
}
