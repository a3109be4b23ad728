/* SPDX-License-Identifier: MIT */
/* fine_template.h - included by fine.c with REAL, COMPLEX and FN set for one precision. */

/* One slab of the image from the half that was computed: f(-n) = conj f(n). */
static void FN(unfold_plane)(void *arg, int64_t i)
{
	const struct unfold *u = arg;
	const int64_t *dims = u->shape->dims, *fine = u->shape->fine;
	int64_t pitch = fine[0] / 2, slab = pitch * fine[1], coil = i / dims[2], z = i % dims[2];
	const COMPLEX *from = (const COMPLEX *)u->fine + coil * slab * fine[2];
	COMPLEX *to = (COMPLEX *)u->image + i * dims[0] * dims[1];
	int64_t centre = dims[0] / 2, zm = 2 * (dims[2] / 2) - z;

	for (int64_t y = 0; y < dims[1]; y++) {
		int64_t ym = 2 * (dims[1] / 2) - y;
		const COMPLEX *row = from + y * pitch + z * slab;
		const REAL *mirrored = (const REAL *)(from + ym * pitch + zm * slab);
		REAL *out = (REAL *)(to + y * dims[0]);

		for (int64_t x = 0; x < centre; x++) {
			out[2 * x] = mirrored[2 * (centre - x)];
			out[2 * x + 1] = -mirrored[2 * (centre - x) + 1];
		}
		memcpy(out + 2 * centre, row, (size_t)(dims[0] - centre) * sizeof *row);
	}
}

/* A grid without any axis to transform. */
static void FN(copy_scaled)(int64_t n, double scale, bool from_real, const REAL *from, COMPLEX *to)
{
	for (int64_t i = 0; i < n; i++)
		to[i] = from_real ? (REAL)scale * from[i] : (REAL)scale * ((const COMPLEX *)from)[i];
}
