/* SPDX-License-Identifier: MIT */
/*
 * apps.h - the verbs of the command `fornix`. Each is a file of its own and gets its own arguments (argv[0] is the
 * verb), prints what the user asked for on stdout and everything else on stderr, and returns the exit status.
 */
#ifndef FORNIX_APPS_H
#define FORNIX_APPS_H

/** Exit statuses, documented in `fornix help`. */
enum fxi_exit {
	FXI_EXIT_DONE = 0,
	FXI_EXIT_FAILED = 1,    /**< the work failed: bad data, full disk, a comparison beyond its bound */
	FXI_EXIT_USAGE = 2,     /**< the call was wrong: unknown option, pipeline, gadget or property */
	FXI_EXIT_STOPPED = 130  /**< stopped by Ctrl-C or SIGTERM; no partial product is left */
};

int fxi_app_run(int argc, char **argv);
int fxi_app_send(int argc, char **argv);
int fxi_app_list(int argc, char **argv);
int fxi_app_describe(int argc, char **argv);
int fxi_app_check(int argc, char **argv);
int fxi_app_docs(int argc, char **argv);
int fxi_app_graph(int argc, char **argv);
int fxi_app_schema(int argc, char **argv);
int fxi_app_phantom(int argc, char **argv);
int fxi_app_compare(int argc, char **argv);
int fxi_app_bench(int argc, char **argv);
int fxi_app_tune(int argc, char **argv);
int fxi_app_serve(int argc, char **argv);
int fxi_app_worker(int argc, char **argv);

#endif
