/* SPDX-License-Identifier: MIT */
/* mrd_format.c - writes an MRD XML header that ismrmrd.xsd accepts. */
#include "mrd_header.h"

#include <glib.h>
#include <stdio.h>
#include <stdlib.h>

static void put_escaped(FILE *f, const char *text)
{
	for (; *text; text++)
		switch (*text) {
		case '<':
			fputs("&lt;", f);
			break;
		case '>':
			fputs("&gt;", f);
			break;
		case '&':
			fputs("&amp;", f);
			break;
		case '\r':
			fputs("&#13;", f);
			break;
		default:
			fputc(*text, f);
		}
}

static void put_text(FILE *f, const char *indent, const char *name, const char *text)
{
	if (!text)
		return;
	fprintf(f, "%s<%s>", indent, name);
	put_escaped(f, text);
	fprintf(f, "</%s>\n", name);
}

/* Seventeen digits bring every double back; whole numbers stay whole. The locale has no say. */
static void put_number(FILE *f, const char *indent, const char *name, double value)
{
	char digits[G_ASCII_DTOSTR_BUF_SIZE];

	g_ascii_formatd(digits, sizeof digits, "%.9g", value);
	if (g_ascii_strtod(digits, NULL) != value)
		g_ascii_formatd(digits, sizeof digits, "%.17g", value);
	fprintf(f, "%s<%s>%s</%s>\n", indent, name, digits, name);
}

static void put_whole(FILE *f, const char *indent, const char *name, int64_t value)
{
	fprintf(f, "%s<%s>%lld</%s>\n", indent, name, (long long)value, name);
}

static void put_params(FILE *f, const char *indent, const fx_params *params, int type)
{
	static const char *const elements[] = {"", "userParameterLong", "userParameterDouble", "userParameterString"};

	for (int64_t i = 0; i < params->n; i++) {
		const fx_param *p = &params->list[i];

		if (p->type != type)
			continue;
		fprintf(f, "%s<%s><name>", indent, elements[type]);
		put_escaped(f, p->name);
		fputs("</name><value>", f);
		put_escaped(f, p->text);
		fprintf(f, "</value></%s>\n", elements[type]);
	}
}

static void put_space(FILE *f, const char *name, const fx_space *s)
{
	static const char *const axes[] = {"x", "y", "z"};

	fprintf(f, "    <%s>\n      <matrixSize>\n", name);
	for (int axis = 0; axis < 3; axis++)
		put_whole(f, "        ", axes[axis], s->matrix[axis]);
	fputs("      </matrixSize>\n      <fieldOfView_mm>\n", f);
	for (int axis = 0; axis < 3; axis++)
		put_number(f, "        ", axes[axis], s->fov_mm[axis]);
	fprintf(f, "      </fieldOfView_mm>\n    </%s>\n", name);
}

static void put_encoding(FILE *f, const fx_encoding *e)
{
	fputs("  <encoding>\n", f);
	put_space(f, "encodedSpace", &e->encoded);
	put_space(f, "reconSpace", &e->recon);
	fputs("    <encodingLimits>\n", f);
	for (int c = 0; c < FX_N_COUNTERS; c++) {
		if (!e->limits[c].present)
			continue;
		fprintf(f, "      <%s>\n", fx_counter_name(c));
		put_whole(f, "        ", "minimum", e->limits[c].min);
		put_whole(f, "        ", "maximum", e->limits[c].max);
		put_whole(f, "        ", "center", e->limits[c].center);
		fprintf(f, "      </%s>\n", fx_counter_name(c));
	}
	fputs("    </encodingLimits>\n", f);
	put_text(f, "    ", "trajectory", fx_trajectory_kind_name(e->trajectory));
	if (e->description_id) {
		fputs("    <trajectoryDescription>\n", f);
		put_text(f, "      ", "identifier", e->description_id);
		put_params(f, "      ", &e->description, FX_PARAM_LONG);
		put_params(f, "      ", &e->description, FX_PARAM_DOUBLE);
		fputs("    </trajectoryDescription>\n", f);
	}
	if (e->acceleration[0] > 1 || e->acceleration[1] > 1) {
		fputs("    <parallelImaging>\n      <accelerationFactor>\n", f);
		for (int i = 0; i < 2; i++)
			put_number(f, "        ", fx_counter_name(FX_STEP_1 + i), e->acceleration[i] > 1 ? e->acceleration[i] : 1);
		fputs("      </accelerationFactor>\n    </parallelImaging>\n", f);
	}
	fputs("  </encoding>\n", f);
}

