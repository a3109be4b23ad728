/* SPDX-License-Identifier: MIT */
/*
 * property.c - one parser for XML attributes, --set and the defaults of the tables, so that what the documentation
 * says of a property is what happens to it.
 */
#include "property.h"

#include "nearest.h"

#include <errno.h>
#include <glib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	size_t size;
} types[] = {
	[FX_PROP_BOOL] = {"bool", sizeof(bool)},           [FX_PROP_INT] = {"int", sizeof(int64_t)},
	[FX_PROP_FLOAT] = {"float", sizeof(float)},        [FX_PROP_DOUBLE] = {"double", sizeof(double)},
	[FX_PROP_STRING] = {"string", sizeof(char *)},     [FX_PROP_PATH] = {"path", sizeof(char *)},
	[FX_PROP_ENUM] = {"enum", sizeof(int)},
};

static bool known_type(int type)
{
	return type >= FX_PROP_BOOL && type <= FX_PROP_ENUM;
}

static bool is_number(int type)
{
	return type == FX_PROP_INT || type == FX_PROP_FLOAT || type == FX_PROP_DOUBLE;
}

int64_t fxi_properties_count(const fx_prop *props)
{
	int64_t n = 0;

	while (props && props[n].name)
		n++;
	return n;
}

const fx_prop *fxi_property_find(const fx_prop *props, const char *name)
{
	for (const fx_prop *p = props; p && p->name; p++)
		if (strcmp(p->name, name) == 0)
			return p;
	return NULL;
}

const char *fxi_property_nearest(const fx_prop *props, const char *name)
{
	int64_t n = fxi_properties_count(props);
	const char **names = fx_alloc(n, sizeof *names), *nearest;

	if (!names)
		return NULL;
	for (int64_t i = 0; i < n; i++)
		names[i] = props[i].name;
	nearest = fxi_nearest_name(name, names, n);
	fx_free(names);
	return nearest;
}

const char *fxi_property_type_name(int type)
{
	return known_type(type) ? types[type].name : "?";
}

/* snprintf onto the end of a text that may already be full. */
static void append(char *text, size_t size, const char *more)
{
	size_t used = strlen(text);

	if (used < size)
		snprintf(text + used, size - used, "%s", more);
}

void fxi_property_allowed(const fx_prop *prop, char *text, size_t size)
{
	const char *noun = prop->type == FX_PROP_INT ? "a whole number" : "a number";
	bool below = isinf(prop->max), above = isinf(prop->min);

	switch (prop->type) {
	case FX_PROP_BOOL:
		snprintf(text, size, "true or false");
		break;
	case FX_PROP_STRING:
	case FX_PROP_PATH:
		snprintf(text, size, "%s%s", prop->min >= 1 ? "a non-empty " : "a ",
			prop->type == FX_PROP_PATH ? "path" : "text");
		break;
	case FX_PROP_ENUM:
		snprintf(text, size, "one of ");
		for (int i = 0; prop->words[i]; i++) {
			if (i > 0)
				append(text, size, ", ");
			append(text, size, prop->words[i]);
		}
		break;
	default:
		if (below && above)
			snprintf(text, size, "%s", noun);
		else if (below)
			snprintf(text, size, "%s of at least %.15g", noun, prop->min);
		else if (above)
			snprintf(text, size, "%s of at most %.15g", noun, prop->max);
		else
			snprintf(text, size, "%s from %.15g to %.15g", noun, prop->min, prop->max);
	}
}

static int refuse(const fx_prop *prop, const char *text, fx_error *err)
{
	char allowed[512];
	const char *nearest = NULL;
	int64_t n = 0;

	fxi_property_allowed(prop, allowed, sizeof allowed);
	while (prop->type == FX_PROP_ENUM && prop->words[n])
		n++;
	if (n > 0)
		nearest = fxi_nearest_name(text, prop->words, n);
	if (nearest)
		return fx_error_set(err, FX_EINVAL, "property '%s' is '%.200s', but takes %s; did you mean '%s'?",
			prop->name, text, allowed, nearest);
	return fx_error_set(err, FX_EINVAL, "property '%s' is '%.200s', but takes %s", prop->name, text, allowed);
}

static bool parse_bool(const char *text, bool *out)
{
	static const char *const yes[] = {"true", "1", "yes", "on"}, *const no[] = {"false", "0", "no", "off"};

	for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
		if (g_ascii_strcasecmp(text, yes[i]) == 0 || g_ascii_strcasecmp(text, no[i]) == 0) {
			*out = g_ascii_strcasecmp(text, yes[i]) == 0;
			return true;
		}
	}
	return false;
}

static bool parse_int(const fx_prop *prop, const char *text, int64_t *out)
{
	char *end;
	int64_t value;

	errno = 0;
	value = g_ascii_strtoll(text, &end, 10);
	if (end == text || *end != '\0' || errno == ERANGE)
		return false;
	if (!((double)value >= prop->min && (double)value <= prop->max))
		return false;
	*out = value;
	return true;
}

