/* SPDX-License-Identifier: MIT */
/*
 * files_nifti.c - the product NIfTI: NAME.nii.gz (or NAME.nii, uncompressed), and NAME_2.nii.gz, NAME_3.nii.gz, ... for
 * images that do not fit into one grid with the first (stack.h says what does). Images are kept, shared, until commit.
 */
#include "folder.h"
#include "nifti_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct nifti {
	fxi_product base;
	fxi_folder *folder;
	char *name;
	bool complex_values;
	fxi_held_list images;
};

static void free_product(fxi_product *self)
{
	struct nifti *p = (struct nifti *)self;

	fxi_held_clear(&p->images);
	free(p->name);
	free(p);
}

static int add(fxi_product *self, const fx_image *image, fx_error *err)
{
	return fxi_held_add(&((struct nifti *)self)->images, image, err);
}

static bool ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n > m && strcmp(name + n - m, end) == 0;
}

/* NAME for the first, NAME with _2, _3, ... in front of its ending for the others. */
static char *numbered_name(const char *name, int64_t i)
{
	const char *end = ends_with(name, ".nii.gz") ? ".nii.gz" : ".nii";
	char *text;

	if (i == 0)
		return strdup(name);
	return asprintf(&text, "%.*s_%lld%s", (int)(strlen(name) - strlen(end)), name, (long long)i + 1, end) < 0 ? NULL :
		text;
}

static int write_aside(struct nifti *p, const char *name, const fxi_stack *stack, fx_error *err, fxi_aside **out)
{
	char *path = fxi_folder_path(p->folder, name);
	int status;

	if (!path)
		return fx_error_set(err, FX_ENOMEM, "out of memory while writing %s", name);
	status = fxi_aside_open(path, err, out);
	free(path);
	if (status == FX_OK)
		status = fxi_nifti_write(*out, ends_with(name, ".gz"), &p->images, stack, p->complex_values, err);
	return status;
}

/* All are written before the first is renamed: a disk that fills up leaves none rather than some. */
static int write_stacks(struct nifti *p, const fxi_stack *stacks, int64_t n, fx_error *err)
{
	fxi_aside **files = calloc((size_t)n, sizeof *files);
	char **names = calloc((size_t)n, sizeof *names);
	int status = files && names ? FX_OK : fx_error_set(err, FX_ENOMEM, "out of memory while writing %s", p->name);

	for (int64_t i = 0; status == FX_OK && i < n; i++) {
		names[i] = numbered_name(p->name, i);
		status = names[i] ? write_aside(p, names[i], &stacks[i], err, &files[i]) :
			fx_error_set(err, FX_ENOMEM, "out of memory while writing %s", p->name);
	}
	for (int64_t i = 0; status == FX_OK && i < n; i++) {
		status = fxi_aside_commit(files[i], err);
		files[i] = NULL;
		if (status == FX_OK)
			status = fxi_folder_add(p->folder, names[i], err);
	}
	for (int64_t i = 0; i < n; i++) {
		if (files)
			fxi_aside_abandon(files[i]);
		if (names)
			free(names[i]);
	}
	free(files);
	free(names);
	return status;
}

static int commit(fxi_product *self, fx_error *err)
{
	struct nifti *p = (struct nifti *)self;
	fxi_stack *stacks = NULL;
	int64_t n = 0;
	int status;

	if (p->images.n == 0) {
		char text[256];

		snprintf(text, sizeof text, "%s: not written, no image came", p->name);
		fxi_folder_warn(p->folder, text);
		free_product(self);
		return FX_OK;
	}
	status = fxi_stacks_build(&p->images, p->name, fxi_folder_warn, p->folder, err, &stacks, &n);
	if (status == FX_OK && n > 1) {
		char text[512];

		snprintf(text, sizeof text, "%s: images that do not fit one grid (series, matrix, orientation, offset) are in "
			"%lld files, the last of them numbered _%lld", p->name, (long long)n, (long long)n);
		fxi_folder_warn(p->folder, text);
	}
	if (status == FX_OK)
		status = write_stacks(p, stacks, n, err);
	fxi_stacks_free(stacks, n);
	free_product(self);
	return status;
}

int fxi_product_nifti(fxi_folder *folder, const fx_sink_options *options, fx_error *err, fxi_product **out)
{
	struct nifti *p;

	if (!ends_with(options->name, ".nii.gz") && !ends_with(options->name, ".nii"))
		return fx_error_set(err, FX_EINVAL, "'%s': the name of a NIfTI file ends in .nii.gz or .nii", options->name);
	p = calloc(1, sizeof *p);
	if (!p || !(p->name = strdup(options->name))) {
		free(p);
		return fx_error_set(err, FX_ENOMEM, "out of memory while opening %s", options->name);
	}
	p->base = (fxi_product){.add = add, .commit = commit, .abandon = free_product};
	p->folder = folder;
	p->complex_values = options->complex_values;
	*out = &p->base;
	return FX_OK;
}
