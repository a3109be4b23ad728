/* SPDX-License-Identifier: MIT */
/* phantom_output.c - a test scan's two forms: MRD HDF5, and an MRD stream in a file or on standard output. */
#include "apps/phantom.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "io/aside.h"
#include "io/mrd_hdf5_write.h"
#include "io/mrd_stream_write.h"

struct fxi_phantom_output {
	fxi_raw_writer *hdf5;
	FILE *stream;      /* standard output, or a second descriptor of `aside` */
	fxi_aside *aside;
	const char *path;  /* for messages */
};

static int open_stream(fxi_phantom_output *o, const char *header_xml, fx_error *err)
{
	int status, fd;

	if (strcmp(o->path, "-") == 0) {
		o->path = "standard output";
		o->stream = stdout;
	} else {
		status = fxi_aside_open(o->path, err, &o->aside);
		if (status != FX_OK)
			return status;
		fd = dup(o->aside->fd);
		o->stream = fd >= 0 ? fdopen(fd, "wb") : NULL;
		if (!o->stream) {
			status = fx_error_set(err, FX_EIO, "cannot write %s: %s", o->path, strerror(errno));
			if (fd >= 0)
				close(fd);
			return status;
		}
	}
	return fxi_mrd_write_header(o->stream, o->path, header_xml, err);
}

int fxi_phantom_output_open(const char *path, bool stream, const char *header_xml, fx_error *err,
	fxi_phantom_output **out)
{
	fxi_phantom_output *o = fx_alloc(1, sizeof *o);
	int status;

	*out = NULL;
	if (!o)
		return fx_error_set(err, FX_ENOMEM, "no memory to write %s", path);
	o->path = path;
	status = stream ? open_stream(o, header_xml, err) : fxi_raw_writer_open(path, header_xml, err, &o->hdf5);
	if (status != FX_OK) {
		fxi_phantom_output_abandon(o);
		return status;
	}
	*out = o;
	return FX_OK;
}

int fxi_phantom_output_add(fxi_phantom_output *o, const fx_acquisition *a, fx_error *err)
{
	fx_acquisition *copy;
	fx_msg *msg;
	int status;

	if (o->hdf5)
		return fxi_raw_writer_add(o->hdf5, a, err);
	msg = fx_msg_new(FX_ACQUISITION);
	if (!msg)
		return fx_error_set(err, FX_ENOMEM, "no memory for a readout");
	copy = fx_msg_acquisition(msg);
	copy->head = a->head;
	copy->data = fx_array_ref(a->data);
	copy->traj = fx_array_ref(a->traj);
	status = fxi_mrd_write(o->stream, o->path, msg, err);
	fx_drop(msg);
	return status;
}

/* Standard output stays open: it is not ours. */
static int close_stream(fxi_phantom_output *o, fx_error *err)
{
	FILE *stream = o->stream;

	o->stream = NULL;
	if (stream && stream != stdout && fclose(stream) != 0)
		return fx_error_set(err, FX_EIO, "cannot write %s: %s", o->path, strerror(errno));
	return FX_OK;
}

int fxi_phantom_output_commit(fxi_phantom_output *o, fx_error *err)
{
	int status;

	if (o->hdf5) {
		status = fxi_raw_writer_commit(o->hdf5, err);
		o->hdf5 = NULL;
	} else {
		status = fxi_mrd_write_close(o->stream, o->path, err);
		if (status == FX_OK)
			status = close_stream(o, err);
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
	close_stream(o, NULL);
	fxi_aside_abandon(o->aside);
	fx_free(o);
}
