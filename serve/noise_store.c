/* SPDX-License-Identifier: MIT */
/*
 * noise_store.c - each covariance is one checked array file (io/cache_disk.h): when it was measured, dwell time, number of
 * samples, then the elements. The file's time is its last use.
 */
#include "noise_store.h"

#include "io/cache_disk.h"
#include "noise_blob.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SUFFIX ".fxcache"      /* cache_disk's */
#define ID_MAX 1000
#define HEAD 4                 /* numbers in front of the elements: time, dwell time, samples, coils */
#define STALE_PART_S 3600

struct fxi_noise_files {
	char *folder;
	fxi_noise_bounds bounds;
};

struct file {
	char *name;
	int64_t bytes;
	double used;
};

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- bounds ---------------------------------------------------------------------------------- */

static gint oldest_first(gconstpointer a, gconstpointer b)
{
	const struct file *x = a, *y = b;

	return x->used != y->used ? (x->used < y->used ? -1 : 1) : strcmp(x->name, y->name);
}

static void look_at(const fxi_noise_files *f, int folder, const char *name, GArray *list)
{
	struct file file;
	struct stat st;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
		return;
	file.used = (double)st.st_mtim.tv_sec + 1e-9 * (double)st.st_mtim.tv_nsec;
	file.bytes = (int64_t)st.st_size;
	if (name[0] == '.' && g_str_has_suffix(name, ".part")) { /* of a writer that was killed */
		if (now_s() - file.used > STALE_PART_S)
			unlinkat(folder, name, 0);
		return;
	}
	if (!g_str_has_suffix(name, SUFFIX))
		return;
	/* Unused for that long, it was measured before that. */
	if (now_s() - file.used > f->bounds.expiry_s) {
		unlinkat(folder, name, 0);
		return;
	}
	file.name = g_strdup(name);
	g_array_append_val(list, file);
}

/* Removes what expired, and the longest unused of what does not fit; never `keep` (a file's name), which came last. */
static void trim(const fxi_noise_files *f, const char *keep)
{
	GArray *list = g_array_new(FALSE, FALSE, sizeof(struct file));
	DIR *dir = opendir(f->folder);
	int64_t bytes = 0, count;

	for (const struct dirent *d = dir ? readdir(dir) : NULL; d; d = readdir(dir))
		look_at(f, dirfd(dir), d->d_name, list);
	g_array_sort(list, oldest_first);
	count = list->len;
	for (guint i = 0; i < list->len; i++)
		bytes += g_array_index(list, struct file, i).bytes;
	for (guint i = 0; i < list->len; i++) {
		struct file *file = &g_array_index(list, struct file, i);

		if ((bytes > f->bounds.bytes || count > f->bounds.count) && g_strcmp0(file->name, keep) != 0) {
			unlinkat(dirfd(dir), file->name, 0);
			bytes -= file->bytes;
			count--;
		}
		g_free(file->name);
	}
	g_array_free(list, TRUE);
	if (dir)
		closedir(dir);
}

/* ---- the store ------------------------------------------------------------------------------- */

int fxi_noise_files_open(const char *folder, const fxi_noise_bounds *bounds, fx_error *err, fxi_noise_files **out)
{
	fxi_noise_files *f = calloc(1, sizeof *f);

	*out = NULL;
	if (f)
		f->folder = strdup(folder);
	if (!f || !f->folder) {
		free(f);
		return fx_error_set(err, FX_ENOMEM, "no memory to open the noise store");
	}
	f->bounds = *bounds;
	if (g_mkdir_with_parents(folder, 0700) != 0 || access(folder, W_OK | X_OK) != 0) {
		fx_error_set(err, FX_EIO, "cannot use %s to keep noise: %s", folder, strerror(errno));
		fxi_noise_files_free(f);
		return FX_EIO;
	}
	trim(f, NULL);
	*out = f;
	return FX_OK;
}

void fxi_noise_files_free(fxi_noise_files *f)
{
	if (!f)
		return;
	free(f->folder);
	free(f);
}

