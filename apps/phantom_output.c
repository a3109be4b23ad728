/* SPDX-License-Identifier: MIT */
/* phantom_output.c - a test scan's two forms: MRD HDF5, and the MRD wire format in a file or on standard output. */
#include "apps/phantom.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "io/aside.h"
#include "io/mrd_hdf5_write.h"
#include "io/mrd_wire.h"

struct fxi_phantom_output {
	fxi_raw_writer *hdf5;
	fxi_aside *aside;  /* a stream in a file; else a stream goes to standard output */
};

static int put(fxi_phantom_output *o, const void *data, size_t bytes, fx_error *err)
{
	const char *at = data;

	if (o->aside)
		return fxi_aside_write(o->aside, data, bytes, err);
	while (bytes > 0) {
		ssize_t n = write(STDOUT_FILENO, at, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return fx_error_set(err, FX_EIO, "cannot write the stream to standard output: %s", strerror(errno));
		at += n;
		bytes -= (size_t)n;
	}
	return FX_OK;
}

static int put_id(fxi_phantom_output *o, uint16_t id, fx_error *err)
{
	return put(o, &id, sizeof id, err);
}

static int put_header(fxi_phantom_output *o, const char *xml, fx_error *err)
{
	uint32_t length = (uint32_t)strlen(xml);
	int status = put_id(o, FXI_MRD_HEADER, err);

	if (status == FX_OK)
		status = put(o, &length, sizeof length, err);
	return status == FX_OK ? put(o, xml, length, err) : status;
}

int fxi_phantom_output_open(const char *path, bool stream, const char *header_xml, fx_error *err,
	fxi_phantom_output **out)
{
	fxi_phantom_output *o = fx_alloc(1, sizeof *o);
	int status = FX_OK;

	*out = NULL;
	if (!o)
		return fx_error_set(err, FX_ENOMEM, "no memory to write %s", path);
	if (!stream)
		status = fxi_raw_writer_open(path, header_xml, err, &o->hdf5);
	else if (strcmp(path, "-") != 0)
		status = fxi_aside_open(path, err, &o->aside);
	if (status == FX_OK && stream)
		status = put_header(o, header_xml, err);
	if (status != FX_OK) {
		fxi_phantom_output_abandon(o);
		return status;
	}
	*out = o;
	return FX_OK;
}

int fxi_phantom_output_add(fxi_phantom_output *o, const fx_acquisition *a, fx_error *err)
{
	int status;

	if (o->hdf5)
		return fxi_raw_writer_add(o->hdf5, a, err);
	status = put_id(o, FXI_MRD_ACQUISITION, err);
	if (status == FX_OK)
		status = put(o, &a->head, sizeof a->head, err);
	if (status == FX_OK && a->traj)
		status = put(o, a->traj->data, (size_t)a->traj->bytes, err);
	return status == FX_OK ? put(o, a->data->data, (size_t)a->data->bytes, err) : status;
}

int fxi_phantom_output_commit(fxi_phantom_output *o, fx_error *err)
{
	int status = FX_OK;

	if (o->hdf5) {
		status = fxi_raw_writer_commit(o->hdf5, err);
		o->hdf5 = NULL;
	} else {
		status = put_id(o, FXI_MRD_CLOSE, err);
		if (status == FX_OK && o->aside) {
			status = fxi_aside_commit(o->aside, err);
			o->aside = NULL;
		}
	}
	fxi_phantom_output_abandon(o);
	return status;
}

void fxi_phantom_output_abandon(fxi_phantom_output *o)
{
	if (!o)
		return;
	fxi_raw_writer_abandon(o->hdf5);
	fxi_aside_abandon(o->aside);
	fx_free(o);
}
