/* SPDX-License-Identifier: MIT */
/* toeplitz: the operator F^H F of each frame as the spectrum of Q, summed while the scan runs. */
#include <fornix/gadget.h>
#include <fornix/recon.h>

#include <stdio.h>
#include <string.h>

#define KEY_SIZE 96

struct state {
	int method;
	double tolerance;
	bool cache;
	int64_t n_open, capacity;
	struct sum *open;          /* Q of the frames whose readouts are arriving */
	fx_array *known_first;     /* k of the first readout of the last trajectory whose kernel is known */
	fx_array *known_kernel;    /* the last one, where it was computed or put: on a GPU a copy takes longer than the sums */
	char known_key[KEY_SIZE];
};

/* Q of one frame under way. `sum` is NULL where the trajectory looks like one that is known. */
struct sum {
	int64_t frame_id;
	fx_fourier_spec spec;
	fx_fourier *fourier;
	fx_accumulator *sum;
};

enum { AUTO, DIRECT, NUFFT, SEPARABLE };
static const char *const methods[] = {
	[AUTO] = "auto", [DIRECT] = "direct", [NUFFT] = "nufft", [SEPARABLE] = "separable", NULL,
};
static const int fourier_methods[] = {
	[DIRECT] = FX_FOURIER_DIRECT, [NUFFT] = FX_FOURIER_NUFFT, [SEPARABLE] = FX_FOURIER_SEPARABLE,
};

static const fx_prop props[] = {
	FX_PROP_WORD(struct state, method, "auto", methods, "How Q is summed; auto: as F^H D was"),
	FX_PROP(struct state, tolerance, "1e-5", 1e-9, 1e-1, "Relative l2 error of Q with nufft"),
	FX_PROP(struct state, cache, "true", 0, 1, "Reuse Q of a known trajectory, in memory and, from its second use on, on disk"),
	FX_PROP_END
};

static int method_of(const struct state *s, int of_frame)
{
	return s->method == AUTO ? of_frame : fourier_methods[s->method];
}

static bool same_trajectory(const fx_array *a, const fx_array *b)
{
	return a && b && a->bytes == b->bytes && memcmp(a->data, b->data, (size_t)a->bytes) == 0;
}

/*
 * Backends round Q differently, and iterates far from convergence show it: each keeps its own, so that what ran before changes no
 * bits. The digest, behind the backend's name in hex and what is kept.
 */
static void key_of(fx_ctx *ctx, char what, const char digest[65], char key[KEY_SIZE])
{
	const char *name = fx_math_of(ctx)->ops->name;
	int used = 0;

	for (int i = 0; name[i] && i < 8; i++)
		used += snprintf(key + used, KEY_SIZE - (size_t)used, "%02x", (unsigned char)name[i]);
	snprintf(key + used, KEY_SIZE - (size_t)used, "-%c-%.64s", what, digest);
}

/* A key that says "the trajectory that starts like this has its kernel in the cache". */
static void first_key(const struct state *s, fx_ctx *ctx, const fx_weighted *w, char key[KEY_SIZE])
{
	char digest[65];

	fx_toeplitz_digest(method_of(s, w->method), s->tolerance, w->grid, w->scale, w->readout.k, w->phi2, digest);
	key_of(ctx, 'f', digest, key);
}

static bool looks_known(struct state *s, fx_ctx *ctx, const fx_weighted *w)
{
	fx_array *marker = NULL;
	char key[KEY_SIZE];

	if (!s->cache)
		return false;
	if (same_trajectory(s->known_first, w->readout.k))
		return true;
	first_key(s, ctx, w, key);
	if (fx_cache_get(ctx, key, &marker) != FX_OK || !marker)
		return false;
	fx_array_unref(marker);
	return true;
}

static int begin(struct state *s, fx_ctx *ctx, const fx_weighted *w, struct sum **out)
{
	struct sum *sum;
	int status = FX_OK;

	if (s->n_open == s->capacity) {
		int64_t capacity = s->capacity ? 2 * s->capacity : 4;
		struct sum *list = fx_alloc(capacity, sizeof *list);

		if (!list)
			return fx_fail(ctx, FX_ENOMEM, "no memory for %lld open frames", (long long)capacity);
		if (s->n_open > 0)
			memcpy(list, s->open, (size_t)s->n_open * sizeof *list);
		fx_free(s->open);
		s->open = list;
		s->capacity = capacity;
	}
	sum = &s->open[s->n_open++];
	memset(sum, 0, sizeof *sum);
	sum->frame_id = w->frame_id;
	sum->spec = fx_toeplitz_spec(method_of(s, w->method), s->tolerance, w->grid, w->scale);
	if (!looks_known(s, ctx, w)) {
		status = fx_fourier_new(fx_math_of(ctx), &sum->spec, &sum->fourier);
		if (status == FX_OK)
			status = fx_accumulator_new(sum->fourier, 1, &sum->sum);
	}
	*out = sum;
	return status;
}

static struct sum *find(struct state *s, int64_t frame_id)
{
	for (int64_t i = 0; i < s->n_open; i++)
		if (s->open[i].frame_id == frame_id)
			return &s->open[i];
	return NULL;
}

static void end(struct state *s, struct sum *sum)
{
	fx_accumulator_free(sum->sum);
	fx_fourier_free(sum->fourier);
	*sum = s->open[--s->n_open];
}

