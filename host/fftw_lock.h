/* SPDX-License-Identifier: MIT */
/*
 * fftw_lock.h - FFTW's planner keeps global state and is not thread safe: whoever makes or destroys a plan holds
 * this one lock meanwhile. Executing a plan needs no lock.
 */
#ifndef FORNIX_HOST_FFTW_LOCK_H
#define FORNIX_HOST_FFTW_LOCK_H

void fxi_fftw_lock(void);
void fxi_fftw_unlock(void);

#endif
