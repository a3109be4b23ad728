/* SPDX-License-Identifier: MIT */
/* metrics.c - NRMSE, PSNR and scale fits; sums run in storage order in double, so that a figure is one figure. */
#include "recon/metrics.h"

#include <complex.h>
#include <math.h>
#include <stdio.h>

static void shape_text(const fx_array *a, char text[128])
{
	int used = 0;

	for (int i = 0; i < (a->n_dims > 0 ? a->n_dims : 1) && used < 100; i++)
		used += snprintf(text + used, 128 - (size_t)used, "%s%lld", i ? " x " : "", (long long)a->dims[i]);
}

static bool same_dims(const fx_array *a, const fx_array *b)
{
	for (int i = 0; i < FX_MAX_DIMS; i++)
		if (a->dims[i] != b->dims[i])
			return false;
	return true;
}

static bool is_complex(const fx_array *a)
{
	return a->type == FX_CF32 || a->type == FX_CF64;
}

/* cf64, or f64 values, or f64 magnitudes. */
static int comparable(const fx_array *a, bool complex_values, fx_error *err, fx_array **out)
{
	int status = fx_array_convert(a, is_complex(a) ? FX_CF64 : FX_F64, out);

	if (status == FX_OK && is_complex(a) && !complex_values) {
		fx_array *wide = *out;

		status = fx_array_new(FX_F64, a->n_dims, a->dims, out);
		for (int64_t i = 0; status == FX_OK && i < a->n; i++)
			FX_F64_OF(*out)[i] = cabs(FX_CF64_OF(wide)[i]);
		fx_array_unref(wide);
	}
	return status == FX_OK ? FX_OK : fx_error_set(err, status, "no memory to compare images of %lld voxels", (long long)a->n);
}

static fx_cf64 value(const fx_array *a, int64_t i)
{
	return a->type == FX_CF64 ? FX_CF64_OF(a)[i] : FX_F64_OF(a)[i];
}

static int check_finite(const fx_array *a, const char *which, fx_error *err)
{
	int64_t bad = 0;

	for (int64_t i = 0; i < a->n; i++)
		bad += !isfinite(creal(value(a, i))) || !isfinite(cimag(value(a, i)));
	if (bad > 0)
		return fx_error_set(err, FX_EDATA, "%s has %lld values that are not finite", which, (long long)bad);
	return FX_OK;
}

/* The mask as f64, one entry a voxel of one volume or of all; NULL where there is none. */
static int mask_of(const fx_array *mask, const fx_array *b, fx_error *err, fx_array **out)
{
	char m_text[128], b_text[128];

	*out = NULL;
	if (!mask)
		return FX_OK;
	if (is_complex(mask))
		return fx_error_set(err, FX_EINVAL, "the mask is complex");
	if (!same_dims(mask, b) && (mask->n != b->dims[0] * b->dims[1] * b->dims[2] || mask->dims[0] != b->dims[0] ||
			mask->dims[1] != b->dims[1] || mask->dims[2] != b->dims[2])) {
		shape_text(mask, m_text);
		shape_text(b, b_text);
		return fx_error_set(err, FX_EINVAL, "the mask is %s, the reference %s", m_text, b_text);
	}
	return comparable(mask, false, err, out);
}

struct sums {
	int64_t n;
	double difference2, b2, a2, peak;
	fx_cf64 ab; /* sum conj(a) b */
};

static struct sums sum_up(const fx_array *a, const fx_array *b, const fx_array *mask, fx_cf64 scale)
{
	struct sums s = {0};

	for (int64_t i = 0; i < a->n; i++) {
		fx_cf64 x = scale * value(a, i), y = value(b, i), d = x - y;

		if (mask && FX_F64_OF(mask)[i % mask->n] == 0)
			continue;
		s.n++;
		s.difference2 += creal(d) * creal(d) + cimag(d) * cimag(d);
		s.b2 += creal(y) * creal(y) + cimag(y) * cimag(y);
		s.a2 += creal(x) * creal(x) + cimag(x) * cimag(x);
		s.ab += conj(x) * y;
		s.peak = fmax(s.peak, cabs(y));
	}
	return s;
}

