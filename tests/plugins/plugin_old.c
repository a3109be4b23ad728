/* SPDX-License-Identifier: MIT */
/* plugin_old.c - built for an interface that is no more. */
#include <fornix/fornix.h>

const fx_gadget fx_plugin = {
	.abi = FX_ABI + 1000, .name = "plugin_old", .summary = "Too old", .places = FX_HOST,
};
