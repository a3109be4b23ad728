/* SPDX-License-Identifier: MIT */
/* trajectory.c - a file's trajectory into cycles/voxel, and what to do with samples beyond the matrix. */
#include <fornix/recon.h>

#include <math.h>

/* Samples this far beyond +-1/2 still count as inside: rounding of the file's own numbers (float, unit conversion). */
#define EDGE (0.5 + 1e-5)

int fx_trajectory_extent(fx_math *m, const fx_acquisition *a, int n_axes, double max_abs[3])
{
	int64_t columns = a->traj->dims[0];
	const float *t = FX_F32_OF(a->traj);

	for (int64_t i = 0; i < a->traj->dims[1]; i++)
		for (int d = 0; d < n_axes; d++) {
			double k = (double)t[i * columns + d];

			if (!isfinite(k))
				return fx_math_fail(m, FX_EDATA,
					"readout %u: trajectory sample %lld, axis %d is not a finite number; the file is damaged",
					a->head.scan_counter, (long long)i, d);
			if (fabs(k) > max_abs[d])
				max_abs[d] = fabs(k);
		}
	return FX_OK;
}

int fx_trajectory_convert(fx_math *m, fx_acquisition *a, const fx_encoding *encoding, int unit, int n_axes,
	const int64_t matrix[3])
{
	int64_t samples = a->traj->dims[1], columns = a->traj->dims[0];
	const int64_t *encoded = encoding->encoded.matrix;
	const float *t = FX_F32_OF(a->traj);
	fx_array *k;
	int status;

	if (samples != a->data->dims[0])
		return fx_math_fail(m, FX_EDATA, "readout %u has %lld samples but %lld points of trajectory",
			a->head.scan_counter, (long long)a->data->dims[0], (long long)samples);
	status = fx_array_new2(FX_F64, 3, samples, &k);
	if (status != FX_OK)
		return fx_math_fail(m, status, "no memory for a trajectory of %lld samples", (long long)samples);
	for (int d = 0; d < 3; d++)
		a->matrix[d] = matrix[d];
	fx_slot_take(&a->k, k);
	for (int d = 0; d < n_axes; d++) {
		double factor = fx_unit_factor(unit, d, encoded, encoding->encoded.fov_mm);

		if (encoded[d] == 1)
			continue; /* one voxel: nothing is encoded along this axis */
		if (!isfinite(factor))
			return fx_math_fail(m, FX_EDATA,
				"a trajectory in %s needs the field of view along axis %d, which the header gives as %g mm; "
				"correct the header or set trajectory.unit", fx_unit_name(unit), d, encoding->encoded.fov_mm[d]);
		factor *= (double)encoded[d] / (double)matrix[d];
		for (int64_t i = 0; i < samples; i++)
			FX_F64_OF(k)[3 * i + d] = (double)t[i * columns + d] * factor;
	}
	return FX_OK;
}

static bool inside(const double *k)
{
	return fabs(k[0]) <= EDGE && fabs(k[1]) <= EDGE && fabs(k[2]) <= EDGE;
}

int fx_trajectory_keep_inside(fx_math *m, fx_acquisition *a)
{
	const double *k = FX_F64_OF(a->k);
	int64_t samples = a->k->dims[1], coils = a->data->dims[1], kept = 0, to = 0;
	fx_array *data = NULL, *k_inside = NULL;

	for (int64_t i = 0; i < samples; i++)
		kept += inside(k + 3 * i);
	a->n_outside = samples - kept;
	if (kept == samples)
		return FX_OK;
	if (fx_array_new2(FX_CF32, kept, coils, &data) != FX_OK || fx_array_new2(FX_F64, 3, kept, &k_inside) != FX_OK) {
		fx_array_unref(data);
		return fx_math_fail(m, FX_ENOMEM, "no memory for a readout of %lld samples", (long long)kept);
	}
	for (int64_t i = 0; i < samples; i++) {
		if (!inside(k + 3 * i))
			continue;
		for (int d = 0; d < 3; d++)
			FX_F64_OF(k_inside)[3 * to + d] = k[3 * i + d];
		for (int64_t c = 0; c < coils; c++)
			FX_CF32_OF(data)[c * kept + to] = FX_CF32_OF(a->data)[c * samples + i];
		to++;
	}
	fx_slot_take(&a->data, data);
	fx_slot_take(&a->k, k_inside);
	fx_slot_take(&a->traj, NULL); /* no longer sample for sample */
	a->head.number_of_samples = (uint16_t)kept;
	return FX_OK;
}

