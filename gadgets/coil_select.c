/* SPDX-License-Identifier: MIT */
/* coil_select: keep some of the coils, drop the others. */
#include <fornix/gadget.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct state {
	int64_t coils;
	const char *mask;
	int64_t n_mask;
	bool *keep;                /* {n_mask}: of `mask`; NULL: the first `coils` */
};

static const fx_prop props[] = {
	FX_PROP(struct state, coils, "128", 1, 65535, "Coils to keep, the first ones"),
	FX_PROP(struct state, mask, "", 0, 65535,
		"Instead: 1 for each coil to keep and 0 for others, as in \"1 0 1\" or \"101\"; coils beyond its end are dropped"),
	FX_PROP_END
};

/* One entry of the mask, *text moved behind it. Digits that stand together are entries of their own where no blank separates any. */
static int entry(fx_ctx *ctx, const char *mask, bool packed, const char **text, bool *keep)
{
	char *end;
	long value;

	if (packed) {
		if (**text != '0' && **text != '1')
			return fx_fail(ctx, FX_EINVAL, "mask is '%.100s': it takes 0 and 1, with or without blanks between them", mask);
		*keep = *(*text)++ == '1';
		return FX_OK;
	}
	errno = 0;
	value = strtol(*text, &end, 10);
	if (end == *text || errno != 0 || (*end && !strchr(" \t\r\n", *end)))
		return fx_fail(ctx, FX_EINVAL, "mask is '%.100s': it takes 0 and 1, with or without blanks between them", mask);
	*text = end + strspn(end, " \t\r\n");
	*keep = value > 0;
	return FX_OK;
}

static int open_gadget(void *self, fx_ctx *ctx)
{
	struct state *s = self;
	const char *text = s->mask + strspn(s->mask, " \t\r\n");
	bool packed = !strpbrk(text, " \t\r\n"), any = false;

	if (!*text)
		return FX_OK;
	s->keep = fx_alloc((int64_t)strlen(text), sizeof *s->keep);
	if (!s->keep)
		return fx_fail(ctx, FX_ENOMEM, "no memory for a mask of coils");
	while (*text) {
		int status = entry(ctx, s->mask, packed, &text, &s->keep[s->n_mask]);

		if (status != FX_OK)
			return status;
		any = any || s->keep[s->n_mask];
		s->n_mask++;
	}
	return any ? FX_OK : fx_fail(ctx, FX_EINVAL, "mask is '%.100s', which keeps no coil", s->mask);
}

static bool kept(const struct state *s, int64_t coil)
{
	return s->keep ? coil < s->n_mask && s->keep[coil] : coil < s->coils;
}

static int select_coils(const struct state *s, fx_ctx *ctx, fx_acquisition *a, int64_t n)
{
	int64_t samples = a->data->dims[0], to = 0;
	fx_array *fewer;

	if (fx_array_new2(FX_CF32, samples, n, &fewer) != FX_OK)
		return fx_fail(ctx, FX_ENOMEM, "no memory for a readout");
	for (int64_t c = 0; c < a->data->dims[1]; c++)
		if (kept(s, c) && samples > 0)
			memcpy(FX_CF32_OF(fewer) + to++ * samples, FX_CF32_OF(a->data) + c * samples, (size_t)samples * sizeof(fx_cf32));
	fx_slot_take(&a->data, fewer);
	a->head.active_channels = (uint16_t)n;
	return FX_OK;
}

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	const struct state *s = self;
	const fx_acquisition *a = fx_msg_acquisition(msg);
	unsigned readout = a->head.scan_counter;
	int64_t coils = a->data->dims[1], n = 0;
	int status;

	for (int64_t c = 0; c < coils; c++)
		n += kept(s, c);
	if (n == coils)
		return fx_emit(ctx, msg);
	if (n == 0) {
		fx_drop(msg);
		return fx_fail(ctx, FX_EDATA, "readout %u has %lld coils, none of which the mask '%.100s' keeps", readout,
			(long long)coils, s->mask);
	}
	status = fx_msg_own(&msg);
	if (status == FX_OK)
		status = select_coils(s, ctx, fx_msg_acquisition(msg), n);
	if (status != FX_OK) {
		fx_drop(msg);
		return fx_fail(ctx, status, "cannot drop coils of a readout");
	}
	return fx_emit(ctx, msg);
}

static void close_gadget(void *self)
{
	fx_free(((struct state *)self)->keep);
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "coil_select",
	.summary = "Keep the first coils, or those of a mask",
	.description = "Behind coil_pca the first coils are those that hold most of the signal.",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_ACQUISITION, .gives = FX_ACQUISITION, .needs = FX_ACQUISITION, .places = FX_HOST,
	.open = open_gadget, .process = process, .close = close_gadget,
};
