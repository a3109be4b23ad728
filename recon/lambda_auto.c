/* SPDX-License-Identifier: MIT */
/* lambda_auto.c - the smallest lambda whose predicted noise meets a target: what gives lambda a meaning to its user. */
#include <fornix/recon.h>

#include <math.h>

#define LOWEST 1e-6
#define HIGHEST 1e3
#define FACTOR 4.0    /* of the steps that bracket it */
#define PRECISION 1.02

struct search {
	fx_math *m;
	fx_frame frame; /* a copy of the payload whose lambda is tried; its arrays are the caller's */
	const fx_array *mask;
	const fx_predict_options *options;
	fx_array **right;
	void (*step)(void *arg, double lambda, double sigma);
	void *arg;
};

static int noise_at(struct search *s, double lambda, double *sigma)
{
	fx_array *map = NULL;
	double lambda_abs;
	int status;

	s->frame.lambda = lambda;
	s->frame.has_prior = true;
	status = fx_lambda_absolute(s->m, &s->frame, &lambda_abs);
	if (status == FX_OK)
		status = fx_predict_sigma(s->m, &s->frame, lambda_abs, s->options, s->right, &map);
	if (status != FX_OK)
		return status;
	*sigma = fx_mean_sigma(map, s->mask);
	fx_array_unref(map);
	if (s->step)
		s->step(s->arg, lambda, *sigma);
	return FX_OK;
}

/* A lambda that meets the target and one that does not (or LOWEST, which does). */
static int bracket(struct search *s, double target, double *low, double *high)
{
	double sigma = 0, lambda = 1;
	int status = noise_at(s, lambda, &sigma);
	bool met = sigma <= target;

	*low = *high = lambda;
	while (status == FX_OK && met && *high > LOWEST) {
		*low = fmax(*high / FACTOR, LOWEST);
		status = noise_at(s, *low, &sigma);
		if (status == FX_OK && sigma > target)
			return FX_OK;
		*high = *low;
	}
	while (status == FX_OK && !met) {
		if (*high >= HIGHEST)
			return fx_math_fail(s->m, FX_EDATA, "no lambda up to %g brings the predicted noise from %g down to "
				"target_sigma=%g; the target must be larger, in the image's own units", HIGHEST, sigma, target);
		*low = *high;
		*high = fmin(*high * FACTOR, HIGHEST);
		status = noise_at(s, *high, &sigma);
		met = status == FX_OK && sigma <= target;
	}
	return status;
}

int fx_lambda_for_sigma(fx_math *m, const fx_frame *frame, double target, const fx_array *mask,
	const fx_predict_options *options, void (*step)(void *arg, double lambda, double sigma), void *arg, double *lambda)
{
	struct search s = {.m = m, .frame = *frame, .mask = mask, .options = options, .step = step, .arg = arg};
	double low = 0, high = 0;
	int status = fx_predict_noise(m, frame, options, &s.right);

	if (status == FX_OK)
		status = bracket(&s, target, &low, &high);
	while (status == FX_OK && high > PRECISION * low) {
		double middle = sqrt(low * high), sigma;

		status = noise_at(&s, middle, &sigma);
		if (status == FX_OK && sigma <= target)
			high = middle;
		else
			low = middle;
	}
	*lambda = high;
	fx_arrays_free(s.right, options->n_probes);
	return status;
}
