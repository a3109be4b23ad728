/* SPDX-License-Identifier: MIT */
/*
 * collector.c - frames under construction: fx_framer says which readouts make one image, this keeps their pieces
 * until it is whole. fhd, grid and cartesian stand on it.
 */
#include <fornix/recon.h>

#include <math.h>
#include <string.h>

struct fx_collector {
	fx_math *m;
	const fx_header *scan;
	fx_collect_options options;
	fx_collect_ops ops;
	void *arg;
	fx_framer *framer;
	int64_t n_open, capacity;
	fx_open_frame **open;
	int64_t n_coils;       /* of the first readout; 0 before */
};

int fx_collector_new(fx_math *m, const fx_header *scan, const fx_collect_options *options,
	const fx_collect_ops *ops, void *arg, fx_collector **out)
{
	fx_collector *c = fx_alloc(1, sizeof *c);
	int status;

	*out = NULL;
	if (!c)
		return fx_math_fail(m, FX_ENOMEM, "no memory to collect frames");
	c->m = m;
	c->scan = scan;
	c->options = *options;
	c->ops = *ops;
	c->arg = arg;
	status = fx_framer_new(scan, &options->framer, m->err, &c->framer);
	if (status != FX_OK) {
		fx_free(c);
		return status;
	}
	*out = c;
	return FX_OK;
}

static void free_open(fx_collector *c, fx_open_frame *o)
{
	if (c->ops.discard)
		c->ops.discard(c->arg, o);
	for (int64_t i = 0; i < o->n_pieces; i++) {
		fx_array_unref(o->k[i]);
		fx_array_unref(o->weights[i]);
		fx_array_unref(o->phi2[i]);
		fx_array_unref(o->samples[i]);
	}
	fx_free(o->parts);
	fx_free(o->k); /* the four lists are one allocation */
	fx_drop(o->msg);
	fx_free(o);
}

void fx_collector_free(fx_collector *c)
{
	if (!c)
		return;
	for (int64_t i = 0; i < c->n_open; i++)
		free_open(c, c->open[i]);
	fx_free(c->open);
	fx_framer_free(c->framer);
	fx_free(c);
}

/* The grid along one axis: grown by whole voxel pairs, so that the centre voxel stays the centre voxel. */
static int64_t grown(int64_t n, double factor)
{
	int64_t more = (int64_t)ceil(((double)n * factor - (double)n) / 2 - 1e-9);

	return n == 1 ? 1 : n + 2 * (more > 0 ? more : 0);
}

/* What is given out: the encoded matrix, cropped where the encoded field of view is larger than the wanted one. */
static void set_geometry(const fx_collector *c, fx_open_frame *o, const fx_acquisition *a)
{
	fx_frame *f = o->frame;
	const fx_encoding *e = &c->scan->encodings[a->head.encoding_space_ref];
	double voxels = 1;

	for (int i = 0; i < 3; i++) {
		int64_t n = a->matrix[i] > 0 ? a->matrix[i] : e->encoded.matrix[i];
		double encoded = a->fov_mm[i] > 0 ? a->fov_mm[i] : e->encoded.fov_mm[i], wanted = e->recon.fov_mm[i];

		o->matrix[i] = n;
		f->grid[i] = grown(n, c->options.fov_factor);
		voxels *= (double)n;
		f->geometry.matrix[i] = n;
		f->geometry.fov_mm[i] = encoded;
		if (wanted > 0 && encoded > wanted * 1.001 && n > 1) {
			int64_t keep = (int64_t)llround((double)n * wanted / encoded);

			f->geometry.matrix[i] = keep < 1 ? 1 : keep;
			f->geometry.fov_mm[i] = encoded * (double)f->geometry.matrix[i] / (double)n;
		}
		f->geometry.position[i] = a->head.position[i];
		f->geometry.read_dir[i] = a->head.read_dir[i];
		f->geometry.phase_dir[i] = a->head.phase_dir[i];
		f->geometry.slice_dir[i] = a->head.slice_dir[i];
	}
	f->scale = 1 / sqrt(voxels);
}

