/* SPDX-License-Identifier: MIT */
/* mrd_stream_write.c - see mrd_stream_write.h. */
#include "mrd_stream_write.h"

#include "wire_pieces.h"

#include <errno.h>
#include <string.h>

static int put(FILE *f, const char *name, fxi_wire_pieces *p, fx_error *err)
{
	int status = FX_OK;

	for (int i = 0; i < p->n && status == FX_OK; i++)
		if (fwrite(p->piece[i].iov_base, 1, p->piece[i].iov_len, f) != p->piece[i].iov_len)
			status = fx_error_set(err, FX_EIO, "cannot write %s: %s", name, strerror(errno));
	fxi_wire_pieces_clear(p);
	return status;
}

int fxi_mrd_write_header(FILE *f, const char *name, const char *header_xml, fx_error *err)
{
	fxi_wire_pieces p;

	if (strlen(header_xml) > UINT32_MAX)
		return fx_error_set(err, FX_EINVAL, "%s: a header of %zu bytes is too long", name, strlen(header_xml));
	fxi_wire_pieces_text(&p, FXI_MRD_HEADER, 4, header_xml, 0);
	return put(f, name, &p, err);
}

int fxi_mrd_write(FILE *f, const char *name, fx_msg *msg, fx_error *err)
{
	fxi_wire_pieces p;
	int status = fxi_wire_pieces_of(&p, name, msg, err);

	if (status == FX_OK)
		return put(f, name, &p, err);
	fxi_wire_pieces_clear(&p);
	return status;
}

int fxi_mrd_write_close(FILE *f, const char *name, fx_error *err)
{
	const unsigned char id[2] = {FXI_MRD_CLOSE, 0};

	if (fwrite(id, 1, sizeof id, f) != sizeof id || fflush(f) != 0)
		return fx_error_set(err, FX_EIO, "cannot write %s: %s", name, strerror(errno));
	return FX_OK;
}