/* Mean SSIM over the mask, volume by volume; magnitudes where values are complex. */
static int mean_ssim(const fx_array *a, const fx_array *b, const fx_array *mask, fx_cf64 scale, double peak, int n_threads,
	fx_error *err, double *mean)
{
	int64_t volume = b->dims[0] * b->dims[1] * b->dims[2], n = 0;
	fx_array *x = NULL, *y = NULL, *map = NULL;
	double sum = 0;
	int status = fx_array_new(FX_F64, 3, b->dims, &x);

	if (status == FX_OK)
		status = fx_array_new(FX_F64, 3, b->dims, &y);
	if (status != FX_OK)
		status = fx_error_set(err, status, "no memory for the SSIM of %lld voxels", (long long)volume);
	for (int64_t at = 0; status == FX_OK && at < b->n; at += volume) {
		for (int64_t i = 0; i < volume; i++) {
			fx_cf64 va = scale * value(a, at + i), vb = value(b, at + i);

			FX_F64_OF(x)[i] = a->type == FX_CF64 ? cabs(va) : creal(va);
			FX_F64_OF(y)[i] = b->type == FX_CF64 ? cabs(vb) : creal(vb);
		}
		status = fxi_ssim(x, y, peak, n_threads, err, &map);
		for (int64_t i = 0; status == FX_OK && i < volume; i++) {
			if (mask && FX_F64_OF(mask)[(at + i) % mask->n] == 0)
				continue;
			sum += FX_F64_OF(map)[i];
			n++;
		}
		fx_array_unref(map);
		map = NULL;
	}
	fx_array_unref(x);
	fx_array_unref(y);
	*mean = sum / (double)n;
	return status;
}

static int compare(const fx_array *a, const fx_array *b, const fx_array *mask, bool fit, int n_threads, fx_error *err,
	fxi_metrics *out)
{
	fx_cf64 scale = 1;
	struct sums s = sum_up(a, b, mask, scale);

	if (s.n == 0)
		return fx_error_set(err, FX_EDATA, mask ? "the mask holds no voxel" : "the images hold no voxel");
	if (s.b2 == 0)
		return fx_error_set(err, FX_EDATA, "the reference is zero everywhere: there is nothing to be relative to");
	if (fit) {
		if (s.a2 == 0)
			return fx_error_set(err, FX_EDATA, "the image is zero everywhere: no scale fits it to the reference");
		scale = s.ab / s.a2;
		s = sum_up(a, b, mask, scale);
	}
	*out = (fxi_metrics){
		.n = s.n, .complex_values = a->type == FX_CF64, .nrmse = sqrt(s.difference2 / s.b2), .peak = s.peak,
		.rmse = sqrt(s.difference2 / (double)s.n), .scale_re = creal(scale), .scale_im = cimag(scale),
	};
	out->psnr_db = out->rmse > 0 ? 20 * log10(out->peak / out->rmse) : (double)INFINITY;
	return mean_ssim(a, b, mask, scale, s.peak, n_threads, err, &out->ssim);
}

int fxi_compare(const fx_array *a, const fx_array *b, const fx_array *mask, bool fit, int n_threads, fx_error *err,
	fxi_metrics *out)
{
	bool complex_values = is_complex(a) && is_complex(b);
	fx_array *x = NULL, *y = NULL, *m = NULL;
	char a_text[128], b_text[128];
	int status;

	if (!same_dims(a, b)) {
		shape_text(a, a_text);
		shape_text(b, b_text);
		return fx_error_set(err, FX_EINVAL, "the image is %s, the reference %s", a_text, b_text);
	}
	status = comparable(a, complex_values, err, &x);
	if (status == FX_OK)
		status = comparable(b, complex_values, err, &y);
	if (status == FX_OK)
		status = mask_of(mask, b, err, &m);
	if (status == FX_OK)
		status = check_finite(x, "the image", err);
	if (status == FX_OK)
		status = check_finite(y, "the reference", err);
	if (status == FX_OK)
		status = compare(x, y, m, fit, n_threads, err, out);
	fx_array_unref(x);
	fx_array_unref(y);
	fx_array_unref(m);
	return status;
}
