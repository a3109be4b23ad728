/* SPDX-License-Identifier: MIT */
/* pipeline.c - a pipeline as data: built by the XML readers and tests, changed by --set, read by the chain. */
#include "pipeline.h"

#include "nearest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

fxi_pipeline *fxi_pipeline_new(const char *file, const char *folder)
{
	fxi_pipeline *p = calloc(1, sizeof *p);

	if (!p)
		return NULL;
	p->file = strdup(file);
	p->folder = folder ? strdup(folder) : NULL;
	if (!p->file || (folder && !p->folder)) {
		fxi_pipeline_free(p);
		return NULL;
	}
	return p;
}

void fxi_pipeline_free(fxi_pipeline *p)
{
	if (!p)
		return;
	for (int64_t i = 0; i < p->n_stages; i++) {
		fxi_stage *stage = &p->stages[i];

		for (int64_t j = 0; j < stage->n_settings; j++) {
			free(stage->settings[j].name);
			free(stage->settings[j].value);
		}
		free(stage->settings);
		free(stage->gadget);
	}
	free(p->stages);
	free(p->description);
	free(p->summary);
	free(p->folder);
	free(p->file);
	free(p);
}

/* Room for one more element behind n of them; *list keeps its address on failure. */
static void *grow(void *list, int64_t n, size_t size)
{
	int64_t bytes;

	if (!fx_mul_size(n + 1, (int64_t)size, &bytes))
		return NULL;
	return realloc(list, (size_t)bytes);
}

fxi_stage *fxi_pipeline_add(fxi_pipeline *p, const char *gadget, int line)
{
	char *name = strdup(gadget);
	fxi_stage *stages = name ? grow(p->stages, p->n_stages, sizeof *stages) : NULL;

	if (!stages) {
		free(name);
		return NULL;
	}
	p->stages = stages;
	stages[p->n_stages] = (fxi_stage){.gadget = name, .line = line};
	return &stages[p->n_stages++];
}

fxi_setting *fxi_stage_add(fxi_stage *stage, const char *name, const char *value, int line)
{
	char *name_copy = strdup(name), *value_copy = strdup(value);
	fxi_setting *settings = NULL;

	if (name_copy && value_copy)
		settings = grow(stage->settings, stage->n_settings, sizeof *settings);
	if (!settings) {
		free(name_copy);
		free(value_copy);
		return NULL;
	}
	stage->settings = settings;
	settings[stage->n_settings] = (fxi_setting){name_copy, value_copy, line};
	return &settings[stage->n_settings++];
}

/* The stage that "NAME" or "NAME#2" means. */
static int find_stage(fxi_pipeline *p, const char *wanted, fx_error *err, fxi_stage **out)
{
	const char *hash = strchr(wanted, '#');
	size_t n = hash ? (size_t)(hash - wanted) : strlen(wanted);
	long which = 0;
	int64_t found = 0;

	if (hash) {
		char *end;

		errno = 0;
		which = strtol(hash + 1, &end, 10);
		if (end == hash + 1 || *end != '\0' || errno != 0 || which < 1)
			return fx_error_set(err, FX_EINVAL, "'%.100s': behind # comes a number, 1 for the first of that name",
				wanted);
	}
	for (int64_t i = 0; i < p->n_stages; i++) {
		fxi_stage *stage = &p->stages[i];

		if (strlen(stage->gadget) != n || strncmp(stage->gadget, wanted, n) != 0)
			continue;
		found++;
		if (found == which || (which == 0 && found == 1))
			*out = stage;
	}
	if (found > 1 && which == 0)
		return fx_error_set(err, FX_EINVAL, "%s has '%s' %lld times: write %s#1 for the first of them, and so on",
			p->file, wanted, (long long)found, wanted);
	if (found > 0 && which > found)
		return fx_error_set(err, FX_EINVAL, "%s has '%.*s' only %lld time%s", p->file, (int)n, wanted,
			(long long)found, found == 1 ? "" : "s");
	return found > 0 ? FX_OK : FX_EDATA;
}

static int no_such_gadget(const fxi_pipeline *p, const char *wanted, fx_error *err)
{
	const char **names = fx_alloc(p->n_stages, sizeof *names), *nearest = NULL;

	for (int64_t i = 0; names && i < p->n_stages; i++)
		names[i] = p->stages[i].gadget;
	if (names)
		nearest = fxi_nearest_name(wanted, names, p->n_stages);
	if (nearest)
		fx_error_set(err, FX_EINVAL, "%s has no gadget '%.100s'; did you mean '%s'?", p->file, wanted, nearest);
	else
		fx_error_set(err, FX_EINVAL, "%s has no gadget '%.100s'", p->file, wanted);
	fx_free(names);
	return FX_EINVAL;
}

static int put(fxi_stage *stage, const char *name, const char *value)
{
	for (int64_t i = 0; i < stage->n_settings; i++) {
		fxi_setting *setting = &stage->settings[i];
		char *copy;

		if (strcmp(setting->name, name) != 0)
			continue;
		copy = strdup(value);
		if (!copy)
			return FX_ENOMEM;
		free(setting->value);
		setting->value = copy;
		setting->line = 0;
		return FX_OK;
	}
	return fxi_stage_add(stage, name, value, 0) ? FX_OK : FX_ENOMEM;
}

int fxi_pipeline_set(fxi_pipeline *p, const char *assignment, fx_error *err)
{
	char *text = strdup(assignment), *dot, *equals;
	fxi_stage *stage = NULL;
	fx_error why = {0};
	int status;

	if (!text)
		return fx_error_set(err, FX_ENOMEM, "no memory for --set %.100s", assignment);
	equals = strchr(text, '=');
	if (equals)
		*equals = '\0';
	dot = strchr(text, '.');
	if (!equals || !dot || dot == text || dot + 1 == equals) {
		free(text);
		return fx_error_set(err, FX_EINVAL, "--set takes GADGET.PROPERTY=VALUE, not '%.200s'", assignment);
	}
	*dot = '\0';
	status = find_stage(p, text, &why, &stage);
	if (status == FX_EDATA)
		status = no_such_gadget(p, text, &why);
	if (status != FX_OK)
		fx_error_set(err, status, "--set %.200s: %.700s", assignment, why.text);
	else if ((status = put(stage, dot + 1, equals + 1)) != FX_OK)
		fx_error_set(err, status, "no memory for --set %.100s", assignment);
	free(text);
	return status;
}
