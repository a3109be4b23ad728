/* SPDX-License-Identifier: MIT */
/*
 * fit.c - the tensor fit of a series as its volumes come: unweighted sums that give tensors at any time, and at the end
 * the (reweighted) fit over the volumes kept. Veraart et al., NeuroImage 81:335 (2013).
 */
#include "fit.h"

#include <lapacke.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define X FXI_FIT_X
#define SHELLS_TEXT 160

struct fx_fit {
	fx_math *m;
	fx_series_info *info;
	fx_fit_spec spec;
	int64_t *row;         /* of the table's volumes: their row in `design`, -1 where not used */
	int64_t n_used;
	fxi_design design;    /* of all volumes used */
	bool *came;           /* of the table's volumes */
	fx_array **kept;      /* likewise; f32 */
	fx_array *first;      /* the first kept */
	fx_array *sums, *seen;/* see tensor_accumulate; NULL where nothing streams */
};

/* ---- which volumes ---- */

static bool wanted(const fx_fit_spec *spec, double b)
{
	if (b <= spec->b0_max)
		return true;
	if (spec->b_max > 0 && b > spec->b_max + fmax(50, 0.05 * spec->b_max))
		return false;
	return b >= spec->b_min - (spec->b_min > 0 ? fmax(50, 0.05 * spec->b_min) : 0);
}

/* Explains why what is used does not determine a tensor. */
static int refuse(const fx_fit *f, const int64_t *row, int rank)
{
	char all[SHELLS_TEXT], used[SHELLS_TEXT];

	fxi_shells_text(f->info, NULL, f->spec.b0_max, all, sizeof all);
	fxi_shells_text(f->info, row, f->spec.b0_max, used, sizeof used);
	if (fxi_shells_count(f->info, row, f->spec.b0_max) < 2)
		return fx_math_fail(f->m, FX_EDATA, "a tensor fit needs two b-values or more; of the table's %s it has %s. Check the table, "
			"b0_max, b_min and b_max", all, used);
	return fx_math_fail(f->m, FX_EDATA, "the volumes do not determine a tensor (the design's rank is %d of 7): there must be six "
		"directions or more that are not all in one plane or on one cone; of the table's %s it has %s. Check the table, b_min and "
		"b_max", rank, all, used);
}

static int choose_volumes(fx_fit *f)
{
	int64_t *volumes = fx_alloc(f->info->n_volumes + 1, sizeof *volumes);
	int status;

	if (!volumes)
		return fx_math_fail(f->m, FX_ENOMEM, "no memory for a table of %lld volumes", (long long)f->info->n_volumes);
	for (int64_t i = 0; i < f->info->n_volumes; i++) {
		f->row[i] = wanted(&f->spec, f->info->gradients[i].b) ? f->n_used : -1;
		if (f->row[i] >= 0)
			volumes[f->n_used++] = i;
	}
	status = fxi_design_new(f->m, f->info, volumes, f->n_used, &f->design);
	fx_free(volumes);
	if (status == FX_OK && (fxi_shells_count(f->info, f->row, f->spec.b0_max) < 2 || f->design.rank < X))
		status = refuse(f, f->row, f->design.rank);
	return status;
}

/* On a device all volumes are held at once; on the host they are references to what came. Said before the first one is copied. */
static int check_memory(fx_fit *f)
{
	const int64_t *n = f->info->lattice.dims;
	/* 38: tensors, S0, residual, mask, flags, and a mask; 29: the sums */
	double voxels = (double)n[0] * (double)n[1] * (double)n[2], bytes = voxels * (4 * (double)f->n_used + 38 + (f->spec.stream ? 29 : 0));
	int64_t available;
	int status;

	if (fx_math_on_host(f->m))
		return FX_OK;
	status = fx_math_memory(f->m, &available, NULL);
	if (status == FX_OK && bytes > (double)available)
		return fx_math_fail(f->m, FX_ENOMEM, "the fit of %lld volumes of %lld x %lld x %lld voxels takes %.1f GB, and GPU %d has %.1f GB left; "
			"choose shells (b_min, b_max), or --backend host", (long long)f->n_used, (long long)n[0], (long long)n[1], (long long)n[2],
			bytes / 1e9, f->m->device, (double)available / 1e9);
	return status;
}

