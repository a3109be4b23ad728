/* SPDX-License-Identifier: MIT */
/*
 * phantom_scan.c - the readouts of a test scan, made a batch at a time on the pool and written in order.
 *
 * Everything a readout holds follows from its number alone, noise too, so neither batches nor threads change a byte.
 */
#include "apps/phantom.h"

#include <ismrmrd/version.h>
#include <math.h>
#include <string.h>

#include <fornix/recon.h>

#include "apps/phantom_image.h"

#define BATCH 256
#define BATCH_BYTES (64 << 20)
#define NOISE_STREAMS ((uint64_t)1 << 62) /* streams of noise readouts, apart from those of the scan */
#define CALIBRATION_STREAMS ((uint64_t)1 << 61)
#define TICKS 2                           /* of 2.5 ms between readouts: MRD's time stamps */

/* Where readout q of the scan stands in its loops; q < 0: readouts that calibrate coils, slice after slice, ahead of it. */
struct place {
	int64_t repetition, slice, average, readout;
	bool calibration;
};

static int64_t n_calibration(const fxi_phantom_job *job)
{
	return job->n_calibrations * job->n_slices;
}

static struct place place_of(const fxi_phantom_job *job, int64_t q)
{
	int64_t n = job->sampling.n_readouts;
	struct place p = {.calibration = q < 0};

	if (q < 0) {
		q += n_calibration(job);
		p.readout = q % job->n_calibrations;
		p.slice = q / job->n_calibrations;
		p.average = p.repetition = 0;
	} else if (job->interleaved) {
		p.slice = q % job->n_slices;
		q /= job->n_slices;
		p.readout = q % n;
		p.average = q / n % job->n_averages;
		p.repetition = q / n / job->n_averages;
	} else {
		p.readout = q % n;
		p.average = q / n % job->n_averages;
		p.slice = q / n / job->n_averages % job->n_slices;
		p.repetition = q / n / job->n_averages / job->n_slices;
	}
	return p;
}

static int64_t n_imaging(const fxi_phantom_job *job)
{
	return job->sampling.n_readouts * job->n_averages * job->n_slices * job->n_repetitions;
}

int64_t fxi_phantom_n_readouts(const fxi_phantom_job *job)
{
	return n_imaging(job) + n_calibration(job) + job->n_noise_readouts;
}

static void raise_flag(ISMRMRD_AcquisitionHeader *head, bool condition, int flag)
{
	if (condition)
		head->flags |= (uint64_t)1 << (flag - 1);
}

static void set_flags(const fxi_phantom_job *job, const fxi_sampling *s, const struct place *p, const int64_t step[2], int64_t q,
	ISMRMRD_AcquisitionHeader *head)
{
	int64_t lines = s->n_steps[0] ? s->n_steps[0] : s->n_readouts, partitions = s->n_steps[1] ? s->n_steps[1] : 1;
	bool first = p->readout == 0 && p->average == 0 && !p->calibration;
	bool last = p->readout == s->n_readouts - 1 && p->average == job->n_averages - 1 && !p->calibration;

	raise_flag(head, step[0] == 0, ISMRMRD_ACQ_FIRST_IN_ENCODE_STEP1);
	raise_flag(head, step[0] == lines - 1, ISMRMRD_ACQ_LAST_IN_ENCODE_STEP1);
	raise_flag(head, step[1] == 0, ISMRMRD_ACQ_FIRST_IN_ENCODE_STEP2);
	raise_flag(head, step[1] == partitions - 1, ISMRMRD_ACQ_LAST_IN_ENCODE_STEP2);
	raise_flag(head, p->readout == 0, ISMRMRD_ACQ_FIRST_IN_AVERAGE);
	raise_flag(head, p->readout == s->n_readouts - 1, ISMRMRD_ACQ_LAST_IN_AVERAGE);
	raise_flag(head, first, ISMRMRD_ACQ_FIRST_IN_SLICE);
	raise_flag(head, last, ISMRMRD_ACQ_LAST_IN_SLICE);
	raise_flag(head, first && p->slice == 0, ISMRMRD_ACQ_FIRST_IN_REPETITION);
	raise_flag(head, last && p->slice == job->n_slices - 1, ISMRMRD_ACQ_LAST_IN_REPETITION);
	raise_flag(head, q == n_imaging(job) - 1, ISMRMRD_ACQ_LAST_IN_MEASUREMENT);
}

