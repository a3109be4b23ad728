/* SPDX-License-Identifier: MIT */
/*
 * nifti_out.c - see nifti_out.h. Compression is gzip's at its fastest; the header is NIfTI's own struct of either version.
 */
#include "nifti_out.h"

#include <math.h>
#include <nifti/nifti1.h>
#include <nifti/nifti2.h>
#include <stdio.h>
#include <string.h>

#define OUT_BYTES ((size_t)256 << 10)
#define DESCRIPTION "fornix"
#define COMMENT 6   /* NIFTI_ECODE_COMMENT of nifti1_io.h: plain text */
/* Cosine between two axes up to which a lattice counts as rectangular: float32 headers round to about 1e-7. */
#define SHEAR 1e-5

int fxi_nifti_out_open(fxi_nifti_out *o, fxi_aside *file, bool gz, fx_error *err)
{
	memset(o, 0, sizeof *o);
	o->file = file;
	o->gz = gz;
	if (!gz)
		return FX_OK;
	o->buffer = fx_alloc((int64_t)OUT_BYTES, 1);
	/*
	 * Level 1: higher ones gain some percent on noisy floats and take several times as long. 15 + 16 asks for gzip's
	 * wrapping, which zlib writes without a time stamp: the same images give the same bytes.
	 */
	if (!o->buffer || deflateInit2(&o->z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
		fx_free(o->buffer);
		o->buffer = NULL;
		return fx_error_set(err, FX_ENOMEM, "out of memory while writing %s", file->final);
	}
	return FX_OK;
}

static int deflate_some(fxi_nifti_out *o, const void *data, size_t bytes, int flush, fx_error *err)
{
	int status = FX_OK, result = Z_OK;

	o->z.next_in = (z_const Bytef *)data;
	o->z.avail_in = (uInt)bytes;
	do {
		o->z.next_out = o->buffer;
		o->z.avail_out = OUT_BYTES;
		result = deflate(&o->z, flush);
		if (result == Z_STREAM_ERROR)
			return fx_error_set(err, FX_EIO, "cannot compress %s", o->file->final);
		status = fxi_aside_write(o->file, o->buffer, OUT_BYTES - o->z.avail_out, err);
	} while (status == FX_OK && o->z.avail_out == 0);
	return status;
}

int fxi_nifti_out_write(fxi_nifti_out *o, const void *data, size_t bytes, fx_error *err)
{
	const unsigned char *p = data;
	int status = FX_OK;

	if (!o->gz)
		return fxi_aside_write(o->file, data, bytes, err);
	while (bytes > 0 && status == FX_OK) {
		size_t n = bytes < (size_t)1 << 30 ? bytes : (size_t)1 << 30;   /* zlib counts in 32 bits */

		status = deflate_some(o, p, n, Z_NO_FLUSH, err);
		p += n;
		bytes -= n;
	}
	return status;
}

int fxi_nifti_out_finish(fxi_nifti_out *o, fx_error *err)
{
	return o->gz ? deflate_some(o, NULL, 0, Z_FINISH, err) : FX_OK;
}

void fxi_nifti_out_close(fxi_nifti_out *o)
{
	if (o->buffer)
		deflateEnd(&o->z);
	fx_free(o->buffer);
}

/*
 * The quaternion (b, c, d; a >= 0) of a proper rotation, columns being the images of x, y, z: the branch with the largest
 * divisor is taken, as NIfTI's text recommends.
 */
static void quaternion_of(double r[3][3], double q[3])
{
	double trace = r[0][0] + r[1][1] + r[2][2], a, b, c, d, s;

	if (trace > 0) {
		s = 2 * sqrt(trace + 1);
		a = s / 4;
		b = (r[2][1] - r[1][2]) / s;
		c = (r[0][2] - r[2][0]) / s;
		d = (r[1][0] - r[0][1]) / s;
	} else if (r[0][0] >= r[1][1] && r[0][0] >= r[2][2]) {
		s = 2 * sqrt(fmax(1 + r[0][0] - r[1][1] - r[2][2], 0));
		a = (r[2][1] - r[1][2]) / s;
		b = s / 4;
		c = (r[0][1] + r[1][0]) / s;
		d = (r[0][2] + r[2][0]) / s;
	} else if (r[1][1] >= r[2][2]) {
		s = 2 * sqrt(fmax(1 - r[0][0] + r[1][1] - r[2][2], 0));
		a = (r[0][2] - r[2][0]) / s;
		b = (r[0][1] + r[1][0]) / s;
		c = s / 4;
		d = (r[1][2] + r[2][1]) / s;
	} else {
		s = 2 * sqrt(fmax(1 - r[0][0] - r[1][1] + r[2][2], 0));
		a = (r[1][0] - r[0][1]) / s;
		b = (r[0][2] + r[2][0]) / s;
		c = (r[1][2] + r[2][1]) / s;
		d = s / 4;
	}
	q[0] = a < 0 ? -b : b;
	q[1] = a < 0 ? -c : c;
	q[2] = a < 0 ? -d : d;
}

static double determinant(double r[3][3])
{
	return r[0][0] * (r[1][1] * r[2][2] - r[1][2] * r[2][1]) - r[0][1] * (r[1][0] * r[2][2] - r[1][2] * r[2][0]) +
		r[0][2] * (r[1][0] * r[2][1] - r[1][1] * r[2][0]);
}

fxi_nifti_facts fxi_nifti_facts_new(int datatype, int bitpix)
{
	fxi_nifti_facts f = {.datatype = datatype, .bitpix = bitpix};

	for (int i = 0; i < 8; i++) {
		f.dim[i] = 1;
		f.pixdim[i] = 1;
	}
	return f;
}

void fxi_nifti_geometry(fxi_nifti_facts *f, const fx_lattice *l)
{
	double affine[3][4];
	double rotation[3][3], cosine = 0;

	memcpy(affine, l->affine, sizeof affine);
	f->pixdim[0] = 1;
	for (int a = 0; a < 3; a++) {
		double mm = sqrt(affine[0][a] * affine[0][a] + affine[1][a] * affine[1][a] + affine[2][a] * affine[2][a]);

		f->pixdim[a + 1] = mm;
		for (int i = 0; i < 3; i++)
			rotation[i][a] = mm > 0 ? affine[i][a] / mm : i == a;
	}
	if (!l->has_affine)
		return;
	memcpy(f->srow, affine, sizeof f->srow);
	f->sform = NIFTI_XFORM_SCANNER_ANAT;
	for (int a = 0; a < 3; a++) {
		int b = (a + 1) % 3;

		cosine = fmax(cosine, fabs(rotation[0][a] * rotation[0][b] + rotation[1][a] * rotation[1][b] +
			rotation[2][a] * rotation[2][b]));
	}
	if (!(cosine <= SHEAR))
		return;
	/* A quaternion cannot mirror; pixdim[0] = -1 says that the third axis is to be turned round. */
	if (determinant(rotation) < 0) {
		f->pixdim[0] = -1;
		for (int i = 0; i < 3; i++)
			rotation[i][2] = -rotation[i][2];
	}
	quaternion_of(rotation, f->quatern);
	for (int i = 0; i < 3; i++)
		f->offset[i] = affine[i][3];
	f->qform = NIFTI_XFORM_SCANNER_ANAT;
}

/* Both headers have these fields, in types of their own. */
#define FILL(h, f, number) do { \
	for (int i = 0; i < 8; i++) { \
		(h).dim[i] = (__typeof__((h).dim[0]))(f).dim[i]; \
		(h).pixdim[i] = (number)(f).pixdim[i]; \
	} \
	for (int i = 0; i < 4; i++) { \
		(h).srow_x[i] = (number)(f).srow[0][i]; \
		(h).srow_y[i] = (number)(f).srow[1][i]; \
		(h).srow_z[i] = (number)(f).srow[2][i]; \
	} \
	(h).quatern_b = (number)(f).quatern[0]; \
	(h).quatern_c = (number)(f).quatern[1]; \
	(h).quatern_d = (number)(f).quatern[2]; \
	(h).qoffset_x = (number)(f).offset[0]; \
	(h).qoffset_y = (number)(f).offset[1]; \
	(h).qoffset_z = (number)(f).offset[2]; \
	(h).qform_code = (__typeof__((h).qform_code))(f).qform; \
	(h).sform_code = (__typeof__((h).sform_code))(f).sform; \
	(h).datatype = (__typeof__((h).datatype))(f).datatype; \
	(h).bitpix = (__typeof__((h).bitpix))(f).bitpix; \
	(h).xyzt_units = NIFTI_UNITS_MM; \
	(h).scl_slope = 1; \
	(h).intent_code = (__typeof__((h).intent_code))(f).intent; \
	(h).intent_p1 = (number)(f).intent_p1; \
	(h).cal_min = (number)(f).cal_min; \
	(h).cal_max = (number)(f).cal_max; \
	(h).vox_offset = (__typeof__((h).vox_offset))(sizeof_header + 4 + extension); \
	snprintf((h).descrip, sizeof (h).descrip, "%s", (f).description ? (f).description : DESCRIPTION); \
} while (0)

