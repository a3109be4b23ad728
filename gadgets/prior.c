/* SPDX-License-Identifier: MIT */
/* prior: lambda of the least-squares fit, the reference that says where neighbours may differ, and what both do. */
#include <fornix/gadget.h>
#include <fornix/recon.h>

#include <complex.h>
#include <math.h>

#define SEED 20080810
#define PREDICT_ITERATIONS 100 /* of each system: the predictions are of the converged estimate */
#define PREDICT_TOLERANCE 1e-3
#define AUTO_PROBES 2          /* the mean over an object needs few */

enum { FROM_NONE, FROM_FILE, FROM_FIRST };
static const char *const sources[] = {[FROM_NONE] = "none", [FROM_FILE] = "file", [FROM_FIRST] = "first", NULL};

struct state {
	double lambda, target_sigma, noise_sigma, edge;
	int reference_from;
	const char *reference;
	bool save;
	int64_t probes;
	fx_array *volume;       /* the file's, f32 {x,y,z} */
	double affine[3][4];
	bool has_affine;
	fx_sink *sigma, *resolution;
};

static const fx_prop props[] = {
	FX_PROP(struct state, lambda, "0.01", 0, 1e6,
		"Weight of ||W rho||^2, in units of the mean eigenvalue of F^H F (with coil maps), so that it needs no tuning to scale"),
	FX_PROP(struct state, target_sigma, "0", 0, 1e30, "Above 0, in the image's units: lambda is the smallest whose predicted "
		"noise in the object is at most this"),
	FX_PROP_WORD(struct state, reference_from, "none", sources,
		"none: W = I; file: from `reference`; first: from the frame's own reconstruction with W = I"),
	FX_PROP_FILE(struct state, reference, "", "NIfTI volume in the scanner's space that shows the edges"),
	FX_PROP(struct state, edge, "0.1", 1e-6, 1e6,
		"Step, as a fraction of the reference's range, across which neighbours count half"),
	FX_PROP(struct state, save, "false", 0, 1, "Write prior_sigma.nii.gz and prior_resolution.nii.gz"),
	FX_PROP(struct state, probes, "16", 1, 10000, "Noise realisations of the saved map"),
	FX_PROP(struct state, noise_sigma, "0.70710678118654752", 0, 1e30, "Standard deviation of a sample's real and imaginary "
		"part, for the predictions; the default is what noise_adjust leaves"),
	FX_PROP_END
};

/* ---- the reference --------------------------------------------------------------------------- */

/* f32 magnitudes of any real or complex array. */
static int magnitudes(fx_math *m, const fx_array *a, fx_array **out)
{
	fx_array *host = NULL, *wide = NULL;
	int status = m->ops->download(m, a, &host);

	if (status == FX_OK && (fx_array_convert(host, FX_CF64, &wide) != FX_OK || fx_array_new(FX_F32, 3, a->dims, out) != FX_OK))
		status = fx_math_fail(m, FX_ENOMEM, "no memory for a volume of %lld voxels", (long long)a->n);
	for (int64_t i = 0; status == FX_OK && i < (*out)->n; i++)
		FX_F32_OF(*out)[i] = (float)hypot(creal(FX_CF64_OF(wide)[i]), cimag(FX_CF64_OF(wide)[i]));
	fx_array_unref(host);
	fx_array_unref(wide);
	return status;
}

static int read_reference(struct state *s, fx_ctx *ctx)
{
	fx_array *data = NULL;
	int status = fx_read_nifti(ctx, s->reference, &data, s->affine, &s->has_affine);

	if (status != FX_OK)
		return status;
	for (int d = 3; d < data->n_dims && status == FX_OK; d++)
		if (data->dims[d] > 1)
			status = fx_fail(ctx, FX_EDATA, "%s has more than one volume; give one with three dimensions", s->reference);
	if (status == FX_OK)
		status = magnitudes(fx_math_of(ctx), data, &s->volume);
	fx_array_unref(data);
	return status;
}

