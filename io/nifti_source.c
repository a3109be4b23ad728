/* SPDX-License-Identifier: MIT */
/*
 * nifti_source.c - see nifti_source.h. A series is read a volume at a time, so that the first are fitted while the last are
 * unpacked and the file is in memory once, as whatever the gadgets keep of it.
 */
#include "nifti_source.h"

#include "../stream/nearest.h"
#include "digest.h"
#include "nifti_read.h"

#include <fornix/diffusion.h>
#include <math.h>
#include <nifti/nifti1.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const orders[] = {"nifti", "mrtrix", "fsl", NULL};   /* enum fx_tensor_order */
static const char *const frames[] = {"ras", "image", "fsl", NULL};      /* enum fx_tensor_frame */
static const char *const units[] = {"auto", "um2/ms", "mm2/s", NULL};
static const double unit_factors[] = {0, 1, 1e3};

struct nifti_source {
	fxi_source base;
	char *path;
	fxi_nifti *file;
	fxi_nifti_info facts;
	fx_lattice lattice;
	fx_series_info *info;   /* of a series; NULL: tensors */
	int order, frame, unit;
	int64_t next, n;        /* messages given, and to be given */
};

/* ---- what the file is ------------------------------------------------------------------------- */

static int word(const char *option, const char *text, const char *const *words, int standard, fx_error *err, int *out)
{
	char list[64] = "";
	const char *nearest;
	int n = 0;

	*out = standard;
	if (!text)
		return FX_OK;
	for (; words[n]; n++) {
		if (strcmp(words[n], text) == 0) {
			*out = n;
			return FX_OK;
		}
		snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", n == 0 ? "" : words[n + 1] ? ", " : " or ", words[n]);
	}
	nearest = fxi_nearest_name(text, words, (size_t)n);
	if (nearest)
		return fx_error_set(err, FX_EINVAL, "%s is '%.40s'; did you mean '%s'?", option, text, nearest);
	return fx_error_set(err, FX_EINVAL, "%s is '%.40s'; it takes %s", option, text, list);
}

static int parse_words(struct nifti_source *s, const fxi_nifti_options *o, fx_error *err)
{
	static const int by_order[] = {FX_FRAME_RAS, FX_FRAME_RAS, FX_FRAME_FSL};
	int status = word("--tensor-order", o->tensor_order, orders, FX_ORDER_NIFTI, err, &s->order);

	if (status == FX_OK)
		status = word("--tensor-frame", o->tensor_frame, frames, by_order[s->order], err, &s->frame);
	if (status == FX_OK)
		status = word("--tensor-unit", o->tensor_unit, units, 0, err, &s->unit);
	return status;
}

static int refuse_shape(const struct nifti_source *s, fx_error *err)
{
	const int64_t *d = s->facts.dims;
	int n = 7;

	while (n > 3 && d[n - 1] == 1)
		n--;
	if (n == 3)
		return fx_error_set(err, FX_EDATA, "%s is one volume of %lld x %lld x %lld; a diffusion series has a volume for each "
			"gradient, and a tensor image six numbers a voxel", s->path, (long long)d[0], (long long)d[1], (long long)d[2]);
	return fx_error_set(err, FX_EDATA, "%s has %d dimensions, %lld x %lld x %lld x %lld x %lld; a diffusion series has four, and a "
		"tensor image is x, y, z, 1, 6 (or has four, the last of them 6, and --tensor-order)", s->path, n, (long long)d[0],
		(long long)d[1], (long long)d[2], (long long)d[3], (long long)d[4]);
}

