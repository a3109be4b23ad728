/* SPDX-License-Identifier: MIT */
/* coil_pca: the coils turned onto their principal components, strongest first, for each slice; none is dropped. */
#include <fornix/gadget.h>
#include <fornix/recon.h>

#include <string.h>

struct slice {
	struct slice *next;
	uint16_t number;
	fx_array *matrix;          /* cf32 {coils, coils}; NULL while readouts are held */
	fx_msg_list held;
};

struct state {
	const char *uncombined;
	int64_t readouts, samples;
	int64_t n_coils, n_apart;
	bool *apart;               /* {n_coils}: coils that are left alone */
	struct slice *slices;
};

static const fx_prop props[] = {
	FX_PROP(struct state, uncombined, "", 0, 65535,
		"Names of coils (the header's coilLabel), separated by commas, that are left alone and come first"),
	FX_PROP(struct state, readouts, "100", 1, 1e6, "Readouts of a slice to learn from, or all up to the slice's last where that comes first"),
	FX_PROP(struct state, samples, "16", 1, 65535, "Samples about the centre of each of them; with fewer than 16 readouts all samples"),
	FX_PROP_END
};

/* Marks the coils of that name; a name that the header does not have is told, since it may be a slip. */
static void leave_alone(struct state *s, fx_ctx *ctx, const char *name, size_t length)
{
	const fx_header *scan = fx_scan(ctx);
	bool found = false;

	for (int64_t i = 0; i < scan->n_coil_names && i < s->n_coils; i++)
		if (strlen(scan->coil_names[i]) == length && strncmp(scan->coil_names[i], name, length) == 0) {
			s->n_apart += !s->apart[i];
			s->apart[i] = found = true;
		}
	if (!found)
		fx_warn(ctx, "the header names no coil '%.*s', which uncombined lists", (int)(length > 100 ? 100 : length), name);
}

static int first_readout(struct state *s, fx_ctx *ctx, int64_t coils)
{
	s->n_coils = coils;
	s->apart = fx_alloc(coils, sizeof *s->apart);
	if (!s->apart)
		return fx_fail(ctx, FX_ENOMEM, "no memory for %lld coils", (long long)coils);
	for (const char *name = s->uncombined; *name;) {
		size_t length = strcspn(name, ","), lead = strspn(name, " \t\r\n"), end = length;

		while (end > lead && strchr(" \t\r\n", name[end - 1]))
			end--;
		if (end > lead)
			leave_alone(s, ctx, name + lead, end - lead);
		name += length + (name[length] == ',');
	}
	if (s->n_apart > 0)
		fx_record_number(ctx, "uncombined", (double)s->n_apart);
	return FX_OK;
}

/* The samples about k = 0 of the combined coils, {samples, combined coils}. */
static int centre(const struct state *s, const fx_acquisition *a, int64_t n_held, fx_array **out)
{
	int64_t have = a->data->dims[0], n = n_held < 16 || have < s->samples ? have : s->samples, c = 0;
	int64_t first = a->head.center_sample >= n / 2 ? a->head.center_sample - n / 2 : 0;
	int status = fx_array_new2(FX_CF32, n, s->n_coils - s->n_apart, out);

	if (status != FX_OK)
		return status;
	first = first + n > have ? have - n : first;
	for (int64_t coil = 0; coil < s->n_coils; coil++)
		if (!s->apart[coil])
			memcpy(FX_CF32_OF(*out) + c++ * n, FX_CF32_OF(a->data) + coil * have + first, (size_t)n * sizeof(fx_cf32));
	return FX_OK;
}

