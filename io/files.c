/* SPDX-License-Identifier: MIT */
/* files.c - see files.h. */
#include "files.h"

#include "folder.h"
#include "nifti_read.h"
#include "table_read.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct fxi_folder {
	fxi_files base;
	char *dir;
	pthread_mutex_t lock;   /* products are committed from several gadgets' threads */
	char **names;
	int64_t n_names;
};

char *fxi_folder_path(const fxi_folder *folder, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", folder->dir, name) < 0 ? NULL : path;
}

static bool is_listed(const fxi_folder *f, const char *name)
{
	for (int64_t i = 0; i < f->n_names; i++)
		if (strcmp(f->names[i], name) == 0)
			return true;
	return false;
}

int fxi_folder_add(fxi_folder *f, const char *name, fx_error *err)
{
	int status = FX_OK;

	pthread_mutex_lock(&f->lock);
	if (!is_listed(f, name)) {
		char **names = realloc(f->names, (size_t)(f->n_names + 1) * sizeof *names);

		if (names)
			f->names = names;
		if (names && (names[f->n_names] = strdup(name)))
			f->n_names++;
		else
			status = fx_error_set(err, FX_ENOMEM, "out of memory while listing %s", name);
	}
	pthread_mutex_unlock(&f->lock);
	return status;
}

void fxi_folder_warn(void *folder, const char *text)
{
	const fxi_folder *f = folder;

	if (f->base.warn)
		f->base.warn(f->base.warn_arg, text);
}

static int open_product(fxi_files *self, const fx_sink_options *options, fx_error *err, fxi_product **out)
{
	fxi_folder *folder = (fxi_folder *)self;
	const char *name = options->name;

	*out = NULL;
	if (!name || !*name || *name == '.' || strchr(name, '/'))
		return fx_error_set(err, FX_EINVAL, "'%s' is no name for a product: it needs a plain file name that does not "
			"start with a dot", name ? name : "");
	switch (options->format) {
	case FX_FORMAT_MRD:
		return fxi_product_mrd(folder, options, err, out);
	case FX_FORMAT_NIFTI:
		return fxi_product_nifti(folder, options, err, out);
	case FX_FORMAT_PNG:
		return options->tracts ? fxi_product_png_tracts(folder, options, err, out) :
			fxi_product_png(folder, options, err, out);
	case FX_FORMAT_TCK:
	case FX_FORMAT_TRK:
	case FX_FORMAT_TRX:
		return fxi_product_tracts(folder, options, err, out);
	case FX_FORMAT_VOLUME:
		return fxi_product_volume(folder, options, err, out);
	case FX_FORMAT_TEXT:
		return fxi_product_text(folder, options, err, out);
	case FX_FORMAT_MRD_SCAN:
		return fxi_product_scan(folder, options, err, out);
	default:
		return fx_error_set(err, FX_EINVAL, "%s: %d is no known format", name, options->format);
	}
}

int fxi_files_read_table(fxi_files *self, const char *path, fx_error *err, fx_array **values, fx_array **lengths)
{
	(void)self;
	return fxi_table_read(path, err, values, lengths);
}

int fxi_files_read_nifti(fxi_files *self, const char *path, fx_error *err, fx_array **data, double affine[3][4],
	bool *has_affine)
{
	fxi_nifti_info info;
	int status = fxi_nifti_read(path, err, data, &info);

	(void)self;
	if (status == FX_OK) {
		memcpy(affine, info.affine, sizeof info.affine);
		*has_affine = info.has_affine;
	}
	return status;
}

static void close_folder(fxi_files *self)
{
	fxi_folder *f = (fxi_folder *)self;

	for (int64_t i = 0; i < f->n_names; i++)
		free(f->names[i]);
	free(f->names);
	free(f->dir);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

/* mkdir -p; true where the folder is there afterwards. */
static bool make_folder(const char *dir)
{
	char *path = strdup(dir);
	struct stat s;
	bool ok = path != NULL;

	for (char *p = path; ok && *p; p++) {
		if (*p != '/' || p == path)
			continue;
		*p = 0;
		ok = mkdir(path, 0777) == 0 || errno == EEXIST || (errno == EROFS && stat(path, &s) == 0);
		*p = '/';
	}
	ok = ok && (mkdir(path, 0777) == 0 || errno == EEXIST || (errno == EROFS && stat(path, &s) == 0));
	free(path);
	if (ok && stat(dir, &s) != 0)
		ok = false;
	if (ok && !S_ISDIR(s.st_mode)) {
		errno = ENOTDIR;
		ok = false;
	}
	return ok;
}

int fxi_files_folder(const char *dir, fx_error *err, fxi_files **out)
{
	fxi_folder *f;

	*out = NULL;
	if (!*dir)
		return fx_error_set(err, FX_EINVAL, "the output folder has no name");
	if (!make_folder(dir))
		return fx_error_set(err, FX_EIO, "cannot make the output folder %s: %s", dir, strerror(errno));
	if (access(dir, W_OK | X_OK) != 0)
		return fx_error_set(err, FX_EIO, "cannot write into the output folder %s: %s", dir, strerror(errno));
	f = calloc(1, sizeof *f);
	if (!f || !(f->dir = strdup(dir))) {
		free(f);
		return fx_error_set(err, FX_ENOMEM, "out of memory while opening %s", dir);
	}
	pthread_mutex_init(&f->lock, NULL);
	f->base.open = open_product;
	f->base.read_table = fxi_files_read_table;
	f->base.read_nifti = fxi_files_read_nifti;
	f->base.close = close_folder;
	*out = &f->base;
	return FX_OK;
}

const char *const *fxi_files_names(const fxi_files *files, int64_t *n)
{
	const fxi_folder *f = (const fxi_folder *)files;

	*n = f->n_names;
	return (const char *const *)f->names;
}
