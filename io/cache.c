/* SPDX-License-Identifier: MIT */
/* cache.c - what is kept in memory, and when something goes to disk; cache_disk.c does the rest. */
#include "cache.h"

#include "cache_disk.h"

#include <glib.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_MAX 127

struct entry {
	struct entry *next;  /* most recently used first */
	fx_array *array;
	bool settled;        /* on disk, or found unfit to be */
	char key[KEY_MAX + 1];
};

struct cache {
	fxi_cache base;
	pthread_mutex_t lock;
	char *folder;
	int64_t disk_max, memory_max, memory_bytes;
	struct entry *entries;
	bool disk_off;       /* it failed once and the user was told */
};

static bool key_is_fine(const char *key)
{
	size_t n = strlen(key);

	return n > 0 && n <= KEY_MAX && strspn(key, "0123456789abcdef-") == n;
}

static int refuse_key(const char *key, fx_error *err)
{
	return fx_error_set(err, FX_EINVAL, "'%.140s' is no cache key: 1 to %d of 0-9, a-f and -", key, KEY_MAX);
}

static void warn(struct cache *c, const fx_error *why)
{
	char text[FX_ERROR_TEXT + 64];

	if (!c->base.warn)
		return;
	snprintf(text, sizeof text, "cache: %s", why->text);
	c->base.warn(c->base.warn_arg, text);
}

static void give_up_disk(struct cache *c, const fx_error *why)
{
	c->disk_off = true;
	warn(c, why);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* The entry of that key, moved to the front. */
static struct entry *find(struct cache *c, const char *key)
{
	for (struct entry **at = &c->entries; *at; at = &(*at)->next) {
		struct entry *e = *at;

		if (strcmp(e->key, key) != 0)
			continue;
		*at = e->next;
		e->next = c->entries;
		c->entries = e;
		return e;
	}
	return NULL;
}

static void drop_last(struct cache *c)
{
	struct entry **at = &c->entries;

	while ((*at)->next)
		at = &(*at)->next;
	c->memory_bytes -= (*at)->array->bytes;
	fx_array_unref((*at)->array);
	free(*at);
	*at = NULL;
}

/* Keeps a reference, in place of one already there. Returns the entry, or NULL where it is too large or memory is short. */
static struct entry *remember(struct cache *c, const char *key, fx_array *array)
{
	struct entry *e = find(c, key);

	if (e) {
		c->memory_bytes += array->bytes - e->array->bytes;
		fx_array_ref(array);
		fx_array_unref(e->array);
		e->array = array;
	} else if (array->bytes <= c->memory_max && (e = calloc(1, sizeof *e))) {
		snprintf(e->key, sizeof e->key, "%s", key);
		e->array = fx_array_ref(array);
		c->memory_bytes += array->bytes;
		e->next = c->entries;
		c->entries = e;
	}
	while (c->memory_bytes > c->memory_max && c->entries && c->entries->next)
		drop_last(c);
	return e;
}

/* ---- disk ------------------------------------------------------------------------------------ */

/* Writes what is not there yet and not too large; what cannot be written now will not be tried again in this run. */
static void store(struct cache *c, const char *key, const fx_array *array)
{
	fx_error why = {0};

	if (c->disk_off || array->bytes > c->disk_max || fxi_cache_stored(c->folder, key))
		return;
	if (fxi_cache_store(c->folder, key, array, &why) != FX_OK)
		give_up_disk(c, &why);
	else
		fxi_cache_trim(c->folder, c->disk_max, key);
}

static int cache_get(fxi_cache *self, const char *key, fx_array **out, fx_error *err)
{
	struct cache *c = (struct cache *)self;
	fx_error why = {0};
	struct entry *e;
	int status = FX_OK;

	*out = NULL;
	if (!key_is_fine(key))
		return refuse_key(key, err);
	pthread_mutex_lock(&c->lock);
	e = find(c, key);
	if (e) {
		*out = fx_array_ref(e->array);
		if (!e->settled)
			store(c, key, e->array);
		e->settled = true;
	} else {
		status = fxi_cache_load(c->folder, key, &why, out);
		if (*out) {
			e = remember(c, key, *out);
			if (e)
				e->settled = true;
		}
		/* Damaged or unreadable is the same as absent, but for the warning; short memory is a failure. */
		if (status == FX_EDATA || status == FX_EIO) {
			warn(c, &why);
			status = FX_OK;
		} else if (status != FX_OK)
			fx_error_set(err, status, "%s", why.text);
	}
	pthread_mutex_unlock(&c->lock);
	return status;
}

static int cache_put(fxi_cache *self, const char *key, fx_array *array, fx_error *err)
{
	struct cache *c = (struct cache *)self;
	fx_error why = {0};
	struct entry *e;
	bool before = false;

	if (!key_is_fine(key))
		return refuse_key(key, err);
	if (array->place != FX_HOST)
		return fx_error_set(err, FX_EINVAL, "the cache takes arrays of the host only");
	pthread_mutex_lock(&c->lock);
	e = remember(c, key, array);
	if (!c->disk_off && array->bytes <= c->disk_max) {
		if (fxi_cache_mark(c->folder, key, &why, &before) != FX_OK)
			give_up_disk(c, &why);
		else if (before) {
			store(c, key, array);
			if (e)
				e->settled = true;
		}
	}
	pthread_mutex_unlock(&c->lock);
	return FX_OK;
}

static void cache_close(fxi_cache *self)
{
	struct cache *c = (struct cache *)self;

	while (c->entries)
		drop_last(c);
	pthread_mutex_destroy(&c->lock);
	free(c->folder);
	free(c);
}

int fxi_cache_open(const char *folder, int64_t max_bytes, fx_error *err, fxi_cache **out)
{
	struct cache *c = calloc(1, sizeof *c);

	*out = NULL;
	if (!c)
		return fx_error_set(err, FX_ENOMEM, "not enough memory for the cache");
	if (folder)
		c->folder = strdup(folder);
	else if (asprintf(&c->folder, "%s/fornix", g_get_user_cache_dir()) < 0)
		c->folder = NULL;
	if (!c->folder) {
		free(c);
		return fx_error_set(err, FX_ENOMEM, "not enough memory for the cache");
	}
	c->base = (fxi_cache){.get = cache_get, .put = cache_put, .close = cache_close};
	c->disk_max = max_bytes;
	/* Beside the frames in flight, which want memory more. */
	c->memory_max = fx_memory_available_bytes() / 4;
	pthread_mutex_init(&c->lock, NULL);
	*out = &c->base;
	return FX_OK;
}
