/* SPDX-License-Identifier: MIT */
#include "kernels/kernels.h"

#include <pthread.h>
#include <stdlib.h>

static int level = 1;

static void detect(void)
{
#if defined(__x86_64__)
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
		level = 3;
	if (level == 3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
		__builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
		__builtin_cpu_supports("avx512vl"))
		level = 4;
#endif
	const char *lower = getenv("FORNIX_ISA");
	if (lower && atoi(lower) >= 1 && atoi(lower) < level)
		level = atoi(lower);
}

int fxi_isa_level(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, detect);
	return level;
}
