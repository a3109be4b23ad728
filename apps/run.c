/* SPDX-License-Identifier: MIT */
/*
 * run.c - `fornix run PIPELINE INPUT`: a scan through a chain into a folder. What is wrong with the call is found before
 * anything is written; from then on the folder gets its run.json, whatever happens.
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "apps/common.h"
#include "apps/progress.h"
#include "apps/run_input.h"
#include "apps/run_record.h"
#include "apps/run_stream.h"
#include "io/cache.h"
#include "io/files.h"
#include "io/input.h"
#include "stream/chain.h"
#include "xml/mrd_header.h"

struct options {
	char *folder, *group, *backend;
	char **assignments;
	char *bval, *bvec, *grad, *tensor_order, *tensor_frame, *tensor_unit;
	gint n_threads;
	gboolean quiet, verbose, no_cache;
};

struct run {
	const struct options *options;
	const char *input;
	char **assignments;   /* --set, and what other options set */
	fxi_registry *registry;
	fxi_pipeline *pipeline;
	fxi_chain *chain;
	fxi_source *source;
	fx_header *header;
	fxi_files *files;
	fxi_cache *cache;
	bool to_stream;       /* -o -: images go to standard output */
	fxi_run_stream stream;
	unsigned kinds;       /* what the chain starts from */
	fxi_progress progress;
	bool to_user;   /* notes and a summary are wanted, beside warnings and errors */
	fx_backend_choice backend;
	fx_error err;
};

/* ---- Ctrl-C ---------------------------------------------------------------------------------- */

/* Of the one run that a process makes: signal handlers get no argument. */
static fxi_chain *_Atomic running;
static atomic_bool stop_asked, writing;

static void on_signal(int number)
{
	static const char text[] = "fornix: stopped\n";
	fxi_chain *chain = atomic_load(&running);

	(void)number;
	/* Until the folder is touched there is nothing to tidy up, and opening a pipe may wait for its writer for ever. */
	if (!atomic_load(&writing)) {
		ssize_t n = write(STDERR_FILENO, text, sizeof text - 1);

		(void)n;
		_exit(FXI_EXIT_STOPPED);
	}
	atomic_store(&stop_asked, true);
	if (chain)
		fxi_chain_stop(chain);
}

/* The first signal stops the run in order, the second ends the process at once. Reads are not restarted. */
static void catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

/* ---- what the chain says --------------------------------------------------------------------- */

static void on_log(void *arg, int level, const char *gadget, const char *text)
{
	struct run *run = arg;
	const char *colon = gadget ? ": " : "";

	if (!gadget)
		gadget = "";
	if (level == FXI_WARNING && !run->options->quiet)
		fxi_progress_line(&run->progress, "fornix: warning: %s%s%s", gadget, colon, text);
	else if (level == FXI_INFO && run->to_user)
		fxi_progress_line(&run->progress, "fornix: %s%s%s", gadget, colon, text);
	else if (level == FXI_DEBUG && run->options->verbose)
		fxi_progress_line(&run->progress, "fornix: %s%s%s", gadget, colon, text);
	/* A failure comes back from the chain too, and is said once, at the end. */
}

static void on_progress(void *arg, double fraction, int64_t n_messages)
{
	struct run *run = arg;

	fxi_progress_update(&run->progress, fraction, n_messages);
}

/* ---- the parts of a run ---------------------------------------------------------------------- */

/* A NIfTI file is opened before the pipeline is loaded, which has to know what enters it. */
static int open_nifti(struct run *run)
{
	const struct options *o = run->options;
	const fxi_nifti_options nifti = {.bval = o->bval, .bvec = o->bvec, .grad = o->grad, .tensor_order = o->tensor_order,
		.tensor_frame = o->tensor_frame, .tensor_unit = o->tensor_unit};
	int status = fxi_run_open_nifti(run->input, o->group, &nifti, &run->err, &run->source);

	run->assignments = fxi_run_assignments(o->assignments, &nifti, !run->source);
	return status;
}

/*
 * Raw data enter the chain; where its first gadgets want images, so may a stream of those: it is looked into once it is open. What else would
 * fit a chain comes in files that were opened already.
 */