/* Series or tensors; told from the shape, the intent and the options, and never guessed. */
static int decide(const struct nifti_source *s, const fxi_nifti_options *o, fx_error *err, bool *tensors)
{
	const int64_t *d = s->facts.dims;
	bool rest_is_1 = d[5] == 1 && d[6] == 1, five = d[3] == 1 && d[4] == 6 && rest_is_1, four = d[4] == 1 && rest_is_1;
	bool tensor_option = o->tensor_order || o->tensor_frame || o->tensor_unit;

	*tensors = five || o->tensor_order;
	if (five && s->facts.intent != NIFTI_INTENT_SYMMATRIX && !o->tensor_order)
		return fx_error_set(err, FX_EINVAL, "%s is x, y, z, 1, 6 without the intent SYMMATRIX: say --tensor-order nifti, mrtrix or "
			"fsl if these are tensors", s->path);
	if (!five && (!four || d[3] == 1))
		return refuse_shape(s, err);
	if (*tensors && !five && d[3] != 6)
		return fx_error_set(err, FX_EDATA, "--tensor-order says that %s holds tensors, but it has %lld volumes instead of 6",
			s->path, (long long)d[3]);
	if (*tensors && (o->bval || o->bvec || o->grad))
		return fx_error_set(err, FX_EINVAL, "%s is taken as a tensor image, which needs no gradient table", s->path);
	if (*tensors && s->facts.type == FX_CF32)
		return fx_error_set(err, FX_EDATA, "%s is complex; tensors are real numbers", s->path);
	if (!*tensors && d[3] == 6 && !fxi_nifti_has_gradients(s->path, o))
		return fx_error_set(err, FX_EINVAL, "%s has six volumes: a tensor image needs --tensor-order nifti, mrtrix or fsl, a series "
			"of six volumes --bval and --bvec or --grad", s->path);
	if (!*tensors && tensor_option)
		return fx_error_set(err, FX_EINVAL, "--tensor-frame and --tensor-unit are for tensor images; for one, --tensor-order too "
			"is needed with %s", s->path);
	return FX_OK;
}

static int set_lattice(struct nifti_source *s, fx_error *err)
{
	double inverse[3][4];
	fx_error why = {0};

	for (int i = 0; i < 3; i++)
		s->lattice.dims[i] = s->facts.dims[i];
	memcpy(s->lattice.affine, s->facts.affine, sizeof s->lattice.affine);
	s->lattice.has_affine = s->facts.has_affine;
	if (fx_lattice_inverse(&s->lattice, inverse, &why) != FX_OK)
		return fx_error_set(err, FX_EDATA, "%s: %s", s->path, why.text);
	if (!s->facts.has_affine && asprintf(&s->base.warning, "%s has no orientation (codes of sform and qform are 0): its index axes "
			"are taken for right, anterior, superior", s->path) < 0) {
		s->base.warning = NULL;
		return fx_error_set(err, FX_ENOMEM, "out of memory for %s", s->path);
	}
	return FX_OK;
}

static void put_space(FILE *f, const char *name, const fx_lattice *l)
{
	double mm[3];

	fx_lattice_voxel_mm(l, mm);
	fprintf(f, "<%s><matrixSize><x>%lld</x><y>%lld</y><z>%lld</z></matrixSize><fieldOfView_mm>", name, (long long)l->dims[0],
		(long long)l->dims[1], (long long)l->dims[2]);
	for (int i = 0; i < 3; i++) {
		long long nm = llrint(1e6 * mm[i] * (double)l->dims[i]);   /* in whole numbers, on which the locale has no say */

		fprintf(f, "<%c>%lld.%06lld</%c>", "xyz"[i], nm / 1000000, nm % 1000000, "xyz"[i]);
	}
	fprintf(f, "</fieldOfView_mm></%s>", name);
}

/* What gadgets may ask of a scan: its matrix and field of view. NULL where memory is short. */
static char *header_of(const fx_lattice *l)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	bool failed;

	if (!f)
		return NULL;
	fputs("<?xml version=\"1.0\"?><ismrmrdHeader xmlns=\"http://www.ismrm.org/ISMRMRD\"><experimentalConditions>"
		"<H1resonanceFrequency_Hz>0</H1resonanceFrequency_Hz></experimentalConditions><encoding>", f);
	put_space(f, "encodedSpace", l);
	put_space(f, "reconSpace", l);
	fputs("<encodingLimits/><trajectory>cartesian</trajectory></encoding></ismrmrdHeader>", f);
	failed = ferror(f) != 0;
	if (fclose(f) != 0 || failed) {
		free(text);
		return NULL;
	}
	return text;
}

static int open_series(struct nifti_source *s, const fxi_nifti_options *o, fx_error *err)
{
	s->info = fx_series_info_new(s->facts.dims[3]);
	if (!s->info)
		return fx_error_set(err, FX_ENOMEM, "out of memory for %s", s->path);
	s->info->lattice = s->lattice;
	s->n = s->info->n_volumes + 1;
	return fxi_nifti_gradients(s->path, o, s->info, err, &s->base.note);
}

/* ---- messages --------------------------------------------------------------------------------- */