int fx_fit_new(fx_math *m, fx_series_info *info, const fx_fit_spec *spec, fx_fit **out)
{
	fx_fit *f;
	int64_t n = info->n_volumes > 0 ? info->n_volumes : 1;
	int status;

	*out = NULL;
	if ((spec->method != FX_FIT_OLS && spec->method != FX_FIT_WLS) || spec->reweightings < 0 || !(spec->floor >= 0))
		return fx_math_fail(m, FX_EINVAL, "a tensor fit is OLS or WLS, with reweightings and a floor that are not negative");
	status = fx_math_need(m, m->ops->tensor_fit && m->ops->tensor_accumulate && m->ops->tensor_solve && m->ops->marks && m->ops->magnitude,
		"tensor fit");
	if (status != FX_OK)
		return status;
	f = fx_alloc(1, sizeof *f);
	if (!f)
		return fx_math_fail(m, FX_ENOMEM, "no memory for a tensor fit");
	f->m = m;
	f->info = fx_series_info_ref(info);
	f->spec = *spec;
	f->row = fx_alloc(n, sizeof *f->row);
	f->came = fx_alloc(n, sizeof *f->came);
	f->kept = fx_alloc(n, sizeof(fx_array *));
	if (!f->row || !f->came || !f->kept)
		status = fx_math_fail(m, FX_ENOMEM, "no memory for a table of %lld volumes", (long long)n);
	if (status == FX_OK)
		status = choose_volumes(f);
	if (status == FX_OK)
		status = check_memory(f);
	if (status != FX_OK) {
		fx_fit_free(f);
		return status;
	}
	*out = f;
	return FX_OK;
}

void fx_fit_free(fx_fit *f)
{
	if (!f)
		return;
	for (int64_t i = 0; f->kept && i < f->info->n_volumes; i++)
		fx_array_unref(f->kept[i]);
	fx_array_unref(f->sums);
	fx_array_unref(f->seen);
	fxi_design_free(&f->design);
	fx_free(f->row);
	fx_free(f->came);
	fx_free(f->kept);
	fx_series_info_unref(f->info);
	fx_free(f);
}

void fx_fit_shells_text(const fx_fit *f, char *text, size_t size)
{
	fxi_shells_text(f->info, f->row, f->spec.b0_max, text, size);
}

/* ---- volumes ---- */

/* The volume where the fit works, as magnitudes. */
static int keep(fx_fit *f, int64_t volume, fx_array *data)
{
	fx_math *m = f->m;
	fx_array *there = NULL;
	bool any;
	int status = m->ops->upload(m, data, &there);

	if (status == FX_OK && there->type == FX_F32) {
		f->kept[volume] = there;
		return FX_OK;
	}
	if (status == FX_OK)
		status = m->ops->array_new(m, FX_F32, 3, data->dims, &f->kept[volume]);
	if (status == FX_OK)
		status = m->ops->magnitude(m, there, f->kept[volume], &any);
	fx_array_unref(there);
	return status;
}

static int add_sums(fx_fit *f, int64_t volume)
{
	const int64_t *n = f->info->lattice.dims, dims[4] = {n[0], n[1], n[2], X};
	int status = FX_OK;

	if (!f->sums)
		status = f->m->ops->array_new(f->m, FX_F32, 4, dims, &f->sums);
	if (status == FX_OK && !f->seen)
		status = f->m->ops->array_new(f->m, FX_U8, 3, dims, &f->seen);
	if (status == FX_OK)
		status = f->m->ops->tensor_accumulate(f->m, f->design.q + X * f->row[volume], f->kept[volume], f->first, f->sums, f->seen);
	return status;
}

int fx_fit_add(fx_fit *f, int64_t volume, fx_array *data)
{
	const int64_t *n = f->info->lattice.dims;
	int status;

	if (volume < 0 || volume >= f->info->n_volumes)
		return fx_math_fail(f->m, FX_EDATA, "volume %lld is not in the gradient table, which has %lld", (long long)volume,
			(long long)f->info->n_volumes);
	if (f->came[volume])
		return fx_math_fail(f->m, FX_EDATA, "volume %lld of the series came twice", (long long)volume);
	if ((data->type != FX_F32 && data->type != FX_CF32) || data->n != n[0] * n[1] * n[2] || data->dims[0] != n[0] ||
		data->dims[1] != n[1] || data->dims[2] != n[2])
		return fx_math_fail(f->m, FX_EDATA, "volume %lld is %s of %lld x %lld x %lld; the series is f32 or cf32 of %lld x %lld x %lld",
			(long long)volume, fx_type_name(data->type), (long long)data->dims[0], (long long)data->dims[1],
			(long long)data->dims[2], (long long)n[0], (long long)n[1], (long long)n[2]);
	f->came[volume] = true;
	if (f->row[volume] < 0)
		return FX_OK;
	status = keep(f, volume, data);
	if (status != FX_OK)
		return status;
	if (!f->first)
		f->first = f->kept[volume];
	return f->spec.stream ? add_sums(f, volume) : FX_OK;
}