static int make_chain(struct run *run)
{
	fx_error why = {0};
	int status;

	run->kinds = run->source ? run->source->kinds : FXI_SCAN_KINDS;
	status = fxi_chain_new(run->pipeline, run->registry, run->kinds, &run->err, &run->chain);
	if (status == FX_EINVAL && !run->source && fxi_apps_chain(run->pipeline, run->registry, &why, &run->chain, &run->kinds) == FX_OK) {
		if (run->kinds == FX_IMAGE && fxi_input_may_stream(run->input)) {
			run->err = (fx_error){0};
			return FX_OK;
		}
		fxi_chain_free(run->chain);
		run->chain = NULL;
	}
	return status;
}

/* All that can be wrong with the call: nothing was written yet. */
static int prepare(struct run *run, const char *pipeline)
{
	int status;

	if (fxi_apps_registry(&run->registry) != FX_OK)
		return FX_EINVAL;
	status = fxi_apps_pipeline(pipeline, run->assignments, &run->err, &run->pipeline);
	if (status == FX_OK)
		status = make_chain(run);
	if (status == FX_OK && run->options->n_threads < 0)
		status = fx_error_set(&run->err, FX_EINVAL, "--threads is %d; it takes 0 (every processor) or a number of threads",
			run->options->n_threads);
	if (status != FX_OK)
		return status;
	return fx_backend_choose(run->options->backend, &run->backend, &run->err);
}

static int read_header(struct run *run)
{
	fx_error why = {0};
	int status = fxi_header_parse(run->source->header_xml, strlen(run->source->header_xml), &why, &run->header);

	if (status != FX_OK)
		fx_error_set(&run->err, status, "%s: %s", run->input, why.text);
	return status;
}

static int work(struct run *run)
{
	fxi_services services = {.files = run->files, .cache = run->cache, .log = on_log, .log_arg = run};
	fxi_run_options options = {.backend = run->backend.name, .n_threads = run->options->n_threads,
		.progress = on_progress, .progress_arg = run};
	int status;

	if (run->to_stream) {
		services.files = fxi_wire_exit_files(run->stream.exit);
		options.output = fxi_wire_exit_output;
		options.output_arg = run->stream.exit;
	}
	if (strcmp(run->options->backend, "host") != 0)
		on_log(run, FXI_INFO, NULL, run->backend.why);
	if (run->source->note)
		on_log(run, FXI_INFO, NULL, run->source->note);
	if (run->source->warning)
		on_log(run, FXI_WARNING, NULL, run->source->warning);
	atomic_store(&running, run->chain);
	if (atomic_load(&stop_asked)) /* between the handler's being set and now */
		fxi_chain_stop(run->chain);
	status = fxi_chain_run(run->chain, run->header, run->source, &services, &options, &run->err);
	atomic_store(&running, NULL);
	return status;
}

static void write_record(struct run *run, int status, const char *started)
{
	bool stopped = status == FX_ECANCELED && atomic_load(&stop_asked);
	fxi_run_record record = {
		.status = status == FX_OK ? "done" : stopped ? "stopped" : "failed",
		.error = status == FX_OK ? NULL : run->err.text,
		.started = started,
		.seconds = fxi_progress_seconds(&run->progress),
		.pipeline = run->pipeline,
		.assignments = run->assignments,
		.input = run->input,
		.group = run->options->group,
		.source = run->source,
		.backend_asked = run->options->backend,
		.backend = &run->backend,
		.n_threads = run->options->n_threads > 0 ? run->options->n_threads : fx_processors(),
		.chain = run->chain,
	};
	fx_error err = {0};

	record.products = fxi_files_names(run->files, &record.n_products);
	if (fxi_run_record_write(&record, run->options->folder, &err) == FX_OK)
		return;
	/* The run's own failure is the one to tell first; without one, this is the run's failure. */
	if (run->err.status == FX_OK)
		fx_error_set(&run->err, err.status, "%s", err.text);
	else
		fxi_progress_line(&run->progress, "fornix: %s", err.text);
}

