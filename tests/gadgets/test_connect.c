/* SPDX-License-Identifier: MIT */
/* connect in a chain: files in, a tract set, JSON and CSV out; what it refuses, and in which words. */
#include "gadgets/harness.h"
#include "unit/fibres.h"

#include <json-glib/json-glib.h>
#include <nifti/nifti1.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[32], labels[64], shifted[64], walls[64];

static int plates(const int64_t v[3])
{
	return v[0] == 2 ? 1 : v[0] == 10 ? 2 : v[0] == 16 || v[0] == 17 ? 3 : 0;
}

static int wall(const int64_t v[3])
{
	return v[0] == 6 ? 255 : 0;
}

static int write_labels(const char *path, label_of label, double shift)
{
	fx_lattice l = cube_lattice(20, 2);
	fx_array *image = label_image(&l, label);
	struct nifti_1_header h = {.sizeof_hdr = 348, .dim = {3, 20, 20, 20, 1, 1, 1, 1}, .datatype = DT_FLOAT32, .bitpix = 32,
		.pixdim = {1, 2, 2, 2, 1}, .vox_offset = 352, .sform_code = 1, .srow_x = {2, 0, 0, (float)shift}, .srow_y = {0, 2, 0, 0},
		.srow_z = {0, 0, 2, 0}, .magic = "n+1"};
	FILE *file = fopen(path, "wb");
	int wrong = !file || fwrite(&h, 348, 1, file) != 1 || fwrite("\0\0\0", 4, 1, file) != 1
		|| fwrite(image->data, (size_t)image->bytes, 1, file) != 1;

	if (file)
		fclose(file);
	fx_array_unref(image);
	return wrong;
}

static int make_files(void)
{
	strcpy(folder, "/tmp/fornix-test-XXXXXX");
	if (!mkdtemp(folder))
		return 1;
	snprintf(labels, sizeof labels, "%s/labels.nii", folder);
	snprintf(shifted, sizeof shifted, "%s/shifted.nii", folder);
	snprintf(walls, sizeof walls, "%s/walls.nii", folder);
	return write_labels(labels, plates, 0) || write_labels(shifted, plates, -2) || write_labels(walls, wall, 0);
}

static int remove_files(void)
{
	return unlink(labels) || unlink(shifted) || unlink(walls) || rmdir(folder);
}

/* Both ways from 12 mm, between plates 1 and 2, for three seeds of different cost. Then the end mark. */
static int64_t messages(int method, int kind, fx_msg **out, int64_t per_batch)
{
	fx_lattice l = cube_lattice(20, 2);
	fibres *f = fibres_new(&l, method, kind);
	int64_t n = 0;

	for (uint32_t i = 0; i < 3; i++)
		fibres_line(f, (double[]){0, 20 + i, 18}, (double[]){38, 20 + i, 18}, 39, 1 - 0.1 * i, 12, i);
	for (int64_t i = 0; i < 3; i += per_batch)
		out[n++] = fibres_batch(f, i, i + per_batch < 3 ? per_batch : 3 - i);
	out[n++] = fibres_end(f);
	fibres_free(f);
	return n;
}

static void run(harness *h, const char *properties, int method)
{
	fx_msg *m[4];
	int64_t n = messages(method, FX_METRIC_INVERSE, m, 2);
	char chain[512];

	snprintf(chain, sizeof chain, "connect %s", properties);
	harness_run(h, chain, NULL, m, n);
}

static void refused(const char *properties, int status, const char *said)
{
	harness h;

	run(&h, properties, FX_TRACK_GEODESIC);
	CU_ASSERT_EQUAL(h.status, status);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.err.text, said));
	if (!strstr(h.err.text, said))
		printf("\n%s\n", h.err.text);
	CU_ASSERT_EQUAL(h.n_products, 0);
	harness_free(&h);
}

