/* SPDX-License-Identifier: MIT */
/* harness_files.h - the harness's output folder: products are kept in memory, what is read comes from disk. */
#ifndef FORNIX_TESTS_HARNESS_FILES_H
#define FORNIX_TESTS_HARNESS_FILES_H

#include <pthread.h>

#include "harness.h"

struct harness_files {
	fxi_files base;
	harness *h;
	pthread_mutex_t *lock;   /* guards the lists of `h`: gadgets work on threads of their own */
};

void harness_files_init(struct harness_files *files, harness *h, pthread_mutex_t *lock);
/* Frees what a product holds. */
void harness_product_clear(harness_product *p);

#endif