static void summarise(struct run *run)
{
	int64_t n = 0;
	const char *const *names = NULL;

	if (run->files)
		names = fxi_files_names(run->files, &n);
	fprintf(stderr, "%-20s %10s %10s %10s %10s\n", "gadget", "in", "out", "seconds", "opening");
	for (int64_t i = 0; i < fxi_chain_n_stages(run->chain); i++) {
		fxi_stage_report s;

		fxi_chain_stage(run->chain, i, &s);
		fprintf(stderr, "%-20s %10lld %10lld %10.2f %10.2f\n", s.gadget, (long long)s.n_in, (long long)s.n_out, s.busy_s,
			s.open_s);
	}
	fprintf(stderr, "%.2f s in all, on %s with %d threads\n", fxi_progress_seconds(&run->progress), run->backend.name,
		run->options->n_threads > 0 ? run->options->n_threads : fx_processors());
	for (int64_t i = 0; i < n; i++)
		fprintf(stderr, "%s/%s\n", run->options->folder, names[i]);
}

/* Where the products go. */
static int open_output(struct run *run)
{
	if (run->to_stream)
		return fxi_run_stream_open(&run->stream, run->pipeline, run->source->header_xml, &run->err);
	return fxi_files_folder(run->options->folder, &run->err, &run->files);
}

/* What became of the run's products, once it is over. */
static int close_output(struct run *run, int status, const char *started)
{
	fx_error why = {0};

	if (run->to_stream && fxi_run_stream_close(&run->stream, &run->err, &why) != FX_OK && status == FX_OK)
		return fx_error_set(&run->err, why.status, "%s", why.text);
	if (run->files) {
		write_record(run, status, started);
		return status == FX_OK ? run->err.status : status;
	}
	return status;
}

static int open_input(struct run *run)
{
	int status = fxi_input_open(run->input, run->options->group, &run->err, &run->source);
	unsigned kinds;

	if (status != FX_OK || run->kinds != FX_IMAGE)
		return status;
	status = fxi_mrd_stream_kinds(run->source, &run->err, &kinds);
	if (status == FX_OK && kinds && kinds != FX_IMAGE)
		return fx_error_set(&run->err, FX_EDATA, "%s: its first gadgets want images, and %s holds readouts", run->pipeline->file,
			run->input);
	return status;
}

static int run_all(struct run *run, const char *pipeline)
{
	GDateTime *now = g_date_time_new_now_utc();
	char *started = g_date_time_format(now, "%Y-%m-%dT%H:%M:%SZ");
	int status = open_nifti(run);
	bool prepared = status != FX_EINVAL;

	g_date_time_unref(now);
	if (status == FX_OK) {
		status = prepare(run, pipeline);
		prepared = status == FX_OK;
	}
	if (status == FX_OK && !run->source)
		status = open_input(run);
	prepared = prepared && status != FX_EINVAL; /* a wrong --group */
	atomic_store(&writing, true);
	if (status == FX_OK)
		status = open_output(run);
	if (status == FX_OK && !run->options->no_cache)
		status = fxi_cache_open(NULL, FXI_CACHE_DEFAULT_BYTES, &run->err, &run->cache);
	if (status == FX_OK)
		status = read_header(run);
	if (status == FX_OK)
		status = work(run);
	status = close_output(run, status, started);
	fxi_progress_end(&run->progress);
	if (status == FX_OK && run->to_user)
		summarise(run);
	g_free(started);
	if (status == FX_OK)
		return FXI_EXIT_DONE;
	if (status == FX_ECANCELED && atomic_load(&stop_asked)) {
		if (run->to_stream)
			fxi_apps_say("stopped");
		else
			fxi_apps_say("stopped; nothing unfinished was left in %s", run->options->folder);
		return FXI_EXIT_STOPPED;
	}
	if (run->err.status != FX_OK)
		fxi_apps_say("%s", run->err.text);
	return prepared ? FXI_EXIT_FAILED : FXI_EXIT_USAGE;
}