static int key_of(const char *id, fx_error *err, char **key)
{
	size_t n = strlen(id);

	*key = NULL;
	if (n == 0 || n > ID_MAX)
		return fx_error_set(err, FX_EINVAL, "a measurement id of %zu bytes: noise is kept under one of 1 to %d", n, ID_MAX);
	*key = g_compute_checksum_for_string(G_CHECKSUM_SHA256, id, (gssize)n);
	return FX_OK;
}

/* What an array file holds; NULL covariance where it expired. FX_EDATA where it is none of ours. */
static int unpack(const fxi_noise_files *f, const fx_array *a, fx_error *err, fx_noise *noise)
{
	const double *v = FX_F64_OF(a);
	int64_t coils = a->type == FX_F64 && a->n > HEAD ? (int64_t)v[3] : 0;
	int status;

	if (coils < 1 || coils > FXI_NOISE_MAX_COILS || a->n != HEAD + 2 * coils * coils)
		return fx_error_set(err, FX_EDATA, "a file of the noise store holds no covariance");
	if (now_s() - v[0] > f->bounds.expiry_s)
		return FX_OK;
	status = fx_array_new2(FX_CF64, coils, coils, &noise->covariance);
	if (status != FX_OK)
		return fx_error_set(err, status, "no memory for the noise covariance of %lld coils", (long long)coils);
	noise->dwell_us = v[1];
	noise->n_samples = (int64_t)v[2];
	memcpy(noise->covariance->data, v + HEAD, (size_t)noise->covariance->bytes);
	status = fxi_noise_check(noise, err);
	if (status != FX_OK)
		fx_noise_clear(noise);
	return status;
}

int fxi_noise_files_get(fxi_noise_files *f, const char *measurement_id, fx_error *err, fx_noise *noise)
{
	fx_array *a = NULL;
	char *key;
	int status = key_of(measurement_id, err, &key);

	*noise = (fx_noise){0};
	if (status == FX_OK)
		status = fxi_cache_load(f->folder, key, err, &a);
	if (status == FX_OK && a)
		status = unpack(f, a, err, noise);
	if (a && !noise->covariance) { /* expired, or not ours */
		char *path = g_strconcat(f->folder, "/", key, SUFFIX, NULL);

		unlink(path);
		g_free(path);
	}
	fx_array_unref(a);
	g_free(key);
	return status;
}

int fxi_noise_files_put(fxi_noise_files *f, const char *measurement_id, const fx_noise *noise, fx_error *err)
{
	fx_array *a = NULL;
	char *key = NULL, *name;
	int64_t coils, n;
	int status = fxi_noise_check(noise, err);

	if (status == FX_OK)
		status = key_of(measurement_id, err, &key);
	if (status != FX_OK)
		return status;
	coils = noise->covariance->dims[0];
	n = HEAD + 2 * coils * coils;
	status = fx_array_new(FX_F64, 1, &n, &a);
	if (status != FX_OK)
		fx_error_set(err, status, "no memory to keep the noise covariance of %lld coils", (long long)coils);
	else if (a->bytes > f->bounds.bytes)
		status = fx_error_set(err, FX_EINVAL, "a noise covariance of %lld bytes, and the store holds %lld", (long long)a->bytes,
			(long long)f->bounds.bytes);
	if (status == FX_OK) {
		FX_F64_OF(a)[0] = now_s();
		FX_F64_OF(a)[1] = noise->dwell_us;
		FX_F64_OF(a)[2] = (double)noise->n_samples;
		FX_F64_OF(a)[3] = (double)coils;
		memcpy(FX_F64_OF(a) + HEAD, noise->covariance->data, (size_t)noise->covariance->bytes);
		status = fxi_cache_store(f->folder, key, a, err);
	}
	if (status == FX_OK) {
		name = g_strconcat(key, SUFFIX, NULL);
		trim(f, name);
		g_free(name);
	}
	fx_array_unref(a);
	g_free(key);
	return status;
}
