/* SPDX-License-Identifier: MIT */
/*
 * nifti_read.c - see nifti_read.h. The header is NIfTI's own struct; the voxels are read here rather than by libniftiio, which
 * turns NaN and infinity into 0 as it reads: a comparison must see them.
 */
#include "nifti_read.h"

#include <errno.h>
#include <math.h>
#include <nifti/nifti1.h>
#include <nifti/nifti2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#define BLOCK_BYTES ((int64_t)1 << 20)

/* NIfTI's voxel types: bytes of one number, numbers of a voxel, and what they become. */
static const struct kind {
	int code, bytes, parts, type;
	const char *name;
} kinds[] = {
	{DT_UINT8, 1, 1, FX_F32, "uint8"},       {DT_INT8, 1, 1, FX_F32, "int8"},
	{DT_INT16, 2, 1, FX_F32, "int16"},       {DT_UINT16, 2, 1, FX_F32, "uint16"},
	{DT_INT32, 4, 1, FX_F64, "int32"},       {DT_UINT32, 4, 1, FX_F64, "uint32"},
	{DT_INT64, 8, 1, FX_F64, "int64"},       {DT_UINT64, 8, 1, FX_F64, "uint64"},
	{DT_FLOAT32, 4, 1, FX_F32, "float32"},   {DT_FLOAT64, 8, 1, FX_F64, "float64"},
	{DT_COMPLEX64, 4, 2, FX_CF32, "complex64"}, {DT_COMPLEX128, 8, 2, FX_CF32, "complex128"},
};

/* The header of either version in one form, in this machine's byte order. */
struct header {
	bool swapped;
	int64_t dim[8], offset;
	double pixdim[8], slope, inter;
	int datatype, sform, qform, intent;
	double quatern[3], qoffset[3], srow[3][4];
	char magic[4], description[80];
};

static void swap_bytes(void *data, int64_t n, int size)
{
	unsigned char *p = data;

	for (int64_t i = 0; i < n; i++, p += size)
		for (int j = 0; j < size / 2; j++) {
			unsigned char t = p[j];

			p[j] = p[size - 1 - j];
			p[size - 1 - j] = t;
		}
}

#define SWAP(field) swap_bytes(&(field), 1, (int)sizeof(field))
#define SWAP_ALL(array) swap_bytes(array, (int64_t)(sizeof(array) / sizeof((array)[0])), (int)sizeof((array)[0]))

/* The fields that both versions have, whatever their types. */
#define TAKE(h, raw) do { \
	if ((h)->swapped) { \
		SWAP_ALL((raw).dim); SWAP_ALL((raw).pixdim); SWAP((raw).datatype); SWAP((raw).vox_offset); \
		SWAP((raw).scl_slope); SWAP((raw).scl_inter); SWAP((raw).sform_code); SWAP((raw).qform_code); \
		SWAP((raw).intent_code); \
		SWAP((raw).quatern_b); SWAP((raw).quatern_c); SWAP((raw).quatern_d); SWAP((raw).qoffset_x); \
		SWAP((raw).qoffset_y); SWAP((raw).qoffset_z); SWAP_ALL((raw).srow_x); SWAP_ALL((raw).srow_y); \
		SWAP_ALL((raw).srow_z); \
	} \
	for (int i = 0; i < 8; i++) { \
		(h)->dim[i] = (raw).dim[i]; \
		(h)->pixdim[i] = (double)(raw).pixdim[i]; \
	} \
	for (int i = 0; i < 4; i++) { \
		(h)->srow[0][i] = (double)(raw).srow_x[i]; \
		(h)->srow[1][i] = (double)(raw).srow_y[i]; \
		(h)->srow[2][i] = (double)(raw).srow_z[i]; \
	} \
	(h)->quatern[0] = (double)(raw).quatern_b; \
	(h)->quatern[1] = (double)(raw).quatern_c; \
	(h)->quatern[2] = (double)(raw).quatern_d; \
	(h)->qoffset[0] = (double)(raw).qoffset_x; \
	(h)->qoffset[1] = (double)(raw).qoffset_y; \
	(h)->qoffset[2] = (double)(raw).qoffset_z; \
	(h)->slope = (double)(raw).scl_slope; \
	(h)->inter = (double)(raw).scl_inter; \
	(h)->datatype = (raw).datatype; \
	(h)->sform = (raw).sform_code; \
	(h)->intent = (raw).intent_code; \
	(h)->qform = (raw).qform_code; \
	(h)->offset = offset_of((double)(raw).vox_offset); \
	memcpy((h)->magic, (raw).magic, 4); \
	memcpy((h)->description, (raw).descrip, sizeof (h)->description); \
	(h)->description[sizeof (h)->description - 1] = 0; \
} while (0)

