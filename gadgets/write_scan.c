/* SPDX-License-Identifier: MIT */
/* write_scan: the raw scan that passes by, as an MRD HDF5 file. */
#include <fornix/gadget.h>

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define NAME_ROOM 256

struct state {
	const char *prefix;
	bool dated, header_only, pass_waveforms;
	fx_sink *sink;
};

static const fx_prop props[] = {
	FX_PROP(struct state, prefix, "scan", 0, 100, "First part of the file's name, the scan's protocol where empty; the measurement id follows"),
	FX_PROP(struct state, dated, "true", 0, 1, "Put date and time (UTC) behind, so that no scan replaces an earlier one"),
	FX_PROP(struct state, header_only, "false", 0, 1, "Keep the header alone, without readouts and waveforms"),
	FX_PROP(struct state, pass_waveforms, "true", 0, 1, "Pass waveforms on, as readouts always are"),
	FX_PROP_END
};

/* Headers are written by others: nothing but letters, digits, dots, dashes and underscores gets into a name, no dot first. */
static void clean(char *name)
{
	for (char *c = name; *c; c++)
		if (!(isalnum((unsigned char)*c) || (*c == '.' && c != name) || *c == '-' || *c == '_'))
			*c = '_';
}

static int open_gadget(void *self, fx_ctx *ctx)
{
	struct state *s = self;
	const char *id = fx_scan(ctx)->measurement_id, *protocol = fx_scan(ctx)->protocol;
	const char *prefix = *s->prefix ? s->prefix : protocol && *protocol ? protocol : "scan";
	char name[NAME_ROOM], date[32] = "";
	time_t now = time(NULL);
	struct tm utc;

	if (s->dated && gmtime_r(&now, &utc))
		strftime(date, sizeof date, "_%Y%m%d-%H%M%S", &utc);
	snprintf(name, sizeof name, "%.100s%s%.100s%s.h5", prefix, id && *id ? "_" : "", id ? id : "", date);
	clean(name);
	fx_record_text(ctx, "file", name);
	return fx_sink_open(ctx, &(fx_sink_options){.format = FX_FORMAT_MRD_SCAN, .name = name, .header_xml = fx_scan(ctx)->xml},
		&s->sink);
}

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	struct state *s = self;
	int status = s->header_only ? FX_OK : fx_sink_scan(ctx, s->sink, msg);

	if (status != FX_OK || (fx_msg_kind(msg) == FX_WAVEFORM && !s->pass_waveforms)) {
		fx_drop(msg);
		return status;
	}
	return fx_emit(ctx, msg);
}

static int flush(void *self, fx_ctx *ctx)
{
	return fx_sink_finish(ctx, &((struct state *)self)->sink);
}

static void close_gadget(void *self)
{
	fx_sink_abandon(((struct state *)self)->sink);
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "write_scan",
	.summary = "Write the raw scan into an MRD HDF5 file and pass it on",
	.description = "Readouts and waveforms as they reach this gadget, with the scan's header: at the front of a chain, what came from the "
		"scanner. Put behind gadgets that change readouts, the file's header still describes the scan as it came.",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_ACQUISITION | FX_WAVEFORM, .gives = FX_ACQUISITION | FX_WAVEFORM, .places = FX_HOST,
	.open = open_gadget, .process = process, .flush = flush, .close = close_gadget,
};
