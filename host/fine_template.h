/* SPDX-License-Identifier: MIT */
/* fine_template.h - included by fine.c with REAL, COMPLEX, EXECUTE_REAL and FN set for one precision. */

/* x lines of one slab z (and coil) of a real grid: rotated, transformed, the half that is wanted put back in place. */
static void FN(real_plane)(void *arg, int64_t i)
{
	const struct real_pass *r = arg;
	const fxi_squeezed *s = r->shape;
	REAL *plane = (REAL *)r->fine + i * s->fine[0] * s->fine[1];
	COMPLEX *block = fxi_scratch_take(r->scratch);
	const REAL *weight = r->weight;
	int64_t n = s->fine[0], half = s->dims[0] / 2 + 1;

	for (int64_t y = 0; y < s->fine[1]; y += FXI_LINES) {
		int64_t lines = s->fine[1] - y < FXI_LINES ? s->fine[1] - y : FXI_LINES;

		for (int64_t l = 0; l < lines; l++) {
			const REAL *row = plane + (y + l) * n;
			REAL *line = (REAL *)(block + l * r->ld);

			memcpy(line, row + n / 2, (size_t)(n / 2) * sizeof *line);
			memcpy(line + n / 2, row, (size_t)(n / 2) * sizeof *line);
		}
		EXECUTE_REAL(r->plan, (REAL *)block, block);
		for (int64_t l = 0; l < lines; l++) {
			REAL *row = plane + (y + l) * n;
			const REAL *line = (const REAL *)(block + l * r->ld);

			/* FFTW's exponent is -1 here: the conjugate is the other one's, since the input is real. */
			for (int64_t x = 0; x < half; x++) {
				row[2 * x] = weight[x] * line[2 * x];
				row[2 * x + 1] = -weight[x] * line[2 * x + 1];
			}
		}
	}
	fxi_scratch_give(r->scratch, block);
}

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
