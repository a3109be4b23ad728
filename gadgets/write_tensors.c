/* SPDX-License-Identifier: MIT */
/* write_tensors: a tensor field and maps of it into NIfTI files. */
#include <fornix/diffusion.h>
#include <fornix/gadget.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { FA, MD, AD, RD, COLOUR_FA, E1, TENSOR, S0, RESIDUAL, FLAGS, N_FILES };
static const char *const files[] = {"fa", "md", "ad", "rd", "colour_fa", "e1", "tensor", "s0", "residual", "flags", NULL};

static const char *const orders[] = {"nifti", "mrtrix", "fsl", NULL};        /* enum fx_tensor_order */
static const char *const frames[] = {"ras", "image", "fsl", "auto", NULL};   /* enum fx_tensor_frame, and: */
#define FRAME_AUTO 3
static const char *const units[] = {"um2/ms", "mm2/s", NULL};
static const double factors[] = {1, 1e-3};

#define NOT_CORRECTED "Not corrected for eddy currents, susceptibility distortion or motion."

struct state {
	const char *maps, *prefix;
	int order, frame, unit;
	bool wanted[N_FILES];
	int64_t n_final;           /* finished fields so far */
};

static const fx_prop props[] = {
	FX_PROP(struct state, maps, "fa,md,ad,rd,colour_fa,e1,tensor,s0,residual,flags", 1, 0, "What to write, between commas: fa; md, ad, rd "
		"(mean, axial, radial diffusivity); colour_fa; e1 (principal direction); tensor; s0; residual; flags"),
	FX_PROP_WORD(struct state, order, "nifti", orders, "Order of the tensor's components: nifti (xx,xy,yy,xz,yz,zz as x,y,z,1,6), "
		"mrtrix (xx,yy,zz,xy,xz,yz) or fsl (xx,xy,xz,yy,yz,zz), both as x,y,z,6"),
	FX_PROP_WORD(struct state, frame, "auto", frames, "Axes of tensor and e1: ras (of the patient), image (of the voxel grid), fsl (those "
		"of bvecs), auto (fsl for order=fsl, else ras)"),
	FX_PROP(struct state, prefix, "", 0, 100, "Put in front of each file's name"),
	FX_PROP_WORD(struct state, unit, "mm2/s", units, "Unit of diffusivities: mm2/s, as MRtrix, DIPY and FSL expect, or um2/ms"),
	FX_PROP_END
};

static int open_gadget(void *self, fx_ctx *ctx)
{
	struct state *s = self;
	const char *at = s->maps;

	if (strchr(s->prefix, '/') || s->prefix[0] == '.')
		return fx_fail(ctx, FX_EINVAL, "prefix is '%s'; it is the start of a file name, and so has no folder and no dot in front",
			s->prefix);
	while (*(at += strspn(at, ", ")) != '\0') {
		size_t n = strcspn(at, ", ");
		char word[32];
		int i = 0;

		snprintf(word, sizeof word, "%.*s", (int)n, at);
		while (files[i] && strcmp(files[i], word) != 0)
			i++;
		if (!files[i]) {
			const char *nearest = fx_nearest_word(word, files);

			return fx_fail(ctx, FX_EINVAL, "maps names '%s'%s%s%s", word, nearest ? "; did you mean '" : ", which is none of its words",
				nearest ? nearest : "", nearest ? "'?" : "");
		}
		s->wanted[i] = true;
		at += n;
	}
	if (s->frame == FRAME_AUTO)
		s->frame = s->order == FX_ORDER_FSL ? FX_FRAME_FSL : FX_FRAME_RAS;
	fx_record_text(ctx, "frame", frames[s->frame]);
	return FX_OK;
}

/* Turns unit vectors from RAS to the frame that was asked for. */
static int turn_e1(const struct state *s, fx_ctx *ctx, const fx_lattice *l, fx_array *e1)
{
	int64_t n = e1->n / 3;
	float *v = FX_F32_OF(e1);
	double r[3][3], det;

	if (s->frame == FX_FRAME_RAS)
		return FX_OK;
	if (!fx_lattice_axes(l, r))
		return fx_fail(ctx, FX_EDATA, "the image's affine is singular, so its axes cannot be told");
	det = r[0][0] * (r[1][1] * r[2][2] - r[1][2] * r[2][1]) - r[0][1] * (r[1][0] * r[2][2] - r[1][2] * r[2][0]) +
		r[0][2] * (r[1][0] * r[2][1] - r[1][1] * r[2][0]);
	for (int64_t i = 0; i < n; i++) {
		const double ras[3] = {(double)v[i], (double)v[n + i], (double)v[2 * n + i]};

		for (int a = 0; a < 3; a++)
			v[a * n + i] = (float)((a == 0 && s->frame == FX_FRAME_FSL && det > 0 ? -1 : 1) *
				(r[0][a] * ras[0] + r[1][a] * ras[1] + r[2][a] * ras[2]));
	}
	return FX_OK;
}

