/* SPDX-License-Identifier: MIT */
/* dwi_mask: where the object is, from the series' b = 0 volumes or from a file, into the series' end mark. */
#include <fornix/diffusion.h>
#include <fornix/gadget.h>

#include <complex.h>
#include <math.h>
#include <string.h>

struct state {
	const char *image, *name;
	int64_t median;
	double factor, b0_max;
	bool resample;
	int64_t n_b0;
	fx_array *sum;   /* f64 {x, y, z}: magnitudes of the b = 0 volumes */
	fx_array *mask;  /* of the file, on the series' grid */
};

static const fx_prop props[] = {
	FX_PROP_FILE(struct state, image, "", "NIfTI mask instead: 1 where it is above 0"),
	FX_PROP(struct state, resample, "false", 0, 1,
		"Take that mask by nearest voxels where it lies on another grid; else it is refused"),
	FX_PROP(struct state, median, "2", 0, 8, "Radius of the median filter, voxels; 0: none"),
	FX_PROP(struct state, factor, "1", 0.01, 10, "Times Otsu's threshold"),
	FX_PROP(struct state, b0_max, "50", 0, 1e5, "Volumes up to this b count as b = 0, s/mm^2"),
	FX_PROP(struct state, name, "mask.nii.gz", 0, 255, "File name in the output folder; empty: not written"),
	FX_PROP_END
};

/* ---- from a file -------------------------------------------------------------------------------- */

/* What was read as f32 {x, y, z}, and its lattice. */
static int as_volume(const struct state *s, fx_ctx *ctx, const fx_array *raw, fx_lattice *of, fx_array **out)
{
	int status;

	for (int i = 0; i < 3; i++)
		of->dims[i] = raw->dims[i];
	if (raw->type >= FX_CF32 || raw->n != raw->dims[0] * raw->dims[1] * raw->dims[2])
		return fx_fail(ctx, FX_EDATA, "%s is no real three-dimensional image; a mask has one volume", s->image);
	status = fx_array_convert(raw, FX_F32, out);
	return status == FX_OK ? FX_OK : fx_fail(ctx, status, "no memory for %s", s->image);
}

static int read_mask(struct state *s, fx_ctx *ctx, const fx_lattice *lattice)
{
	fx_array *raw = NULL, *volume = NULL;
	fx_lattice of = {.has_affine = false};
	double mm[3], tolerance;
	int status = fx_read_nifti(ctx, s->image, &raw, of.affine, &of.has_affine);

	if (status == FX_OK)
		status = as_volume(s, ctx, raw, &of, &volume);
	fx_lattice_voxel_mm(lattice, mm);
	/* A twentieth of a voxel is rounding in headers; more is another grid. */
	tolerance = 0.05 * fmin(fmin(mm[0], mm[1]), mm[2]);
	if (status == FX_OK && !s->resample && !fx_lattice_same(&of, lattice, tolerance))
		status = fx_fail(ctx, FX_EDATA, "%s (%lld x %lld x %lld voxels) lies on another grid than the series (%lld x %lld x %lld), or "
			"in another place; set resample=true to take its nearest voxels", s->image, (long long)of.dims[0],
			(long long)of.dims[1], (long long)of.dims[2], (long long)lattice->dims[0], (long long)lattice->dims[1],
			(long long)lattice->dims[2]);
	if (status == FX_OK && (!of.has_affine || !lattice->has_affine))
		fx_warn(ctx, "%s does not tell where it lies; the mask is taken voxel by voxel",
			of.has_affine ? "the series" : s->image);
	if (status == FX_OK)
		status = fx_mask_on_lattice(fx_math_of(ctx), volume, &of, lattice, &s->mask);
	fx_array_unref(raw);
	fx_array_unref(volume);
	return status;
}

/* ---- from b = 0 --------------------------------------------------------------------------------- */