void fx_trajectory_grow(const fx_encoding *encoding, int unit, const double max_abs[3], int64_t matrix[3])
{
	for (int d = 0; d < 3; d++) {
		int64_t n = encoding->encoded.matrix[d], more = 0;
		double half = n > 1 ? max_abs[d] * fx_unit_factor(unit, d, encoding->encoded.matrix, encoding->encoded.fov_mm) : 0;

		if (half > EDGE)
			more = 2 * (int64_t)ceil((half - 0.5) * (double)n - 1e-6);
		matrix[d] = n + more;
	}
}

/* The row of k-space that a step counter means. Limits are about Cartesian lines only where the encoding is Cartesian. */
static int64_t row_of(const fx_encoding *e, int counter, int64_t step, int64_t n)
{
	const fx_limit *l = &e->limits[counter];
	bool cartesian = e->trajectory == FX_TRAJ_CARTESIAN || e->trajectory == FX_TRAJ_EPI;

	return step - (cartesian && l->present ? l->center : n / 2);
}

int fx_trajectory_cartesian(fx_math *m, fx_acquisition *a, const fx_encoding *e, const int64_t matrix[3])
{
	const int64_t *n = e->encoded.matrix;
	int64_t samples = a->data->dims[0], centre = a->head.center_sample, rows[3] = {0};
	bool reverse = FX_FLAG(a->head.flags, ISMRMRD_ACQ_IS_REVERSE);
	fx_array *k = NULL, *weights = NULL;

	if (centre == 0 && samples >= n[0])
		centre = samples / 2;
	rows[1] = n[1] > 1 ? row_of(e, FX_STEP_1, a->head.idx.kspace_encode_step_1, n[1]) : 0;
	rows[2] = n[2] > 1 ? row_of(e, FX_STEP_2, a->head.idx.kspace_encode_step_2, n[2]) : 0;
	if (centre > n[0] / 2 || samples - centre > n[0] - n[0] / 2 || rows[1] < -(n[1] / 2) || rows[1] >= n[1] - n[1] / 2 ||
		rows[2] < -(n[2] / 2) || rows[2] >= n[2] - n[2] / 2)
		return fx_math_fail(m, FX_EDATA, "readout %u, a Cartesian line (steps %u, %u; %lld samples, centre %lld), does not fit "
			"the encoded matrix %lld x %lld x %lld; the header's matrix or limits are wrong, or the readout is oversampled: "
			"put <remove_oversampling/> in front", a->head.scan_counter, a->head.idx.kspace_encode_step_1,
			a->head.idx.kspace_encode_step_2, (long long)samples, (long long)centre, (long long)n[0], (long long)n[1],
			(long long)n[2]);
	if (fx_array_new2(FX_F64, 3, samples, &k) != FX_OK || fx_array_new1(FX_F32, samples, &weights) != FX_OK) {
		fx_array_unref(k);
		return fx_math_fail(m, FX_ENOMEM, "no memory for a trajectory of %lld samples", (long long)samples);
	}
	for (int64_t i = 0; i < samples; i++) {
		rows[0] = n[0] > 1 ? (reverse ? samples - 1 - i : i) - centre : 0;
		for (int d = 0; d < 3; d++)
			FX_F64_OF(k)[3 * i + d] = (double)rows[d] / (double)matrix[d];
		FX_F32_OF(weights)[i] = 1;
	}
	for (int d = 0; d < 3; d++)
		a->matrix[d] = matrix[d];
	fx_slot_take(&a->k, k);
	fx_slot_take(&a->weights, weights);
	a->density = FX_DENSITY_CELLS;
	return FX_OK;
}
