/* SPDX-License-Identifier: MIT */
/* host.h - the CPU backend's operations, one file a family; see backend.h for what each does. */
#ifndef FORNIX_HOST_H
#define FORNIX_HOST_H

#include <fornix/backend.h>

/* fft.c: FFTW plans made with ESTIMATE, one 1-D plan a line length, lines shared over the pool */
int fxi_host_fft(fx_math *m, fx_array *a, int sign, double scale);

/* nufft.c, fine.c */
int fxi_host_points_new(fx_math *m, const fx_fine_grid *g, const fx_array *k, void **points);
void fxi_host_points_free(fx_math *m, void *points);
int fxi_host_spread(fx_math *m, const fx_fine_grid *g, void *points, const fx_array *samples, fx_array *fine);
int fxi_host_interpolate(fx_math *m, const fx_fine_grid *g, void *points, const fx_array *fine, fx_array *samples);
int fxi_host_fine_to_image(fx_math *m, const fx_fine_grid *g, fx_array *fine, double scale, fx_array *image);
int fxi_host_image_to_fine(fx_math *m, const fx_fine_grid *g, const fx_array *image, double scale, fx_array *fine);

/* share.c, density.c */
int fxi_host_share_out(fx_math *m, const fx_array *k, const fx_array *samples, fx_array *cells);
int fxi_host_density_iterate(fx_math *m, const fx_density_cells *c, int64_t n_iterations, float *weights);

/* direct.c */
int fxi_host_direct_adjoint(fx_math *m, const fx_array *k, const fx_array *samples, double scale, fx_array *image);
int fxi_host_direct_forward(fx_math *m, const fx_array *k, const fx_array *image, double scale, fx_array *samples);

/* separable.c */
int fxi_host_separable_adjoint(fx_math *m, const fx_array *k, const fx_array *samples, double scale, fx_array *image);
int fxi_host_separable_forward(fx_math *m, const fx_array *k, const fx_array *image, double scale, fx_array *samples);

/* toeplitz.c */
int fxi_host_toeplitz_apply(fx_math *m, const fx_array *spectrum, const fx_array *x, fx_array *y);
int fxi_host_toeplitz_spectrum(fx_math *m, fx_array *q, fx_array *spectrum);

/* vector.c */
int fxi_host_dot(fx_math *m, const fx_array *x, const fx_array *y, double *re, double *im);
int fxi_host_axpy(fx_math *m, double a, const fx_array *x, fx_array *y);
int fxi_host_xpay(fx_math *m, const fx_array *x, double a, fx_array *y);
int fxi_host_scale(fx_math *m, double a, fx_array *x);

/* difference.c */
int fxi_host_difference_normal(fx_math *m, const fx_array *weights, double factor, const fx_array *x, fx_array *y);

/* coils.c, walsh.c */
int fxi_host_coil_expand(fx_math *m, const fx_array *maps, const fx_array *image, fx_array *coils);
int fxi_host_coil_combine(fx_math *m, const fx_array *maps, const fx_array *coils, fx_array *image);
int fxi_host_coil_power(fx_math *m, const fx_array *coils, fx_array *power);
int fxi_host_coil_mix(fx_math *m, const fx_array *matrix, const fx_array *in, fx_array *out);
int fxi_host_walsh(fx_math *m, const fx_array *coils, int radius, int n_iterations, fx_array *maps);

/* metric.c */
int fxi_host_marks(fx_math *m, const fx_array *a, unsigned bits, int yes, int no, const fx_array *within, fx_array *out,
	int64_t counts[9]);
int fxi_host_magnitude(fx_math *m, const fx_array *x, fx_array *out, bool *any);
int fxi_host_tensor_smooth(fx_math *m, const fx_array *tensors, const fx_array *mask, const fx_array *flags, unsigned skip_flags,
	const double sigma[3], fx_array *out);
int fxi_host_metric_build(fx_math *m, const fx_metric_plan *plan, const fx_array *tensors, const fx_array *mask,
	const fx_array *flags, const fx_metric_arrays *out, fx_metric_counts *counts);

/* tensor.c */
int fxi_host_tensor_fit(fx_math *m, const fx_tensor_design *design, const fx_array *const *volumes, const fx_array *mask,
	const fx_tensor_arrays *out);
int fxi_host_tensor_accumulate(fx_math *m, const double row[7], const fx_array *volume, const fx_array *first,
	fx_array *sums, fx_array *seen);
int fxi_host_tensor_solve(fx_math *m, const fx_tensor_design *design, const fx_array *sums, const fx_array *seen,
	const fx_array *mask, const fx_tensor_arrays *out);

/* track.c */
int fxi_host_track_prepare(fx_math *m, const fx_track_plan *plan, const fx_metric_arrays *metric, void **prepared);
void fxi_host_track_release(fx_math *m, void *prepared);
int fxi_host_track_batch(fx_math *m, const fx_track_plan *plan, const fx_metric_arrays *metric, void *prepared, const fx_track_keep *keep,
	const fx_array *starts, fx_track_arrays *out, fx_track_counts *counts);

#endif