static int grow_open(fx_collector *c)
{
	int64_t capacity = c->capacity ? 2 * c->capacity : 8;
	fx_open_frame **list;

	if (c->n_open < c->capacity)
		return FX_OK;
	list = fx_alloc(capacity, sizeof(fx_open_frame *));
	if (!list)
		return fx_math_fail(c->m, FX_ENOMEM, "no memory for %lld open frames", (long long)capacity);
	if (c->n_open > 0)
		memcpy(list, c->open, (size_t)c->n_open * sizeof *list);
	fx_free(c->open);
	c->open = list;
	c->capacity = capacity;
	return FX_OK;
}

static int begin_frame(fx_collector *c, int64_t id, const fx_acquisition *a, fx_open_frame **out)
{
	fx_open_frame *o;
	int status = grow_open(c);

	if (status != FX_OK)
		return status;
	o = fx_alloc(1, sizeof *o);
	if (o)
		o->msg = fx_msg_new(FX_FRAME);
	if (!o || !o->msg) {
		fx_free(o);
		return fx_math_fail(c->m, FX_ENOMEM, "no memory for a frame");
	}
	o->frame = fx_msg_frame(o->msg);
	o->frame->id = id;
	o->frame->calibration = id < 0;
	o->frame->head = a->head;
	o->frame->diffusion = fx_diffusion_counter(c->scan->diffusion_dimension, &a->head);
	o->frame->n_coils = a->data->dims[1];
	o->density = a->density;
	set_geometry(c, o, a);
	c->open[c->n_open++] = o;
	*out = o;
	return c->ops.begin ? c->ops.begin(c->arg, o, a) : FX_OK;
}

static fx_open_frame *find_open(const fx_collector *c, int64_t id)
{
	for (int64_t i = 0; i < c->n_open; i++)
		if (c->open[i]->frame->id == id)
			return c->open[i];
	return NULL;
}

/* Room for one more piece in the four lists, which share one allocation. */
static int grow_pieces(fx_collector *c, fx_open_frame *o)
{
	int64_t capacity = o->capacity ? 2 * o->capacity : 64;
	size_t bytes = (size_t)o->n_pieces * sizeof(fx_array *);
	fx_array **block;

	if (o->n_pieces < o->capacity)
		return FX_OK;
	block = fx_alloc(4 * capacity, sizeof(fx_array *));
	if (!block)
		return fx_math_fail(c->m, FX_ENOMEM, "no memory for a frame of %lld readouts", (long long)capacity);
	if (o->n_pieces > 0) {
		memcpy(block, o->k, bytes);
		memcpy(block + capacity, o->weights, bytes);
		memcpy(block + 2 * capacity, o->phi2, bytes);
		memcpy(block + 3 * capacity, o->samples, bytes);
	}
	fx_free(o->k);
	o->k = block;
	o->weights = block + capacity;
	o->phi2 = block + 2 * capacity;
	o->samples = block + 3 * capacity;
	o->capacity = capacity;
	return FX_OK;
}

/*
 * How many excitations a frame is made of. An EPI shot is a segment (of an average), whatever its lines; elsewhere every
 * readout has its own, unless all carry one time stamp: one excitation that was read several times.
 */
static int count_shots(fx_collector *c, fx_open_frame *o, const fx_acquisition *a)
{
	fx_frame *f = o->frame;
	uint32_t part = (uint32_t)a->head.idx.average << 16 | a->head.idx.segment;
	int64_t i = 0;

	if (c->scan->encodings[a->head.encoding_space_ref].trajectory != FX_TRAJ_EPI) {
		o->several_stamps = o->several_stamps || a->head.acquisition_time_stamp == 0 ||
			a->head.acquisition_time_stamp != f->head.acquisition_time_stamp;
		f->n_shots = o->several_stamps ? f->n_readouts : 1;
		return FX_OK;
	}
	while (i < o->n_parts && o->parts[i] != part)
		i++;
	if (i < o->n_parts)
		return FX_OK;
	if (o->n_parts == o->parts_capacity) {
		int64_t capacity = o->parts_capacity ? 2 * o->parts_capacity : 8;
		uint32_t *parts = fx_alloc(capacity, sizeof *parts);

		if (!parts)
			return fx_math_fail(c->m, FX_ENOMEM, "no memory to count the shots of a frame");
		if (o->n_parts > 0)
			memcpy(parts, o->parts, (size_t)o->n_parts * sizeof *parts);
		fx_free(o->parts);
		o->parts = parts;
		o->parts_capacity = capacity;
	}
	o->parts[o->n_parts++] = part;
	f->n_shots = o->n_parts;
	return FX_OK;
}

