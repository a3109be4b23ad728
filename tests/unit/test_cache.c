/* SPDX-License-Identifier: MIT */
#include <CUnit/CUnit.h>
#include <fornix/fornix.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utime.h>

#include "io/cache.h"

#define GIB (INT64_C(1) << 30)

static char *folder;
static int n_warnings;
static char last_warning[2048];

static int set_up(void)
{
	folder = g_dir_make_tmp("fornix-cache-XXXXXX", NULL);
	return folder ? 0 : 1;
}

static void wipe(void)
{
	GDir *dir = g_dir_open(folder, 0, NULL);
	const char *name;

	while (dir && (name = g_dir_read_name(dir))) {
		char *path = g_build_filename(folder, name, NULL);

		g_remove(path);
		g_free(path);
	}
	if (dir)
		g_dir_close(dir);
	n_warnings = 0;
	last_warning[0] = '\0';
}

static int tear_down(void)
{
	wipe();
	g_rmdir(folder);
	g_free(folder);
	return 0;
}

static void count_warning(void *arg, const char *text)
{
	(void)arg;
	n_warnings++;
	g_strlcpy(last_warning, text, sizeof last_warning);
}

static fxi_cache *open_cache(const char *where, int64_t max_bytes)
{
	fxi_cache *c;

	CU_ASSERT_EQUAL_FATAL(fxi_cache_open(where, max_bytes, NULL, &c), FX_OK);
	c->warn = count_warning;
	return c;
}

/* n floats whose content depends on the seed */
static fx_array *make(int64_t n, int seed)
{
	fx_array *a;

	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_F32, n, 1, &a), FX_OK);
	for (int64_t i = 0; i < n; i++)
		FX_F32_OF(a)[i] = (float)(i + 7 * seed);
	return a;
}

static bool is_made(const fx_array *a, int64_t n, int seed)
{
	if (!a || a->type != FX_F32 || a->n_dims != 2 || a->dims[0] != n || a->dims[1] != 1)
		return false;
	for (int64_t i = 0; i < n; i++)
		if (FX_F32_OF(a)[i] != (float)(i + 7 * seed))
			return false;
	return true;
}

static void put(fxi_cache *c, const char *key, int64_t n, int seed)
{
	fx_array *a = make(n, seed);

	CU_ASSERT_EQUAL(c->put(c, key, a, NULL), FX_OK);
	fx_array_unref(a);
}

static bool has(fxi_cache *c, const char *key, int64_t n, int seed)
{
	fx_array *a;
	bool right;

	CU_ASSERT_EQUAL(c->get(c, key, &a, NULL), FX_OK);
	right = is_made(a, n, seed);
	CU_ASSERT(right || !a);
	fx_array_unref(a);
	return right;
}

static char *file_of(const char *key)
{
	char *name = g_strconcat(key, ".fxcache", NULL), *path = g_build_filename(folder, name, NULL);

	g_free(name);
	return path;
}

static bool on_disk(const char *key)
{
	char *path = file_of(key);
	bool there = g_file_test(path, G_FILE_TEST_EXISTS);

	g_free(path);
	return there;
}

/* In memory at once, on disk from the first `get` that finds it, and from there in the next run. */
static void second_use_in_a_run(void)
{
	fxi_cache *c = open_cache(folder, GIB);

	wipe();
	CU_ASSERT_FALSE(has(c, "a1", 100, 1));
	put(c, "a1", 100, 1);
	put(c, "b2", 50, 2);
	CU_ASSERT_FALSE(on_disk("a1"));
	CU_ASSERT_TRUE(has(c, "a1", 100, 1));
	CU_ASSERT_TRUE(on_disk("a1"));
	CU_ASSERT_FALSE(on_disk("b2"));
	c->close(c);
	c = open_cache(folder, GIB);
	CU_ASSERT_TRUE(has(c, "a1", 100, 1));
	CU_ASSERT_FALSE(has(c, "b2", 50, 2));
	c->close(c);
	CU_ASSERT_EQUAL(n_warnings, 0);
}

/* A trajectory that comes once a run is on disk from the second run on. */
static void second_use_across_runs(void)
{
	wipe();
	for (int run = 0; run < 3; run++) {
		fxi_cache *c = open_cache(folder, GIB);

		CU_ASSERT_EQUAL(has(c, "c0ffee-12", 10, 3), run == 2);
		if (run < 2)
			put(c, "c0ffee-12", 10, 3);
		c->close(c);
		CU_ASSERT_EQUAL(on_disk("c0ffee-12"), run >= 1);
	}
	CU_ASSERT_EQUAL(n_warnings, 0);
}

