/* SPDX-License-Identifier: MIT */
/* files_text.c - the product of plain text (JSON, CSV, tables of gradients): written aside as it comes. */
#include "folder.h"

#include "aside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOM 65536

struct text {
	fxi_product base;
	fxi_folder *folder;
	char *name;
	fxi_aside *file;
	bool any;
	size_t used;
	char waiting[ROOM];   /* gadgets give lines: one system call for many */
};

static void free_product(fxi_product *self)
{
	struct text *p = (struct text *)self;

	fxi_aside_abandon(p->file);
	free(p->name);
	free(p);
}

static int write_waiting(struct text *p, fx_error *err)
{
	size_t n = p->used;

	p->used = 0;
	return fxi_aside_write(p->file, p->waiting, n, err);
}

static int add_text(fxi_product *self, const char *text, fx_error *err)
{
	struct text *p = (struct text *)self;
	size_t n = strlen(text);
	int status = FX_OK;

	p->any = true;
	if (n > ROOM - p->used)
		status = write_waiting(p, err);
	if (status == FX_OK && n > ROOM)
		return fxi_aside_write(p->file, text, n, err);
	if (status == FX_OK) {
		memcpy(p->waiting + p->used, text, n);
		p->used += n;
	}
	return status;
}

static int commit(fxi_product *self, fx_error *err)
{
	struct text *p = (struct text *)self;
	int status = FX_OK;

	if (p->any) {
		status = write_waiting(p, err);
		if (status == FX_OK) {
			status = fxi_aside_commit(p->file, err);
			p->file = NULL;
		}
		if (status == FX_OK)
			status = fxi_folder_add(p->folder, p->name, err);
	} else {
		char text[256];

		snprintf(text, sizeof text, "%s: not written, no text came", p->name);
		fxi_folder_warn(p->folder, text);
	}
	free_product(self);
	return status;
}

int fxi_product_text(fxi_folder *folder, const fx_sink_options *options, fx_error *err, fxi_product **out)
{
	struct text *p = calloc(1, sizeof *p);
	char *path;
	int status;

	if (!p || !(p->name = strdup(options->name)) || !(path = fxi_folder_path(folder, options->name))) {
		if (p)
			free(p->name);
		free(p);
		return fx_error_set(err, FX_ENOMEM, "out of memory while opening %s", options->name);
	}
	status = fxi_aside_open(path, err, &p->file);
	free(path);
	if (status != FX_OK) {
		free_product(&p->base);
		return status;
	}
	p->base = (fxi_product){.add_text = add_text, .commit = commit, .abandon = free_product};
	p->folder = folder;
	*out = &p->base;
	return FX_OK;
}