/* gram (cf64 {n, n}) of what is held, its means taken off. */
static int covariance(const struct state *s, fx_ctx *ctx, const struct slice *slice, fx_array *gram)
{
	int64_t n = gram->dims[0], total = 0;
	fx_array *means = NULL;
	int status = fx_array_new1(FX_CF64, n, &means);

	for (int64_t i = 0; i < slice->held.n && status == FX_OK; i++) {
		const fx_acquisition *a = fx_msg_acquisition(slice->held.list[i]);
		fx_array *part = NULL;

		if (fx_is_auxiliary(&a->head) || a->data->dims[0] == 0)
			continue;
		status = centre(s, a, slice->held.n, &part);
		if (status == FX_OK)
			status = fx_gram_add(fx_math_of(ctx), part, gram);
		for (int64_t c = 0; c < n && status == FX_OK; c++)
			for (int64_t k = 0; k < part->dims[0]; k++)
				FX_CF64_OF(means)[c] += (fx_cf64)FX_CF32_OF(part)[c * part->dims[0] + k];
		total += status == FX_OK ? part->dims[0] : 0;
		fx_array_unref(part);
	}
	for (int64_t b = 0; b < n && status == FX_OK && total > 0; b++)
		for (int64_t a = 0; a < n; a++) {
			fx_cf64 x = FX_CF64_OF(means)[a], y = FX_CF64_OF(means)[b];

			FX_CF64_OF(gram)[a + n * b] -= x * FX_CF64(__real__ y, -__imag__ y) / (double)total;
		}
	fx_array_unref(means);
	return status == FX_OK ? FX_OK : fx_fail(ctx, status, "no memory to learn from %lld readouts", (long long)slice->held.n);
}

/* Coils that are left alone come first, as they are; behind them the components of the others. */
static int embed(const struct state *s, const fx_array *components, fx_array **out)
{
	int64_t n = s->n_coils, o = 0, c = 0;
	int status = fx_array_new2(FX_CF32, n, n, out);

	if (status != FX_OK)
		return status;
	for (int64_t coil = 0; coil < n; coil++) {
		if (s->apart[coil]) {
			FX_CF32_OF(*out)[coil + n * o++] = 1;
			continue;
		}
		for (int64_t k = 0; k < components->dims[1]; k++)
			FX_CF32_OF(*out)[coil + n * (s->n_apart + k)] = FX_CF32_OF(components)[c + components->dims[0] * k];
		c++;
	}
	return FX_OK;
}

static bool all_zero(const fx_array *gram)
{
	for (int64_t i = 0; i < gram->dims[0]; i++)
		if (__real__ FX_CF64_OF(gram)[i * (gram->dims[0] + 1)] > 0)
			return false;
	return true;
}

static int learn(struct state *s, fx_ctx *ctx, struct slice *slice)
{
	int64_t n = s->n_coils - s->n_apart;
	fx_array *gram = NULL, *components = NULL;
	double kept;
	int status = fx_array_new2(FX_CF64, n, n, &gram);

	if (status == FX_OK)
		status = n > 0 ? covariance(s, ctx, slice, gram) : FX_OK;
	/* a slice that is all zeros has no components: any will do */
	if (status == FX_OK && n > 0 && all_zero(gram))
		for (int64_t i = 0; i < n; i++)
			FX_CF64_OF(gram)[i * (n + 1)] = 1;
	if (status == FX_OK && n > 0)
		status = fx_compression_matrix(fx_math_of(ctx), gram, n, 1, &components, &kept);
	if (status == FX_OK)
		status = embed(s, components, &slice->matrix);
	fx_array_unref(gram);
	fx_array_unref(components);
	return status == FX_OK ? FX_OK : fx_fail(ctx, status, "cannot find the components of %lld coils", (long long)n);
}

static int turn(const struct state *s, fx_ctx *ctx, const struct slice *slice, fx_msg *msg)
{
	fx_array *turned = NULL;
	fx_acquisition *a;
	int status = fx_msg_own(&msg);

	a = status == FX_OK ? fx_msg_acquisition(msg) : NULL;
	if (a)
		status = fx_array_new2(FX_CF32, a->data->dims[0], s->n_coils, &turned);
	if (status == FX_OK && turned->n > 0)
		status = fx_math_of(ctx)->ops->coil_mix(fx_math_of(ctx), slice->matrix, a->data, turned);
	if (status != FX_OK) {
		fx_array_unref(turned);
		fx_drop(msg);
		return fx_fail(ctx, status, "no memory for a readout");
	}
	fx_slot_take(&a->data, turned);
	return fx_emit(ctx, msg);
}

