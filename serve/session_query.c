/* SPDX-License-Identifier: MIT */
/*
 * session_query.c - answers to queries (message 6). Names and formats are those that Gadgetron's clients and its test runner ask for: "1" and
 * "0" for what is supported, bytes for memory, one line a device.
 */
#include "serve/session_parts.h"

#include <ismrmrd/version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_OF(x) #x
#define NUMBER_OF(x) TEXT_OF(x)
#define MRD_VERSION NUMBER_OF(ISMRMRD_VERSION_MAJOR) "." NUMBER_OF(ISMRMRD_VERSION_MINOR) "." NUMBER_OF(ISMRMRD_VERSION_PATCH)

static int64_t memory_bytes(void)
{
	return (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
}

static void put_version(FILE *f, const fxi_session *s)
{
	(void)s;
	fputs("Fornix " FORNIX_VERSION, f);
}

static void put_mrd_version(FILE *f, const fxi_session *s)
{
	(void)s;
	fputs(MRD_VERSION, f);
}

static void put_memory(FILE *f, const fxi_session *s)
{
	(void)s;
	fprintf(f, "%lld", (long long)memory_bytes());
}

static void put_no(FILE *f, const fxi_session *s)
{
	(void)s;
	fputs("0", f);
}

static void put_cuda(FILE *f, const fxi_session *s)
{
	fputs(s->options->n_gpus > 0 ? "1" : "0", f);
}

static void put_devices(FILE *f, const fxi_session *s)
{
	fprintf(f, "%d", s->options->n_gpus);
}

static void put_cuda_version(FILE *f, int version)
{
	if (version > 0)
		fprintf(f, "%d.%d", version / 1000, version % 1000 / 10);
	else
		fputs("N/A", f);
}

static void put_driver(FILE *f, const fxi_session *s)
{
	put_cuda_version(f, s->options->cuda_driver);
}

static void put_runtime(FILE *f, const fxi_session *s)
{
	put_cuda_version(f, s->options->cuda_runtime);
}

static void put_gpu_memory(FILE *f, const fxi_session *s)
{
	for (int i = 0; i < s->options->n_gpus; i++)
		fprintf(f, "%s%lld", i > 0 ? "\n" : "", (long long)s->options->gpus[i].memory_bytes);
}

static void put_capabilities(FILE *f, const fxi_session *s)
{
	for (int i = 0; i < s->options->n_gpus; i++)
		fprintf(f, "%s%d.%d", i > 0 ? "\n" : "", s->options->gpus[i].capability / 10, s->options->gpus[i].capability % 10);
}

static void put_info(FILE *f, const fxi_session *s)
{
	fprintf(f, "Fornix " FORNIX_VERSION ", speaking Gadgetron's protocol\n"
		"  -- MRD version     : " MRD_VERSION "\n"
		"  -- Processors      : %d\n"
		"  -- Memory          : %lld MB, %lld MB available\n"
		"  -- Python, MATLAB  : NO\n"
		"  -- CUDA            : %s\n", fx_processors(), (long long)(memory_bytes() >> 20),
		(long long)(fx_memory_available_bytes() >> 20), s->options->n_gpus > 0 ? "YES" : "NO");
	for (int i = 0; i < s->options->n_gpus; i++) {
		const fxi_session_gpu *g = &s->options->gpus[i];

		fprintf(f, "    + Device %d: %s, capability %d.%d, %lld MB\n", i, g->name, g->capability / 10, g->capability % 10,
			(long long)(g->memory_bytes >> 20));
	}
}

static const struct {
	const char *name;
	void (*put)(FILE *f, const fxi_session *s);
} answers[] = {
	{"gadgetron::info", put_info},
	{"gadgetron::version", put_version},
	{"gadgetron::build", put_version},
	{"gadgetron::info::memory", put_memory},
	{"gadgetron::info::python", put_no},
	{"gadgetron::info::matlab", put_no},
	{"gadgetron::info::cuda", put_cuda},
	{"gadgetron::cuda::devices", put_devices},
	{"gadgetron::cuda::driver", put_driver},
	{"gadgetron::cuda::runtime", put_runtime},
	{"gadgetron::cuda::memory", put_gpu_memory},
	{"gadgetron::cuda::capabilities", put_capabilities},
	{"ismrmrd::version", put_mrd_version},
};

char *fxi_session_answer(const fxi_session *s, const char *query)
{
	const fxi_session_hooks *hooks = &s->options->hooks;
	char *text = NULL;
	size_t size = 0;
	FILE *f;

	if (hooks->query && (text = hooks->query(hooks->arg, query)))
		return text;
	f = open_memstream(&text, &size);
	if (!f)
		return NULL;
	for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++)
		if (strcmp(answers[i].name, query) == 0) {
			answers[i].put(f, s);
			fclose(f);
			return text;
		}
	/* An answer all the same: whoever asked waits for one. */
	fprintf(f, "unknown query: %.200s", query);
	fclose(f);
	return text;
}
