/* SPDX-License-Identifier: MIT */
/*
 * write_tract_files - fibres through the products and readers, for tests/system/test_tract_files.py and test_tract_read.py.
 *
 *   write_tract_files set FILE BATCH OUT   writes the set in FILE as OUT/x.tck, x.trk, x.trx and x.png, BATCH fibres at a time. FILE:
 *       i64 dims[3], f64 affine[12], i64 n_values, has_riemann, has_seeds, n, n_points; u32 offsets[n + 1]; f32 points[3 n_points];
 *       f32 riemann[n_points] and u32 seeds[n] where it has them; f32 values[n_values n]. Values are v0, v1, ...
 *   write_tract_files many N OUT           writes N fibres of 4 points likewise, in batches of 1000
 *
 *   write_tract_files read FILE OUT        reads any tract file: for each fibre i64 n and f32 points[3 n] to OUT; on stdout what the
 *       header says
 *
 * Prints this process's peak memory in kB.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "io/files.h"
#include "io/tracts.h"

static const struct {
	const char *name;
	int format;
} formats[] = {{"x.tck", FX_FORMAT_TCK}, {"x.trk", FX_FORMAT_TRK}, {"x.trx", FX_FORMAT_TRX}, {"x.png", FX_FORMAT_PNG}};

#define N_FORMATS ((int)(sizeof formats / sizeof *formats))

struct set {
	fx_tracts_info *info;
	int64_t n_values, has_riemann, has_seeds, n, n_points;
	uint32_t *offsets, *seeds;
	float *points, *riemann, *values;
};

static void warn(void *arg, const char *text)
{
	(void)arg;
	printf("warning: %s\n", text);
}

static int fail(const char *text)
{
	fprintf(stderr, "write_tract_files: %s\n", text);
	exit(1);
}

static void *take(FILE *f, int64_t count, size_t size)
{
	void *memory = fx_alloc(count + 1, size);

	if (!memory || fread(memory, size, (size_t)count, f) != (size_t)count)
		fail("cannot read the set");
	return memory;
}

static void describe(fx_tracts_info *info, int64_t n_values)
{
	info->method = FX_TRACK_GEODESIC;
	info->power = 1;
	info->step_mm = 0.25;
	info->n_values = (int)n_values;
	for (int i = 0; i < (int)n_values; i++)
		snprintf(info->names[i], sizeof info->names[i], "v%d", i);
	snprintf(info->origin, sizeof info->origin, "a \"test\" \\ with\ntwo lines");
}

static void read_set(const char *path, struct set *s)
{
	FILE *f = fopen(path, "rb");
	int64_t *words;

	if (!f)
		fail("cannot open the set");
	s->info = fx_tracts_info_new();
	words = take(f, 3, sizeof *words);
	memcpy(s->info->lattice.dims, words, 3 * sizeof *words);
	fx_free(words);
	if (fread(s->info->lattice.affine, sizeof(double), 12, f) != 12)
		fail("cannot read the affine");
	s->info->lattice.has_affine = true;
	words = take(f, 5, sizeof *words);
	s->n_values = words[0];
	s->has_riemann = words[1];
	s->has_seeds = words[2];
	s->n = words[3];
	s->n_points = words[4];
	fx_free(words);
	s->offsets = take(f, s->n + 1, sizeof *s->offsets);
	s->points = take(f, 3 * s->n_points, sizeof *s->points);
	if (s->has_riemann)
		s->riemann = take(f, s->n_points, sizeof *s->riemann);
	if (s->has_seeds)
		s->seeds = take(f, s->n, sizeof *s->seeds);
	s->values = take(f, s->n_values * s->n, sizeof *s->values);
	fclose(f);
	describe(s->info, s->n_values);
}

static void put(fx_array **slot, int type, int64_t d0, int64_t d1, const void *from)
{
	if (fx_array_new2(type, d0, d1, slot) != FX_OK)
		fail("no memory");
	memcpy((*slot)->data, from, (size_t)(d0 * d1) * fx_type_size(type));
}

static fx_msg *batch_of(const struct set *s, int64_t from, int64_t n)
{
	fx_msg *m = fx_msg_new(FX_TRACTS);
	fx_tracts *t = fx_msg_tracts(m);
	uint32_t first = s->offsets[from];
	int64_t n_points = (int64_t)s->offsets[from + n] - first;

	t->info = fx_tracts_info_ref(s->info);
	t->first = from;
	t->n = n;
	put(&t->offsets, FX_U32, n + 1, 1, s->offsets + from);
	for (int64_t i = 0; i <= n; i++)
		((uint32_t *)t->offsets->data)[i] -= first;
	put(&t->points, FX_F32, 3, n_points, s->points + 3 * (int64_t)first);
	if (s->has_riemann)
		put(&t->riemann, FX_F32, n_points, 1, s->riemann + first);
	if (s->n_values)
		put(&t->values, FX_F32, s->n_values, n, s->values + s->n_values * from);
	if (s->has_seeds)
		put(&t->seeds, FX_U32, n, 1, s->seeds + from);
	return m;
}

/* A batch of short fibres around a point that moves from batch to batch. */
static void fill_many(struct set *s, int64_t number)
{
	for (int64_t i = 0; i < s->n; i++) {
		for (int k = 0; k < 4; k++)
			for (int a = 0; a < 3; a++)
				s->points[3 * (4 * i + k) + a] = (float)((number * 7 + i * 3 + a * 11) % 40) + 0.5f * (float)(k * (a + 1));
		s->seeds[i] = (uint32_t)(number * s->n + i);
	}
}