static int64_t offset_of(double bytes)
{
	return bytes >= 0 && bytes < 1e15 ? (int64_t)bytes : -1;
}

/* gzread takes plain files too. Fewer bytes than asked for are an error. */
static int read_all(gzFile f, const char *path, void *to, int64_t bytes, fx_error *err)
{
	int n = gzread(f, to, (unsigned)bytes), code;
	const char *reason;

	if (n == bytes)
		return FX_OK;
	reason = gzerror(f, &code);
	if (n >= 0 && (code == Z_OK || code == Z_BUF_ERROR || code == Z_STREAM_END))
		return fx_error_set(err, FX_EDATA, "%s ends too early, after %lld bytes: it was cut short", path,
			(long long)gztell(f));
	return fx_error_set(err, code == Z_ERRNO ? FX_EIO : FX_EDATA, "cannot read %s: %s", path,
		code == Z_ERRNO ? strerror(errno) : reason);
}

static int read_header(gzFile f, const char *path, fx_error *err, struct header *h)
{
	union {
		int32_t size;
		nifti_1_header one;
		nifti_2_header two;
		char bytes[540];
	} raw;
	int32_t size;
	int status;

	memset(h, 0, sizeof *h);
	status = read_all(f, path, &raw, 348, err);
	if (status != FX_OK)
		return status;
	size = raw.size;
	if (size != 348 && size != 540) {
		swap_bytes(&size, 1, 4);
		h->swapped = true;
	}
	if (size == 540) {
		status = read_all(f, path, raw.bytes + 348, 540 - 348, err);
		if (status == FX_OK)
			TAKE(h, raw.two);
	} else if (size == 348) {
		TAKE(h, raw.one);
	} else {
		return fx_error_set(err, FX_EDATA, "%s is no NIfTI image", path);
	}
	if (status == FX_OK && memcmp(h->magic, "ni1", 4) == 0)
		return fx_error_set(err, FX_ENOTSUP, "%s is half of a .hdr/.img pair; convert it to one .nii file", path);
	if (status == FX_OK && memcmp(h->magic, size == 348 ? "n+1" : "n+2", 4) != 0)
		return fx_error_set(err, FX_EDATA, "%s is no NIfTI image: its mark is missing (is it ANALYZE 7.5?)", path);
	if (status == FX_OK && h->offset >= 0 && h->offset < size)
		h->offset = size + 4;
	return status;
}

/* The rotation of a unit quaternion (a, b, c, d), from the NIfTI-1 definition, times voxel sizes; and the offset. */
static void affine_of_qform(const struct header *h, double m[3][4])
{
	double b = h->quatern[0], c = h->quatern[1], d = h->quatern[2], rest = 1 - (b * b + c * c + d * d);
	double a = rest > 0 ? sqrt(rest) : 0;
	const double r[3][3] = {
		{a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c)},
		{2 * (b * c + a * d), a * a + c * c - b * b - d * d, 2 * (c * d - a * b)},
		{2 * (b * d - a * c), 2 * (c * d + a * b), a * a + d * d - b * b - c * c},
	};

	for (int i = 0; i < 3; i++) {
		for (int j = 0; j < 3; j++)
			m[i][j] = r[i][j] * h->pixdim[j + 1] * (j == 2 && h->pixdim[0] < 0 ? -1 : 1);
		m[i][3] = h->qoffset[i];
	}
}

static void fill_info(const struct header *h, const struct kind *kind, fxi_nifti_info *info)
{
	memset(info, 0, sizeof *info);
	info->n_dims = (int)h->dim[0];
	info->type = kind->type;
	info->intent = h->intent;
	for (int i = 0; i < 7; i++) {
		info->dims[i] = i < h->dim[0] ? h->dim[i + 1] : 1;
		info->pixdim[i] = h->pixdim[i + 1];
	}
	info->sform_code = h->sform;
	info->qform_code = h->qform;
	info->has_affine = h->sform > 0 || h->qform > 0;
	if (h->sform > 0)
		memcpy(info->affine, h->srow, sizeof info->affine);
	else if (h->qform > 0)
		affine_of_qform(h, info->affine);
	else
		for (int i = 0; i < 3; i++)
			info->affine[i][i] = h->pixdim[i + 1];
	memcpy(info->description, h->description, sizeof info->description);
}

