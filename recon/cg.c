/* SPDX-License-Identifier: MIT */
/*
 * cg.c - conjugate gradients for Hermitian positive definite systems (Hestenes and Stiefel 1952, eq. 3:1).
 *
 * The residual r = b - A x is updated, not recomputed. In single precision it drifts from the true one, so before
 * the solver ends it applies A to x once more: what it reports last, and what it calls converged, is the true
 * residual. If the updated one had been too good, it goes on from x along the true residual.
 *
 * A x never needs an array of its own: A x = b - r.
 *
 * A backend that has cg_steps iterates by itself and tells the sums of each iteration. What is made of them, when to stop, and
 * what is believed is decided here for all backends.
 */
#include <fornix/recon.h>

#include <math.h>
#include <string.h>

#define MOST_STEPS 1024 /* that a backend makes in one call: bounds the memory of their sums */

struct cg {
	fx_math *m;
	int (*apply)(void *arg, const fx_array *x, fx_array *y);
	void *arg;
	const fx_array *b;
	int (*penalty)(void *arg, const fx_array *x, double *value);
	const fx_normal *normal; /* NULL: iterations are made here, of the backend's vector operations */
	double lambda_abs, data_norm2;
	double bb, rr;           /* ||b||^2, ||r||^2 */
	fx_array *x, *r, *p, *q; /* solution, residual, direction, A p */
	fx_cg_report *report;
};

static int squared_norm(struct cg *s, const fx_array *a, double *norm2)
{
	double im;

	return s->m->ops->dot(s->m, a, a, norm2, &im);
}

/* Writes the residuals that belong to an x with these sums into entry `i`. */
static void record_sums(struct cg *s, int64_t i, double xb, double xr, double xwx)
{
	/* x^H F^H F x = x^H (b - r) - lambda x^H W^H W x, less 2 Re x^H b, plus ||D||^2 */
	double misfit = s->data_norm2 - xb - xr - s->lambda_abs * xwx;

	s->report->residual_normal[i] = sqrt(s->rr / s->bb);
	/* A difference of large numbers: where the fit is perfect to single precision it may come out a little below 0. */
	s->report->residual_data[i] = !(s->data_norm2 > 0) ? NAN : misfit > 0 ? sqrt(misfit / s->data_norm2) : 0;
	s->report->n_residuals = i + 1;
}

/* Takes these sums of the current x and r. */
static int record(struct cg *s, int64_t i)
{
	const fx_backend *ops = s->m->ops;
	double xb = 0, xr = 0, xx = 0, im;
	int status = FX_OK;

	if (s->data_norm2 > 0) {
		status = ops->dot(s->m, s->x, s->b, &xb, &im);
		if (status == FX_OK)
			status = ops->dot(s->m, s->x, s->r, &xr, &im);
		if (status == FX_OK && s->lambda_abs != 0)
			status = s->penalty ? s->penalty(s->arg, s->x, &xx) : squared_norm(s, s->x, &xx);
	}
	if (status == FX_OK)
		record_sums(s, i, xb, xr, xx);
	return status;
}

static int not_finite(struct cg *s, const char *what)
{
	return fx_math_fail(s->m, FX_EDATA,
		"conjugate gradients: %s is not a finite number after %lld iterations; look for NaN, infinite or "
		"enormous values in the samples, the coil maps or the weights",
		what, (long long)s->report->iterations);
}

/* p = r, to start or start again along the steepest descent. */
static int steepest(struct cg *s)
{
	return s->m->ops->xpay(s->m, s->r, 0, s->p);
}

static int check_curvature(struct cg *s, double curvature)
{
	if (!isfinite(curvature))
		return not_finite(s, "p^H A p");
	if (curvature > 0)
		return FX_OK;
	return fx_math_fail(s->m, FX_EDATA,
		"conjugate gradients: the normal operator is not positive definite (p^H A p = %g after %lld "
		"iterations, residual %g); a larger lambda, a smaller NUFFT tolerance or fewer iterations help; "
		"else its kernel or the coil maps are damaged",
		curvature, (long long)s->report->iterations, sqrt(s->rr / s->bb));
}

/* One iteration; s->p is ready for the next one afterwards. */
static int step(struct cg *s)
{
	const fx_backend *ops = s->m->ops;
	double curvature, im, alpha, before = s->rr;
	int status;

	status = s->apply(s->arg, s->p, s->q);
	if (status == FX_OK)
		status = ops->dot(s->m, s->p, s->q, &curvature, &im);
	if (status == FX_OK)
		status = check_curvature(s, curvature);
	if (status != FX_OK)
		return status;
	alpha = before / curvature;
	status = ops->axpy(s->m, alpha, s->p, s->x);
	if (status == FX_OK)
		status = ops->axpy(s->m, -alpha, s->q, s->r);
	if (status == FX_OK)
		status = squared_norm(s, s->r, &s->rr);
	if (status != FX_OK)
		return status;
	s->report->iterations++;
	if (!isfinite(s->rr))
		return not_finite(s, "the residual");
	status = ops->xpay(s->m, s->r, s->rr / before, s->p);
	return status == FX_OK ? record(s, s->report->iterations) : status;
}