static int add_piece(fx_collector *c, fx_open_frame *o, const fx_acquisition *a, const fx_array *phi2, double norm2)
{
	fx_frame *f = o->frame;
	int64_t i = o->n_pieces;
	int status = grow_pieces(c, o);

	if (status != FX_OK)
		return status;
	if (a->density != o->density)
		return fx_math_fail(c->m, FX_EDATA,
			"readout %u has its density weights in another way than those before it in the same frame; "
			"set density.method=pipe_menon", a->head.scan_counter);
	o->density_iterations = a->density_iterations;
	o->k[i] = fx_array_ref(a->k);
	o->weights[i] = fx_array_ref(a->weights);
	o->phi2[i] = fx_array_ref((fx_array *)(uintptr_t)phi2);
	if (c->options.keep_samples || a->density == FX_DENSITY_ITERATIVE)
		o->samples[i] = fx_array_ref(a->data);
	o->n_pieces++;
	o->n_samples += a->data->dims[0];
	f->n_readouts++;
	status = count_shots(c, o, a);
	if (status != FX_OK)
		return status;
	f->data_norm2 += norm2;
	if (phi2) {
		const float *p = FX_F32_OF(phi2);

		for (int64_t s = 0; s < phi2->n; s++)
			f->phi2_sum += (double)p[s];
	} else {
		f->phi2_sum += (double)a->data->dims[0];
	}
	return c->ops.add ? c->ops.add(c->arg, o, a, phi2) : FX_OK;
}

static int whole_weights(fx_collector *c, fx_open_frame *o)
{
	fx_frame *f = o->frame;
	float *w;
	int status;

	if (o->density == FX_DENSITY_NONE)
		return FX_OK;
	if (o->density == FX_DENSITY_ITERATIVE)
		return fx_density_iterative(c->m, f->k, o->matrix, o->density_iterations, &f->weights);
	status = fx_join(c->m, o->weights, o->n_pieces, &f->weights);
	if (status != FX_OK)
		return status;
	w = FX_F32_OF(f->weights);
	if (o->density == FX_DENSITY_CELLS)
		return FX_OK;
	for (int64_t i = 0; i < f->weights->n; i++)
		w[i] /= (float)o->n_pieces; /* given as for a frame of one readout */
	return FX_OK;
}

static int whole_phi2(fx_collector *c, fx_open_frame *o)
{
	for (int64_t i = 0; i < o->n_pieces; i++)
		if (!o->phi2[i])
			return FX_OK; /* one voxel function per run: all or none */
	return fx_join(c->m, o->phi2, o->n_pieces, &o->frame->phi2);
}

static int close_frame(fx_collector *c, int64_t id, bool partial)
{
	fx_open_frame *o = find_open(c, id);
	int64_t at = 0;
	int status = FX_OK;

	if (!o)
		return fx_math_fail(c->m, FX_EINVAL, "frame %lld is not open", (long long)id);
	while (c->open[at] != o)
		at++;
	memmove(c->open + at, c->open + at + 1, (size_t)(c->n_open - at - 1) * sizeof *c->open);
	c->n_open--;
	o->frame->partial = partial;
	if (o->n_pieces > 0)
		fx_slot_take(&o->frame->first_k, fx_array_ref(o->k[0]));
	if (c->options.need_k) {
		status = fx_join(c->m, o->k, o->n_pieces, &o->frame->k);
		if (status == FX_OK)
			status = whole_weights(c, o);
		if (status == FX_OK)
			status = whole_phi2(c, o);
	}
	if (status == FX_OK && c->ops.close)
		status = c->ops.close(c->arg, o);
	free_open(c, o);
	return status;
}