static int add_b0(struct state *s, fx_ctx *ctx, const fx_array *data)
{
	double *sum;

	if (!s->sum && fx_array_new(FX_F64, 3, data->dims, &s->sum) != FX_OK)
		return fx_fail(ctx, FX_ENOMEM, "no memory for the mean b = 0 image");
	if (s->sum->n != data->n || (data->type != FX_F32 && data->type != FX_CF32))
		return fx_fail(ctx, FX_EDATA, "a volume of %lld voxels in a series of %lld", (long long)data->n, (long long)s->sum->n);
	sum = FX_F64_OF(s->sum);
	for (int64_t i = 0; i < data->n; i++)
		sum[i] += data->type == FX_CF32 ? (double)cabsf(FX_CF32_OF(data)[i]) : fabs((double)FX_F32_OF(data)[i]);
	s->n_b0++;
	return FX_OK;
}

static int find_mask(struct state *s, fx_ctx *ctx)
{
	fx_array *mean = NULL;
	int status;

	if (s->n_b0 == 0)
		return fx_fail(ctx, FX_EDATA, "no volume has b up to %g, so there is no image to find the object in; raise b0_max= to the "
			"lowest b, or give a mask with image=", s->b0_max);
	if (fx_array_convert(s->sum, FX_F32, &mean) != FX_OK)
		return fx_fail(ctx, FX_ENOMEM, "no memory for the mean b = 0 image");
	for (int64_t i = 0; i < mean->n; i++)
		FX_F32_OF(mean)[i] = (float)(FX_F64_OF(s->sum)[i] / (double)s->n_b0);
	status = fx_b0_mask(fx_math_of(ctx), mean, (int)s->median, s->factor, &s->mask);
	fx_array_unref(mean);
	return status;
}

static int finish(struct state *s, fx_ctx *ctx, fx_series *end)
{
	fx_volume volume = {.lattice = &end->info->lattice, .description = "object mask"};
	int64_t inside = 0;
	int status = *s->image ? FX_OK : find_mask(s, ctx);

	if (status != FX_OK)
		return status;
	for (int64_t i = 0; i < s->mask->n; i++)
		inside += ((const uint8_t *)s->mask->data)[i];
	fx_record_text(ctx, "mask", *s->image ? s->image : "median and Otsu of b = 0");
	fx_record_number(ctx, "b0_volumes", (double)s->n_b0);
	fx_record_number(ctx, "voxels", (double)inside);
	fx_record_number(ctx, "fraction", (double)inside / (double)s->mask->n);
	volume.data = s->mask;
	if (*s->name)
		status = fx_write_volume(ctx, s->name, &volume);
	fx_slot_take(&end->mask, s->mask);
	s->mask = NULL;
	return status;
}

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	struct state *s = self;
	const fx_series *v = fx_msg_series(msg);
	int status = FX_OK;

	if (*s->image && !s->mask)
		status = read_mask(s, ctx, &v->info->lattice);
	else if (!*s->image && !v->end && v->info->gradients[v->volume].b <= s->b0_max)
		status = add_b0(s, ctx, v->data);
	if (status == FX_OK && v->end) {
		status = fx_msg_own(&msg);
		if (status == FX_OK)
			status = finish(s, ctx, fx_msg_series(msg));
	}
	if (status != FX_OK) {
		fx_drop(msg);
		return status;
	}
	return fx_emit(ctx, msg);
}

static void close_gadget(void *self)
{
	struct state *s = self;

	fx_array_unref(s->sum);
	fx_array_unref(s->mask);
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "dwi_mask",
	.summary = "Find the object in a diffusion series",
	.description = "From the mean magnitude of the b = 0 volumes: median filter, Otsu's threshold (IEEE Trans. SMC 9:62, 1979), the "
		"largest part connected through faces, holes filled. Volumes pass on at once; the mask travels in the series' end "
		"mark. Otsu's threshold parts a bright object from a dark background: look at the mask where coils shade.",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_SERIES, .gives = FX_SERIES, .needs = FX_SERIES, .places = FX_HOST,
	.process = process, .close = close_gadget,
};
