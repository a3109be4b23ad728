/* SPDX-License-Identifier: MIT */
/*
 * nifti_write.c - see nifti_write.h. NIfTI is RAS where MRD is LPS: the first two world axes change sign, the voxels stay
 * where they are.
 */
#include "nifti_write.h"

#include <math.h>
#include <nifti/nifti1.h>
#include <nifti/nifti2.h>
#include <string.h>
#include <zlib.h>

#define OUT_BYTES ((size_t)256 << 10)
#define DESCRIPTION "fornix"

struct out {
	fxi_aside *file;
	bool gz;
	z_stream z;
	unsigned char *buffer;
};

static int out_open(struct out *o, fxi_aside *file, bool gz, fx_error *err)
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

static int deflate_some(struct out *o, const void *data, size_t bytes, int flush, fx_error *err)
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

static int out_write(struct out *o, const void *data, size_t bytes, fx_error *err)
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

static int out_finish(struct out *o, fx_error *err)
{
	return o->gz ? deflate_some(o, NULL, 0, Z_FINISH, err) : FX_OK;
}

static void out_close(struct out *o)
{
	if (o->buffer)
		deflateEnd(&o->z);
	fx_free(o->buffer);
}

/* What both versions of the header hold, in NIfTI's own terms. */
struct facts {
	int64_t dim[8];
	double pixdim[8];
	int code;
	double srow[3][4], quatern[3], offset[3];
	int datatype, bitpix;
};

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

static void fill_geometry(struct facts *f, const fxi_stack *s)
{
	double rotation[3][3];

	f->pixdim[0] = 1;
	if (!s->has_geometry)
		return;
	for (int i = 0; i < 3; i++) {
		double sign = i < 2 ? -1 : 1;

		for (int a = 0; a < 3; a++) {
			rotation[i][a] = sign * s->axes[a][i];
			f->srow[i][a] = rotation[i][a] * s->voxel_mm[a];
		}
		f->srow[i][3] = f->offset[i] = sign * s->origin[i];
	}
	/* A quaternion cannot mirror; pixdim[0] = -1 says that the third axis is to be turned round. */
	if (determinant(rotation) < 0) {
		f->pixdim[0] = -1;
		for (int i = 0; i < 3; i++)
			rotation[i][2] = -rotation[i][2];
	}
	quaternion_of(rotation, f->quatern);
	f->code = NIFTI_XFORM_SCANNER_ANAT;
}

static struct facts facts_of(const fxi_stack *s, bool as_complex)
{
	struct facts f = {.datatype = as_complex ? DT_COMPLEX64 : DT_FLOAT32, .bitpix = as_complex ? 64 : 32};
	int64_t n = s->n_volumes > 1 ? s->n_volumes : s->n_channels, m = s->n_volumes > 1 ? s->n_channels : 1;

	for (int i = 0; i < 8; i++) {
		f.dim[i] = 1;
		f.pixdim[i] = 1;
	}
	for (int i = 0; i < 3; i++) {
		f.dim[i + 1] = s->matrix[i];
		f.pixdim[i + 1] = s->voxel_mm[i];
	}
	f.dim[4] = n;
	f.dim[5] = m;
	f.dim[0] = m > 1 ? 5 : n > 1 ? 4 : 3;
	fill_geometry(&f, s);
	return f;
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
	(h).qform_code = (__typeof__((h).qform_code))(f).code; \
	(h).sform_code = (__typeof__((h).sform_code))(f).code; \
	(h).datatype = (__typeof__((h).datatype))(f).datatype; \
	(h).bitpix = (__typeof__((h).bitpix))(f).bitpix; \
	(h).xyzt_units = NIFTI_UNITS_MM; \
	(h).scl_slope = 1; \
	memcpy((h).descrip, DESCRIPTION, sizeof DESCRIPTION); \
} while (0)

static int write_header(struct out *o, const struct facts *f, fx_error *err)
{
	const unsigned char no_extension[4] = {0};
	bool small = true;
	int status;

	for (int i = 1; i < 8; i++)
		small = small && f->dim[i] <= INT16_MAX;
	if (small) {
		nifti_1_header h = {.sizeof_hdr = 348, .regular = 'r', .vox_offset = 352, .magic = "n+1"};

		FILL(h, *f, float);
		status = out_write(o, &h, 348, err);
	} else {
		nifti_2_header h = {.sizeof_hdr = 540, .magic = {'n', '+', '2', 0, '\r', '\n', 0x1a, '\n'}, .vox_offset = 544};

		FILL(h, *f, double);
		status = out_write(o, &h, 540, err);
	}
	return status == FX_OK ? out_write(o, no_extension, 4, err) : status;
}

static int write_voxels(struct out *o, const fxi_held_list *images, const fxi_stack *s, bool as_complex, fx_error *err)
{
	size_t size = as_complex ? sizeof(fx_cf32) : sizeof(float);
	int64_t n = s->matrix[0] * s->matrix[1];
	void *plane = fx_alloc(n, size);
	int status = FX_OK;

	if (!plane)
		return fx_error_set(err, FX_ENOMEM, "out of memory while writing %s", o->file->final);
	for (int64_t c = 0; c < s->n_channels; c++)
		for (int64_t v = 0; v < s->n_volumes; v++)
			for (int64_t z = 0; z < s->matrix[2] && status == FX_OK; z++) {
				if (as_complex)
					fxi_stack_plane_complex(images, s, v, z, c, plane);
				else
					fxi_stack_plane(images, s, v, z, c, plane);
				status = out_write(o, plane, (size_t)n * size, err);
			}
	fx_free(plane);
	return status;
}

int fxi_nifti_write(fxi_aside *file, bool gz, const fxi_held_list *images, const fxi_stack *stack, bool complex_values,
	fx_error *err)
{
	bool as_complex = complex_values && fxi_stack_is_complex(images, stack);
	struct facts f = facts_of(stack, as_complex);
	struct out o;
	int status = out_open(&o, file, gz, err);

	if (status == FX_OK)
		status = write_header(&o, &f, err);
	if (status == FX_OK)
		status = write_voxels(&o, images, stack, as_complex, err);
	if (status == FX_OK)
		status = out_finish(&o, err);
	out_close(&o);
	return status;
}