static int run_with(const struct options *options, const char *pipeline, const char *input)
{
	struct run run = {.options = options, .input = input};
	int result;

	run.to_stream = strcmp(options->folder, "-") == 0;
	run.to_user = !options->quiet && (options->verbose || fxi_progress_on_terminal());
	fxi_progress_start(&run.progress, !options->quiet);
	catch_signals();
	result = run_all(&run, pipeline);
	if (run.files)
		run.files->close(run.files);
	if (run.cache)
		run.cache->close(run.cache);
	fx_header_free(run.header);
	if (run.source)
		run.source->close(run.source);
	fxi_chain_free(run.chain);
	fxi_pipeline_free(run.pipeline);
	fxi_registry_free(run.registry);
	g_strfreev(run.assignments);
	return result;
}

int fxi_app_run(int argc, char **argv)
{
	struct options o = {0};
	const GOptionEntry entries[] = {
		{"output", 'o', 0, G_OPTION_ARG_FILENAME, &o.folder, "Folder for the products and run.json (fornix-out); - puts the images on standard output, as an MRD stream", "DIR"},
		{"set", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &o.assignments, "Set a property, as in cg.iterations=20 (repeatable)",
			"GADGET.PROPERTY=VALUE"},
		{"group", 0, 0, G_OPTION_ARG_FILENAME, &o.group, "HDF5 group of the scan, where there are several", "NAME"},
		{"bval", 0, 0, G_OPTION_ARG_FILENAME, &o.bval, "b-values of a diffusion series (FSL's table)", "FILE"},
		{"bvec", 0, 0, G_OPTION_ARG_FILENAME, &o.bvec, "Its b-vectors (FSL's table)", "FILE"},
		{"grad", 0, 0, G_OPTION_ARG_FILENAME, &o.grad, "Both in MRtrix's table of x, y, z and b instead", "FILE"},
		{"tensor-order", 0, 0, G_OPTION_ARG_STRING, &o.tensor_order, "The input is a tensor image: nifti, mrtrix or fsl",
			"ORDER"},
		{"tensor-frame", 0, 0, G_OPTION_ARG_STRING, &o.tensor_frame, "Axes of its tensors: ras, image or fsl (those of the order)",
			"FRAME"},
		{"tensor-unit", 0, 0, G_OPTION_ARG_STRING, &o.tensor_unit, "um2/ms, mm2/s or auto, told from the values (auto)", "UNIT"},
		{"backend", 0, 0, G_OPTION_ARG_FILENAME, &o.backend, "Where to compute: auto, host, cuda or cuda:N (auto)", "NAME"},
		{"threads", 0, 0, G_OPTION_ARG_INT, &o.n_threads, "Threads to compute with; 0 for every processor (0)", "N"},
		{"no-cache", 0, 0, G_OPTION_ARG_NONE, &o.no_cache, "Neither read nor write the cache of trajectories", NULL},
		{"verbose", 'v', 0, G_OPTION_ARG_NONE, &o.verbose, "Notes and a summary also where stderr is no terminal", NULL},
		{"quiet", 'q', 0, G_OPTION_ARG_NONE, &o.quiet, "Say errors only (warnings are in run.json)", NULL},
		G_OPTION_ENTRY_NULL,
	};
	int result = FXI_EXIT_USAGE;

	if (fxi_apps_options("PIPELINE INPUT", "Reconstructs the scan INPUT (an MRD HDF5 file or an MRD stream; - is standard input) with "
		    "PIPELINE (a shipped one's name, or a file). A diffusion series or a tensor image in NIfTI enters the pipeline behind "
		    "the gadgets that would have made it; a series needs its gradients: --bval and --bvec, --grad, or files of its own name "
		    "with .bval and .bvec beside it.", entries, 2, 2, &argc, &argv)) {
		if (!o.folder)
			o.folder = g_strdup("fornix-out");
		if (!o.backend)
			o.backend = g_strdup("auto");
		result = run_with(&o, argv[1], argv[2]);
	}
	g_free(o.folder);
	g_free(o.group);
	g_free(o.backend);
	g_free(o.bval);
	g_free(o.bvec);
	g_free(o.grad);
	g_free(o.tensor_order);
	g_free(o.tensor_frame);
	g_free(o.tensor_unit);
	g_strfreev(o.assignments);
	return result;
}