static int add(struct state *s, fx_ctx *ctx, const fx_weighted *w)
{
	struct sum *sum = find(s, w->frame_id);
	fx_array *samples = NULL;
	int status = FX_OK;

	if (!w->readout.k)
		return fx_fail(ctx, FX_EDATA, "a readout came without a trajectory; put <trajectory/> and <fhd/> in front");
	if (!sum)
		status = begin(s, ctx, w, &sum);
	if (status != FX_OK || !sum->sum)
		return status;
	status = fx_toeplitz_samples(fx_math_of(ctx), &sum->spec, w->readout.k->dims[1], w->phi2, &samples);
	if (status == FX_OK)
		status = fx_accumulator_add(sum->sum, w->readout.k, samples, NULL);
	fx_array_unref(samples);
	return status;
}

/* The kernel from what was summed while streaming, or from the whole trajectory. */
static int make(struct state *s, fx_ctx *ctx, const fx_frame *f, struct sum *sum, fx_array **kernel)
{
	fx_math *m = fx_math_of(ctx);
	fx_array *q;
	int status;

	if (!sum || !sum->sum)
		return fx_toeplitz_kernel(m, method_of(s, f->method), s->tolerance, f->grid, f->scale, f->k, f->phi2, kernel);
	status = fx_accumulator_finish(sum->sum, &q);
	sum->sum = NULL;
	return status == FX_OK ? fx_toeplitz_from_q(m, q, kernel) : status;
}

/* Leaves a marker under the first readout's key, so that the next run need not sum Q while it waits for the digest. */
static int mark_first(struct state *s, fx_ctx *ctx, const fx_frame *f)
{
	fx_weighted first = {.method = f->method, .scale = f->scale};
	fx_array *marker;
	char key[KEY_SIZE];
	int status = fx_array_new1(FX_U8, 1, &marker);

	if (status != FX_OK)
		return status;
	for (int i = 0; i < 3; i++)
		first.grid[i] = f->grid[i];
	first.readout.k = s->known_first;
	first_key(s, ctx, &first, key);
	status = fx_cache_put(ctx, key, marker);
	fx_array_unref(marker);
	return status;
}

static int remember(struct state *s, fx_ctx *ctx, const fx_frame *f, const char *key, fx_array *kernel, fx_array *first)
{
	int status = fx_cache_put(ctx, key, kernel);

	fx_slot_take(&s->known_first, fx_array_ref(first));
	return status == FX_OK && first ? mark_first(s, ctx, f) : status;
}

static int attach(struct state *s, fx_ctx *ctx, fx_frame *f)
{
	struct sum *sum = find(s, f->id);
	fx_array *kernel = NULL;
	char digest[65], key[KEY_SIZE];
	int status = FX_OK;

	if (!f->k)
		return fx_fail(ctx, FX_EDATA, "frame %lld came without a trajectory; <fhd/> makes frames that have one",
			(long long)f->id);
	fx_toeplitz_digest(method_of(s, f->method), s->tolerance, f->grid, f->scale, f->k, f->phi2, digest);
	key_of(ctx, 'a', digest, key);
	if (s->cache && s->known_kernel && strcmp(key, s->known_key) == 0)
		kernel = fx_array_ref(s->known_kernel);
	else if (s->cache)
		status = fx_cache_get(ctx, key, &kernel);
	fx_record_text(ctx, "q", kernel ? "cached" : sum && sum->sum ? "streamed" : "computed");
	if (status == FX_OK && !kernel)
		status = make(s, ctx, f, sum, &kernel);
	if (status == FX_OK && s->cache && kernel != s->known_kernel) {
		status = remember(s, ctx, f, key, kernel, f->first_k);
		fx_slot_take(&s->known_kernel, fx_array_ref(kernel));
		memcpy(s->known_key, key, sizeof key);
	}
	if (sum)
		end(s, sum);
	if (status != FX_OK) {
		fx_array_unref(kernel);
		return fx_fail(ctx, status, "cannot make Q");
	}
	fx_slot_take(&f->kernel, kernel);
	return FX_OK;
}

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	int status;

	if (fx_msg_kind(msg) == FX_WEIGHTED) {
		status = add(self, ctx, fx_msg_weighted(msg));
		fx_drop(msg);
		return status;
	}
	if (fx_msg_frame(msg)->calibration)
		return fx_emit(ctx, msg);
	status = fx_msg_own(&msg);
	if (status == FX_OK)
		status = attach(self, ctx, fx_msg_frame(msg));
	if (status != FX_OK) {
		fx_drop(msg);
		return fx_fail(ctx, status, "no memory for a frame");
	}
	return fx_emit(ctx, msg);
}

static void close_gadget(void *self)
{
	struct state *s = self;

	while (s->n_open > 0)
		end(s, &s->open[0]);
	fx_free(s->open);
	fx_array_unref(s->known_first);
	fx_array_unref(s->known_kernel);
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "toeplitz",
	.summary = "Q: the operator F^H F as one convolution kernel",
	.description = "F^H F is block Toeplitz: a convolution with Q[n] = sum |phi|^2 e^{i 2pi k.n} on the doubled grid, whose real "
		"spectrum is all that CG needs. Q is summed readout by readout while a new trajectory arrives, computed once per "
		"trajectory, and kept by a digest of trajectory, weights, voxel function, matrix, method and tolerance; the last one also where "
		"it is used, so that a GPU gets the kernel of a series once. Source: Stone "
		"et al. 2008; Fessler et al., IEEE Trans. Signal Process. 53:3393 (2005).",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_WEIGHTED | FX_FRAME, .gives = FX_FRAME, .needs = FX_FRAME, .places = FX_HOST | FX_DEVICE,
	.process = process, .close = close_gadget,
};