static int check_readout(fx_collector *c, const fx_acquisition *a)
{
	unsigned readout = a->head.scan_counter;

	if (a->head.encoding_space_ref >= c->scan->n_encodings)
		return fx_math_fail(c->m, FX_EDATA,
			"readout %u refers to encoding %u, but the header has %lld; its encoding_space_ref or the header is wrong",
			readout, a->head.encoding_space_ref, (long long)c->scan->n_encodings);
	if (c->n_coils == 0)
		c->n_coils = a->data->dims[1];
	if (a->data->dims[1] != c->n_coils)
		return fx_math_fail(c->m, FX_EDATA,
			"readout %u has %lld coils, those before it %lld; a scan must keep its coils: split the file where they change",
			readout, (long long)a->data->dims[1], (long long)c->n_coils);
	if (c->options.need_k && !a->k)
		return fx_math_fail(c->m, FX_EDATA,
			"readout %u has no trajectory in cycles/voxel; put <trajectory/> in front of this gadget", readout);
	return FX_OK;
}

/* Calibration frames have ids below 0, by encoding and slice: their readouts come before, or between, the imaging ones. */
static int add_calibration(fx_collector *c, const fx_acquisition *a, const fx_array *phi2, double norm2)
{
	int64_t id = -1 - (((int64_t)a->head.encoding_space_ref << 16) + a->head.idx.slice);
	fx_open_frame *o = find_open(c, id);
	int status = o ? FX_OK : begin_frame(c, id, a, &o);

	return status == FX_OK ? add_piece(c, o, a, phi2, norm2) : status;
}

static int close_calibration(fx_collector *c)
{
	int status = FX_OK;

	for (int64_t i = 0; i < c->n_open && status == FX_OK;) {
		if (c->open[i]->frame->calibration)
			status = close_frame(c, c->open[i]->frame->id, false);
		else
			i++;
	}
	return status;
}

int fx_collector_add(fx_collector *c, const fx_acquisition *a, const fx_array *phi2, double norm2)
{
	fx_framed framed;
	int status = check_readout(c, a);

	if (status == FX_OK && fx_is_calibration(&a->head))
		return add_calibration(c, a, phi2, norm2);
	if (status == FX_OK)
		status = close_calibration(c);
	if (status == FX_OK)
		status = fx_framer_add(c->framer, &a->head, c->m->err, &framed);
	if (status != FX_OK)
		return status;
	for (int64_t i = 0; i < framed.n_before && status == FX_OK; i++)
		status = close_frame(c, framed.closed[i], false);
	for (int64_t i = 0; i < framed.n_frames && status == FX_OK; i++) {
		fx_open_frame *o = find_open(c, framed.frames[i]);

		if (!o)
			status = begin_frame(c, framed.frames[i], a, &o);
		if (status == FX_OK)
			status = add_piece(c, o, a, phi2, norm2);
	}
	for (int64_t i = framed.n_before; i < framed.n_closed && status == FX_OK; i++)
		status = close_frame(c, framed.closed[i], false);
	return status;
}

int fx_collector_end(fx_collector *c, bool input_cut, int64_t *n_partial)
{
	fx_framed framed;
	bool *partial = NULL;
	int status = fx_framer_end(c->framer, c->m->err, &framed, &partial);

	*n_partial = 0;
	if (status == FX_OK)
		status = close_calibration(c);
	for (int64_t i = 0; i < framed.n_closed && status == FX_OK; i++) {
		const fx_open_frame *o = find_open(c, framed.closed[i]);

		bool cut = partial[i] || input_cut;

		if (cut)
			++*n_partial;
		if (cut && o && c->options.partial == FX_PARTIAL_REFUSE)
			status = fx_math_fail(c->m, FX_EDATA,
				"the input ended in the middle of a frame (slice %u, repetition %u) after %lld readouts; "
				"set partial=emit to reconstruct what there is",
				o->frame->head.idx.slice, o->frame->head.idx.repetition, (long long)o->frame->n_readouts);
		else
			status = close_frame(c, framed.closed[i], cut);
	}
	fx_free(partial);
	return status;
}
