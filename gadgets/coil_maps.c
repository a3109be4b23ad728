/* SPDX-License-Identifier: MIT */
/* coil_maps: coil sensitivities of a frame from its density-weighted coil images. */
#include <fornix/gadget.h>
#include <fornix/recon.h>

#include <math.h>
#include <string.h>

enum { WALSH, ESPIRIT };

#define N_KEPT 4096 /* slices whose maps can be kept; those beyond make their own for every frame */

struct state {
	int method;
	int64_t radius, iterations;
	int64_t calibration_size, kernel_size;
	double threshold, crop;
	bool reuse, save;
	const char *file;
	fx_array *given;           /* the file's maps, cf32 {x, y, z, coils} */
	double affine[3][4];
	bool has_affine;
	fx_sink *sink;
	fx_array *kept[N_KEPT];    /* maps by slice: of its calibration, or with reuse of its first frame */
};

static const char *const methods[] = {[WALSH] = "walsh", [ESPIRIT] = "espirit", NULL};

static const fx_prop props[] = {
	FX_PROP_WORD(struct state, method, "walsh", methods, "How maps are made: walsh, from local covariance of the coil images; espirit, "
		"from the linear dependence of neighbours at the centre of k-space"),
	FX_PROP(struct state, radius, "3", 1, 32, "walsh: half width of the block of voxels that a map's value is made from"),
	FX_PROP(struct state, iterations, "10", 1, 1000, "walsh: power iterations for the dominant eigenvector"),
	FX_PROP(struct state, calibration_size, "24", 1, 256, "espirit: samples along each axis of the centre of k-space that is "
		"looked at, fully sampled there"),
	FX_PROP(struct state, kernel_size, "6", 1, 32, "espirit: samples along each axis of a kernel; in 3-D the work grows with its "
		"ninth power"),
	FX_PROP(struct state, threshold, "0.02", 0, 1, "espirit: singular values of the calibration matrix above this share of the "
		"largest are signal, those below noise"),
	FX_PROP(struct state, crop, "0.8", 0, 1, "espirit: maps, and the image, are 0 where the eigenvalue is below this: outside the "
		"object; 0 keeps everything"),
	FX_PROP_FILE(struct state, file, "", "Take maps from this file instead, such as coil_maps.nii.gz of a calibration scan: "
		"complex NIfTI, coils in the 4th dimension, on the frame's own grid"),
	FX_PROP(struct state, reuse, "false", 0, 1, "Use the maps of a slice's first frame for its later frames too"),
	FX_PROP(struct state, save, "false", 0, 1, "Write coil_maps.nii.gz (complex64, coils in the 4th dimension) on the "
		"grid of the estimate, oversampled field of view included"),
	FX_PROP_END
};

/* The file's maps as {x, y, z, coils}. */
static int read_maps(struct state *s, fx_ctx *ctx)
{
	fx_array *data = NULL;
	int status = fx_read_nifti(ctx, s->file, &data, s->affine, &s->has_affine);

	if (status != FX_OK)
		return status;
	for (int d = 4; d < data->n_dims && status == FX_OK; d++)
		if (data->dims[d] > 1)
			status = fx_fail(ctx, FX_EDATA, "%s holds maps of %lld frames; give a file of one: coil_maps.reuse=true where it "
				"is made", s->file, (long long)data->dims[d]);
	if (status == FX_OK && fx_array_new4(FX_CF32, data->dims[0], data->dims[1], data->dims[2], data->dims[3], &s->given) != FX_OK)
		status = fx_fail(ctx, FX_ENOMEM, "no memory for the maps in %s", s->file);
	if (status == FX_OK) {
		fx_array *single = NULL;

		status = fx_array_convert(data, FX_CF32, &single);
		if (status == FX_OK)
			memcpy(s->given->data, single->data, (size_t)single->bytes);
		else
			fx_fail(ctx, status, "no memory for the maps in %s", s->file);
		fx_array_unref(single);
	}
	fx_array_unref(data);
	for (int64_t i = 0; status == FX_OK && i < 2 * s->given->n; i++)
		if (!isfinite(((const float *)s->given->data)[i]))
			status = fx_fail(ctx, FX_EDATA, "%s holds a number that is not finite", s->file);
	return status;
}

static int open_gadget(void *self, fx_ctx *ctx)
{
	struct state *s = self;
	int status = s->file[0] ? read_maps(s, ctx) : FX_OK;

	if (status != FX_OK || !s->save)
		return status;
	return fx_sink_open(ctx, &(fx_sink_options){.format = FX_FORMAT_NIFTI, .name = "coil_maps.nii.gz",
		.complex_values = true}, &s->sink);
}

/* ---- maps from a file ------------------------------------------------------------------------- */