static void empty_arrays(void)
{
	fxi_cache *c = open_cache(folder, GIB);

	wipe();
	put(c, "e", 0, 0);
	CU_ASSERT_TRUE(has(c, "e", 0, 0));
	c->close(c);
	c = open_cache(folder, GIB);
	CU_ASSERT_TRUE(has(c, "e", 0, 0));
	c->close(c);
}

/* Writes a good file of 100 floats for key "d" and reads it in. */
static char *good_file(gsize *size)
{
	fxi_cache *c = open_cache(folder, GIB);
	char *path = file_of("d"), *bytes;

	wipe();
	put(c, "d", 100, 4);
	CU_ASSERT_TRUE(has(c, "d", 100, 4));
	c->close(c);
	CU_ASSERT_TRUE_FATAL(g_file_get_contents(path, &bytes, size, NULL));
	g_free(path);
	return bytes;
}

static void is_refused_and_removed(const char *key)
{
	fxi_cache *c = open_cache(folder, GIB);

	n_warnings = 0;
	CU_ASSERT_FALSE(has(c, key, 100, 4));
	CU_ASSERT_EQUAL(n_warnings, 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(last_warning, "damaged"));
	CU_ASSERT_FALSE(on_disk(key));
	c->close(c);
}

static void damage_is_seen(void)
{
	gsize size;
	char *bytes = good_file(&size), *path = file_of("d"), *other = file_of("d0");

	/* one flipped bit anywhere: every byte of the head, and some of the elements */
	for (gsize at = 0; at < size; at += at < size - 400 ? 1 : 37) {
		bytes[at] ^= 0x10;
		CU_ASSERT_TRUE(g_file_set_contents(path, bytes, (gssize)size, NULL));
		bytes[at] ^= 0x10;
		is_refused_and_removed("d");
	}
	/* cut short, and too long */
	for (gsize length = 0; length < size; length += 97) {
		CU_ASSERT_TRUE(g_file_set_contents(path, bytes, (gssize)length, NULL));
		is_refused_and_removed("d");
	}
	bytes = g_realloc(bytes, size + 1);
	bytes[size] = 0;
	CU_ASSERT_TRUE(g_file_set_contents(path, bytes, (gssize)size + 1, NULL));
	is_refused_and_removed("d");
	/* whole, but under another key's name */
	CU_ASSERT_TRUE(g_file_set_contents(other, bytes, (gssize)size, NULL));
	is_refused_and_removed("d0");
	/* and unharmed it is taken */
	CU_ASSERT_TRUE(g_file_set_contents(path, bytes, (gssize)size, NULL));
	fxi_cache *c = open_cache(folder, GIB);
	n_warnings = 0;
	CU_ASSERT_TRUE(has(c, "d", 100, 4));
	CU_ASSERT_EQUAL(n_warnings, 0);
	c->close(c);
	g_free(other);
	g_free(path);
	g_free(bytes);
}

static void set_age(const char *key, int seconds)
{
	char *path = file_of(key);
	struct utimbuf when = {.actime = time(NULL) - seconds, .modtime = time(NULL) - seconds};

	CU_ASSERT_EQUAL(utime(path, &when), 0);
	g_free(path);
}

/* 1000 floats a file and room for two and a half: the longest unused goes, and loading counts as use. */
static void the_bound_holds(void)
{
	fxi_cache *c = open_cache(folder, 10000);

	wipe();
	put(c, "1", 1000, 1);
	CU_ASSERT_TRUE(has(c, "1", 1000, 1));
	put(c, "2", 1000, 2);
	CU_ASSERT_TRUE(has(c, "2", 1000, 2));
	CU_ASSERT(on_disk("1") && on_disk("2"));
	set_age("1", 500);
	set_age("2", 400);
	c->close(c);
	c = open_cache(folder, 10000);
	CU_ASSERT_TRUE(has(c, "1", 1000, 1)); /* now 2 is the longest unused */
	put(c, "3", 1000, 3);
	CU_ASSERT_TRUE(has(c, "3", 1000, 3));
	CU_ASSERT_TRUE(on_disk("1"));
	CU_ASSERT_FALSE(on_disk("2"));
	CU_ASSERT_TRUE(on_disk("3"));
	/* what alone exceeds the bound is not written and throws nothing out */
	put(c, "4", 3000, 4);
	CU_ASSERT_TRUE(has(c, "4", 3000, 4));
	CU_ASSERT(on_disk("1") && on_disk("3") && !on_disk("4"));
	c->close(c);
	CU_ASSERT_EQUAL(n_warnings, 0);
}

