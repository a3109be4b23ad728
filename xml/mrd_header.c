/* SPDX-License-Identifier: MIT */
/*
 * mrd_header.c - reads the MRD XML header leniently where the wild is careless (order, namespaces, missing recon space,
 * nested user parameters, capital letters) and strictly where a wrong number would ruin a reconstruction.
 */
#include "mrd_header.h"

#include "xml_util.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MATRIX_MAX 16384

static const char *const axis_names[3] = {"x", "y", "z"};
static const char *const trajectory_names[] = {"cartesian", "epi", "radial", "goldenangle", "spiral", "other"};
static const char *const counter_names[FX_N_COUNTERS] = {
	"kspace_encoding_step_1", "kspace_encoding_step_2", "average", "slice", "contrast", "phase", "repetition", "set",
	"segment",
};

static const char *const dimension_names[FX_N_DIFFUSION_DIMENSIONS] = {
	"none", "average", "contrast", "phase", "repetition", "set", "segment",
	"user_0", "user_1", "user_2", "user_3", "user_4", "user_5", "user_6", "user_7",
};

const char *fx_trajectory_kind_name(int kind)
{
	return kind >= FX_TRAJ_CARTESIAN && kind <= FX_TRAJ_OTHER ? trajectory_names[kind] : "?";
}

const char *fx_counter_name(int counter)
{
	return counter >= 0 && counter < FX_N_COUNTERS ? counter_names[counter] : "?";
}

const char *fx_diffusion_dimension_name(int dimension)
{
	return dimension >= 0 && dimension < FX_N_DIFFUSION_DIMENSIONS ? dimension_names[dimension] : "?";
}

static void params_free(fx_params *p)
{
	for (int64_t i = 0; i < p->n; i++) {
		free(p->list[i].name);
		free(p->list[i].text);
	}
	free(p->list);
}

void fx_header_free(fx_header *h)
{
	if (!h)
		return;
	for (int64_t i = 0; i < h->n_encodings; i++) {
		free(h->encodings[i].trajectory_text);
		free(h->encodings[i].description_id);
		params_free(&h->encodings[i].description);
	}
	free(h->encodings);
	free(h->measurement_id);
	free(h->patient_position);
	free(h->protocol);
	free(h->noise_dependency);
	free(h->diffusion);
	free(h->diffusion_scheme);
	params_free(&h->user);
	for (int64_t i = 0; i < h->n_coil_names; i++)
		free(h->coil_names[i]);
	free(h->coil_names);
	free(h->xml);
	free(h);
}

const fx_param *fx_param_find(const fx_params *params, const char *name)
{
	for (int64_t i = 0; i < params->n; i++)
		if (strcmp(params->list[i].name, name) == 0)
			return &params->list[i];
	return NULL;
}

static int no_memory(fx_error *err)
{
	return fx_error_set(err, FX_ENOMEM, "not enough memory for the MRD header");
}

/* ---- single values --------------------------------------------------------------------------- */

/** The child's text into *out (left NULL where it is absent or empty). */
static int read_text(const xmlNode *parent, const char *name, fx_error *err, char **out)
{
	const xmlNode *node = fxi_xml_child(parent, name);
	char *text;

	if (!node)
		return FX_OK;
	text = fxi_xml_text(node);
	if (!text)
		return no_memory(err);
	if (*text == '\0') {
		free(text);
		return FX_OK;
	}
	free(*out);
	*out = text;
	return FX_OK;
}

/** A number within [lo, hi] into *out; left alone where the child is absent or empty. `where` is for messages. */
static int read_number(const xmlNode *parent, const char *where, const char *name, double lo, double hi, bool whole,
	fx_error *err, double *out)
{
	char *text = NULL;
	double value = 0;
	int status = read_text(parent, name, err, &text);

	if (status != FX_OK || !text)
		return status;
	if (!fxi_xml_number(text, &value))
		status = fx_error_set(err, FX_EDATA, "MRD header: %s/%s is '%.40s', which is no number", where, name, text);
	else if (!(value >= lo && value <= hi) || (whole && value != floor(value)))
		status = fx_error_set(err, FX_EDATA, "MRD header: %s/%s is %.40s; it must be %s from %.10g to %.10g", where, name,
			text, whole ? "a whole number" : "a number", lo, hi);
	else
		*out = value;
	free(text);
	return status;
}