/* What an extension of the comment takes up: its size, its code, the text with a NUL, and zeros up to 16 bytes. */
static int64_t extension_bytes(const char *comment)
{
	return comment ? ((int64_t)strlen(comment) + 1 + 8 + 15) / 16 * 16 : 0;
}

static int write_extension(fxi_nifti_out *o, const char *comment, int64_t bytes, fx_error *err)
{
	const unsigned char flag[4] = {comment != NULL, 0, 0, 0}, zeros[16] = {0};
	const int32_t head[2] = {(int32_t)bytes, COMMENT};
	int64_t length = comment ? (int64_t)strlen(comment) : 0;
	int status = fxi_nifti_out_write(o, flag, 4, err);

	if (status != FX_OK || !comment)
		return status;
	status = fxi_nifti_out_write(o, head, sizeof head, err);
	if (status == FX_OK)
		status = fxi_nifti_out_write(o, comment, (size_t)length, err);
	return status == FX_OK ? fxi_nifti_out_write(o, zeros, (size_t)(bytes - 8 - length), err) : status;
}

int fxi_nifti_header_write(fxi_nifti_out *o, const fxi_nifti_facts *f, fx_error *err)
{
	int64_t extension = extension_bytes(f->comment);
	bool small = true;
	int status;

	for (int i = 1; i < 8; i++)
		small = small && f->dim[i] <= INT16_MAX;
	if (small) {
		const int sizeof_header = 348;
		nifti_1_header h = {.sizeof_hdr = 348, .regular = 'r', .magic = "n+1"};

		FILL(h, *f, float);
		status = fxi_nifti_out_write(o, &h, 348, err);
	} else {
		const int sizeof_header = 540;
		nifti_2_header h = {.sizeof_hdr = 540, .magic = {'n', '+', '2', 0, '\r', '\n', 0x1a, '\n'}};

		FILL(h, *f, double);
		status = fxi_nifti_out_write(o, &h, 540, err);
	}
	return status == FX_OK ? write_extension(o, f->comment, extension, err) : status;
}
