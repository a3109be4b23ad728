/* SPDX-License-Identifier: MIT */
/* plugin_bad_default.c - a default outside its own range. */
#include <fornix/fornix.h>

struct state {
	double width;
};

static const fx_prop props[] = {
	FX_PROP(struct state, width, "3", 0, 2, "Width in voxels"),
	FX_PROP_END
};

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "plugin_bad_default", .summary = "Bad default", .props = props,
	.state_size = sizeof(struct state), .places = FX_HOST,
};