/* g_ascii_strtod: a decimal point whatever the locale. Infinities pass where the range holds them, NaN never. */
static bool parse_number(const fx_prop *prop, const char *text, double *out)
{
	char *end;
	double value;

	errno = 0;
	value = g_ascii_strtod(text, &end);
	if (end == text || *end != '\0' || (errno == ERANGE && fabs(value) > 1))
		return false;
	if (isnan(value) || !(value >= prop->min && value <= prop->max))
		return false;
	if (prop->type == FX_PROP_FLOAT && isfinite(value) && !isfinite((float)value))
		return false;
	*out = value;
	return true;
}

static bool parse_word(const fx_prop *prop, const char *text, int *out)
{
	for (int i = 0; prop->words[i]; i++)
		if (strcmp(prop->words[i], text) == 0) {
			*out = i;
			return true;
		}
	return false;
}

/* The field's place and alignment were checked when the plugin was loaded. */
static bool parse(const fx_prop *prop, void *field, const char *text)
{
	double value;

	switch (prop->type) {
	case FX_PROP_BOOL:
		return parse_bool(text, field);
	case FX_PROP_INT:
		return parse_int(prop, text, field);
	case FX_PROP_FLOAT:
		if (!parse_number(prop, text, &value))
			return false;
		*(float *)field = (float)value;
		return true;
	case FX_PROP_DOUBLE:
		return parse_number(prop, text, field);
	case FX_PROP_ENUM:
		return parse_word(prop, text, field);
	default:
		if (prop->min >= 1 && *text == '\0')
			return false;
		*(const char **)field = text;
		return true;
	}
}

/* The text in force: blanks around a number or word are XML layout, in a string they are the user's. */
static char *settle(const fx_prop *prop, const char *text, const char *folder)
{
	char *copy;

	if (prop->type == FX_PROP_PATH && folder && *text != '\0' && *text != '/') {
		size_t size = strlen(folder) + strlen(text) + 2;

		copy = malloc(size);
		if (copy)
			snprintf(copy, size, "%s/%s", folder, text);
		return copy;
	}
	copy = strdup(text);
	if (copy && prop->type != FX_PROP_STRING && prop->type != FX_PROP_PATH)
		g_strstrip(copy);
	return copy;
}

int fxi_property_set(const fx_prop *prop, void *state, const char *text, const char *folder, char **keep,
	fx_error *err)
{
	char *settled = settle(prop, text, folder);
	int status;

	if (!settled)
		return fx_error_set(err, FX_ENOMEM, "no memory for property '%s'", prop->name);
	if (!parse(prop, (char *)state + prop->offset, settled)) {
		status = refuse(prop, settled, err);
		free(settled);
		return status;
	}
	free(*keep);
	*keep = settled;
	return FX_OK;
}

static int check_words(const fx_prop *p, fx_error *err)
{
	if (!p->words || !p->words[0])
		return fx_error_set(err, FX_EINVAL, "property '%s' is an enum without words", p->name);
	for (int i = 0; p->words[i]; i++)
		for (int j = 0; j < i; j++)
			if (strcmp(p->words[i], p->words[j]) == 0)
				return fx_error_set(err, FX_EINVAL, "property '%s' lists the word '%s' twice", p->name,
					p->words[i]);
	return FX_OK;
}

static int check_entry(const fx_prop *props, const fx_prop *p, size_t state_size, fx_error *err)
{
	if (fxi_property_find(props, p->name) != p)
		return fx_error_set(err, FX_EINVAL, "property '%s' is listed twice", p->name);
	if (!known_type(p->type))
		return fx_error_set(err, FX_EINVAL, "property '%s' has the unknown type %d", p->name, p->type);
	if (!p->def || !p->help)
		return fx_error_set(err, FX_EINVAL, "property '%s' has no %s", p->name, p->def ? "help" : "default");
	if (p->offset > state_size || types[p->type].size > state_size - p->offset)
		return fx_error_set(err, FX_EINVAL, "property '%s' lies outside the state of %zu bytes", p->name,
			state_size);
	if (p->offset % types[p->type].size != 0)
		return fx_error_set(err, FX_EINVAL, "property '%s' is not aligned for a %s", p->name,
			types[p->type].name);
	if (is_number(p->type) && !(p->min <= p->max))
		return fx_error_set(err, FX_EINVAL, "property '%s' has an empty range from %g to %g", p->name, p->min,
			p->max);
	return p->type == FX_PROP_ENUM ? check_words(p, err) : FX_OK;
}

int fxi_properties_check(const fx_prop *props, size_t state_size, fx_error *err)
{
	void *scratch = fx_alloc((int64_t)state_size, 1);
	int status = FX_OK;

	if (!scratch)
		return fx_error_set(err, FX_ENOMEM, "no memory for a state of %zu bytes", state_size);
	for (const fx_prop *p = props; status == FX_OK && p && p->name; p++) {
		fx_error why = {0};
		char *keep = NULL;

		status = check_entry(props, p, state_size, err);
		if (status == FX_OK && fxi_property_set(p, scratch, p->def, NULL, &keep, &why) != FX_OK)
			status = fx_error_set(err, FX_EINVAL, "the default does not hold: %.900s", why.text);
		free(keep);
	}
	fx_free(scratch);
	return status;
}
