/* SPDX-License-Identifier: MIT */
/*
 * phantom_trajectory.c - where a test scan samples k-space, in cycles/voxel of the nominal matrix.
 *
 * k spans [-0.5, 0.5) on every axis that the matrix has, so voxels that are not cubic give k-space that is not round:
 * as a scanner's own trajectory would in these units.
 */
#include "recon/phantom.h"

#include <math.h>

#define PI 3.14159265358979323846
#define GOLDEN_RATIO 1.61803398874989484820
/* 2-D golden means: roots of the 3-D recursion (Chan et al. 2009, Temporal stability of adaptive 3D radial MRI) */
#define GOLDEN_MEAN_1 0.46557123187676802666
#define GOLDEN_MEAN_2 0.68232780382801932737

static const char *const names[] = {"cartesian", "radial", "spiral", "stack-of-stars", "radial3d", "random"};

const char *fxi_sampling_name(int kind)
{
	return kind >= FXI_CARTESIAN && kind <= FXI_RANDOM ? names[kind] : "?";
}

static int64_t largest(const int64_t matrix[3])
{
	int64_t n = matrix[0];

	for (int d = 1; d < 3; d++)
		n = matrix[d] > n ? matrix[d] : n;
	return n;
}

static bool share(double x)
{
	return x >= 0.5 && x <= 1;
}

double fxi_spiral_turns(const fxi_sampling *s)
{
	int64_t acceleration = s->acceleration > 0 ? s->acceleration : 1;

	return (double)largest(s->matrix) / (2 * (double)(s->n_readouts * acceleration));
}

static int complete_cartesian(fxi_sampling *s, fx_error *err)
{
	int64_t full;

	if (s->oversampling == 0)
		s->oversampling = 1;
	if (s->echo == 0)
		s->echo = 1;
	for (int d = 0; d < 2; d++)
		if (s->partial_fourier[d] == 0)
			s->partial_fourier[d] = 1;
	if (!(s->oversampling >= 1 && s->oversampling <= 16))
		return fx_error_set(err, FX_EINVAL, "readout oversampling %g: it takes 1 to 16", s->oversampling);
	if (!share(s->echo) || !share(s->partial_fourier[0]) || !share(s->partial_fourier[1]))
		return fx_error_set(err, FX_EINVAL, "partial Fourier and echo shares lie between 0.5 and 1");
	full = llround(s->oversampling * (double)s->matrix[0]);
	s->oversampling = (double)full / (double)s->matrix[0];
	s->n_samples = llround(s->echo * (double)full);
	s->center_sample = full / 2 - (full - s->n_samples);
	for (int d = 0; d < 2; d++) {
		s->n_steps[d] = llround(s->partial_fourier[d] * (double)s->matrix[d + 1]);
		s->skipped[d] = s->matrix[d + 1] - s->n_steps[d];
		/* k = 0 must be among the lines */
		if (s->skipped[d] > s->matrix[d + 1] / 2)
			s->skipped[d] = s->matrix[d + 1] / 2;
		s->n_steps[d] = s->matrix[d + 1] - s->skipped[d];
	}
	if (s->center_sample < 0) {
		s->n_samples -= s->center_sample;
		s->center_sample = 0;
	}
	s->n_readouts = s->n_steps[0] * s->n_steps[1];
	return FX_OK;
}

static void complete_spiral(fxi_sampling *s, int64_t n)
{
	if (s->n_readouts == 0)
		s->n_readouts = n >= 16 ? n / 8 : 2;
	if (s->n_samples == 0) {
		/* arc length of an Archimedean spiral to radius 0.5, in samples of 1/(1.5 N) */
		double turns = fxi_spiral_turns(s);

		s->n_samples = (int64_t)ceil(1.5 * (double)n * (0.5 + PI * turns / 2));
	}
}

