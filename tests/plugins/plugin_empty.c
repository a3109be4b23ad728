/* SPDX-License-Identifier: MIT */
/* plugin_empty.c - a shared object that is no gadget. */
#include <fornix/base.h>

FX_EXPORT const int plugin_empty_is_no_gadget = 1;