/* ---- parameters ------------------------------------------------------------------------------ */

static int param_type(const xmlNode *node)
{
	if (fxi_xml_is(node, "userParameterLong"))
		return FX_PARAM_LONG;
	if (fxi_xml_is(node, "userParameterDouble"))
		return FX_PARAM_DOUBLE;
	if (fxi_xml_is(node, "userParameterString") || fxi_xml_is(node, "userParameterBase64"))
		return FX_PARAM_STRING;
	return 0;
}

/* Some writers nest userParameters in themselves, so this descends; libxml2 bounds the depth to 256. */
static int64_t params_count(const xmlNode *parent)
{
	int64_t n = 0;

	for (const xmlNode *node = parent ? parent->children : NULL; node; node = node->next)
		n += param_type(node) ? 1 : params_count(node);
	return n;
}

static int params_fill(const xmlNode *parent, fx_params *p, fx_error *err)
{
	for (const xmlNode *node = parent ? parent->children : NULL; node; node = node->next) {
		int type = param_type(node), status;
		fx_param *param;

		if (!type) {
			status = params_fill(node, p, err);
			if (status != FX_OK)
				return status;
			continue;
		}
		param = &p->list[p->n++];
		param->type = type;
		param->name = fxi_xml_text(fxi_xml_child(node, "name"));
		param->text = fxi_xml_text(fxi_xml_child(node, "value"));
		if (!param->name || !param->text)
			return no_memory(err);
		if (type == FX_PARAM_STRING || !fxi_xml_number(param->text, &param->number))
			param->number = (double)NAN;
	}
	return FX_OK;
}

static int read_params(const xmlNode *parent, fx_error *err, fx_params *p)
{
	int64_t n = params_count(parent);

	if (n == 0)
		return FX_OK;
	p->list = calloc((size_t)n, sizeof *p->list);
	if (!p->list)
		return no_memory(err);
	return params_fill(parent, p, err);
}

/* ---- encodings ------------------------------------------------------------------------------- */

static int read_space(const xmlNode *node, const char *where, fx_error *err, fx_space *s)
{
	const xmlNode *matrix = fxi_xml_child(node, "matrixSize"), *fov = fxi_xml_child(node, "fieldOfView_mm");
	char place[96];
	int status;

	if (!matrix)
		return fx_error_set(err, FX_EDATA, "MRD header: %s has no <matrixSize>; it says how large the image is", where);
	for (int axis = 0; axis < 3; axis++) {
		double size = axis == 2 ? 1 : 0; /* the schema's default; x and y must be there */

		snprintf(place, sizeof place, "%s/matrixSize", where);
		status = read_number(matrix, place, axis_names[axis], 1, MATRIX_MAX, true, err, &size);
		if (status != FX_OK)
			return status;
		if (size == 0)
			return fx_error_set(err, FX_EDATA, "MRD header: %s/%s is missing; it must be a whole number from 1 to %d",
				place, axis_names[axis], MATRIX_MAX);
		s->matrix[axis] = (int64_t)size;
		snprintf(place, sizeof place, "%s/fieldOfView_mm", where);
		status = read_number(fov, place, axis_names[axis], 0, 1e6, false, err, &s->fov_mm[axis]);
		if (status != FX_OK)
			return status;
	}
	return FX_OK;
}

