/* SPDX-License-Identifier: MIT */
/*
 * session_noise.c - the question for kept noise: Gadgetron's client opens a connection of its own for it, with an inline configuration of one
 * gadget, NoiseSummaryGadget, whose property noise_file names the measurement; and closes. The answer is message 1019: meta data with status,
 * channels, the noise readouts' dwell time and the range of standard deviations.
 */
#include "io/meta.h"
#include "serve/session_parts.h"

#include <glib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "GadgetronNoiseCovarianceMatrix_"

struct look {
	GString *text;      /* of the element that is open */
	char *name;         /* of the property whose value comes next */
	char *file;
	int n_gadgets;
	bool summary;
};

static void on_start(GMarkupParseContext *context, const char *element, const char **names, const char **values, void *arg,
	GError **error)
{
	struct look *l = arg;
	const char *name = NULL, *value = NULL;

	(void)context;
	(void)error;
	g_string_truncate(l->text, 0);
	if (strcmp(element, "gadget") == 0)
		l->n_gadgets++;
	if (strcmp(element, "property") != 0)
		return;
	g_clear_pointer(&l->name, g_free);
	for (int i = 0; names[i]; i++) {
		if (strcmp(names[i], "name") == 0)
			name = values[i];
		if (strcmp(names[i], "value") == 0)
			value = values[i];
	}
	if (name && value && strcmp(name, "noise_file") == 0 && !l->file)
		l->file = g_strdup(value);
}

static void on_text(GMarkupParseContext *context, const char *text, gsize bytes, void *arg, GError **error)
{
	struct look *l = arg;

	(void)context;
	(void)error;
	g_string_append_len(l->text, text, (gssize)bytes);
}

static void on_end(GMarkupParseContext *context, const char *element, void *arg, GError **error)
{
	const GSList *stack = g_markup_parse_context_get_element_stack(context);
	bool property = stack->next && strcmp(stack->next->data, "property") == 0;
	struct look *l = arg;

	(void)error;
	g_strstrip(l->text->str);
	if (strcmp(element, "classname") == 0 && strcmp(l->text->str, "NoiseSummaryGadget") == 0)
		l->summary = true;
	if (property && strcmp(element, "name") == 0) {
		g_free(l->name);
		l->name = g_strdup(l->text->str);
	}
	if (property && strcmp(element, "value") == 0 && l->name && strcmp(l->name, "noise_file") == 0 && !l->file)
		l->file = g_strdup(l->text->str);
	g_string_truncate(l->text, 0);
}

bool fxi_session_asks_noise(const char *script, char **id)
{
	const GMarkupParser parser = {.start_element = on_start, .end_element = on_end, .text = on_text};
	struct look l = {.text = g_string_new(NULL)};
	GMarkupParseContext *context = g_markup_parse_context_new(&parser, 0, &l, NULL);
	bool whole = g_markup_parse_context_parse(context, script, (gssize)strlen(script), NULL) &&
		g_markup_parse_context_end_parse(context, NULL);
	bool asks = whole && l.summary && l.n_gadgets == 1 && l.file && l.file[0];

	*id = NULL;
	if (asks)
		*id = strdup(g_str_has_prefix(l.file, PREFIX) ? l.file + strlen(PREFIX) : l.file);
	g_markup_parse_context_free(context);
	g_string_free(l.text, TRUE);
	g_free(l.name);
	g_free(l.file);
	return asks;
}

static int put(fx_image *meta, const char *name, double value)
{
	char text[32];

	snprintf(text, sizeof text, "%.9g", value);
	return fx_image_set_meta(meta, name, text);
}

static int describe(fx_image *meta, const fx_noise *noise)
{
	const fx_array *c = noise->covariance;
	double least = INFINITY, most = 0, sum = 0;
	int64_t n;
	int status;

	if (!c)
		return fx_image_set_meta(meta, "status", "failed");
	n = c->dims[0];
	for (int64_t i = 0; i < n; i++) {
		double sigma = sqrt(creal(FX_CF64_OF(c)[i * n + i]));

		least = fmin(least, sigma);
		most = fmax(most, sigma);
		sum += sigma;
	}
	status = put(meta, "noise_dwell_time_us", noise->dwell_us);
	if (status == FX_OK)
		status = put(meta, "min_sigma", least);
	if (status == FX_OK)
		status = put(meta, "max_sigma", most);
	if (status == FX_OK)
		status = put(meta, "mean_sigma", sum / (double)n);
	if (status == FX_OK)
		status = put(meta, "channels", (double)n);
	return status == FX_OK ? fx_image_set_meta(meta, "status", "success") : status;
}

int fxi_session_tell_noise(fxi_session *s, const char *id, fx_error *err)
{
	fx_noise noise = {0};
	fxi_noise_store *store = s->options->noise;
	fx_msg *msg = fx_msg_new(FX_IMAGE); /* holds meta data, which is all that is sent of it */
	char text[256], *xml = NULL;
	int status = store ? store->get(store, id, &noise, err) : FX_OK;

	if (status == FX_OK && msg && describe(fx_msg_image(msg), &noise) == FX_OK)
		xml = fxi_meta_format(fx_msg_image(msg));
	if (status == FX_OK && !xml)
		status = fx_error_set(err, FX_ENOMEM, "out of memory for an answer");
	if (status == FX_OK)
		status = fxi_wire_send_dependency(s->out, xml, err);
	snprintf(text, sizeof text, "was asked for the noise of measurement '%.100s': %s", id,
		noise.covariance ? "kept, and told" : "none is kept");
	fxi_session_say(s, FXI_INFO, NULL, text);
	fx_noise_clear(&noise);
	free(xml);
	fx_drop(msg);
	return status;
}