static void unwritable_is_a_warning(void)
{
	char *file = g_build_filename(folder, "plain", NULL), *below = g_build_filename(file, "cache", NULL);
	fxi_cache *c;

	wipe();
	CU_ASSERT_TRUE(g_file_set_contents(file, "x", 1, NULL));
	c = open_cache(below, GIB);
	put(c, "a", 10, 1);
	put(c, "b", 10, 2);
	CU_ASSERT_TRUE(has(c, "a", 10, 1));
	CU_ASSERT_TRUE(has(c, "b", 10, 2));
	CU_ASSERT_FALSE(has(c, "c", 10, 2));
	CU_ASSERT_EQUAL(n_warnings, 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(last_warning, below));
	c->close(c);
	g_free(below);
	g_free(file);
}

static void keys_are_checked(void)
{
	static const char *const bad[] = {"", "../a", "A", "a/b", "a.b",
		("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
		"0123456789abcdef0123456789abcdef")};
	fxi_cache *c = open_cache(folder, GIB);
	fx_array *a = make(1, 1), *b;

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		CU_ASSERT_EQUAL(c->put(c, bad[i], a, NULL), FX_EINVAL);
		CU_ASSERT_EQUAL(c->get(c, bad[i], &b, NULL), FX_EINVAL);
		CU_ASSERT_PTR_NULL(b);
	}
	fx_array_unref(a);
	c->close(c);
}

/* What the cache holds is shared: whoever wants to change it gets a copy. */
static void kept_arrays_stay_as_they_are(void)
{
	fxi_cache *c = open_cache(folder, GIB);
	fx_array *a = make(10, 1);

	wipe();
	CU_ASSERT_EQUAL(c->put(c, "f", a, NULL), FX_OK);
	CU_ASSERT_EQUAL(fx_array_own(&a), FX_OK);
	FX_F32_OF(a)[0] = -1;
	fx_array_unref(a);
	CU_ASSERT_TRUE(has(c, "f", 10, 1));
	c->close(c);
}

/* One of two processes: uses keys at random through caches that throw each other's files out. 0 where all was right. */
static int hammer(unsigned seed)
{
	GRand *random = g_rand_new_with_seed(seed);
	int wrong = 0;

	n_warnings = 0;
	for (int round = 0; round < 40 && !wrong; round++) {
		fxi_cache *c = open_cache(folder, 60000);

		for (int i = 0; i < 10; i++) {
			int which = g_rand_int_range(random, 0, 8);
			char key[2] = {(char)('0' + which), '\0'};
			fx_array *a;

			if (c->get(c, key, &a, NULL) != FX_OK || (a && !is_made(a, 4000 + which, which)))
				wrong = 1;
			if (!a) {
				a = make(4000 + which, which);
				wrong |= c->put(c, key, a, NULL) != FX_OK;
			}
			fx_array_unref(a);
		}
		c->close(c);
	}
	g_rand_free(random);
	return wrong || n_warnings > 0;
}

static void two_processes(void)
{
	pid_t child;
	int status = -1;

	wipe();
	child = fork();
	CU_ASSERT_FATAL(child >= 0);
	if (child == 0)
		_exit(hammer(1));
	CU_ASSERT_EQUAL(hammer(2), 0);
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	CU_ASSERT_EQUAL(status, 0);
	CU_ASSERT_EQUAL(n_warnings, 0);
	if (n_warnings)
		fprintf(stderr, "%s\n", last_warning);
}

/* The folder is the one that XDG names; read once a process, so this looks from a child. */
static void default_folder(void)
{
	pid_t child;
	int status = -1;

	wipe();
	child = fork();
	CU_ASSERT_FATAL(child >= 0);
	if (child == 0) {
		fxi_cache *c;
		char *file = g_build_filename(folder, "fornix", "aa.fxcache", NULL), *sub = g_build_filename(folder, "fornix", NULL);
		char *mark = g_build_filename(folder, "fornix", "aa.seen", NULL);
		int right;

		g_setenv("XDG_CACHE_HOME", folder, TRUE);
		c = open_cache(NULL, GIB);
		put(c, "aa", 5, 1);
		right = has(c, "aa", 5, 1);
		c->close(c);
		right = right && g_remove(file) == 0 && g_remove(mark) == 0 && g_rmdir(sub) == 0;
		_exit(right ? 0 : 1);
	}
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	CU_ASSERT_EQUAL(status, 0);
}

static CU_TestInfo tests[] = {
	{"on disk from the second use in a run", second_use_in_a_run},
	{"on disk from the second run on", second_use_across_runs},
	{"empty arrays", empty_arrays},
	{"damage is seen, told and removed", damage_is_seen},
	{"the longest unused makes room", the_bound_holds},
	{"an unwritable folder is one warning", unwritable_is_a_warning},
	{"keys are checked", keys_are_checked},
	{"kept arrays stay as they are", kept_arrays_stay_as_they_are},
	{"two processes", two_processes},
	{"the default folder", default_folder},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_cache = {"cache", set_up, tear_down, NULL, NULL, tests};
