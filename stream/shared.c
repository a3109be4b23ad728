/* SPDX-License-Identifier: MIT */
/* shared.c - what the items of a series and of a tract set share, counted by reference. */
#include <fornix/message.h>

fx_series_info *fx_series_info_new(int64_t n_volumes)
{
	fx_series_info *info = fx_alloc(1, sizeof *info);

	if (!info)
		return NULL;
	info->refs = 1;
	info->n_volumes = n_volumes;
	info->gradients = fx_alloc(n_volumes > 0 ? n_volumes : 1, sizeof *info->gradients);
	if (!info->gradients) {
		fx_free(info);
		return NULL;
	}
	return info;
}

fx_series_info *fx_series_info_ref(fx_series_info *info)
{
	if (info)
		__atomic_add_fetch(&info->refs, 1, __ATOMIC_RELAXED);
	return info;
}

void fx_series_info_unref(fx_series_info *info)
{
	if (!info || __atomic_sub_fetch(&info->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	fx_free(info->gradients);
	fx_free(info);
}

fx_tracts_info *fx_tracts_info_new(void)
{
	fx_tracts_info *info = fx_alloc(1, sizeof *info);

	if (info)
		info->refs = 1;
	return info;
}

fx_tracts_info *fx_tracts_info_ref(fx_tracts_info *info)
{
	if (info)
		__atomic_add_fetch(&info->refs, 1, __ATOMIC_RELAXED);
	return info;
}

void fx_tracts_info_unref(fx_tracts_info *info)
{
	if (!info || __atomic_sub_fetch(&info->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	fx_free(info);
}
