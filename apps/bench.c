/* SPDX-License-Identifier: MIT */
/* bench.c - `fornix bench NAME`: measures on this machine what the documentation speaks of, as a table and as JSON. */
#include "apps/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/bench_quality.h"
#include "apps/common.h"
#include "apps/json_file.h"
#include "stream/nearest.h"

static const char summary[] =
	"Measures on this machine and prints a table. Without a name it says what there is to measure; `fornix bench NAME --help`\n"
	"names a measurement's options.";

static const struct {
	const char *name, *help;
	int (*run)(int argc, char **argv);
} benches[] = {
	{"fhd", "F^H D by the chapter's loops and by the library: speed and error of each", fxi_bench_fhd},
	{"track", "geodesics on van Aart et al.'s workload: steps a second over threads, integrators and step lengths", fxi_bench_track},
	{"quality", "what each way of reconstructing costs in image quality", fxi_bench_quality},
};
#define N_BENCHES (sizeof benches / sizeof benches[0])

static void put_text(JsonBuilder *b, const char *name, const char *value)
{
	json_builder_set_member_name(b, name);
	json_builder_add_string_value(b, value);
}

/* The processor's name as the kernel gives it, or the architecture's where it gives none. */
static char *machine_name(void)
{
	char *text = NULL, *name = NULL, **lines;

	if (g_file_get_contents("/proc/cpuinfo", &text, NULL, NULL)) {
		lines = g_strsplit(text, "\n", -1);
		for (char **l = lines; *l && !name; l++)
			if (g_str_has_prefix(*l, "model name") && strchr(*l, ':'))
				name = g_utf8_make_valid(g_strstrip(strchr(*l, ':') + 1), -1);
		g_strfreev(lines);
		g_free(text);
	}
	return name ? name : g_strdup("unknown");
}

static void put_machine(JsonBuilder *b)
{
	char *name = machine_name();
	double load[1];

	json_builder_set_member_name(b, "machine");
	json_builder_begin_object(b);
	put_text(b, "processor", name);
	json_builder_set_member_name(b, "processors");
	json_builder_add_int_value(b, fx_processors());
	put_text(b, "compiler", __VERSION__);
	if (getloadavg(load, 1) == 1) {
		json_builder_set_member_name(b, "load_before");
		json_builder_add_double_value(b, load[0]);
	}
	json_builder_end_object(b);
	g_free(name);
}

JsonBuilder *fxi_bench_record(const char *name)
{
	GDateTime *now = g_date_time_new_now_utc();
	char *date = g_date_time_format(now, "%Y-%m-%dT%H:%M:%SZ");
	JsonBuilder *b = json_builder_new();

	json_builder_begin_object(b);
	put_text(b, "bench", name);
	put_text(b, "fornix", FORNIX_VERSION);
	put_text(b, "date", date);
	put_machine(b);
	g_free(date);
	g_date_time_unref(now);
	return b;
}

int fxi_bench_record_end(JsonBuilder *b, const char *path, fx_error *err)
{
	int status = FX_OK;

	json_builder_end_object(b);
	if (path) {
		JsonNode *root = json_builder_get_root(b);

		status = fxi_json_write(root, path, err);
		json_node_unref(root);
	}
	g_object_unref(b);
	return status;
}

double fxi_bench_clock_s(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool fxi_bench_matrix(const char *text, int64_t matrix[3])
{
	char **parts = g_strsplit(text, ",", -1);
	bool right = g_strv_length(parts) == 3;

	for (int a = 0; right && a < 3; a++) {
		gint64 n;

		right = g_ascii_string_to_signed(parts[a], 10, 1, 4096, &n, NULL);
		matrix[a] = right ? n : 0;
	}
	g_strfreev(parts);
	return right;
}

static int no_such(const char *name)
{
	const char *names[N_BENCHES], *nearest;

	for (size_t i = 0; i < N_BENCHES; i++)
		names[i] = benches[i].name;
	nearest = fxi_nearest_name(name, names, (int64_t)N_BENCHES);
	if (nearest)
		fxi_apps_say("bench: there is no measurement '%s'; did you mean '%s'?", name, nearest);
	else
		fxi_apps_say("bench: there is no measurement '%s'; `fornix bench` names them all", name);
	return FXI_EXIT_USAGE;
}

int fxi_app_bench(int argc, char **argv)
{
	const GOptionEntry none[] = {{NULL, 0, 0, 0, NULL, NULL, NULL}};

	if (argc > 1 && argv[1][0] != '-') {
		for (size_t i = 0; i < N_BENCHES; i++)
			if (strcmp(argv[1], benches[i].name) == 0) {
				argv[1] = argv[0];
				return benches[i].run(argc - 1, argv + 1);
			}
		return no_such(argv[1]);
	}
	if (!fxi_apps_options("[NAME] [OPTIONS]", summary, none, 0, 0, &argc, &argv))
		return FXI_EXIT_USAGE;
	for (size_t i = 0; i < N_BENCHES; i++)
		printf("%-8s %s\n", benches[i].name, benches[i].help);
	return FXI_EXIT_DONE;
}