static void fill_head(const fxi_phantom_job *job, int64_t number, int64_t slice, double dwell_us,
	ISMRMRD_AcquisitionHeader *head)
{
	float position[3]; /* MRD's headers are packed: no pointers into them */

	memset(head, 0, sizeof *head);
	head->version = ISMRMRD_VERSION_MAJOR;
	head->measurement_uid = 1;
	head->scan_counter = (uint32_t)number;
	head->acquisition_time_stamp = (uint32_t)(number * TICKS);
	head->number_of_samples = (uint16_t)job->sampling.n_samples;
	head->available_channels = head->active_channels = (uint16_t)job->n_coils;
	for (int64_t c = 0; c < job->n_coils; c++)
		head->channel_mask[c / 64] |= (uint64_t)1 << (c % 64);
	head->center_sample = (uint16_t)job->sampling.center_sample;
	head->sample_time_us = (float)dwell_us;
	fxi_phantom_position(job, slice, position);
	for (int d = 0; d < 3; d++) {
		head->position[d] = position[d];
		head->read_dir[d] = job->read_dir[d];
		head->phase_dir[d] = job->phase_dir[d];
		head->slice_dir[d] = job->slice_dir[d];
	}
}

static void fill_trajectory(const fxi_phantom_job *job, const double *k, fx_array *traj)
{
	for (int d = 0; d < job->columns; d++) {
		double factor = fx_unit_factor(job->unit, d, job->encoded, job->encoded_fov_mm);

		for (int64_t j = 0; j < traj->dims[1]; j++)
			FX_F32_OF(traj)[d + job->columns * j] = (float)(k[3 * j + d] / factor);
	}
}

/* A readout without an object: sigma follows the bandwidth, which is 1/dwell times the receiver's share. */
static int make_noise(const fxi_phantom_job *job, int64_t number, fx_error *err, fx_acquisition *a)
{
	double share = job->noise_bandwidth > 0 ? job->noise_bandwidth : 1;
	double factor = sqrt(job->dwell_us / job->noise_dwell_us * share);
	int status = fx_array_new2(FX_CF32, job->sampling.n_samples, job->n_coils, &a->data);

	if (status != FX_OK)
		return fx_error_set(err, status, "no memory for a noise readout");
	fill_head(job, number, 0, job->noise_dwell_us, &a->head);
	a->head.center_sample = 0;
	raise_flag(&a->head, true, ISMRMRD_ACQ_IS_NOISE_MEASUREMENT);
	fxi_noise_add(&job->noise, NOISE_STREAMS + (uint64_t)number, factor, job->sampling.n_samples, job->n_coils,
		FX_CF32_OF(a->data));
	return FX_OK;
}

/* A readout of an image's frame, which was sampled as a whole; calibration frames come after all others. */
static void take_samples(const fxi_phantom_job *job, const struct place *p, fx_acquisition *a)
{
	int64_t frame = p->calibration ? job->n_averages * job->n_repetitions : p->average + job->n_averages * p->repetition;
	const fx_array *all = job->image->samples[p->slice + job->n_slices * frame];
	int64_t n = job->sampling.n_samples;

	for (int64_t c = 0; c < job->n_coils; c++)
		memcpy(FX_CF32_OF(a->data) + n * c, FX_CF32_OF(all) + all->dims[0] * c + n * p->readout, (size_t)n * sizeof(fx_cf32));
}

