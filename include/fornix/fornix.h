/* SPDX-License-Identifier: MIT */
/* fornix.h - the whole public API. */
#ifndef FORNIX_FORNIX_H
#define FORNIX_FORNIX_H

#include <fornix/array.h>
#include <fornix/backend.h>
#include <fornix/base.h>
#include <fornix/diffusion.h>
#include <fornix/gadget.h>
#include <fornix/message.h>
#include <fornix/property.h>
#include <fornix/recon.h>
#include <fornix/scan.h>
#include <fornix/trajectory.h>

#endif
