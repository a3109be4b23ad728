/* SPDX-License-Identifier: MIT */
/* plugin_good.c - the smallest gadget there is: it takes nothing. */
#include <fornix/fornix.h>

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "plugin_good", .summary = "Does nothing", .places = FX_HOST,
};