static const struct kind *kind_of(int code)
{
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (kinds[i].code == code)
			return &kinds[i];
	return NULL;
}

/* Before anything of the image's size is allocated. */
static int check_header(const struct header *h, const char *path, const struct kind *kind, int64_t file_bytes, bool plain,
	fx_error *err, int64_t *n)
{
	int64_t stored, needed;

	if (h->dim[0] < 1 || h->dim[0] > 7)
		return fx_error_set(err, FX_EDATA, "%s: dim[0] is %lld, NIfTI allows 1 to 7", path, (long long)h->dim[0]);
	*n = 1;
	for (int i = 1; i <= h->dim[0]; i++)
		if (h->dim[i] < 1 || !fx_mul_size(*n, h->dim[i], n))
			return fx_error_set(err, FX_EDATA, "%s: dim[%d] is %lld", path, i, (long long)h->dim[i]);
	if (!kind)
		return fx_error_set(err, FX_ENOTSUP, "%s has voxels of type %d (colour or 128-bit floats?), which are not read",
			path, h->datatype);
	if (h->offset < 0)
		return fx_error_set(err, FX_EDATA, "%s: vox_offset is no place in a file", path);
	if (!fx_mul_size(*n, kind->bytes * kind->parts, &stored) || !fx_mul_size(*n, (int64_t)fx_type_size(kind->type), &needed))
		return fx_error_set(err, FX_EDATA, "%s claims %lld voxels", path, (long long)*n);
	if (plain && stored > file_bytes - h->offset)
		return fx_error_set(err, FX_EDATA, "%s was cut short: %lld bytes of voxels are announced, %lld are there", path,
			(long long)stored, (long long)(file_bytes > h->offset ? file_bytes - h->offset : 0));
	/* Deflate shrinks to 1/1032 at best (zlib's documentation), so a larger claim cannot be true. */
	if (!plain && stored / 1032 > file_bytes)
		return fx_error_set(err, FX_EDATA, "%s announces %lld bytes of voxels, more than its %lld compressed bytes can hold",
			path, (long long)stored, (long long)file_bytes);
	return FX_OK;
}

static double number_at(const struct kind *kind, const unsigned char *p)
{
#define AS(type) { type v; memcpy(&v, p, sizeof v); return (double)v; }
	switch (kind->code) {
	case DT_UINT8: AS(uint8_t)
	case DT_INT8: AS(int8_t)
	case DT_INT16: AS(int16_t)
	case DT_UINT16: AS(uint16_t)
	case DT_INT32: AS(int32_t)
	case DT_UINT32: AS(uint32_t)
	case DT_INT64: AS(int64_t)
	case DT_UINT64: AS(uint64_t)
	case DT_FLOAT32:
	case DT_COMPLEX64: AS(float)
	default: AS(double)
	}
#undef AS
}

/* Numbers [first, first + n) of the array, parts of complex ones counted singly. */
static void convert(const struct header *h, const struct kind *kind, const unsigned char *raw, int64_t first, int64_t n,
	fx_array *out)
{
	bool scaled = h->slope != 0 && isfinite(h->slope) && isfinite(h->inter) && !(h->slope == 1 && h->inter == 0);

	for (int64_t i = 0; i < n; i++) {
		double v = number_at(kind, raw + i * kind->bytes);

		if (scaled)
			v = v * h->slope + h->inter;
		if (out->type == FX_F64)
			FX_F64_OF(out)[first + i] = v;
		else
			((float *)out->data)[first + i] = (float)v;
	}
}

struct fxi_nifti {
	gzFile file;
	char *path;
	struct header h;
	const struct kind *kind;
	unsigned char *raw;   /* BLOCK_BYTES */
	int64_t n_left;       /* numbers not yet read, parts of complex ones counted singly */
};

static int skip_to(gzFile f, const char *path, int64_t offset, fx_error *err)
{
	if (gzseek(f, (z_off_t)offset, SEEK_SET) < 0)
		return fx_error_set(err, FX_EDATA, "%s ends before its voxels: it was cut short", path);
	return FX_OK;
}

/* gzip's checksum stands behind the data: it is looked at only by who reads on. What else follows the voxels is let be. */
static int check_end(gzFile f, const char *path, fx_error *err)
{
	unsigned char beyond;
	int n = gzread(f, &beyond, 1), code;
	const char *reason = gzerror(f, &code);

	if (n >= 0 && code != Z_BUF_ERROR)
		return FX_OK;
	return fx_error_set(err, FX_EDATA, "%s is damaged or was cut short: %s", path, reason);
}

