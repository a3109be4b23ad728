/* SPDX-License-Identifier: MIT */
/* move.c - a message's arrays to where the gadget that gets it computes: on the host all of them, on a device what it works on. */
#include "move.h"

/*
 * What of a payload belongs where its gadget computes; trajectories, weights, samples and fibres stay on the host, and so do S0 and
 * residuals, which are for files.
 */
static int device_slots(fx_msg *m, fx_array **list[FXI_MSG_ARRAYS])
{
	fx_frame *f;
	int n = 0;

	switch (fx_msg_kind(m)) {
	case FX_SERIES:
		list[n++] = &fx_msg_series(m)->data;
		list[n++] = &fx_msg_series(m)->mask;
		return n;
	case FX_TENSORS:
		list[n++] = &fx_msg_tensors(m)->d;
		list[n++] = &fx_msg_tensors(m)->mask;
		list[n++] = &fx_msg_tensors(m)->flags;
		return n;
	case FX_METRIC:
		list[n++] = &fx_msg_metric(m)->field;
		list[n++] = &fx_msg_metric(m)->d;
		list[n++] = &fx_msg_metric(m)->fa;
		list[n++] = &fx_msg_metric(m)->md;
		list[n++] = &fx_msg_metric(m)->mask;
		return n;
	case FX_FRAME:
		f = fx_msg_frame(m);
		break;
	default:
		return 0;
	}
	list[n++] = &f->fhd;
	list[n++] = &f->direct;
	list[n++] = &f->maps;
	list[n++] = &f->kernel;
	list[n++] = &f->estimate;
	list[n++] = &f->w;
	return n;
}

/* Replaces the arrays of these slots that are not at `place` by copies that are. */
static int move(fx_math *math, int place, fx_array **list[FXI_MSG_ARRAYS], int n)
{
	int status = FX_OK;

	for (int i = 0; i < n && status == FX_OK; i++) {
		fx_array *there = NULL;

		if (!*list[i] || (*list[i])->place == place)
			continue;
		status = place == FX_HOST ? math->ops->download(math, *list[i], &there) : math->ops->upload(math, *list[i], &there);
		if (status == FX_OK)
			fx_slot_take(list[i], there);
	}
	return status;
}

static bool all_at(int place, fx_array **list[FXI_MSG_ARRAYS], int n)
{
	for (int i = 0; i < n; i++)
		if (*list[i] && (*list[i])->place != place)
			return false;
	return true;
}

int fxi_msg_move(fx_msg **msg, int place, fx_math *math)
{
	fx_array **list[FXI_MSG_ARRAYS] = {NULL};
	int n = place == FX_HOST ? fxi_msg_arrays(*msg, list) : device_slots(*msg, list), status;

	if (all_at(place, list, n))
		return FX_OK;
	status = fx_msg_own(msg);
	if (status != FX_OK)
		return fx_math_fail(math, status, "no memory for a message");
	n = place == FX_HOST ? fxi_msg_arrays(*msg, list) : device_slots(*msg, list);
	status = move(math, place, list, n);
	if (status != FX_OK) {
		fx_drop(*msg);
		*msg = NULL;
	}
	return status;
}