static void complete_rest(fxi_sampling *s, int64_t n)
{
	double nyquist = s->kind == FXI_RADIAL3D ? PI / 2 * (double)n * (double)n : PI / 2 * (double)n;

	if (s->kind == FXI_RANDOM) {
		int64_t n_samples = s->n_samples ? s->n_samples : 256;
		double want = 2 * (double)s->matrix[0] * (double)s->matrix[1] * (double)s->matrix[2];

		s->n_samples = n_samples;
		if (s->n_readouts == 0)
			s->n_readouts = (int64_t)ceil(want / (double)n_samples);
		return;
	}
	if (s->n_samples == 0)
		s->n_samples = 2 * n;
	s->center_sample = s->n_samples / 2;
	if (s->kind == FXI_STACK_OF_STARS) {
		s->n_steps[1] = s->matrix[2];
		s->n_steps[0] = s->n_readouts ? s->n_readouts : (int64_t)ceil(nyquist);
		s->n_readouts = s->n_steps[0] * s->n_steps[1];
	} else if (s->n_readouts == 0) {
		s->n_readouts = (int64_t)ceil(nyquist);
	}
}

int fxi_sampling_complete(fxi_sampling *s, fx_error *err)
{
	bool volume = s->matrix[2] > 1;

	for (int d = 0; d < 3; d++)
		if (s->matrix[d] < 1 || s->matrix[d] > 65535)
			return fx_error_set(err, FX_EINVAL, "matrix %lld along axis %d: it takes 1 to 65535", (long long)s->matrix[d],
				d + 1);
	if (s->n_readouts < 0 || s->n_samples < 0 || s->n_samples > 65535)
		return fx_error_set(err, FX_EINVAL, "%lld readouts of %lld samples: a readout has 1 to 65535",
			(long long)s->n_readouts, (long long)s->n_samples);
	if ((s->kind == FXI_RADIAL || s->kind == FXI_SPIRAL) && volume)
		return fx_error_set(err, FX_EINVAL, "%s is a 2-D trajectory, and the matrix has %lld planes: take stack-of-stars, "
			"radial3d, or a third matrix size of 1", fxi_sampling_name(s->kind), (long long)s->matrix[2]);
	if ((s->kind == FXI_STACK_OF_STARS || s->kind == FXI_RADIAL3D) && !volume)
		return fx_error_set(err, FX_EINVAL, "%s is a 3-D trajectory, and the matrix has one plane: take radial, or a third "
			"matrix size above 1", fxi_sampling_name(s->kind));
	s->n_k_dims = volume ? 3 : 2;
	if (s->kind == FXI_CARTESIAN)
		return complete_cartesian(s, err);
	if (s->kind == FXI_SPIRAL)
		complete_spiral(s, largest(s->matrix));
	else
		complete_rest(s, largest(s->matrix));
	if (s->n_samples > 65535)
		return fx_error_set(err, FX_EINVAL, "a readout of %lld samples: MRD holds 65535; take more readouts",
			(long long)s->n_samples);
	return FX_OK;
}

static double fraction(double x)
{
	return x - floor(x);
}

static void spoke(const fxi_sampling *s, const double direction[3], double kz, double *k)
{
	for (int64_t j = 0; j < s->n_samples; j++)
		for (int d = 0; d < 3; d++)
			k[3 * j + d] = ((double)(j - s->center_sample) - s->shift[d]) / (double)s->n_samples * direction[d] +
				(d == 2 ? kz : 0);
}

/* Spoke angle i of n; golden: 111.246 degrees apart (Winkelmann et al. 2007), which half turn it points to included. */
static double spoke_angle(const fxi_sampling *s, int64_t i, int64_t n)
{
	if (s->golden)
		return 2 * PI * fraction((double)i / (2 * GOLDEN_RATIO));
	return (s->full_turn ? 2 : 1) * PI * (double)(i % n) / (double)n;
}

static void radial3d(const fxi_sampling *s, int64_t i, double *k)
{
	double z, angle, ring, sign = 1;

	if (s->full_turn && !s->golden) {
		int64_t half = (s->n_readouts + 1) / 2, at = i % s->n_readouts;

		sign = at < half ? 1 : -1;
		z = ((double)(at % half) + 0.5) / (double)half;
		angle = 2 * PI * fraction((double)(at % half) / GOLDEN_RATIO);
	} else if (s->golden) {
		z = fraction((double)i * GOLDEN_MEAN_1);
		angle = 2 * PI * fraction((double)i * GOLDEN_MEAN_2);
	} else {
		/* equal-area bands of the half sphere, one spoke each, turned by the golden angle: a generalised spiral */
		z = ((double)(i % s->n_readouts) + 0.5) / (double)s->n_readouts;
		angle = 2 * PI * fraction((double)(i % s->n_readouts) / GOLDEN_RATIO);
	}
	ring = sqrt(1 - z * z);
	spoke(s, (double[3]){sign * ring * cos(angle), sign * ring * sin(angle), sign * z}, 0, k);
}

