/* SPDX-License-Identifier: MIT */
/* files_scan.c - the product that is a raw scan: readouts and waveforms as they came, with the scan's header, in MRD HDF5. */
#include "folder.h"

#include "mrd_hdf5_write.h"

#include <stdlib.h>
#include <string.h>

struct scan {
	fxi_product base;
	fxi_folder *folder;
	char *name;
	fxi_raw_writer *writer;   /* NULL once it has ended */
};

static void free_product(fxi_product *self)
{
	struct scan *p = (struct scan *)self;

	fxi_raw_writer_abandon(p->writer);
	free(p->name);
	free(p);
}

static int add_scan(fxi_product *self, fx_msg *msg, fx_error *err)
{
	struct scan *p = (struct scan *)self;

	if (fx_msg_kind(msg) == FX_ACQUISITION)
		return fxi_raw_writer_add(p->writer, fx_msg_acquisition(msg), err);
	if (fx_msg_kind(msg) == FX_WAVEFORM)
		return fxi_raw_writer_add_waveform(p->writer, fx_msg_waveform(msg), err);
	return fx_error_set(err, FX_EINVAL, "%s holds readouts and waveforms, not a message of kind %s", p->name,
		fx_kind_name(fx_msg_kind(msg)));
}

static int commit(fxi_product *self, fx_error *err)
{
	struct scan *p = (struct scan *)self;
	fxi_raw_writer *writer = p->writer;
	int status;

	p->writer = NULL;
	status = fxi_raw_writer_commit(writer, err);
	if (status == FX_OK)
		status = fxi_folder_add(p->folder, p->name, err);
	free_product(self);
	return status;
}

int fxi_product_scan(fxi_folder *folder, const fx_sink_options *options, fx_error *err, fxi_product **out)
{
	struct scan *p = calloc(1, sizeof *p);
	char *path = fxi_folder_path(folder, options->name);
	int status;

	if (!p || !path || !(p->name = strdup(options->name))) {
		free(p);
		free(path);
		return fx_error_set(err, FX_ENOMEM, "out of memory while opening %s", options->name);
	}
	p->base = (fxi_product){.add_scan = add_scan, .commit = commit, .abandon = free_product};
	p->folder = folder;
	status = options->header_xml ? fxi_raw_writer_open(path, options->header_xml, err, &p->writer) :
		fx_error_set(err, FX_EINVAL, "%s: a raw scan needs a header", options->name);
	free(path);
	if (status != FX_OK) {
		free_product(&p->base);
		return status;
	}
	*out = &p->base;
	return FX_OK;
}