/* The file's volume on the frame's grid. Without geometry on either side it must have the image's own matrix. */
static int from_file(struct state *s, fx_ctx *ctx, const fx_frame *f, fx_array **r)
{
	const int64_t *matrix = f->geometry.matrix, *is = s->volume->dims;
	double grid[3][4], inside;
	int status;

	if (!s->has_affine || !fx_frame_affine(f, grid)) {
		if (is[0] != matrix[0] || is[1] != matrix[1] || is[2] != matrix[2])
			return fx_fail(ctx, FX_EDATA, "%s has %lld x %lld x %lld voxels, the image %lld x %lld x %lld, and %s: it can "
				"only be taken voxel by voxel; give a file with sform or qform, or one of the image's matrix", s->reference,
				(long long)is[0], (long long)is[1], (long long)is[2], (long long)matrix[0], (long long)matrix[1],
				(long long)matrix[2], s->has_affine ? "the scan header has no geometry" : "it has no affine");
		fx_record_text(ctx, "reference", "voxel by voxel");
		return fx_resize_centred(fx_math_of(ctx), s->volume, f->grid, r);
	}
	status = fx_resample_affine(fx_math_of(ctx), s->volume, s->affine, f->grid, grid, r, &inside);
	if (status != FX_OK)
		return status;
	fx_record_text(ctx, "reference", "by affine");
	fx_record_number(ctx, "reference_inside", inside);
	if (inside == 0)
		return fx_fail(ctx, FX_EDATA, "%s does not overlap frame %lld: it belongs to another position or subject",
			s->reference, (long long)f->id);
	if (inside < 0.5)
		fx_warn(ctx, "%s covers %.0f %% of frame %lld; beyond it the prior knows no edges", s->reference, 100 * inside,
			(long long)f->id);
	return FX_OK;
}

/* |rho| of the frame solved with W = I and this lambda. */
static int from_first(struct state *s, fx_ctx *ctx, fx_frame *f, fx_array **r)
{
	fx_math *m = fx_math_of(ctx);
	fx_cg_options options = {.iterations = 20, .tolerance = PREDICT_TOLERANCE};
	fx_cg_report report = {0};
	fx_array *b = NULL, *x = NULL;
	double lambda_abs;
	int status;

	if (!f->fhd)
		return fx_fail(ctx, FX_EINVAL, "frame %lld has no unweighted F^H D for reference_from=first; put "
			"<fhd accumulate=\"both\"/> in front", (long long)f->id);
	f->lambda = s->lambda;
	f->has_prior = true;
	status = fx_lambda_absolute(m, f, &lambda_abs);
	if (status == FX_OK)
		status = fx_frame_right_side(m, f, &b);
	if (status == FX_OK)
		status = m->ops->array_new(m, FX_CF32, 3, f->grid, &x);
	if (status == FX_OK)
		status = fx_frame_solve(m, f, lambda_abs, 0, b, &options, x, &report);
	if (status == FX_OK)
		status = magnitudes(m, x, r);
	if (status == FX_OK)
		fx_record_text(ctx, "reference", "first reconstruction");
	fx_cg_report_free(&report);
	fx_array_unref(b);
	fx_array_unref(x);
	return status;
}

/* Weights of the frame, and the reference they came from (NULL where W = I). */
static int weigh(struct state *s, fx_ctx *ctx, fx_frame *f, fx_array **reference)
{
	fx_array *w = NULL;
	double range = 0;
	int status = FX_OK;

	if (s->reference_from == FROM_NONE)
		return FX_OK;
	if (s->reference_from == FROM_FILE && !s->volume)
		status = read_reference(s, ctx);
	if (status == FX_OK)
		status = s->reference_from == FROM_FILE ? from_file(s, ctx, f, reference) : from_first(s, ctx, f, reference);
	if (status == FX_OK)
		status = fx_prior_weights(fx_math_of(ctx), *reference, s->edge, &w, &range);
	if (status != FX_OK)
		return status;
	fx_slot_take(&f->w, w);
	fx_record_number(ctx, "reference_range", range);
	if (range == 0)
		fx_warn(ctx, "the reference is constant over frame %lld: the prior knows no edges", (long long)f->id);
	return FX_OK;
}

