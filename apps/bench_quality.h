/* SPDX-License-Identifier: MIT */
/* bench_quality.h - `fornix bench quality`: what each way of reconstructing costs in image quality. */
#ifndef FORNIX_APPS_BENCH_QUALITY_H
#define FORNIX_APPS_BENCH_QUALITY_H

int fxi_bench_quality(int argc, char **argv);

#endif
