/* SPDX-License-Identifier: MIT */
/* write_tracts: a tract set into a file; the name's ending says of which format. */
#include <fornix/gadget.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct state {
	const char *name;
	bool values;
	int format;
	fx_sink *sink, *table;
	int64_t sets, fibres, points;   /* the last two of the open set */
	bool noted;
};

static const fx_prop props[] = {
	FX_PROP(struct state, name, "tracts.tck", 1, 240, "File name in the output folder. Its ending is the format: .tck (MRtrix), .trk (TrackVis), .trx, "
		"or .png (three views)"),
	FX_PROP(struct state, values, "false", 0, 1, "Also write NAME_values.csv: a line per fibre with its values"),
	FX_PROP_END
};

static const struct {
	const char *ending;
	int format;
} formats[] = {{".tck", FX_FORMAT_TCK}, {".trk", FX_FORMAT_TRK}, {".trx", FX_FORMAT_TRX}, {".png", FX_FORMAT_PNG}};

static int open_gadget(void *self, fx_ctx *ctx)
{
	struct state *s = self;
	size_t n = strlen(s->name);

	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
		if (n > 4 && strcasecmp(s->name + n - 4, formats[i].ending) == 0)
			s->format = formats[i].format;
	if (s->format == 0)
		return fx_fail(ctx, FX_EINVAL, "name=%s: its ending must be .tck, .trk, .trx or .png", s->name);
	return FX_OK;
}

/* tracts.tck, tracts_2.tck, ... for the sets of a run; with `tail` instead of the ending where it is given. */
static void name_of(const struct state *s, const char *tail, char *name, size_t size)
{
	char number[32] = "";
	int stem = (int)strlen(s->name) - 4;

	if (s->sets > 0)
		snprintf(number, sizeof number, "_%" PRId64, s->sets + 1);
	snprintf(name, size, "%.*s%s%s", stem, s->name, number, tail ? tail : s->name + stem);
}

/* The first lines: what the columns are. */
static int open_table(struct state *s, fx_ctx *ctx, const fx_tracts_info *info)
{
	char name[300], line[FX_TRACT_VALUES * (FX_TRACT_NAME + 1) + 64];
	int at, status;

	name_of(s, "_values.csv", name, sizeof name);
	status = fx_sink_open(ctx, &(fx_sink_options){.format = FX_FORMAT_TEXT, .name = name}, &s->table);
	if (status != FX_OK)
		return status;
	at = snprintf(line, sizeof line, "fibre,points,seed");
	for (int i = 0; i < info->n_values; i++)
		at += snprintf(line + at, sizeof line - (size_t)at, ",%.*s", FX_TRACT_NAME - 1, info->names[i]);
	snprintf(line + at, sizeof line - (size_t)at, "\n");
	return fx_sink_text(ctx, s->table, line);
}

/* What the format has no place for is said, never dropped in silence. */
static void note(struct state *s, fx_ctx *ctx, const fx_tracts_info *info)
{
	char text[FX_TRACT_VALUES * (FX_TRACT_NAME + 2) + 300];
	int at;

	if (s->format != FX_FORMAT_TCK || s->noted || info->n_values == 0)
		return;
	s->noted = true;
	at = snprintf(text, sizeof text, "a .tck holds points alone: without");
	for (int i = 0; i < info->n_values; i++)
		at += snprintf(text + at, sizeof text - (size_t)at, " %.*s,", FX_TRACT_NAME - 1, info->names[i]);
	snprintf(text + at, sizeof text - (size_t)at, " seeds and lengths along the fibre; %s, .trx holds all",
		s->values ? "values per fibre are in the .csv" : "values=true writes those per fibre beside it");
	fx_info(ctx, "%s", text);
	fx_record_text(ctx, "left_out", text);
}

