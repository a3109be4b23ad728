/* SPDX-License-Identifier: MIT */
/* seeds_text.c - seeds as a user writes them. */
#include <fornix/diffusion.h>

#include <glib.h>
#include <math.h>
#include <string.h>

/* n numbers between commas and nothing else. */
static bool numbers(const char *text, int n, double *out)
{
	for (int i = 0; i < n; i++) {
		char *end;

		out[i] = g_ascii_strtod(text, &end);
		if (end == text || !isfinite(out[i]) || *end != (i + 1 < n ? ',' : '\0'))
			return false;
		text = end + 1;
	}
	return true;
}

static bool ends(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n > m && strcmp(text + n - m, end) == 0;
}

int fx_seeds_parse(const char *text, fx_seeds_spec *spec, fx_error *err)
{
	const char *slash = strrchr(text, '/'), *word = slash ? slash + 1 : text;
	double v[4];

	if (strcmp(word, "mask") == 0) {
		spec->source = FX_SEEDS_REGION;
	} else if (strncmp(word, "grid:", 5) == 0) {
		if (!numbers(word + 5, 1, v) || !(v[0] > 0))
			return fx_error_set(err, FX_EINVAL, "'%s' is no grid of seeds; write grid:SPACING, in mm", text);
		spec->source = FX_SEEDS_GRID;
		spec->spacing_mm = v[0];
	} else if (strncmp(word, "sphere:", 7) == 0) {
		if (!numbers(word + 7, 4, v) || !(v[3] >= 0))
			return fx_error_set(err, FX_EINVAL, "'%s' is no ball of seeds; write sphere:X,Y,Z,RADIUS, in RAS mm", text);
		spec->source = FX_SEEDS_BALL;
		memcpy(spec->centre, v, sizeof spec->centre);
		spec->radius = v[3];
	} else {
		spec->source = ends(word, ".nii") || ends(word, ".nii.gz") ? FX_SEEDS_REGION : FX_SEEDS_LIST;
	}
	return FX_OK;
}