/* ---- tensors ---- */

/* What came, in the order of the table, and its design. */
struct series {
	int64_t n;
	const fx_array **list;
	int64_t *volumes, *use;
	fxi_design design;
};

static void free_series(struct series *s)
{
	fx_free(s->list);
	fx_free(s->volumes);
	fx_free(s->use);
	fxi_design_free(&s->design);
}

static int gather(fx_fit *f, struct series *s)
{
	int64_t n = f->info->n_volumes;
	int status;

	*s = (struct series){.list = fx_alloc(n, sizeof *s->list), .volumes = fx_alloc(n, sizeof *s->volumes),
		.use = fx_alloc(n, sizeof *s->use)};
	if (!s->list || !s->volumes || !s->use) {
		free_series(s);
		return fx_math_fail(f->m, FX_ENOMEM, "no memory for a series of %lld volumes", (long long)n);
	}
	for (int64_t i = 0; i < n; i++) {
		s->use[i] = f->kept[i] ? s->n : -1;
		if (!f->kept[i])
			continue;
		s->volumes[s->n] = i;
		s->list[s->n++] = f->kept[i];
	}
	status = fxi_design_new(f->m, f->info, s->volumes, s->n, &s->design);
	if (status == FX_OK && (fxi_shells_count(f->info, s->use, f->spec.b0_max) < 2 || s->design.rank < X))
		status = refuse(f, s->use, s->design.rank);
	if (status != FX_OK)
		free_series(s);
	s->design.of.floor = f->spec.floor;
	return status;
}

static int new_tensors(fx_fit *f, const fx_array *mask, bool residual, fx_msg **out)
{
	const fx_lattice *l = &f->info->lattice;
	const int64_t dims[4] = {6, l->dims[0], l->dims[1], l->dims[2]};
	fx_math *m = f->m;
	fx_tensors *t;
	int status;

	*out = fx_msg_new(FX_TENSORS);
	if (!*out)
		return fx_math_fail(m, FX_ENOMEM, "no memory for a message of tensors");
	t = fx_msg_tensors(*out);
	t->lattice = *l;
	status = m->ops->array_new(m, FX_F32, 4, dims, &t->d);
	if (status == FX_OK)
		status = m->ops->array_new(m, FX_F32, 3, dims + 1, &t->s0);
	if (status == FX_OK && residual)
		status = m->ops->array_new(m, FX_F32, 3, dims + 1, &t->residual);
	if (status == FX_OK)
		status = m->ops->array_new(m, FX_U8, 3, dims + 1, &t->flags);
	if (status == FX_OK)
		status = m->ops->array_new(m, FX_U8, 3, dims + 1, &t->mask);
	if (status == FX_OK && mask)
		status = m->ops->marks(m, mask, 0xff, 0, FX_TENSOR_OUTSIDE, NULL, t->flags, NULL);
	return status;
}

/* What is known once the voxels are done. */
static int describe(fx_fit *f, const struct series *s, int method, unsigned caveats, fx_tensors *t)
{
	char shells[SHELLS_TEXT / 2], weights[28] = "";

	fxi_shells_text(f->info, s->use, f->spec.b0_max, shells, sizeof shells);
	if (method == FX_FIT_WLS)
		snprintf(weights, sizeof weights, " (%d reweightings)", f->spec.reweightings);
	t->fit = method;
	t->caveats = f->info->caveats | caveats;
	snprintf(t->origin, sizeof t->origin, "%s fit%s of %s; table: %.60s", method == FX_FIT_WLS ? "WLS" : "OLS", weights, shells,
		f->info->origin);
	return f->m->ops->marks(f->m, t->flags, FX_TENSOR_OUTSIDE | FX_TENSOR_UNFITTED, 0, 1, NULL, t->mask, NULL);
}

static int check_mask(fx_fit *f, const fx_array *mask)
{
	const int64_t *n = f->info->lattice.dims;

	if (mask && (mask->type != FX_U8 || mask->n != n[0] * n[1] * n[2]))
		return fx_math_fail(f->m, FX_EINVAL, "the mask of a tensor fit is to be u8 of the series' %lld x %lld x %lld voxels",
			(long long)n[0], (long long)n[1], (long long)n[2]);
	return FX_OK;
}