static int read_limits(const xmlNode *node, const char *where, fx_error *err, fx_limit limits[FX_N_COUNTERS])
{
	for (int c = 0; c < FX_N_COUNTERS; c++) {
		const xmlNode *limit = fxi_xml_child(node, counter_names[c]);
		double min = 0, max = -1, center = 0;
		char place[128];
		int status;

		if (!limit)
			continue;
		snprintf(place, sizeof place, "%s/encodingLimits/%s", where, counter_names[c]);
		status = read_number(limit, place, "minimum", 0, UINT16_MAX, true, err, &min);
		if (status == FX_OK)
			status = read_number(limit, place, "maximum", 0, UINT16_MAX, true, err, &max);
		if (status == FX_OK)
			status = read_number(limit, place, "center", 0, UINT16_MAX, true, err, &center);
		if (status != FX_OK)
			return status;
		if (max < 0) /* an empty element says nothing */
			continue;
		if (max < min)
			return fx_error_set(err, FX_EDATA, "MRD header: %s has maximum %.0f below minimum %.0f", place, max, min);
		limits[c] = (fx_limit){.present = true, .min = (int64_t)min, .max = (int64_t)max, .center = (int64_t)center};
	}
	return FX_OK;
}

static int read_trajectory(const xmlNode *node, fx_error *err, fx_encoding *e)
{
	const xmlNode *description = fxi_xml_child(node, "trajectoryDescription");
	int status;

	e->trajectory_text = fxi_xml_text(fxi_xml_child(node, "trajectory"));
	if (!e->trajectory_text)
		return no_memory(err);
	e->trajectory = FX_TRAJ_OTHER;
	for (int kind = FX_TRAJ_CARTESIAN; kind <= FX_TRAJ_OTHER; kind++)
		if (strcasecmp(e->trajectory_text, trajectory_names[kind]) == 0)
			e->trajectory = kind;
	status = read_text(description, "identifier", err, &e->description_id);
	if (status != FX_OK)
		return status;
	return read_params(description, err, &e->description);
}

static int read_encoding(const xmlNode *node, int64_t index, fx_error *err, fx_encoding *e)
{
	const xmlNode *encoded = fxi_xml_child(node, "encodedSpace"), *recon = fxi_xml_child(node, "reconSpace");
	const xmlNode *factors = fxi_xml_child(fxi_xml_child(node, "parallelImaging"), "accelerationFactor");
	char where[64];
	int status;

	snprintf(where, sizeof where, "encoding %lld", (long long)index);
	if (!encoded)
		return fx_error_set(err, FX_EDATA, "MRD header: %s has no <encodedSpace>", where);
	snprintf(where, sizeof where, "encoding %lld/encodedSpace", (long long)index);
	status = read_space(encoded, where, err, &e->encoded);
	if (status != FX_OK)
		return status;
	e->has_recon = recon != NULL;
	e->recon = e->encoded;
	if (recon) {
		snprintf(where, sizeof where, "encoding %lld/reconSpace", (long long)index);
		e->recon = (fx_space){.matrix = {0}};
		status = read_space(recon, where, err, &e->recon);
		if (status != FX_OK)
			return status;
	}
	snprintf(where, sizeof where, "encoding %lld", (long long)index);
	status = read_limits(fxi_xml_child(node, "encodingLimits"), where, err, e->limits);
	if (status != FX_OK)
		return status;
	snprintf(where, sizeof where, "encoding %lld/parallelImaging/accelerationFactor", (long long)index);
	for (int i = 0; i < 2; i++) {
		e->acceleration[i] = 1;
		status = read_number(factors, where, counter_names[FX_STEP_1 + i], 1, MATRIX_MAX, false, err, &e->acceleration[i]);
		if (status != FX_OK)
			return status;
	}
	return read_trajectory(node, err, e);
}