static void refusals(void)
{
	char text[300];

	refused("", FX_EINVAL, "connect: targets is empty: name a label image");
	refused("targets=/no/such.nii", FX_EIO, "such.nii");
	snprintf(text, sizeof text, "targets=%s target_labels='3 12'", labels);
	refused(text, FX_EINVAL, "label 12 has no voxel in ");
	snprintf(text, sizeof text, "targets=%s", shifted);
	refused(text, FX_EDATA, "differ by up to 2 mm");
	snprintf(text, sizeof text, "targets=%s exclude=%s", labels, shifted);
	refused(text, FX_EDATA, "differ by up to 2 mm");
}

static JsonObject *json_of(const harness *h, JsonParser *parser)
{
	const harness_product *p = harness_find_product(h, "connectivity.json");
	GError *error = NULL;

	CU_ASSERT_FATAL(p && p->text);
	if (!json_parser_load_from_data(parser, p->text, -1, &error)) {
		printf("\n%s\n%s\n", error->message, p->text);
		CU_FAIL_FATAL("connectivity.json is not JSON");
	}
	return json_node_get_object(json_parser_get_root(parser));
}

static JsonObject *item(JsonObject *o, const char *list, guint i)
{
	JsonArray *a = json_object_get_array_member(o, list);

	CU_ASSERT_FATAL(a && i < json_array_get_length(a));
	return json_array_get_object_element(a, i);
}

static void products(void)
{
	JsonParser *parser = json_parser_new();
	JsonObject *root, *pair;
	char text[200];
	harness h;

	snprintf(text, sizeof text, "targets=%s best=2", labels);
	run(&h, text, FX_TRACK_GEODESIC);
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	CU_ASSERT_EQUAL_FATAL(h.n_out, 2);
	CU_ASSERT_EQUAL(fx_msg_tracts(h.out[0])->n, 4);
	CU_ASSERT(fx_msg_tracts(h.out[1])->end);
	root = json_of(&h, parser);
	CU_ASSERT_STRING_EQUAL(json_object_get_string_member(root, "format"), "fornix connectivity 1");
	CU_ASSERT_PTR_NOT_NULL(strstr(json_object_get_string_member(root, "note"), "no proof"));
	CU_ASSERT_STRING_EQUAL(json_object_get_string_member(root, "origin"), "a \"test\"");
	CU_ASSERT_STRING_EQUAL(json_object_get_string_member(json_object_get_object_member(root, "measure"), "unit"),
		"sqrt(um^2/ms)");
	CU_ASSERT_EQUAL(json_object_get_int_member(root, "n_fibres"), 3);
	CU_ASSERT_EQUAL(json_object_get_int_member(root, "n_connected"), 3);
	CU_ASSERT_EQUAL(json_object_get_int_member(item(json_object_get_object_member(root, "targets"), "labels", 2),
		"n_connections"), 0); /* plate 3 is behind plate 2 */
	CU_ASSERT_EQUAL(json_array_get_length(json_object_get_array_member(root, "pairs")), 2);
	pair = item(root, "pairs", 1);
	CU_ASSERT(json_object_get_int_member(pair, "source") == 0 && json_object_get_int_member(pair, "target") == 2);
	CU_ASSERT_EQUAL(json_object_get_int_member(pair, "n_fibres"), 3);
	CU_ASSERT_DOUBLE_EQUAL(json_object_get_double_member(pair, "best_measure"), 1 / 0.8, 1e-5);
	CU_ASSERT_EQUAL(json_object_get_int_member(item(pair, "families", 0), "n_fibres"), 3);
	CU_ASSERT_EQUAL(json_object_get_int_member(item(pair, "fibres", 0), "seed"), 2);
	CU_ASSERT_DOUBLE_EQUAL(json_object_get_double_member(item(pair, "fibres", 1), "length_mm"), 7, 1e-5);
	CU_ASSERT(json_object_get_null_member(item(pair, "fibres", 1), "jacobi"));
	CU_ASSERT_EQUAL(harness_number(&h, 0, "pairs", 0), 2);
	g_object_unref(parser);
	harness_free(&h);
}