static void put_measurement(FILE *f, const fx_header *h)
{
	if (!h->measurement_id && !h->patient_position && !h->protocol && !h->noise_dependency)
		return;
	fputs("  <measurementInformation>\n", f);
	put_text(f, "    ", "measurementID", h->measurement_id);
	put_text(f, "    ", "patientPosition", h->patient_position ? h->patient_position : "HFS");
	put_text(f, "    ", "protocolName", h->protocol);
	if (h->noise_dependency) {
		fputs("    <measurementDependency>\n      <dependencyType>Noise</dependencyType>\n", f);
		put_text(f, "      ", "measurementID", h->noise_dependency);
		fputs("    </measurementDependency>\n", f);
	}
	fputs("  </measurementInformation>\n", f);
}

static void put_system(FILE *f, const fx_header *h)
{
	if (h->field_t > 0 || h->noise_bandwidth > 0 || h->receiver_channels > 0) {
		fputs("  <acquisitionSystemInformation>\n", f);
		if (h->field_t > 0)
			put_number(f, "    ", "systemFieldStrength_T", h->field_t);
		if (h->noise_bandwidth > 0)
			put_number(f, "    ", "relativeReceiverNoiseBandwidth", h->noise_bandwidth);
		if (h->receiver_channels > 0)
			put_whole(f, "    ", "receiverChannels", h->receiver_channels);
		fputs("  </acquisitionSystemInformation>\n", f);
	}
	/* A whole number, by the schema; beyond 2^62 it is the garbage that some simulators write. */
	fputs("  <experimentalConditions>\n", f);
	put_whole(f, "    ", "H1resonanceFrequency_Hz", h->h1_hz > 0 && h->h1_hz < 0x1p62 ? (int64_t)h->h1_hz : 0);
	fputs("  </experimentalConditions>\n", f);
}

/* Elements of schema version 1.13 and later; the order is the schema's. MRD's patient axes are LPS. */
static void put_diffusion(FILE *f, const fx_header *h)
{
	static const char *const axes[] = {"rl", "ap", "fh"};

	if (h->n_diffusion == 0 && h->diffusion_dimension == FX_DIFFUSION_NONE && !h->diffusion_scheme)
		return;
	fputs("  <sequenceParameters>\n", f);
	if (h->diffusion_dimension != FX_DIFFUSION_NONE)
		put_text(f, "    ", "diffusionDimension", fx_diffusion_dimension_name(h->diffusion_dimension));
	for (int64_t i = 0; i < h->n_diffusion; i++) {
		const fx_gradient *g = &h->diffusion[i];

		fputs("    <diffusion>\n      <gradientDirection>\n", f);
		for (int a = 0; a < 3; a++) /* 0 - x writes no minus in front of a 0 */
			put_number(f, "        ", axes[a], a < 2 ? 0 - g->dir[a] : g->dir[a]);
		fputs("      </gradientDirection>\n", f);
		put_number(f, "      ", "bvalue", g->b);
		fputs("    </diffusion>\n", f);
	}
	put_text(f, "    ", "diffusionScheme", h->diffusion_scheme);
	fputs("  </sequenceParameters>\n", f);
}

char *fxi_header_format(const fx_header *h)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ismrmrdHeader xmlns=\"http://www.ismrm.org/ISMRMRD\">\n", f);
	put_measurement(f, h);
	put_system(f, h);
	for (int64_t i = 0; i < h->n_encodings; i++)
		put_encoding(f, &h->encodings[i]);
	put_diffusion(f, h);
	if (h->user.n > 0) {
		fputs("  <userParameters>\n", f);
		for (int type = FX_PARAM_LONG; type <= FX_PARAM_STRING; type++)
			put_params(f, "    ", &h->user, type);
		fputs("  </userParameters>\n", f);
	}
	fputs("</ismrmrdHeader>\n", f);
	bool failed = ferror(f) != 0;
	if (fclose(f) != 0 || failed) {
		free(text);
		return NULL;
	}
	return text;
}