/*
 * radius = 0.5 tau, angle = 2 pi turns tau. tau(t) solves (a + tau)^2 = a^2 + t (1 + 2a), a = 1/(2 pi turns): nearly equal
 * steps of arc outside, equal radial steps at the centre, so that no gradient need jump.
 */
static void spiral(const fxi_sampling *s, int64_t i, double *k)
{
	double turns = fxi_spiral_turns(s), a = 1 / (2 * PI * turns);
	double start = 2 * PI * (s->golden ? fraction((double)i / GOLDEN_RATIO)
		: (double)(i % s->n_readouts) / (double)s->n_readouts);

	for (int64_t j = 0; j < s->n_samples; j++) {
		for (int d = 0; d < 2; d++) {
			/* before its start a spiral rests at k = 0 */
			double t = fmax(0, ((double)j - s->shift[d]) / (double)s->n_samples);
			double tau = sqrt(a * a + t * (1 + 2 * a)) - a, angle = 2 * PI * turns * tau + start;

			k[3 * j + d] = 0.5 * tau * (d == 0 ? cos(angle) : sin(angle));
		}
		k[3 * j + 2] = 0;
	}
}

static void cartesian(const fxi_sampling *s, int64_t i, double *k, int64_t step[2])
{
	double spacing = s->oversampling * (double)s->matrix[0], at[2];

	step[0] = (i % s->n_readouts) % s->n_steps[0];
	step[1] = (i % s->n_readouts) / s->n_steps[0];
	for (int d = 0; d < 2; d++)
		at[d] = (double)(step[d] + s->skipped[d] - s->matrix[d + 1] / 2) / (double)s->matrix[d + 1];
	for (int64_t j = 0; j < s->n_samples; j++) {
		k[3 * j] = ((double)(j - s->center_sample) - s->shift[0]) / spacing;
		k[3 * j + 1] = at[0];
		k[3 * j + 2] = at[1];
	}
}

static void random_points(const fxi_sampling *s, int64_t i, double *k)
{
	fxi_random r;

	/* a stream of its own, away from the noise of the same seed */
	fxi_random_start(&r, s->seed ^ 0x7472616a6563746full, (uint64_t)i);
	for (int64_t j = 0; j < s->n_samples; j++)
		for (int d = 0; d < 3; d++)
			k[3 * j + d] = s->matrix[d] > 1 ? fxi_random_uniform(&r) - 0.5 : 0;
}

void fxi_sampling_readout(const fxi_sampling *s, int64_t i, double *k, int64_t step[2])
{
	double angle;

	step[0] = i % s->n_readouts;
	step[1] = 0;
	switch (s->kind) {
	case FXI_RADIAL:
		angle = spoke_angle(s, i, s->n_readouts);
		spoke(s, (double[3]){cos(angle), sin(angle), 0}, 0, k);
		break;
	case FXI_STACK_OF_STARS:
		/* partitions change fastest: all of one angle, then the next */
		step[1] = i % s->n_steps[1];
		step[0] = (i / s->n_steps[1]) % s->n_steps[0];
		angle = spoke_angle(s, i / s->n_steps[1], s->n_steps[0]);
		spoke(s, (double[3]){cos(angle), sin(angle), 0},
			(double)(step[1] - s->matrix[2] / 2) / (double)s->matrix[2], k);
		break;
	case FXI_RADIAL3D:
		radial3d(s, i, k);
		break;
	case FXI_SPIRAL:
		spiral(s, i, k);
		break;
	case FXI_RANDOM:
		random_points(s, i, k);
		break;
	default:
		cartesian(s, i, k, step);
	}
}