static void files_by_name(void)
{
	char text[300];
	const harness_product *csv;
	harness h;

	snprintf(text, sizeof text, "targets=%s target_labels=3 source=%s source_labels=1 json=a.json csv=b.csv", labels, labels);
	run(&h, text, FX_TRACK_GEODESIC);
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	CU_ASSERT_PTR_NOT_NULL(harness_find_product(&h, "a.json"));
	csv = harness_find_product(&h, "b.csv");
	CU_ASSERT_PTR_NOT_NULL_FATAL(csv);
	CU_ASSERT_PTR_NOT_NULL(strstr(csv->text, "tract\n1,3,1,1,1,0,1.25"));
	harness_free(&h);
	snprintf(text, sizeof text, "targets=%s resample=true", shifted);
	run(&h, text, FX_TRACK_GEODESIC);
	CU_ASSERT_EQUAL(h.status, FX_OK);
	CU_ASSERT_EQUAL(h.n_out, 2);
	harness_free(&h);
}

static void nothing_found(void)
{
	char text[300];
	harness h;

	snprintf(text, sizeof text, "targets=%s target_labels=1 source=%s source_labels=3 exclude=%s", labels, labels, walls);
	run(&h, text, FX_TRACK_STREAMLINE);
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	CU_ASSERT(harness_warned(&h, "none of 3 fibres joins two of the regions (3 cross an exclusion"));
	CU_ASSERT_PTR_NOT_NULL(harness_find_product(&h, "connectivity.json"));
	CU_ASSERT(h.n_out == 1 && fx_msg_tracts(h.out[0])->end);
	harness_free(&h);
}

/* Without targets, and allowed to be, it is not there. */
static void no_targets(void)
{
	harness h;

	run(&h, "optional=true", FX_TRACK_GEODESIC);
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	CU_ASSERT_EQUAL(h.n_products, 0);
	CU_ASSERT(h.n_out > 1 && fx_msg_tracts(h.out[0])->n > 0 && fx_msg_tracts(h.out[h.n_out - 1])->end);
	harness_free(&h);
}

/* The metric passes on, in front of the fibres; fibres of two metrics are not ranked together. */
static void metrics(void)
{
	fx_lattice l = cube_lattice(20, 2);
	fx_msg *m[9] = {fx_msg_new(FX_METRIC)};
	char text[200];
	int64_t n;
	harness h;

	fx_msg_metric(m[0])->lattice = l;
	CU_ASSERT_EQUAL_FATAL(fx_array_new4(FX_F32, 24, 20, 20, 20, &fx_msg_metric(m[0])->field), FX_OK);
	for (int64_t i = 0; i < 8000; i++) /* g = 4 I in voxels of 2 mm: D = I */
		for (int c = 0; c < 6; c++)
			FX_F32_OF(fx_msg_metric(m[0])->field)[24 * i + c] = c == 0 || c == 2 || c == 5 ? 4 : 0;
	n = 1 + messages(FX_TRACK_GEODESIC, FX_METRIC_INVERSE, m + 1, 2);
	snprintf(text, sizeof text, "connect targets=%s best=1", labels);
	harness_run(&h, text, NULL, m, n);
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	CU_ASSERT_EQUAL_FATAL(h.n_out, 3);
	CU_ASSERT_PTR_NOT_NULL(fx_msg_metric(h.out[0]));
	/* flat: the fibre kept of plate 1 is the cheapest, 7 mm at a cost of 0.8, followed over 5.6 mm only: elsewhere by 1.4 mm, within 4 */
	CU_ASSERT_DOUBLE_EQUAL(FX_F32_OF(fx_msg_tracts(h.out[1])->values)[10], 1, 1e-3);
	harness_free(&h);

	n = messages(FX_TRACK_GEODESIC, FX_METRIC_INVERSE, m, 3);
	n += messages(FX_TRACK_GEODESIC, FX_METRIC_ADJUGATE, m + n, 3);
	harness_run(&h, text, NULL, m, n);
	CU_ASSERT_EQUAL(h.status, FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.err.text, "never ranked together"));
	harness_free(&h);
}

static CU_TestInfo tests[] = {
	{"what is refused", refusals},
	{"tract set, JSON, CSV", products},
	{"files and labels by name", files_by_name},
	{"nothing found", nothing_found},
	{"no targets", no_targets},
	{"metrics", metrics},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_connect = {"connect", make_files, remove_files, NULL, NULL, tests};
