/* SPDX-License-Identifier: MIT */
/* fit.h - the parts of the tensor fit: which volumes are used, and the design that they make. */
#ifndef FORNIX_DIFFUSION_FIT_H
#define FORNIX_DIFFUSION_FIT_H

#include <fornix/diffusion.h>

#define FXI_FIT_X 7

/** fx_shells_text of the volumes where use[i] is not negative (NULL: of all). */
void fxi_shells_text(const fx_series_info *info, const int64_t *use, double b0_max, char *text, size_t size);
/** How many shells those volumes lie on; b0 is one. */
int64_t fxi_shells_count(const fx_series_info *info, const int64_t *use, double b0_max);

/** The design of n volumes of a table; q is owned by it. */
typedef struct fxi_design {
	fx_tensor_design of;
	double *q;
	int rank;             /**< singular values of the column-scaled design above 1e-3 of the largest; q is of use where it is 7 */
} fxi_design;

/** FX_ENOMEM is explained. Rank is left to the caller to judge. */
int fxi_design_new(fx_math *m, const fx_series_info *info, const int64_t *volumes, int64_t n, fxi_design *out);
void fxi_design_free(fxi_design *d);

#endif