static int open_file(fxi_nifti *f, int64_t file_bytes, fx_error *err, fxi_nifti_info *info)
{
	int64_t n;
	int status = read_header(f->file, f->path, err, &f->h);

	if (status != FX_OK)
		return status;
	f->kind = kind_of(f->h.datatype);
	status = check_header(&f->h, f->path, f->kind, file_bytes, gzdirect(f->file) != 0, err, &n);
	if (status != FX_OK)
		return status;
	fill_info(&f->h, f->kind, info);
	f->n_left = n * f->kind->parts;
	f->raw = fx_alloc(BLOCK_BYTES, 1);
	if (!f->raw)
		return fx_error_set(err, FX_ENOMEM, "out of memory for %s", f->path);
	return skip_to(f->file, f->path, f->h.offset, err);
}

int fxi_nifti_open(const char *path, fx_error *err, fxi_nifti **out, fxi_nifti_info *info)
{
	struct stat s;
	fxi_nifti *f;
	int status;

	*out = NULL;
	memset(info, 0, sizeof *info);
	if (stat(path, &s) != 0)
		return fx_error_set(err, FX_EIO, "cannot open %s: %s", path, strerror(errno));
	if (!S_ISREG(s.st_mode))
		return fx_error_set(err, FX_EIO, "%s is no file", path);
	f = fx_alloc(1, sizeof *f);
	if (!f || !(f->path = strdup(path))) {
		fx_free(f);
		return fx_error_set(err, FX_ENOMEM, "out of memory while opening %s", path);
	}
	errno = 0;
	f->file = gzopen(path, "rbe");
	if (!f->file) {
		status = fx_error_set(err, FX_EIO, "cannot open %s: %s", path, errno ? strerror(errno) : "out of memory");
	} else {
		gzbuffer(f->file, 128u << 10);
		status = open_file(f, s.st_size, err, info);
	}
	if (status != FX_OK) {
		fxi_nifti_close(f);
		return status;
	}
	*out = f;
	return FX_OK;
}

int fxi_nifti_next(fxi_nifti *f, fx_array *out, fx_error *err)
{
	int64_t total = out->n * f->kind->parts, per_block = BLOCK_BYTES / f->kind->bytes;
	int status = FX_OK;

	if (total > f->n_left)
		return fx_error_set(err, FX_EINVAL, "%s: read beyond its voxels", f->path);
	for (int64_t first = 0; first < total && status == FX_OK; first += per_block) {
		int64_t n = total - first < per_block ? total - first : per_block;

		status = read_all(f->file, f->path, f->raw, n * f->kind->bytes, err);
		if (status != FX_OK)
			return status;
		if (f->h.swapped)
			swap_bytes(f->raw, n, f->kind->bytes);
		convert(&f->h, f->kind, f->raw, first, n, out);
	}
	f->n_left -= total;
	return f->n_left == 0 ? check_end(f->file, f->path, err) : FX_OK;
}

void fxi_nifti_close(fxi_nifti *f)
{
	if (!f)
		return;
	if (f->file)
		gzclose(f->file);
	fx_free(f->raw);
	free(f->path);
	fx_free(f);
}

int fxi_nifti_read(const char *path, fx_error *err, fx_array **data, fxi_nifti_info *info)
{
	fxi_nifti *f;
	int64_t needed;
	int dims = 7, status = fxi_nifti_open(path, err, &f, info);

	*data = NULL;
	if (status != FX_OK)
		return status;
	needed = f->n_left / f->kind->parts * (int64_t)fx_type_size(f->kind->type);
	while (dims > 3 && info->dims[dims - 1] == 1)
		dims--;
	if (needed > fx_memory_available_bytes())
		status = fx_error_set(err, FX_ENOMEM, "%s needs %lld MiB of memory, %lld MiB are available", path,
			(long long)(needed >> 20), (long long)(fx_memory_available_bytes() >> 20));
	else if (fx_array_new(f->kind->type, dims, info->dims, data) != FX_OK)
		status = fx_error_set(err, FX_ENOMEM, "out of memory for the %lld MiB of %s", (long long)(needed >> 20), path);
	else
		status = fxi_nifti_next(f, *data, err);
	if (status != FX_OK) {
		fx_array_unref(*data);
		*data = NULL;
	}
	fxi_nifti_close(f);
	return status;
}
