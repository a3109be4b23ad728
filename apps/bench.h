/* SPDX-License-Identifier: MIT */
/* bench.h - what the measurements of `fornix bench` share. */
#ifndef FORNIX_APPS_BENCH_H
#define FORNIX_APPS_BENCH_H

#include <fornix/base.h>
#include <json-glib/json-glib.h>
#include <time.h>

/** A builder inside an object that has the measurement's name, date, machine and this version; the caller goes on. */
JsonBuilder *fxi_bench_record(const char *name);
/** Ends the object and writes it where path is not NULL. FX_EIO, explained. Frees the builder. */
int fxi_bench_record_end(JsonBuilder *b, const char *path, fx_error *err);

/** Seconds of that clock. */
double fxi_bench_clock_s(clockid_t id);
/** "X,Y,Z", each 1 to 4096. */
bool fxi_bench_matrix(const char *text, int64_t matrix[3]);

/* The measurements: argv[0] is "bench", their own name is left out. */

/** F^H D by the chapter's loops and by the library. */
int fxi_bench_fhd(int argc, char **argv);
/** Geodesics, after van Aart et al. (2011). */
int fxi_bench_track(int argc, char **argv);

#endif