/* ---- lambda and what it does ------------------------------------------------------------------ */

static void tried(void *ctx, double lambda, double sigma)
{
	fx_record_numbers(ctx, "lambda_tried", (double[]){lambda, sigma}, 2);
}

/* Where the object is: by the reference, else by F^H D combined over coils. */
static int object(fx_ctx *ctx, const fx_frame *f, const fx_array *reference, fx_array **mask)
{
	fx_math *m = fx_math_of(ctx);
	fx_array *b = NULL, *magnitude = fx_array_ref((fx_array *)(uintptr_t)reference);
	int64_t n = 0;
	int status = FX_OK;

	if (!magnitude && f->direct && f->maps)
		status = fx_coils_to_image(m, f->maps, f->direct, &b);
	else if (!magnitude && f->fhd)
		status = fx_frame_right_side(m, f, &b);
	else if (!magnitude)
		return fx_fail(ctx, FX_EINVAL, "frame %lld has no F^H D to find the object in; put <fhd/> in front", (long long)f->id);
	if (status == FX_OK && !magnitude)
		status = magnitudes(m, b, &magnitude);
	if (status == FX_OK)
		status = fx_object_mask(m, magnitude, mask, &n);
	if (status == FX_OK && n == 0)
		fx_slot_take(mask, NULL);
	fx_record_number(ctx, "object_voxels", (double)n);
	fx_array_unref(b);
	fx_array_unref(magnitude);
	return status;
}

static fx_predict_options predict_options(const struct state *s, int64_t probes)
{
	return (fx_predict_options){.noise_sigma = s->noise_sigma, .n_probes = probes, .seed = SEED,
		.iterations = PREDICT_ITERATIONS, .tolerance = PREDICT_TOLERANCE};
}

static int add_map(fx_ctx *ctx, const fx_frame *f, const fx_array *map, const char *name, fx_sink **sink)
{
	fx_msg *image = NULL;
	int status = FX_OK;

	if (!*sink)
		status = fx_sink_open(ctx, &(fx_sink_options){.format = FX_FORMAT_NIFTI, .name = name}, sink);
	if (status == FX_OK)
		status = fx_frame_image(fx_math_of(ctx), f, map, &image);
	if (status == FX_OK)
		status = fx_sink_add(ctx, *sink, fx_msg_image(image));
	fx_drop(image);
	return status;
}

static int save_maps(struct state *s, fx_ctx *ctx, const fx_frame *f, const fx_array *mask)
{
	fx_math *m = fx_math_of(ctx);
	fx_predict_options options = predict_options(s, s->probes);
	fx_array *sigma = NULL, *width = NULL, **right = NULL;
	double lambda_abs;
	int status = fx_lambda_absolute(m, f, &lambda_abs);

	if (status == FX_OK)
		status = fx_predict_noise(m, f, &options, &right);
	if (status == FX_OK)
		status = fx_predict_sigma(m, f, lambda_abs, &options, right, &sigma);
	if (status == FX_OK)
		status = fx_predict_resolution(m, f, lambda_abs, &options, &width);
	if (status == FX_OK)
		status = add_map(ctx, f, sigma, "prior_sigma.nii.gz", &s->sigma);
	if (status == FX_OK)
		status = add_map(ctx, f, width, "prior_resolution.nii.gz", &s->resolution);
	if (status == FX_OK) {
		fx_record_number(ctx, "predicted_sigma", fx_mean_sigma(sigma, mask));
		fx_record_number(ctx, "predicted_width", fx_mean_sigma(width, mask));
	}
	fx_arrays_free(right, options.n_probes);
	fx_array_unref(sigma);
	fx_array_unref(width);
	return status;
}