static int next_series(struct nifti_source *s, fx_error *err, fx_msg **out)
{
	fx_msg *m = fx_msg_new(FX_SERIES);
	fx_series *item = m ? fx_msg_series(m) : NULL;
	int status = FX_OK;

	if (!m)
		return fx_error_set(err, FX_ENOMEM, "out of memory for %s", s->path);
	item->info = fx_series_info_ref(s->info);
	item->end = s->next == s->info->n_volumes;
	item->volume = item->end ? -1 : s->next;
	if (!item->end) {
		status = fx_array_new(s->facts.type == FX_CF32 ? FX_CF32 : FX_F32, 3, s->lattice.dims, &item->data);
		status = status == FX_OK ? fxi_nifti_next(s->file, item->data, err) :
			fx_error_set(err, status, "out of memory for volume %lld of %s", (long long)s->next, s->path);
	}
	if (status != FX_OK) {
		fx_drop(m);
		return status;
	}
	*out = m;
	return FX_OK;
}

static int import(const struct nifti_source *s, const fx_array *image, fx_error *err, fx_msg **out)
{
	fx_error why = {0};
	fx_math *math;
	int status = fx_math_new("host", 0, err, &math);

	if (status != FX_OK)
		return status;
	math->err = &why;
	status = fx_tensors_import(math, image, &s->lattice, s->order, s->frame, unit_factors[s->unit], out);
	fx_math_free(math);
	if (status != FX_OK)
		return fx_error_set(err, status, "%s: %s%s", s->path, why.text, unit_factors[s->unit] == 0 && status == FX_EDATA ?
			" (--tensor-order, --tensor-unit)" : "");
	snprintf(fx_msg_tensors(*out)->origin, FX_ORIGIN_TEXT, "%.110s, as %s tensors in %s axes", fxi_file_name(s->path), orders[s->order],
		frames[s->frame]);
	return FX_OK;
}

static int next_tensors(const struct nifti_source *s, fx_error *err, fx_msg **out)
{
	const int64_t *d = s->lattice.dims;
	fx_array *image = NULL;
	int status = fx_array_new4(FX_F32, d[0], d[1], d[2], 6, &image);

	status = status == FX_OK ? fxi_nifti_next(s->file, image, err) :
		fx_error_set(err, status, "out of memory for %s", s->path);
	if (status == FX_OK)
		status = import(s, image, err, out);
	fx_array_unref(image);
	return status;
}

static int next_message(fxi_source *self, fx_msg **out, fx_error *err)
{
	struct nifti_source *s = (struct nifti_source *)self;
	int status;

	*out = NULL;
	if (s->next == s->n)
		return FX_OK;
	status = s->info ? next_series(s, err, out) : next_tensors(s, err, out);
	s->next++;
	return status;
}

static double progress(const fxi_source *self)
{
	const struct nifti_source *s = (const struct nifti_source *)self;

	return (double)s->next / (double)s->n;
}

static void close_source(fxi_source *self)
{
	struct nifti_source *s = (struct nifti_source *)self;

	fxi_nifti_close(s->file);
	fx_series_info_unref(s->info);
	free(self->header_xml);
	free(self->digest);
	free(self->note);
	free(self->warning);
	free(s->path);
	free(s);
}

static int open_it(struct nifti_source *s, const fxi_nifti_options *o, fx_error *err)
{
	bool tensors;
	int status = parse_words(s, o, err);

	if (status == FX_OK)
		status = fxi_nifti_open(s->path, err, &s->file, &s->facts);
	if (status == FX_OK)
		status = decide(s, o, err, &tensors);
	if (status == FX_OK)
		status = set_lattice(s, err);
	if (status != FX_OK)
		return status;
	s->n = 1;
	s->base.kinds = tensors ? FX_TENSORS : FX_SERIES;
	s->base.format = tensors ? "NIfTI tensors" : "NIfTI series";
	status = tensors ? FX_OK : open_series(s, o, err);
	if (status != FX_OK)
		return status;
	s->base.header_xml = header_of(&s->lattice);
	s->base.digest = fxi_file_digest(s->path);
	return s->base.header_xml ? FX_OK : fx_error_set(err, FX_ENOMEM, "out of memory for %s", s->path);
}

int fxi_nifti_source_open(const char *path, const fxi_nifti_options *options, fx_error *err, fxi_source **out)
{
	struct nifti_source *s = calloc(1, sizeof *s);
	int status;

	*out = NULL;
	if (!s || !(s->path = strdup(path))) {
		free(s);
		return fx_error_set(err, FX_ENOMEM, "out of memory for %s", path);
	}
	s->base.next = next_message;
	s->base.progress = progress;
	s->base.close = close_source;
	status = open_it(s, options, err);
	if (status != FX_OK) {
		close_source(&s->base);
		return status;
	}
	*out = &s->base;
	return FX_OK;
}