/* Largest distance in mm of the frame's corners from those of the file's planes from z0 on. */
static double mismatch(const struct state *s, const fx_frame *f, double grid[3][4], int64_t z0)
{
	double worst = 0;

	for (int corner = 0; corner < 8; corner++) {
		double x[4] = {0, 0, 0, 1}, distance = 0;

		for (int d = 0; d < 3; d++)
			x[d] = corner >> d & 1 ? (double)(f->grid[d] - 1) : 0;
		for (int i = 0; i < 3; i++) {
			double there = s->affine[i][2] * (double)z0;

			for (int d = 0; d < 4; d++)
				there += (s->affine[i][d] - grid[i][d]) * x[d];
			distance = hypot(distance, there);
		}
		worst = fmax(worst, distance);
	}
	return worst;
}

/* The file's first plane that belongs to the frame. */
static int place(const struct state *s, fx_ctx *ctx, const fx_frame *f, int64_t *z0)
{
	double grid[3][4], best = INFINITY, voxel = INFINITY;

	*z0 = 0;
	if (!s->has_affine || !fx_frame_affine(f, grid)) {
		if (f->grid[2] < s->given->dims[2])
			*z0 = f->head.idx.slice;
		if (*z0 + f->grid[2] <= s->given->dims[2])
			return FX_OK;
		return fx_fail(ctx, FX_EDATA, "%s has %lld slices, none for slice %lld", s->file, (long long)s->given->dims[2],
			(long long)*z0);
	}
	for (int64_t z = 0; z + f->grid[2] <= s->given->dims[2]; z++)
		if (mismatch(s, f, grid, z) < best) {
			best = mismatch(s, f, grid, z);
			*z0 = z;
		}
	for (int d = 0; d < 3; d++)
		voxel = fmin(voxel, hypot(hypot(grid[0][d], grid[1][d]), grid[2][d]));
	if (best <= voxel / 2)
		return FX_OK;
	return fx_fail(ctx, FX_EDATA, "the maps in %s lie elsewhere than slice %u, by %.1f mm; maps are not resampled: calibrate with "
		"the same position, orientation and field of view", s->file, f->head.idx.slice, best);
}

static int given_maps(struct state *s, fx_ctx *ctx, const fx_frame *f, fx_array **maps)
{
	const int64_t *is = s->given->dims, *grid = f->grid;
	int64_t dims[4] = {grid[0], grid[1], grid[2], f->n_coils}, z0, voxels;
	fx_array *host = NULL;
	int status;

	if (is[0] != grid[0] || is[1] != grid[1] || (grid[2] > 1 ? is[2] != grid[2] : is[2] < 1) || is[3] != f->n_coils)
		return fx_fail(ctx, FX_EDATA, "the maps in %s have %lld x %lld x %lld voxels and %lld coils, frame %lld has %lld x %lld x "
			"%lld (oversampling and fov_factor included) and %lld; maps are not resampled: make them with the same matrix, "
			"field of view and coils, and without coil_compress", s->file, (long long)is[0], (long long)is[1],
			(long long)is[2], (long long)is[3], (long long)f->id, (long long)grid[0], (long long)grid[1], (long long)grid[2],
			(long long)f->n_coils);
	status = place(s, ctx, f, &z0);
	if (status == FX_OK && fx_array_new(FX_CF32, 4, dims, &host) != FX_OK)
		status = fx_fail(ctx, FX_ENOMEM, "no memory for coil maps");
	if (status != FX_OK)
		return status;
	voxels = grid[0] * grid[1] * grid[2];
	for (int64_t c = 0; c < f->n_coils; c++)
		memcpy(FX_CF32_OF(host) + c * voxels, FX_CF32_OF(s->given) + (c * is[2] + z0) * is[0] * is[1],
			(size_t)voxels * sizeof(fx_cf32));
	status = fx_math_of(ctx)->ops->upload(fx_math_of(ctx), host, maps);
	fx_array_unref(host);
	return status;
}

/* ---- maps from coil images --------------------------------------------------------------------- */

static int from_images(struct state *s, fx_ctx *ctx, const fx_frame *f, fx_array **maps)
{
	const fx_espirit_options options = {s->calibration_size, s->kernel_size, s->threshold, s->crop};

	if (!f->direct)
		return fx_fail(ctx, FX_EINVAL, "maps are made from density-weighted coil images, which frame %lld has not; put <density/> "
			"in front of <mu/> and leave fhd.accumulate at both", (long long)f->id);
	if (s->method == ESPIRIT)
		return fx_coil_maps_espirit(fx_math_of(ctx), f->direct, &options, maps);
	return fx_coil_maps_walsh(fx_math_of(ctx), f->direct, (int)s->radius, (int)s->iterations, maps);
}

