/* SPDX-License-Identifier: MIT */
/* metric: the Riemannian metric of a tensor field and its derivatives, made once before fibres are tracked through it. */
#include <fornix/diffusion.h>
#include <fornix/gadget.h>

#include <string.h>

static const char *const kinds[] = {[FX_METRIC_INVERSE] = "inverse", [FX_METRIC_ADJUGATE] = "adjugate",
	[FX_METRIC_SHARPENED] = "sharpened", NULL};
static const char *const csf_words[] = {[FX_CSF_KEEP] = "keep", [FX_CSF_MASK] = "mask", NULL};

struct state {
	int kind, csf;
	double power, floor, csf_md, smooth;
	const char *mask;
	bool resample;
	fx_array *region;       /* the mask file's voxels */
	fx_lattice lattice;
};

static const fx_prop props[] = {
	FX_PROP_WORD(struct state, kind, "inverse", kinds, "inverse: g = D^-1; adjugate: g = det(D) D^-1; sharpened: g = (D^power)^-1"),
	FX_PROP(struct state, power, "2", 1, 16, "Of kind=sharpened"),
	FX_PROP(struct state, smooth, "0", 0, 1000, "Average the tensors first, by a Gaussian of this sigma over the mask, mm; 0: not"),
	FX_PROP(struct state, floor, "0.05", 1e-6, 10, "Eigenvalues of D below are raised to it, um^2/ms"),
	FX_PROP_WORD(struct state, csf, "mask", csf_words, "mask: voxels with a mean diffusivity above csf_md are closed to fibres"),
	FX_PROP(struct state, csf_md, "2", 0, 100, "um^2/ms; CSF has 3, grey matter 0.8: above 2 more than half of a voxel is CSF"),
	FX_PROP_FILE(struct state, mask, "", "NIfTI image: fibres stay where it is not 0, besides the tensors' own mask"),
	FX_PROP(struct state, resample, "false", 0, 1, "Take a mask of another space by its affine, the nearest voxel"),
	FX_PROP_END
};

static int open_gadget(void *self, fx_ctx *ctx)
{
	struct state *s = self;
	fx_array *data = NULL;
	int status;

	if (!*s->mask)
		return FX_OK;
	status = fx_read_nifti(ctx, s->mask, &data, s->lattice.affine, &s->lattice.has_affine);
	if (status == FX_OK)
		status = fx_region_of_file(fx_math_of(ctx), s->mask, data, &s->lattice, &s->region);
	fx_array_unref(data);
	return status;
}

/* The file's mask on the tensors' lattice (new). */
static int mask_here(const struct state *s, fx_ctx *ctx, const fx_lattice *lattice, fx_array **out)
{
	double inside;
	int space, status = fx_region_space(fx_math_of(ctx), s->mask, &s->lattice, lattice, &space);

	if (status != FX_OK)
		return status;
	if (space == FX_REGION_ELSEWHERE && !s->resample)
		return fx_fail(ctx, FX_EDATA, "%s is of another space than the tensors: %s; resample=true takes it by its affine",
			s->mask, memcmp(s->lattice.dims, lattice->dims, sizeof lattice->dims) ? "it has another matrix" : "their affines differ");
	fx_record_text(ctx, "mask_space", space == FX_REGION_SAME ? "same" : space == FX_REGION_ELSEWHERE ? "resampled" : "voxel by voxel");
	if (space != FX_REGION_ELSEWHERE) {
		*out = fx_array_ref(s->region);
		return FX_OK;
	}
	status = fx_region_resample(fx_math_of(ctx), s->region, &s->lattice, lattice, out, &inside);
	if (status == FX_OK && inside < 1)
		fx_warn(ctx, "%.0f %% of %s lie outside the tensors' volume", 100 * (1 - inside), s->mask);
	return status;
}