static int fit_all(fx_fit *f, const fx_array *mask, int method, unsigned caveats, fx_msg **out)
{
	struct series s = {0};
	fx_tensors *t;
	int status = check_mask(f, mask);

	*out = NULL;
	if (status == FX_OK)
		status = gather(f, &s);
	if (status != FX_OK)
		return status;
	s.design.of.from_signals = method == FX_FIT_WLS && f->spec.start == FX_START_SIGNALS;
	s.design.of.reweightings = method == FX_FIT_WLS ? f->spec.reweightings : 0;
	status = new_tensors(f, mask, true, out);
	if (status == FX_OK) {
		t = fx_msg_tensors(*out);
		status = f->m->ops->tensor_fit(f->m, &s.design.of, s.list, mask,
			&(fx_tensor_arrays){.d = t->d, .s0 = t->s0, .residual = t->residual, .flags = t->flags});
	}
	if (status == FX_OK)
		status = describe(f, &s, method, caveats, fx_msg_tensors(*out));
	free_series(&s);
	if (status != FX_OK) {
		fx_drop(*out);
		*out = NULL;
	}
	return status;
}

int fx_fit_finish(fx_fit *f, const fx_array *mask, unsigned caveats, fx_msg **out)
{
	return fit_all(f, mask, f->spec.method, caveats, out);
}

/* The sums' own solution where volumes are missing: x = to_x (sum q q^T)^-1 sums. */
static int partial_solution(fx_fit *f, fx_tensor_design *design)
{
	double gram[X * X] = {0}, turned[X * X];

	for (int64_t v = 0; v < f->info->n_volumes; v++) {
		const double *q = f->design.q + X * f->row[v];

		for (int k = 0; f->kept[v] && k < X * X; k++)
			gram[k] += q[k / X] * q[k % X];
	}
	for (int k = 0; k < X * X; k++)
		turned[k] = design->to_x[k / X][k % X];
	/* The gram matrix is symmetric, and rows of to_x are its right sides: column-major, they are columns. */
	if (LAPACKE_dposv(LAPACK_COL_MAJOR, 'L', X, X, gram, X, turned, X) != 0)
		return fx_math_fail(f->m, FX_EDATA, "the volumes that came do not determine a tensor");
	for (int k = 0; k < X * X; k++)
		design->to_x[k / X][k % X] = turned[k];
	return FX_OK;
}

/* Voxels with signals of no use are fitted one by one, from the series. */
static int fit_dropped(fx_fit *f, const struct series *s, const fx_array *mask, const fx_tensor_arrays *arrays)
{
	fx_array *dropped = NULL;
	int64_t counts[9] = {0};
	int status = f->m->ops->array_new(f->m, FX_U8, 3, f->seen->dims, &dropped);

	if (status == FX_OK)
		status = f->m->ops->marks(f->m, f->seen, 1, 1, 0, mask, dropped, counts);
	if (status == FX_OK && counts[8] > 0)
		status = f->m->ops->tensor_fit(f->m, &s->design.of, s->list, dropped, arrays);
	fx_array_unref(dropped);
	return status;
}

static int solve_sums(fx_fit *f, const struct series *s, const fx_array *mask, fx_tensors *t)
{
	fx_tensor_arrays arrays = {.d = t->d, .s0 = t->s0, .residual = t->residual, .flags = t->flags};
	fx_tensor_design design = f->design.of;
	int status = FX_OK;

	design.floor = f->spec.floor;
	if (s->n < f->n_used)
		status = partial_solution(f, &design);
	if (status == FX_OK)
		status = f->m->ops->tensor_solve(f->m, &design, f->sums, f->seen, mask, &arrays);
	if (status == FX_OK)
		status = fit_dropped(f, s, mask, &arrays);
	return status;
}

int fx_fit_provisional(fx_fit *f, const fx_array *mask, fx_msg **out)
{
	struct series s = {0};
	int status = check_mask(f, mask);

	*out = NULL;
	if (status != FX_OK)
		return status;
	if (!f->spec.stream) {
		status = fit_all(f, mask, FX_FIT_OLS, 0, out);
	} else {
		status = gather(f, &s);
		if (status != FX_OK)
			return status;
		status = new_tensors(f, mask, true, out);
		if (status == FX_OK)
			status = solve_sums(f, &s, mask, fx_msg_tensors(*out));
		if (status == FX_OK)
			status = describe(f, &s, FX_FIT_OLS, 0, fx_msg_tensors(*out));
		free_series(&s);
	}
	if (status == FX_OK) {
		fx_msg_tensors(*out)->provisional = true;
		fx_slot_take(&fx_msg_tensors(*out)->residual, NULL); /* known in a few voxels only */
		return FX_OK;
	}
	fx_drop(*out);
	*out = NULL;
	return status;
}
