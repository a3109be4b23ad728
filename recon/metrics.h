/* SPDX-License-Identifier: MIT */
/* metrics.h - how far an image is from a reference. */
#ifndef FORNIX_RECON_METRICS_H
#define FORNIX_RECON_METRICS_H

#include <fornix/array.h>
#include <fornix/base.h>

typedef struct fxi_metrics {
	int64_t n;            /**< voxels compared */
	bool complex_values;  /**< false: real values, or magnitudes where one image alone was complex */
	double nrmse;         /**< ||a - b|| / ||b|| */
	double psnr_db;       /**< 20 log10(max |b| / RMSE); infinite where they are equal */
	double ssim;          /**< mean structural similarity of the magnitudes (real images: of the values), see fxi_ssim */
	double peak, rmse;    /**< max |b|, root mean square of a - b */
	double scale_re, scale_im; /**< what a was multiplied by: 1 without a fit */
} fxi_metrics;

/**
 * Compares `a` with the reference `b`, where mask (any real type, the shape of b or of one volume of it) is not 0; NULL is
 * everywhere. Real and complex types are taken; where one alone is complex both become magnitudes. With `fit`, a
 * is first multiplied by the (complex) number that brings it nearest to b. FX_EINVAL names shapes that differ; FX_EDATA
 * for values that are not finite, an empty mask, a reference of zeros.
 */
int fxi_compare(const fx_array *a, const fx_array *b, const fx_array *mask, bool fit, int n_threads, fx_error *err,
	fxi_metrics *out);

/**
 * The SSIM map of two f64 volumes {x, y, z} (Wang et al. 2004): Gaussian window of sigma 1.5 voxels cut at 5, K1 = 0.01,
 * K2 = 0.03, dynamic range `range`. Axes of 1 are left out, so that a slice gets a 2-D window. At borders the window is cut
 * and normalised to what is left of it. *map is new, f64.
 */
int fxi_ssim(const fx_array *a, const fx_array *b, double range, int n_threads, fx_error *err, fx_array **map);

#endif