static int set_prior(struct state *s, fx_ctx *ctx, fx_frame *f)
{
	fx_predict_options options = predict_options(s, AUTO_PROBES);
	fx_array *reference = NULL, *mask = NULL;
	double lambda = s->lambda;
	int status = weigh(s, ctx, f, &reference);

	if (status == FX_OK && (s->target_sigma > 0 || s->save))
		status = object(ctx, f, reference, &mask);
	if (status == FX_OK && s->target_sigma > 0)
		status = fx_lambda_for_sigma(fx_math_of(ctx), f, s->target_sigma, mask, &options, tried, ctx, &lambda);
	f->lambda = lambda;
	f->has_prior = true;
	if (status == FX_OK && s->target_sigma > 0)
		fx_record_number(ctx, "lambda", lambda);
	if (status == FX_OK && s->save)
		status = save_maps(s, ctx, f, mask);
	fx_array_unref(reference);
	fx_array_unref(mask);
	return status;
}

static int open_gadget(void *self, fx_ctx *ctx)
{
	const struct state *s = self;

	if (s->reference_from == FROM_FILE && !*s->reference)
		return fx_fail(ctx, FX_EINVAL, "reference_from=file needs a file: --set prior.reference=FILE.nii.gz");
	if (s->reference_from != FROM_FILE && *s->reference)
		return fx_fail(ctx, FX_EINVAL, "reference='%s' is not used unless reference_from=file", s->reference);
	return FX_OK;
}

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	int status;

	if (fx_msg_frame(msg)->calibration)
		return fx_emit(ctx, msg);
	status = fx_msg_own(&msg);
	if (status == FX_OK)
		status = set_prior(self, ctx, fx_msg_frame(msg));
	if (status != FX_OK) {
		fx_drop(msg);
		return fx_fail(ctx, status, "cannot set the prior");
	}
	return fx_emit(ctx, msg);
}

static int flush(void *self, fx_ctx *ctx)
{
	struct state *s = self;
	fx_sink *sigma = s->sigma, *resolution = s->resolution;
	int status = FX_OK;

	s->sigma = s->resolution = NULL;
	if (sigma)
		status = fx_sink_commit(ctx, sigma);
	if (resolution && status != FX_OK)
		fx_sink_abandon(resolution);
	else if (resolution)
		status = fx_sink_commit(ctx, resolution);
	return status;
}

static void close_gadget(void *self)
{
	struct state *s = self;

	fx_sink_abandon(s->sigma);
	fx_sink_abandon(s->resolution);
	fx_array_unref(s->volume);
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "prior",
	.summary = "Prior of the least-squares fit: lambda ||W rho||^2, W = I or differences that a reference's edges relax",
	.description = "Adds lambda W^H W to the normal equations. lambda is relative to the mean eigenvalue of F^H F, "
		"(sum |phi|^2 / N) times the mean of sum_c |S_c|^2, which does not depend on the density at the centre of k-space. "
		"With a reference W takes differences of neighbours, weighted by 1 / (1 + (step / (edge range))^2) of the reference's "
		"step between them and scaled so that W^H W has I's mean diagonal. The reference is brought onto the frame's grid by "
		"its affine, and averaged where it is finer. With target_sigma lambda is chosen by the predicted noise; every step "
		"is in run.json. The predictions are of the converged estimate: fewer iterations of cg leave less noise and less "
		"resolution. Source: Haldar, Hernando, Song, Liang, Magn. Reson. Med. 59:810 (2008); Robson et al., Magn. Reson. "
		"Med. 60:895 (2008).",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_FRAME, .gives = FX_FRAME, .needs = FX_FRAME, .places = FX_HOST | FX_DEVICE,
	.open = open_gadget, .process = process, .flush = flush, .close = close_gadget,
};
