/* SPDX-License-Identifier: MIT */
/* compare.c - `fornix compare A B`: how far image A is from the reference B; tract files are compared in compare_tracts.c. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <fornix/fornix.h>
#include <json-glib/json-glib.h>

#include "apps/common.h"
#include "apps/json_file.h"
#include "apps/compare_input.h"
#include "apps/compare_tracts.h"
#include "io/tracts.h"
#include "recon/metrics.h"

static const char summary[] =
	"Compares image A with the reference B: NRMSE = ||A - B|| / ||B||, PSNR = 20 log10(max |B| / RMSE), and SSIM (Wang et\n"
	"al. 2004: Gaussian window of sigma 1.5, K1 0.01, K2 0.03, dynamic range max |B|, mean over the voxels).\n\n"
	"A and B are NIfTI files or MRD image files (HDF5). Complex values stay complex where both files have them, else\n"
	"magnitudes are compared; SSIM is always of magnitudes. Exit status 1 where NRMSE is beyond --max-nrmse.\n\n"
	"Or both are tract files (.tck, .trk, .trx; told by content): numbers, lengths, and for fibres of each set the distance to\n"
	"the nearest of the other: from every vertex to the closest point of the other line, mean over the vertices, mean of both\n"
	"ways. Exit status 1 where the larger mean of the two sets is beyond --max-distance.";

struct options {
	char *mask;
	double max_nrmse;
	gboolean fit, json;
	int n_threads;
	gboolean paired;        /* of tract files */
	gint64 max_fibres;
	double max_distance;
};

static void warn_geometry(const fxi_compared *a, const fxi_compared *b)
{
	double worst = 0;

	if (!a->has_affine || !b->has_affine)
		return;
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 4; j++)
			worst = fmax(worst, fabs(a->affine[i][j] - b->affine[i][j]));
	/* single precision of positions up to a metre */
	if (worst > 1e-3)
		fxi_apps_say("compare: warning: the images lie differently in space: their affines differ by up to %g; voxels are "
			"compared by index", worst);
}

static void add_number(JsonBuilder *b, const char *name, double value)
{
	json_builder_set_member_name(b, name);
	if (isfinite(value))
		json_builder_add_double_value(b, value);
	else
		json_builder_add_null_value(b);
}

static void print_json(const struct options *o, const char *a, const char *b, const fxi_metrics *m, bool within)
{
	JsonBuilder *builder = json_builder_new();

	json_builder_begin_object(builder);
	json_builder_set_member_name(builder, "image");
	json_builder_add_string_value(builder, a);
	json_builder_set_member_name(builder, "reference");
	json_builder_add_string_value(builder, b);
	json_builder_set_member_name(builder, "voxels");
	json_builder_add_int_value(builder, m->n);
	json_builder_set_member_name(builder, "complex");
	json_builder_add_boolean_value(builder, m->complex_values);
	add_number(builder, "nrmse", m->nrmse);
	add_number(builder, "psnr_db", m->psnr_db);
	add_number(builder, "ssim", m->ssim);
	add_number(builder, "rmse", m->rmse);
	add_number(builder, "peak", m->peak);
	if (o->fit) {
		add_number(builder, "scale_re", m->scale_re);
		add_number(builder, "scale_im", m->scale_im);
	}
	if (o->max_nrmse >= 0) {
		add_number(builder, "max_nrmse", o->max_nrmse);
		json_builder_set_member_name(builder, "within");
		json_builder_add_boolean_value(builder, within);
	}
	json_builder_end_object(builder);
	fxi_json_print(builder);
}

static void print_text(const struct options *o, const fxi_compared *a, const fxi_compared *b, const fxi_metrics *m)
{
	bool complex_a = a->data->type >= FX_CF32, complex_b = b->data->type >= FX_CF32;

	printf("NRMSE %.6g  PSNR %.2f dB  SSIM %.5f  (%lld voxels%s)\n", m->nrmse, m->psnr_db, m->ssim, (long long)m->n,
		m->complex_values ? ", complex" : "");
	if (complex_a != complex_b)
		printf("magnitudes were compared: only the %s is complex\n", complex_a ? "image" : "reference");
	if (o->fit)
		printf("the image was multiplied by %.6g%+.6gi to fit\n", m->scale_re, m->scale_im);
}

static int read_all(const struct options *o, char **argv, fx_error *err, fxi_compared *a, fxi_compared *b,
	fxi_compared *mask)
{
	int status = fxi_compared_read(argv[1], err, a);

	if (status == FX_OK)
		status = fxi_compared_read(argv[2], err, b);
	if (status == FX_OK && o->mask)
		status = fxi_compared_read(o->mask, err, mask);
	return status;
}