static int read_encodings(const xmlNode *root, fx_error *err, fx_header *h)
{
	int64_t n = 0;

	for (const xmlNode *node = fxi_xml_child(root, "encoding"); node; node = fxi_xml_next(node, "encoding"))
		n++;
	if (n == 0)
		return fx_error_set(err, FX_EDATA, "MRD header has no <encoding>; it says matrix and field of view, and nothing "
			"can be reconstructed without it");
	h->encodings = calloc((size_t)n, sizeof *h->encodings);
	if (!h->encodings)
		return no_memory(err);
	for (const xmlNode *node = fxi_xml_child(root, "encoding"); node; node = fxi_xml_next(node, "encoding")) {
		int64_t i = h->n_encodings++;
		int status = read_encoding(node, i, err, &h->encodings[i]);

		if (status != FX_OK)
			return status;
	}
	return FX_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int read_measurement(const xmlNode *node, fx_error *err, fx_header *h)
{
	int status = read_text(node, "measurementID", err, &h->measurement_id);

	if (status == FX_OK)
		status = read_text(node, "patientPosition", err, &h->patient_position);
	if (status == FX_OK)
		status = read_text(node, "protocolName", err, &h->protocol);
	for (const xmlNode *d = fxi_xml_child(node, "measurementDependency"); d && status == FX_OK;
		d = fxi_xml_next(d, "measurementDependency")) {
		char *type = NULL;

		status = read_text(d, "dependencyType", err, &type);
		if (type && strcasecmp(type, "noise") == 0 && !h->noise_dependency)
			status = read_text(d, "measurementID", err, &h->noise_dependency);
		free(type);
	}
	return status;
}

/* Patient axes are LPS: rl grows to the left, ap to the back, fh to the head. Left alone where nothing is said of an axis: 0. */
static int read_gradient(const xmlNode *node, int64_t index, fx_error *err, fx_gradient *g)
{
	static const char *const axes[] = {"rl", "ap", "fh"};
	const xmlNode *direction = fxi_xml_child(node, "gradientDirection");
	char where[96];
	int status;

	snprintf(where, sizeof where, "sequenceParameters/diffusion %lld", (long long)index);
	status = read_number(node, where, "bvalue", 0, 1e6, false, err, &g->b);
	snprintf(where, sizeof where, "sequenceParameters/diffusion %lld/gradientDirection", (long long)index);
	for (int a = 0; a < 3 && status == FX_OK; a++) {
		status = read_number(direction, where, axes[a], -1e6, 1e6, false, err, &g->dir[a]);
		if (a < 2)
			g->dir[a] = 0 - g->dir[a];
	}
	return status;
}

static int read_diffusion(const xmlNode *node, fx_error *err, fx_header *h)
{
	char *dimension = NULL;
	int64_t n = 0;
	int status = read_text(node, "diffusionDimension", err, &dimension);

	for (int d = FX_DIFFUSION_AVERAGE; d < FX_N_DIFFUSION_DIMENSIONS && dimension; d++)
		if (strcasecmp(dimension, dimension_names[d]) == 0)
			h->diffusion_dimension = d;
	if (status == FX_OK && dimension && h->diffusion_dimension == FX_DIFFUSION_NONE)
		status = fx_error_set(err, FX_EDATA, "MRD header: sequenceParameters/diffusionDimension is '%.40s'; it must be one of "
			"average, contrast, phase, repetition, set, segment, user_0 to user_7", dimension);
	free(dimension);
	if (status == FX_OK)
		status = read_text(node, "diffusionScheme", err, &h->diffusion_scheme);
	for (const xmlNode *d = fxi_xml_child(node, "diffusion"); d; d = fxi_xml_next(d, "diffusion"))
		n++;
	if (status != FX_OK || n == 0)
		return status;
	h->diffusion = calloc((size_t)n, sizeof *h->diffusion);
	if (!h->diffusion)
		return no_memory(err);
	for (const xmlNode *d = fxi_xml_child(node, "diffusion"); d && status == FX_OK; d = fxi_xml_next(d, "diffusion")) {
		status = read_gradient(d, h->n_diffusion, err, &h->diffusion[h->n_diffusion]);
		h->n_diffusion++;
	}
	return status;
}

static int read_coil_names(const xmlNode *system, fx_error *err, fx_header *h)
{
	int64_t n = 0;

	for (const xmlNode *node = fxi_xml_child(system, "coilLabel"); node; node = fxi_xml_next(node, "coilLabel"))
		n++;
	if (n == 0)
		return FX_OK;
	h->coil_names = calloc((size_t)n, sizeof *h->coil_names);
	if (!h->coil_names)
		return no_memory(err);
	for (const xmlNode *node = fxi_xml_child(system, "coilLabel"); node; node = fxi_xml_next(node, "coilLabel")) {
		h->coil_names[h->n_coil_names] = fxi_xml_text(fxi_xml_child(node, "coilName"));
		if (!h->coil_names[h->n_coil_names++])
			return no_memory(err);
	}
	return FX_OK;
}

static int read_header(const xmlNode *root, fx_error *err, fx_header *h)
{
	const xmlNode *system = fxi_xml_child(root, "acquisitionSystemInformation");
	double channels = 0;
	int status;

	if (!fxi_xml_is(root, "ismrmrdHeader"))
		return fx_error_set(err, FX_EDATA, "MRD header: the root element is <%.60s>, not <ismrmrdHeader>: this is not an "
			"MRD header", (const char *)root->name);
	status = read_encodings(root, err, h);
	if (status == FX_OK)
		status = read_measurement(fxi_xml_child(root, "measurementInformation"), err, h);
	if (status == FX_OK)
		status = read_number(system, "acquisitionSystemInformation", "receiverChannels", 0, UINT16_MAX, true, err,
			&channels);
	h->receiver_channels = (int64_t)channels;
	if (status == FX_OK)
		status = read_number(system, "acquisitionSystemInformation", "systemFieldStrength_T", 0, 1e3, false, err,
			&h->field_t);
	if (status == FX_OK)
		status = read_number(system, "acquisitionSystemInformation", "relativeReceiverNoiseBandwidth", 0, 1e6, false, err,
			&h->noise_bandwidth);
	/* Simulators write whatever lay in memory here (1.4e14 Hz); nothing that reads it trusts it, so any number goes. */
	if (status == FX_OK)
		status = read_number(fxi_xml_child(root, "experimentalConditions"), "experimentalConditions",
			"H1resonanceFrequency_Hz", -1e300, 1e300, false, err, &h->h1_hz);
	if (status == FX_OK)
		status = read_diffusion(fxi_xml_child(root, "sequenceParameters"), err, h);
	if (status == FX_OK)
		status = read_params(fxi_xml_child(root, "userParameters"), err, &h->user);
	if (status == FX_OK)
		status = read_coil_names(system, err, h);
	return status;
}

int fxi_header_parse(const char *xml, size_t size, fx_error *err, fx_header **out)
{
	fx_header *h;
	xmlDoc *doc = NULL;
	int status;

	*out = NULL;
	/* Fixed-length HDF5 strings come padded, and some writers put a line break before the declaration. */
	while (size > 0 && (xml[size - 1] == '\0' || strchr(" \t\r\n", xml[size - 1])))
		size--;
	while (size > 0 && strchr(" \t\r\n", xml[0]) && xml[0] != '\0') {
		xml++;
		size--;
	}
	if (size == 0)
		return fx_error_set(err, FX_EDATA, "MRD header is empty");
	if (size > FXI_HEADER_MAX_BYTES)
		return fx_error_set(err, FX_EDATA, "MRD header has %zu bytes; more than %d are not read", size,
			FXI_HEADER_MAX_BYTES);
	h = calloc(1, sizeof *h);
	if (!h)
		return no_memory(err);
	h->xml = malloc(size + 1);
	if (!h->xml) {
		status = no_memory(err);
		goto done;
	}
	memcpy(h->xml, xml, size);
	h->xml[size] = '\0';
	status = fxi_xml_read(xml, size, "MRD header", FX_EDATA, err, &doc);
	if (status != FX_OK)
		goto done;
	status = read_header(xmlDocGetRootElement(doc), err, h);
done:
	xmlFreeDoc(doc);
	if (status != FX_OK) {
		fx_header_free(h);
		return status;
	}
	*out = h;
	return FX_OK;
}