/* Maps by a calibration frame of this slice, or by its first frame with reuse=true; NULL where there are none. */
static int kept_maps(struct state *s, fx_ctx *ctx, const fx_frame *f, fx_array **maps)
{
	unsigned slice = f->head.idx.slice;

	*maps = slice < N_KEPT ? fx_array_ref(s->kept[slice]) : NULL;
	for (int i = 0; *maps && i < 3; i++)
		if ((*maps)->dims[i] != f->grid[i]) {
			int64_t is = (*maps)->dims[i];

			fx_array_unref(*maps);
			*maps = NULL;
			return fx_fail(ctx, FX_EDATA, "slice %u: the maps that are kept have %lld voxels along axis %d, the frame %lld; "
				"calibration and imaging need the same matrix, and coil_maps.reuse=false where it changes within a scan",
				slice, (long long)is, i, (long long)f->grid[i]);
		}
	return FX_OK;
}

static int make_maps(struct state *s, fx_ctx *ctx, fx_frame *f)
{
	unsigned slice = f->head.idx.slice;
	fx_array *maps = NULL;
	int status = FX_OK;

	if (s->given)
		status = given_maps(s, ctx, f, &maps);
	else if (!f->calibration)
		status = kept_maps(s, ctx, f, &maps);
	if (status == FX_OK && !s->given)
		fx_record_count(ctx, maps ? "frames_with_kept_maps" : "maps_made", 1);
	if (status == FX_OK && !maps) {
		status = from_images(s, ctx, f, &maps);
		if (status == FX_OK && (s->reuse || f->calibration) && slice < N_KEPT)
			fx_slot_take(&s->kept[slice], fx_array_ref(maps));
	}
	if (status != FX_OK)
		return status;
	fx_slot_take(&f->maps, maps);
	return FX_OK;
}

static int save_maps(struct state *s, fx_ctx *ctx, const fx_frame *f)
{
	fx_frame whole = *f; /* all of the grid: a later run's frames need all of it */
	fx_msg *image;
	int status;

	for (int d = 0; d < 3; d++) {
		whole.geometry.fov_mm[d] *= (double)f->grid[d] / (double)f->geometry.matrix[d];
		whole.geometry.matrix[d] = f->grid[d];
	}
	status = fx_frame_image(fx_math_of(ctx), &whole, f->maps, &image);
	if (status == FX_OK)
		status = fx_sink_add(ctx, s->sink, fx_msg_image(image));
	fx_drop(image);
	return status;
}

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	struct state *s = self;
	int status;

	if (s->given && fx_msg_frame(msg)->calibration) {
		fx_drop(msg); /* nothing is made of it */
		return FX_OK;
	}
	status = fx_msg_own(&msg);
	if (status == FX_OK)
		status = make_maps(s, ctx, fx_msg_frame(msg));
	if (status == FX_OK && s->sink)
		status = save_maps(s, ctx, fx_msg_frame(msg));
	if (status != FX_OK) {
		fx_drop(msg);
		return fx_fail(ctx, status, "cannot make coil maps");
	}
	if (fx_msg_frame(msg)->calibration) {
		fx_drop(msg);
		return FX_OK;
	}
	return fx_emit(ctx, msg);
}

static int flush(void *self, fx_ctx *ctx)
{
	return fx_sink_finish(ctx, &((struct state *)self)->sink);
}

static void close_gadget(void *self)
{
	struct state *s = self;

	fx_sink_abandon(s->sink);
	for (size_t i = 0; i < N_KEPT; i++)
		fx_array_unref(s->kept[i]);
	fx_array_unref(s->given);
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "coil_maps",
	.summary = "Coil sensitivity maps of each frame",
	.description = "walsh (Walsh et al., Magn. Reson. Med. 43:682, 2000): at each voxel the dominant eigenvector of the coil "
		"images' covariance over a block around it. espirit (Uecker et al., Magn. Reson. Med. 71:990, 2014): the centre of the "
		"coil images' k-space, cut into all its windows, spans the kernels whose image-domain matrix has the maps as its "
		"eigenvector of eigenvalue 1; where the largest eigenvalue is small there is no signal, and maps are 0. Both are "
		"normalised to a sum of squares of 1, phase relative to the strongest coil. Made from calibration readouts where the "
		"scan has them, else from the frame's own density-weighted coil images; or taken from the file of another run, which "
		"must have the same grid, position and coils: no coil_compress in either, and noise_adjust by the same noise. On a GPU walsh is "
		"made there; espirit takes its matrices apart on the host, and its maps go to the GPU.",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_FRAME, .gives = FX_FRAME, .needs = FX_FRAME, .places = FX_HOST | FX_DEVICE,
	.open = open_gadget, .process = process, .flush = flush, .close = close_gadget,
};
