/* SPDX-License-Identifier: MIT */
/* plan.c - the memory that a frame will take, said before any of it is taken. */
#include <fornix/recon.h>

#include <math.h>

/* Coil volumes alive at once: F^H D, the direct images, the maps, and the products inside one application of A. */
#define COIL_VOLUMES 4
/* Single volumes of conjugate gradients: right side, estimate, residual, direction, A p, A x. */
#define VOLUMES 6

double fx_plan_bytes(fx_math *m, const fx_frame *f, double sums_bytes)
{
	double voxels = 1, doubled = 1, coils = (double)f->n_coils, products;

	for (int d = 0; d < 3; d++) {
		voxels *= (double)f->grid[d];
		doubled *= f->grid[d] > 1 ? 2 * (double)f->grid[d] : 1;
	}
	/* a backend that applies A in one piece takes coils in batches and has no volume for each of them */
	products = m->ops->normal_bytes ? (double)m->ops->normal_bytes(m, f->grid, f->n_coils) : 8 * voxels * coils;
	/* Q is complex while it becomes its real spectrum */
	return sums_bytes + 8 * voxels * ((COIL_VOLUMES - 1) * coils + VOLUMES) + products + (8 + 4) * doubled;
}

int fx_plan_check(fx_math *m, const fx_frame *f, double bytes)
{
	int64_t available = 0;
	int status = fx_math_memory(m, &available, NULL);

	if (status != FX_OK || bytes <= (double)available)
		return status;
	return fx_math_fail(m, FX_ENOMEM,
		"a frame on a grid of %lld x %lld x %lld and %lld coil(s) needs about %.0f MB of the backend %s's memory, and %.0f MB are "
		"available; compress the coils (coil_compress.channels), lower fhd.fov_factor, or reconstruct a smaller matrix",
		(long long)f->grid[0], (long long)f->grid[1], (long long)f->grid[2], (long long)f->n_coils, ceil(bytes / 1e6),
		m->ops->name, (double)available / 1e6);
}