/* The same, as many as are left at most, by the backend alone. */
static int steps(struct cg *s, double goal, int64_t left)
{
	int64_t n = left < MOST_STEPS ? left : MOST_STEPS, done = 0;
	fx_cg_sums *sums = fx_alloc(n, sizeof *sums);
	int status;

	if (!sums)
		return fx_math_fail(s->m, FX_ENOMEM, "no memory for the sums of %lld iterations", (long long)n);
	status = s->m->ops->cg_steps(s->m, s->normal, s->b, s->rr, goal, n, s->x, s->r, s->p, s->q, sums, &done);
	for (int64_t i = 0; i < done && status == FX_OK; i++) {
		status = check_curvature(s, sums[i].curvature);
		if (status != FX_OK)
			break;
		s->report->iterations++;
		s->rr = sums[i].rr;
		if (!isfinite(s->rr))
			status = not_finite(s, "the residual");
		else
			record_sums(s, s->report->iterations, sums[i].xb, sums[i].xr, sums[i].xwx);
	}
	fx_free(sums);
	return status;
}

/* r = b - A x, truly. */
static int true_residual(struct cg *s)
{
	fx_array *old = s->r;
	int status = s->apply(s->arg, s->x, s->q);

	if (status == FX_OK)
		status = s->m->ops->xpay(s->m, s->b, -1, s->q);
	if (status == FX_OK)
		status = squared_norm(s, s->q, &s->rr);
	if (status != FX_OK)
		return status;
	if (!isfinite(s->rr))
		return not_finite(s, "the residual");
	s->r = s->q;
	s->q = old;
	return FX_OK;
}

/* Checks b and the start, and sets r. */
static int start(struct cg *s)
{
	const fx_backend *ops = s->m->ops;
	double xx;
	int status = squared_norm(s, s->b, &s->bb);

	if (status == FX_OK)
		status = squared_norm(s, s->x, &xx);
	if (status != FX_OK)
		return status;
	if (!isfinite(s->bb))
		return not_finite(s, "F^H D");
	if (!isfinite(xx))
		return not_finite(s, "the starting image");
	if (s->bb == 0) {
		s->rr = 0;
		return ops->scale(s->m, 0, s->x);
	}
	if (xx > 0)
		return true_residual(s);
	s->rr = s->bb;
	return ops->axpy(s->m, 1, s->b, s->r);
}

static int iterate(struct cg *s, const fx_cg_options *o)
{
	double goal = o->tolerance * o->tolerance * s->bb;
	bool is_true = true; /* r is b - A x itself, not an update of it */
	int status = record(s, 0);

	if (status == FX_OK)
		status = steepest(s);
	while (status == FX_OK) {
		bool last = s->report->iterations >= o->iterations;

		if ((last || s->rr <= goal) && !is_true) {
			status = true_residual(s);
			if (status == FX_OK)
				status = record(s, s->report->iterations);
			if (status == FX_OK)
				status = steepest(s);
			if (status != FX_OK)
				return status;
			is_true = true;
		}
		if (s->rr <= goal || last) {
			s->report->stop = s->rr <= goal ? FX_STOP_CONVERGED : FX_STOP_ITERATIONS;
			return FX_OK;
		}
		status = fx_math_check(s->m);
		if (status == FX_OK && s->normal)
			status = steps(s, goal, o->iterations - s->report->iterations);
		else if (status == FX_OK)
			status = step(s);
		is_true = false;
	}
	return status;
}

static int check(fx_math *m, const fx_array *b, const fx_array *x, double lambda_abs, const fx_cg_options *o)
{
	if (b->type != FX_CF32 || !fx_array_same_shape(b, x))
		return fx_math_fail(m, FX_EINVAL, "conjugate gradients: x and b differ in shape, or are not cf32");
	if (o->iterations < 0 || !(o->tolerance >= 0) || !isfinite(lambda_abs))
		return fx_math_fail(m, FX_EINVAL,
			"conjugate gradients: iterations %lld, tolerance %g or lambda %g is out of range",
			(long long)o->iterations, o->tolerance, lambda_abs);
	return FX_OK;
}

int fx_cg_solve(fx_math *m, int (*apply)(void *arg, const fx_array *x, fx_array *y), void *arg, const fx_array *b,
	double lambda_abs, double data_norm2, const fx_cg_options *options, fx_array *x, fx_cg_report *report)
{
	struct cg s = {.m = m, .apply = apply, .arg = arg, .b = b, .penalty = options->penalty,
		.normal = m->ops->cg_steps ? options->normal : NULL, .lambda_abs = lambda_abs, .data_norm2 = data_norm2, .x = x,
		.report = report};
	fx_array **scratch[] = {&s.r, &s.p, &s.q};
	int status = check(m, b, x, lambda_abs, options);

	memset(report, 0, sizeof *report);
	if (status != FX_OK)
		return status;
	if (options->iterations < INT64_MAX) {
		report->residual_normal = fx_alloc(options->iterations + 1, sizeof(double));
		report->residual_data = fx_alloc(options->iterations + 1, sizeof(double));
	}
	if (!report->residual_normal || !report->residual_data)
		return fx_math_fail(m, FX_ENOMEM, "no memory for the residuals of %lld iterations",
			(long long)options->iterations);
	for (size_t i = 0; i < 3 && status == FX_OK; i++)
		status = m->ops->array_new(m, FX_CF32, b->n_dims, b->dims, scratch[i]);
	if (status == FX_OK)
		status = start(&s);
	if (status == FX_OK && s.bb == 0) {
		report->stop = FX_STOP_ZERO;
		report->n_residuals = 1; /* x = 0 solves it exactly, and explains nothing of the data */
		report->residual_data[0] = data_norm2 > 0 ? 1 : NAN;
	} else if (status == FX_OK) {
		status = iterate(&s, options);
	}
	for (size_t i = 0; i < 3; i++)
		fx_array_unref(*scratch[i]);
	return status;
}

void fx_cg_report_free(fx_cg_report *r)
{
	fx_free(r->residual_normal);
	fx_free(r->residual_data);
	memset(r, 0, sizeof *r);
}