static int make_readout(const fxi_phantom_job *job, int64_t q, int64_t number, fx_error *err, fx_acquisition *a)
{
	struct place p = place_of(job, q);
	const fxi_sampling travelled = p.calibration ? fxi_phantom_calibration(job) : job->sampling, *s = &travelled;
	fxi_sampling nominal = travelled;
	int64_t index = p.readout + s->n_readouts * (p.average + job->n_averages * p.repetition);
	double scale = 1 / sqrt((double)job->encoded[0] * (double)job->encoded[1] * (double)job->encoded[2]);
	bool with_trajectory = (s->kind != FXI_CARTESIAN || job->attach) && !job->detach;
	fx_array *k = NULL;
	int64_t step[2];
	int status = fx_array_new2(FX_CF32, s->n_samples, job->n_coils, &a->data);

	if (status == FX_OK)
		status = fx_array_new2(FX_F64, 3, s->n_samples, &k);
	if (status == FX_OK && with_trajectory)
		status = fx_array_new2(FX_F32, job->columns, s->n_samples, &a->traj);
	if (status != FX_OK) {
		fx_error_set(err, status, "no memory for a readout of %lld samples and %lld coils", (long long)s->n_samples,
			(long long)job->n_coils);
		goto done;
	}
	/* golden and random trajectories go on from frame to frame */
	memset(nominal.shift, 0, sizeof nominal.shift);
	fxi_sampling_readout(&nominal, index, FX_F64_OF(k), step);
	fill_head(job, number, p.slice, job->dwell_us, &a->head);
	a->head.idx.kspace_encode_step_1 = (uint16_t)step[0];
	a->head.idx.kspace_encode_step_2 = (uint16_t)step[1];
	a->head.idx.slice = (uint16_t)p.slice;
	a->head.idx.average = (uint16_t)p.average;
	a->head.idx.repetition = (uint16_t)p.repetition;
	if (!job->no_flags)
		set_flags(job, s, &p, step, q, &a->head);
	raise_flag(&a->head, p.calibration, ISMRMRD_ACQ_IS_PARALLEL_CALIBRATION);
	if (with_trajectory) {
		a->head.trajectory_dimensions = (uint16_t)job->columns;
		fill_trajectory(job, FX_F64_OF(k), a->traj);
	}
	fxi_sampling_readout(s, index, FX_F64_OF(k), step);
	if (job->image)
		take_samples(job, &p, a);
	else
		status = fxi_phantom_samples(job->slices[p.slice], job->coils, FX_F64_OF(k), s->n_samples, scale, 1, err,
			FX_CF32_OF(a->data));
	if (status == FX_OK)
		fxi_noise_add(&job->noise, q < 0 ? CALIBRATION_STREAMS - (uint64_t)q : (uint64_t)q, 1, s->n_samples, job->n_coils, FX_CF32_OF(a->data));
done:
	fx_array_unref(k);
	return status;
}

struct item {
	fx_acquisition readout;
	fx_error err;
	int status;
};

struct batch {
	const fxi_phantom_job *job;
	int64_t first;
	struct item *items;
};

static void make_item(void *arg, int64_t i)
{
	struct batch *b = arg;
	struct item *item = &b->items[i];
	int64_t number = b->first + i, n_noise = b->job->n_noise_readouts;

	memset(item, 0, sizeof *item);
	if (number < n_noise)
		item->status = make_noise(b->job, number, &item->err, &item->readout);
	else
		item->status = make_readout(b->job, number - n_noise - n_calibration(b->job), number, &item->err, &item->readout);
}

int fxi_phantom_scan(const fxi_phantom_job *job, fxi_phantom_output *o, const volatile int *stop, fx_error *err)
{
	int64_t total = fxi_phantom_n_readouts(job);
	int status = FX_OK;
	int64_t fit = BATCH_BYTES / (8 * job->sampling.n_samples * job->n_coils);
	int64_t size = fit < 1 ? 1 : fit < BATCH ? fit : BATCH;
	struct batch b = {.job = job, .items = fx_alloc(size, sizeof *b.items)};

	if (!b.items)
		return fx_error_set(err, FX_ENOMEM, "no memory for a batch of readouts");
	for (; status == FX_OK && b.first < total; b.first += size) {
		int64_t n = total - b.first < size ? total - b.first : size;

		if (*stop) {
			status = fx_error_set(err, FX_ECANCELED, "stopped");
			break;
		}
		fx_parallel(job->n_threads, n, make_item, &b);
		for (int64_t i = 0; i < n; i++) {
			struct item *item = &b.items[i];

			if (status == FX_OK && item->status != FX_OK)
				status = fx_error_set(err, item->status, "%s", item->err.text);
			if (status == FX_OK)
				status = fxi_phantom_output_add(o, &item->readout, err);
			fx_array_unref(item->readout.data);
			fx_array_unref(item->readout.traj);
		}
	}
	fx_free(b.items);
	return status;
}