/* *t (owned) with the file's mask in its own. */
static int add_mask(const struct state *s, fx_ctx *ctx, fx_msg **t)
{
	fx_math *m = fx_math_of(ctx);
	fx_array *file = NULL, *mask = NULL, *there = NULL, *both = NULL;
	fx_tensors *to;
	int status = fx_msg_own(t);

	if (status != FX_OK)
		return status;
	to = fx_msg_tensors(*t);
	status = mask_here(s, ctx, &to->lattice, &file);
	if (status == FX_OK && fx_array_new(FX_U8, 3, to->lattice.dims, &mask) != FX_OK)
		status = fx_fail(ctx, FX_ENOMEM, "no memory for a mask");
	for (int64_t i = 0; status == FX_OK && i < mask->n; i++) {
		double v = file->type == FX_F32 ? (double)FX_F32_OF(file)[i] : FX_F64_OF(file)[i];

		((uint8_t *)mask->data)[i] = (uint8_t)(v < 0 || v > 0); /* not NaN */
	}
	fx_array_unref(file);
	if (status == FX_OK)
		status = m->ops->upload(m, mask, &there);
	fx_array_unref(mask);
	if (status == FX_OK)
		status = m->ops->array_new(m, FX_U8, 3, to->lattice.dims, &both);
	if (status == FX_OK)
		status = m->ops->marks(m, there, 0xff, 1, 0, to->mask, both, NULL);
	fx_array_unref(there);
	if (status == FX_OK)
		fx_slot_take(&to->mask, both);
	else
		fx_array_unref(both);
	return status;
}

static int build(const struct state *s, fx_ctx *ctx, const fx_tensors *t, fx_msg **metric)
{
	fx_metric_spec spec = {.kind = s->kind, .power = s->power, .floor = s->floor, .csf = s->csf, .csf_md = s->csf_md,
		.smooth_mm = s->smooth};
	int status = fx_metric_build(fx_math_of(ctx), t, &spec, metric);
	int64_t n_csf;

	if (status != FX_OK)
		return status;
	n_csf = fx_msg_metric(*metric)->n_above;
	fx_record_text(ctx, "kind", kinds[s->kind]);
	fx_record_number(ctx, "n_voxels", (double)fx_msg_metric(*metric)->n_voxels);
	fx_record_number(ctx, "n_above_csf_md", (double)n_csf);
	if (s->csf == FX_CSF_KEEP && s->kind != FX_METRIC_ADJUGATE && n_csf > 0)
		fx_warn(ctx, "CSF is cheaper than white matter under kind=%s: %lld voxels with a mean diffusivity above %g um^2/ms are open to "
			"short cuts; set csf=mask or kind=adjugate (docs/diffusion.md)", kinds[s->kind], (long long)n_csf, s->csf_md);
	return FX_OK;
}

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	const struct state *s = self;
	fx_msg *masked, *metric = NULL;
	int status;

	if (fx_msg_tensors(msg)->provisional)
		return fx_emit(ctx, msg);
	if (!fx_msg_tensors(msg)->d) {
		fx_drop(msg);
		return fx_fail(ctx, FX_EDATA, "tensors came without their data");
	}
	masked = fx_msg_ref(msg);
	status = fx_emit(ctx, msg);
	if (status == FX_OK && s->region)
		status = add_mask(s, ctx, &masked);
	if (status == FX_OK)
		status = build(s, ctx, fx_msg_tensors(masked), &metric);
	fx_drop(masked);
	if (status != FX_OK) {
		fx_drop(metric);
		return fx_fail(ctx, status, "cannot make the metric");
	}
	return fx_emit(ctx, metric);
}

static void close_gadget(void *self)
{
	fx_array_unref(((struct state *)self)->region);
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "metric",
	.summary = "Riemannian metric of a tensor field, in which fibres are shortest paths",
	.description = "Per voxel 24 numbers: the metric and its three derivatives, in voxel coordinates, so that "
		"oblique and anisotropic voxels need no more care. Derivatives are two-sided, and one-sided at the borders of"
		" the mask. inverse is the metric of van Aart et al. (2011): diffusion's own distance, under which CSF (3 "
		"um^2/ms in every direction) is cheaper to cross than white matter along its fibres, hence csf=mask; adjugate"
		" (Fuster et al. 2016) makes CSF dear and equals inverse up to a factor where the tensors differ by rotation "
		"alone; sharpened lets paths bend less outward. Tensors pass on, provisional ones make no metric. Sources: "
		"van Aart, Sepasian, Jalba, Vilanova, Int. J. Biomed. Imaging 2011; Fuster, Dela Haije, Tristan-Vega, "
		"Plantinga, Westin, Florack, J. Math. Imaging Vis. 54:1 (2016).",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_TENSORS, .gives = FX_TENSORS | FX_METRIC, .needs = FX_TENSORS, .places = FX_HOST | FX_DEVICE,
	.open = open_gadget, .process = process, .close = close_gadget,
};
