/* SPDX-License-Identifier: MIT */
/*
 * gradient_table IMAGE BVALS BVECS - prints the gradient table of an image in scanner axes, a row "x y z b" a volume, for tests
 * beside other programs. Exits with 2 and the reason where the table is refused.
 */
#include "io/nifti_read.h"
#include "io/table_read.h"

#include <fornix/diffusion.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	fx_error err = {0};
	fxi_nifti_info info;
	fx_array *image = NULL, *tables[2] = {NULL, NULL};
	fx_gradient *g;
	fx_lattice lattice = {.has_affine = true};
	int64_t n_scaled = 0;
	int status;

	if (argc != 4)
		return 1;
	status = fxi_nifti_read(argv[1], &err, &image, &info);
	for (int i = 0; i < 2 && status == FX_OK; i++) {
		fx_array *lengths = NULL;

		status = fxi_table_read(argv[2 + i], &err, &tables[i], &lengths);
		fx_array_unref(lengths);
	}
	memcpy(lattice.affine, info.affine, sizeof lattice.affine);
	g = fx_alloc(info.dims[3], sizeof *g);
	if (status == FX_OK)
		status = fx_gradients_from_fsl(tables[0], tables[1], &lattice, info.dims[3], g, &n_scaled, &err);
	for (int64_t v = 0; v < info.dims[3] && status == FX_OK; v++)
		printf("%.12g %.12g %.12g %.12g\n", g[v].dir[0], g[v].dir[1], g[v].dir[2], g[v].b);
	if (status != FX_OK)
		fprintf(stderr, "%s\n", err.text);
	fx_free(g);
	fx_array_unref(image);
	fx_array_unref(tables[0]);
	fx_array_unref(tables[1]);
	return status == FX_OK ? 0 : 2;
}
