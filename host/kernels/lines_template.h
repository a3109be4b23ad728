/* SPDX-License-Identifier: MIT */
/* lines_template.h - included by lines.c with REAL, COMPLEX and FN set for one precision. */

/*
 * Rows first..last-1 of the array into columns of the block, starting at position p. Neighbouring lines are neighbours
 * in memory, so whole cache lines are read; the full block has a loop of its own, of constant length.
 */
static void FN(rows_in)(const fxi_line_layout *l, const COMPLEX *array, const REAL *weight, COMPLEX *block,
	int64_t first, int64_t last, int64_t p)
{
	for (int64_t j = first; j < last; j++, p++) {
		const COMPLEX *row = array + j * l->element;
		REAL w = weight ? weight[j] : 1;

		if (l->n_lines == FXI_LINES && l->line == 1)
			for (int i = 0; i < FXI_LINES; i++)
				block[i * l->ld + p] = w * row[i];
		else
			for (int i = 0; i < l->n_lines; i++)
				block[i * l->ld + p] = w * row[i * l->line];
	}
}

static void FN(rows_out)(const fxi_line_layout *l, const COMPLEX *block, const REAL *weight, COMPLEX *array,
	int64_t first, int64_t last, int64_t p)
{
	for (int64_t j = first; j < last; j++, p++) {
		COMPLEX *row = array + j * l->element;
		REAL w = weight ? weight[j] : 1;

		if (l->n_lines == FXI_LINES && l->line == 1)
			for (int i = 0; i < FXI_LINES; i++)
				row[i] = w * block[i * l->ld + p];
		else
			for (int i = 0; i < l->n_lines; i++)
				row[i * l->line] = w * block[i * l->ld + p];
	}
}

static void FN(copy)(COMPLEX *to, const COMPLEX *from, const REAL *weight, int64_t n)
{
	if (!weight) {
		memcpy(to, from, (size_t)n * sizeof *to);
		return;
	}
#pragma omp simd
	for (int64_t i = 0; i < n; i++)
		to[i] = weight[i] * from[i];
}

void FN(fxi_lines_gather)(const fxi_line_layout *l, const COMPLEX *array, const REAL *weight, COMPLEX *block)
{
	/* Elements before the centre are the negative positions, which the transform has at the end of its line. */
	int64_t below = l->centre < l->count ? l->centre : l->count;
	int64_t above = l->count - below, wrapped = l->n - l->centre;

	for (int i = 0; i < FXI_LINES; i++) {
		COMPLEX *line = block + i * l->ld;

		if (i >= l->n_lines)
			memset(line, 0, (size_t)l->n * sizeof *line);
		else if (below + above < l->n)
			memset(line + above, 0, (size_t)(l->n - above) * sizeof *line);
	}
	if (l->element != 1) {
		FN(rows_in)(l, array, weight, block, 0, below, wrapped);
		FN(rows_in)(l, array, weight, block, below, l->count, 0);
		return;
	}
	for (int i = 0; i < l->n_lines; i++) {
		const COMPLEX *row = array + i * l->line;
		COMPLEX *line = block + i * l->ld;

		FN(copy)(line + wrapped, row, weight, below);
		FN(copy)(line, row + below, weight ? weight + below : NULL, above);
	}
}

void FN(fxi_lines_scatter)(const fxi_line_layout *l, const COMPLEX *block, const REAL *weight, COMPLEX *array)
{
	int64_t below = l->centre < l->count ? l->centre : l->count;
	int64_t above = l->count - below, wrapped = l->n - l->centre;

	if (l->element != 1) {
		FN(rows_out)(l, block, weight, array, 0, below, wrapped);
		FN(rows_out)(l, block, weight, array, below, l->count, 0);
		return;
	}
	for (int i = 0; i < l->n_lines; i++) {
		COMPLEX *row = array + i * l->line;
		const COMPLEX *line = block + i * l->ld;

		FN(copy)(row, line + wrapped, weight, below);
		FN(copy)(row + below, line, weight ? weight + below : NULL, above);
	}
}