static void many_set(struct set *s)
{
	s->info = fx_tracts_info_new();
	for (int i = 0; i < 3; i++) {
		s->info->lattice.dims[i] = 48;
		s->info->lattice.affine[i][i] = 1;
	}
	s->n_values = 2;
	s->has_riemann = s->has_seeds = 1;
	s->n = 1000;
	s->n_points = 4 * s->n;
	s->offsets = fx_alloc(s->n + 1, sizeof *s->offsets);
	for (int64_t i = 0; i <= s->n; i++)
		s->offsets[i] = (uint32_t)(4 * i);
	s->points = fx_alloc(3 * s->n_points, sizeof *s->points);
	s->riemann = fx_alloc(s->n_points, sizeof *s->riemann);
	s->seeds = fx_alloc(s->n, sizeof *s->seeds);
	s->values = fx_alloc(s->n_values * s->n, sizeof *s->values);
	describe(s->info, s->n_values);
}

static void add_all(fxi_product **products, fx_msg *m, fx_error *err)
{
	for (int i = 0; i < N_FORMATS; i++)
		if (products[i]->add_tracts(products[i], fx_msg_tracts(m), err) != FX_OK)
			fail(err->text);
	fx_drop(m);
}

static int read_file(const char *path, const char *to)
{
	fx_error err = {0};
	fxi_tract_reader *r;
	const float *points;
	int64_t n = 0;
	FILE *f = fopen(to, "wb");
	int status = fxi_tracts_open(path, &err, &r);

	while (f && status == FX_OK && (status = fxi_tracts_next(r, &err, &points, &n)) == FX_OK && n >= 0) {
		fwrite(&n, sizeof n, 1, f);
		fwrite(points, 3 * sizeof *points, (size_t)n, f);
	}
	if (!f || fclose(f) != 0)
		fail("cannot write");
	if (status == FX_OK)
		printf("stated %" PRId64 " values %d scalars %d groups %d affine %d\n", r->facts.n_stated, r->facts.n_values, r->facts.n_scalars,
			r->facts.n_groups, r->facts.lattice.has_affine);
	else
		fprintf(stderr, "%s: %s\n", fx_status_text(status), err.text);
	fxi_tracts_close(r);
	return status == FX_OK ? 0 : 1;
}

int main(int argc, char **argv)
{
	struct set s = {0};
	fx_error err = {0};
	fxi_files *files;
	fxi_product *products[N_FORMATS];
	bool many = argc == 4 && strcmp(argv[1], "many") == 0;
	int64_t count;
	struct rusage used;

	if (argc == 4 && strcmp(argv[1], "read") == 0)
		return read_file(argv[2], argv[3]);
	if (!many && !(argc == 5 && strcmp(argv[1], "set") == 0))
		fail("usage: write_tract_files set FILE BATCH OUT | many N OUT | read FILE OUT");
	count = strtoll(argv[many ? 2 : 3], NULL, 10);
	if (many)
		many_set(&s);
	else
		read_set(argv[2], &s);
	if (fxi_files_folder(argv[argc - 1], &err, &files) != FX_OK)
		fail(err.text);
	files->warn = warn;
	for (int i = 0; i < N_FORMATS; i++)
		if (files->open(files, &(fx_sink_options){.format = formats[i].format, .name = formats[i].name, .tracts = s.info}, &err,
			&products[i]) != FX_OK)
			fail(err.text);
	for (int64_t i = 0; many && i < count / s.n; i++) {
		fill_many(&s, i);
		add_all(products, batch_of(&s, 0, s.n), &err);
	}
	for (int64_t i = 0; !many && i < s.n; i += count)
		add_all(products, batch_of(&s, i, s.n - i < count ? s.n - i : count), &err);
	for (int i = 0; i < N_FORMATS; i++)
		if (products[i]->commit(products[i], &err) != FX_OK)
			fail(err.text);
	files->close(files);
	getrusage(RUSAGE_SELF, &used);
	printf("peak %ld kB\n", used.ru_maxrss);
	fx_tracts_info_unref(s.info);
	fx_free(s.offsets);
	fx_free(s.points);
	fx_free(s.riemann);
	fx_free(s.seeds);
	fx_free(s.values);
	return 0;
}