static int open_set(struct state *s, fx_ctx *ctx, const fx_tracts_info *info)
{
	char name[300];
	int status;

	if (!info)
		return fx_fail(ctx, FX_EDATA, "fibres came without a description of their set");
	name_of(s, NULL, name, sizeof name);
	s->fibres = s->points = 0;
	status = fx_sink_open(ctx, &(fx_sink_options){.format = s->format, .name = name, .tracts = info}, &s->sink);
	if (status == FX_OK && s->values)
		status = open_table(s, ctx, info);
	if (status == FX_OK)
		note(s, ctx, info);
	return status;
}

static int add_lines(struct state *s, fx_ctx *ctx, const fx_tracts *t)
{
	const uint32_t *offsets = t->offsets->data;
	char line[FX_TRACT_VALUES * 20 + 64];
	int status = FX_OK;

	for (int64_t i = 0; status == FX_OK && i < t->n; i++) {
		int at = snprintf(line, sizeof line, "%" PRId64 ",%" PRIu32 ",", s->fibres + i, offsets[i + 1] - offsets[i]);

		if (t->seeds)
			at += snprintf(line + at, sizeof line - (size_t)at, "%" PRIu32, ((const uint32_t *)t->seeds->data)[i]);
		for (int v = 0; v < t->info->n_values; v++)
			at += snprintf(line + at, sizeof line - (size_t)at, ",%.9g", (double)((const float *)t->values->data)[v + t->info->n_values * i]);
		snprintf(line + at, sizeof line - (size_t)at, "\n");
		status = fx_sink_text(ctx, s->table, line);
	}
	return status;
}

static int finish_set(struct state *s, fx_ctx *ctx)
{
	fx_sink *sink = s->sink, *table = s->table;
	int status;

	s->sink = s->table = NULL;
	status = fx_sink_commit(ctx, sink);
	if (status == FX_OK && table)
		status = fx_sink_commit(ctx, table);
	else
		fx_sink_abandon(table);
	s->sets++;
	fx_record_number(ctx, "fibres", (double)s->fibres);
	fx_record_number(ctx, "points", (double)s->points);
	return status;
}

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	struct state *s = self;
	const fx_tracts *t = fx_msg_tracts(msg);
	int status = s->sink ? FX_OK : open_set(s, ctx, t->info);

	if (status == FX_OK && !t->end && t->n > 0) {
		const uint32_t *offsets;

		status = fx_sink_tracts(ctx, s->sink, t);   /* which sees that the batch is whole */
		if (status == FX_OK && s->table)
			status = add_lines(s, ctx, t);
		if (status == FX_OK) {
			offsets = t->offsets->data;
			s->fibres += t->n;
			s->points += (int64_t)offsets[t->n] - offsets[0];
		}
	}
	if (status == FX_OK && t->end)
		status = finish_set(s, ctx);
	if (status == FX_OK)
		return fx_emit(ctx, msg);
	fx_drop(msg);
	return status;
}

static int flush(void *self, fx_ctx *ctx)
{
	struct state *s = self;

	if (!s->sink)
		return FX_OK;
	fx_warn(ctx, "%s: the tract set broke off after %" PRId64 " fibres; they are kept", s->name, s->fibres);
	return finish_set(s, ctx);
}

static void close_gadget(void *self)
{
	struct state *s = self;

	fx_sink_abandon(s->sink);
	fx_sink_abandon(s->table);
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "write_tracts",
	.summary = "Write fibres as .tck, .trk, .trx or a picture",
	.description = "Batches go to disk as they come; the file appears whole, at the end of its set. Points are in RAS mm (.tck, .trx) or in "
		"voxel mm beside the image's affine (.trk). .trk and .trx hold the values per fibre and the Riemannian length along it; .tck does "
		"not, which is noted. A picture (.png) shows axial, coronal and sagittal projections with the patient's left on the right, red "
		"left-right, green front-back, blue head-foot. Further sets of a run go to files of their own (tracts_2.tck ...). Fibres pass on.",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_TRACTS, .gives = FX_TRACTS, .needs = FX_TRACTS, .places = FX_HOST,
	.open = open_gadget, .process = process, .flush = flush, .close = close_gadget,
};
