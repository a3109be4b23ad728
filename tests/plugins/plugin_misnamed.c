/* SPDX-License-Identifier: MIT */
/* plugin_misnamed.c - its descriptor says another name than its file. */
#include <fornix/fornix.h>

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "another_name", .summary = "Misnamed", .places = FX_HOST,
};