/* The voxels of one file (new, or one more reference); NULL where the field does not have it. */
static int make(const struct state *s, fx_ctx *ctx, const fx_tensors *t, int file, fx_array **out)
{
	static const int maps[] = {[FA] = FX_MAP_FA, [MD] = FX_MAP_MD, [AD] = FX_MAP_AD, [RD] = FX_MAP_RD, [COLOUR_FA] = FX_MAP_COLOUR_FA,
		[E1] = FX_MAP_EVEC};
	int status;

	*out = fx_array_ref(file == S0 ? t->s0 : file == RESIDUAL ? t->residual : file == FLAGS ? t->flags : NULL);
	if (file > TENSOR)
		return FX_OK;
	if (file == TENSOR)
		return fx_tensors_export(fx_math_of(ctx), t, s->order, s->frame, factors[s->unit], out);
	status = fx_tensor_map(fx_math_of(ctx), t, maps[file], out);
	if (status == FX_OK && file == E1)
		status = turn_e1(s, ctx, &t->lattice, *out);
	for (int64_t i = 0; status == FX_OK && file >= MD && file <= RD && i < (*out)->n; i++)
		FX_F32_OF(*out)[i] = (float)(factors[s->unit] * (double)FX_F32_OF(*out)[i]);
	return status;
}

/* What a reader of a file alone has to know. */
static void comment_on(const struct state *s, const fx_tensors *t, int file, char *text, size_t size)
{
	static const char *const fits[] = {[FX_FIT_GIVEN] = "given", [FX_FIT_OLS] = "fitted by least squares", [FX_FIT_WLS] =
		"fitted by weighted least squares"};
	char axes[64] = "";

	if (file == TENSOR)
		snprintf(axes, sizeof axes, " Components as %s has them, axes %s, %s.", orders[s->order], frames[s->frame], units[s->unit]);
	else if (file == E1)
		snprintf(axes, sizeof axes, " Axes %s.", frames[s->frame]);
	snprintf(text, size, "Fornix: %s of diffusion tensors (%s; %s).%s " NOT_CORRECTED "%s%s%s", files[file], fits[t->fit],
		t->origin[0] ? t->origin : "origin unknown", axes, t->provisional ? " Provisional: the series was not complete." : "",
		t->caveats & FX_CAVEAT_SHOT_PHASE ? " Several shots a volume were combined without a phase reference: signals may be too low." : "",
		t->caveats & FX_CAVEAT_PARTIAL ? " The input broke off: volumes are missing." : "");
}

static void name_file(const struct state *s, const fx_tensors *t, int file, char *name, size_t size)
{
	char number[24] = "";

	if (s->n_final > 0 && !t->provisional)
		snprintf(number, sizeof number, "_%lld", (long long)s->n_final + 1);
	snprintf(name, size, "%s%s%s%s.nii.gz", s->prefix, t->provisional ? "provisional_" : "", files[file], number);
}

static int write_one(const struct state *s, fx_ctx *ctx, const fx_tensors *t, int file)
{
	bool nifti = s->order == FX_ORDER_NIFTI;
	fx_array *data = NULL;
	char name[200], comment[700];
	int status = make(s, ctx, t, file, &data);
	fx_volume v = {.lattice = &t->lattice, .data = data, .rgb = file == COLOUR_FA, .symmetric = file == TENSOR && nifti,
		.vector = file == E1 && nifti, .comment = comment};

	if (status != FX_OK || !data) {
		fx_array_unref(data);
		return status;
	}
	name_file(s, t, file, name, sizeof name);
	comment_on(s, t, file, comment, sizeof comment);
	v.description = file >= MD && file <= RD ? s->unit == 1 ? "fornix: mm^2/s" : "fornix: um^2/ms" : NULL;
	status = fx_write_volume(ctx, name, &v);
	fx_array_unref(data);
	return status;
}

static int write_all(const struct state *s, fx_ctx *ctx, const fx_tensors *t)
{
	fx_math *m = fx_math_of(ctx);
	fx_tensors here = *t;
	fx_array **slots[] = {&here.d, &here.s0, &here.residual, &here.mask, &here.flags};
	int status = FX_OK;

	/* Copies on the host of what may lie on a device: the message passes on as it came, and nobody copies it back. */
	for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++) {
		const fx_array *from = *slots[i];

		*slots[i] = NULL;
		if (status == FX_OK && from)
			status = m->ops->download(m, from, slots[i]);
	}
	for (int file = 0; status == FX_OK && file < N_FILES; file++)
		if (s->wanted[file])
			status = write_one(s, ctx, &here, file);
	for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++)
		fx_array_unref(*slots[i]);
	return status;
}

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	struct state *s = self;
	const fx_tensors *t = fx_msg_tensors(msg);
	int status = write_all(s, ctx, t);

	if (status != FX_OK) {
		fx_drop(msg);
		return fx_fail(ctx, status, "cannot write the tensors");
	}
	if (!t->provisional && s->n_final++ == 0) {
		fx_record_text(ctx, "caveats", NOT_CORRECTED);
		if (t->caveats & FX_CAVEAT_SHOT_PHASE)
			fx_record_text(ctx, "caveats", "several shots a volume were combined without a phase reference");
		if (t->caveats & FX_CAVEAT_PARTIAL)
			fx_record_text(ctx, "caveats", "the input broke off: volumes are missing");
	}
	return fx_emit(ctx, msg);
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "write_tensors",
	.summary = "Write diffusion tensors and maps of them as NIfTI",
	.description = "Files are PREFIX and the map's name: fa.nii.gz, tensor.nii.gz ... A field that is a first look gets provisional_ in "
		"front, a second field of a run _2 behind. The affine is the series' own. Order and axes of tensors differ "
		"between programs, and a mix-up turns fibres without a sign of it: set order to the program that is to read tensor.nii.gz. What "
		"was not corrected for is said in a header extension of each file. s0, residual and flags are left out where the tensors came "
		"without them. Tensors pass on.",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_TENSORS, .gives = FX_TENSORS, .needs = FX_TENSORS, .places = FX_HOST | FX_DEVICE,
	.open = open_gadget, .process = process,
};