static int compare(const struct options *o, char **argv)
{
	fxi_compared a = {0}, b = {0}, mask = {0};
	fxi_metrics m;
	fx_error err = {0}, why = {0};
	int status = read_all(o, argv, &err, &a, &b, &mask), result = FXI_EXIT_FAILED;

	if (status == FX_OK) {
		warn_geometry(&a, &b);
		status = fxi_compare(a.data, b.data, mask.data, o->fit, o->n_threads > 0 ? o->n_threads : fx_processors(), &why, &m);
		if (status != FX_OK)
			fx_error_set(&err, status, "%s, reference %s: %s", argv[1], argv[2], why.text);
	}
	if (status == FX_OK) {
		bool within = o->max_nrmse < 0 || m.nrmse <= o->max_nrmse;

		if (o->json)
			print_json(o, argv[1], argv[2], &m, within);
		else
			print_text(o, &a, &b, &m);
		if (!within)
			fxi_apps_say("compare: NRMSE %.6g is beyond %.6g", m.nrmse, o->max_nrmse);
		result = within ? FXI_EXIT_DONE : FXI_EXIT_FAILED;
	} else {
		fxi_apps_say("compare: %s", err.text);
	}
	fx_array_unref(a.data);
	fx_array_unref(b.data);
	fx_array_unref(mask.data);
	return result;
}

/* Options that mean nothing to what is compared are refused rather than passed over. */
static int compare_any(const struct options *o, char **argv)
{
	bool tracts[2] = {fxi_tracts_format(argv[1]) != 0, fxi_tracts_format(argv[2]) != 0};
	const double none = (double)-INFINITY;

	if (tracts[0] != tracts[1]) {
		fxi_apps_say("compare: %s holds tracts and %s does not", argv[tracts[0] ? 1 : 2], argv[tracts[0] ? 2 : 1]);
	} else if (tracts[0]) {
		if (!o->mask && !o->fit && o->max_nrmse == none)
			return fxi_compare_tracts(argv[1], argv[2], &(fxi_tracts_options){.paired = o->paired, .json = o->json,
				.max_fibres = o->max_fibres, .max_distance = o->max_distance,
				.n_threads = o->n_threads > 0 ? o->n_threads : fx_processors()});
		fxi_apps_say("compare: --mask, --fit-scale and --max-nrmse are for images, these are tract files");
	} else {
		if (!o->paired && o->max_distance == none)
			return compare(o, argv);
		fxi_apps_say("compare: --paired and --max-distance are for tract files, these are not");
	}
	return FXI_EXIT_USAGE;
}

int fxi_app_compare(int argc, char **argv)
{
	/* -inf: not asked for */
	struct options o = {.max_nrmse = (double)-INFINITY, .max_distance = (double)-INFINITY, .max_fibres = 2000};
	const GOptionEntry entries[] = {
		{"mask", 'm', 0, G_OPTION_ARG_FILENAME, &o.mask, "Count only voxels where this image is not 0", "FILE"},
		{"fit-scale", 's', 0, G_OPTION_ARG_NONE, &o.fit, "First multiply A by the (complex) number that fits it to B", NULL},
		{"max-nrmse", 0, 0, G_OPTION_ARG_DOUBLE, &o.max_nrmse, "Fail where NRMSE is beyond this", "X"},
		{"paired", 0, 0, G_OPTION_ARG_NONE, &o.paired, "Tracts: fibre i with fibre i", NULL},
		{"max-fibres", 0, 0, G_OPTION_ARG_INT64, &o.max_fibres, "Tracts: of each set, seek the nearest of this many, drawn evenly (2000); 0: all", "N"},
		{"max-distance", 0, 0, G_OPTION_ARG_DOUBLE, &o.max_distance, "Tracts: fail where the mean distance is beyond this", "MM"},
		{"json", 'j', 0, G_OPTION_ARG_NONE, &o.json, "Print one JSON object", NULL},
		{"threads", 0, 0, G_OPTION_ARG_INT, &o.n_threads, "Threads (every processor)", "N"},
		{NULL, 0, 0, 0, NULL, NULL, NULL},
	};
	int result = FXI_EXIT_USAGE;

	if (fxi_apps_options("A B", summary, entries, 2, 2, &argc, &argv)) {
		if (!(o.max_nrmse >= 0) && o.max_nrmse != (double)-INFINITY)
			fxi_apps_say("compare: --max-nrmse %g: it must be 0 or more", o.max_nrmse);
		else if (!(o.max_distance >= 0) && o.max_distance != (double)-INFINITY)
			fxi_apps_say("compare: --max-distance %g: it must be 0 or more", o.max_distance);
		else if (o.max_fibres < 0)
			fxi_apps_say("compare: --max-fibres %" G_GINT64_FORMAT ": it must be 0 or more", o.max_fibres);
		else
			result = compare_any(&o, argv);
	}
	g_free(o.mask);
	return result;
}