static int release(struct state *s, fx_ctx *ctx, struct slice *slice)
{
	int status = learn(s, ctx, slice);

	for (int64_t i = 0; i < slice->held.n; i++) {
		if (status == FX_OK)
			status = turn(s, ctx, slice, slice->held.list[i]);
		else
			fx_drop(slice->held.list[i]);
	}
	slice->held.n = 0;
	fx_msg_list_clear(&slice->held);
	return status;
}

static struct slice *find_slice(struct state *s, uint16_t number)
{
	struct slice **end = &s->slices;

	while (*end && (*end)->number != number)
		end = &(*end)->next;
	if (!*end && (*end = fx_alloc(1, sizeof **end)))
		(*end)->number = number;
	return *end;
}

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	struct state *s = self;
	ISMRMRD_AcquisitionHeader head = fx_msg_acquisition(msg)->head;
	int64_t coils = fx_msg_acquisition(msg)->data->dims[1];
	struct slice *slice;
	int status = FX_OK;

	/* noise belongs to no slice, and one coil has one component */
	if (FX_FLAG(head.flags, ISMRMRD_ACQ_IS_NOISE_MEASUREMENT) || (coils == 1 && s->n_coils <= 1))
		return fx_emit(ctx, msg);
	if (s->n_coils == 0)
		status = first_readout(s, ctx, coils);
	if (status == FX_OK && coils != s->n_coils)
		status = fx_fail(ctx, FX_EDATA, "readout %u has %lld coils, those before it %lld; a scan must keep its coils",
			head.scan_counter, (long long)coils, (long long)s->n_coils);
	slice = status == FX_OK ? find_slice(s, head.idx.slice) : NULL;
	if (!slice) {
		fx_drop(msg);
		return status != FX_OK ? status : fx_fail(ctx, FX_ENOMEM, "no memory for slice %u", head.idx.slice);
	}
	if (slice->matrix)
		return turn(s, ctx, slice, msg);
	if (fx_msg_list_push(&slice->held, msg) != FX_OK)
		return fx_fail(ctx, FX_ENOMEM, "no memory to hold readouts");
	return FX_FLAG(head.flags, ISMRMRD_ACQ_LAST_IN_SLICE) || slice->held.n >= s->readouts ? release(s, ctx, slice) : FX_OK;
}

static int flush(void *self, fx_ctx *ctx)
{
	struct state *s = self;
	int status = FX_OK;

	for (struct slice *slice = s->slices; slice && status == FX_OK; slice = slice->next)
		status = slice->matrix ? FX_OK : release(s, ctx, slice);
	return status;
}

static void close_gadget(void *self)
{
	struct state *s = self;

	while (s->slices) {
		struct slice *next = s->slices->next;

		fx_msg_list_clear(&s->slices->held);
		fx_array_unref(s->slices->matrix);
		fx_free(s->slices);
		s->slices = next;
	}
	fx_free(s->apart);
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "coil_pca",
	.summary = "Turn the coils onto their principal components, strongest first",
	.description = "Each slice's components come from the centre of its first readouts, which are held until there are enough or the slice "
		"ends; later readouts stream. The turn is unitary: a sum of squares over all coils does not change, and coil_select behind it "
		"keeps the strongest. coil_compress does both at once, for the whole scan. Source: Buehrer et al., Magn. Reson. Med. 57:1131 (2007).",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_ACQUISITION, .gives = FX_ACQUISITION, .needs = FX_ACQUISITION, .places = FX_HOST,
	.process = process, .flush = flush, .close = close_gadget,
};
