/* SPDX-License-Identifier: MIT */
/* direct_plan.c - kernels of the chapter's ladder by name, and the plan that `fornix tune` leaves in the cache for them. */
#include <fornix/recon.h>

#include <glib.h>
#include <stdio.h>
#include <string.h>

static const char *const names[FX_DIRECT_KERNELS] = {[FX_DIRECT_AUTO] = "auto", [FX_DIRECT_SCATTER] = "scatter", [FX_DIRECT_GATHER] = "gather",
	[FX_DIRECT_REGISTERS] = "registers", [FX_DIRECT_CONSTANT] = "constant", [FX_DIRECT_AOS] = "aos",
	[FX_DIRECT_HARDWARE] = "hardware", [FX_DIRECT_TUNED] = "tuned"};

const char *fx_direct_kernel_name(int kernel)
{
	return kernel >= 0 && kernel < FX_DIRECT_KERNELS ? names[kernel] : NULL;
}

int fx_direct_tuned_key(fx_math *m, const int64_t dims[3], char key[80])
{
	char what[256] = "", text[320];
	int64_t voxels = 1, size_class = 0;
	GChecksum *sum;
	int status = m->ops->describe ? m->ops->describe(m, what, sizeof what) : FX_OK;

	if (status != FX_OK)
		return status;
	for (int a = 0; a < 3; a++)
		voxels *= dims[a];
	/* how many waves of blocks an image fills is what makes a difference: powers of 8, twice as many voxels an axis */
	for (int64_t n = 1; n <= voxels / 8; n *= 8)
		size_class++;
	/* the number is of what a plan holds: another for another */
	snprintf(text, sizeof text, "direct 1|%s|%s|%lld", m->ops->name, what, (long long)size_class);
	sum = g_checksum_new(G_CHECKSUM_SHA256);
	g_checksum_update(sum, (const guchar *)text, -1);
	snprintf(key, 80, "d-%s", g_checksum_get_string(sum));
	g_checksum_free(sum);
	return FX_OK;
}

int fx_direct_plan_pack(const fx_direct_plan *p, fx_array **out)
{
	const int values[] = {p->kernel, p->block, p->unroll, p->voxels, p->chunk, p->shared};
	int status = fx_array_new1(FX_F64, 6, out);

	for (int i = 0; i < 6 && status == FX_OK; i++)
		FX_F64_OF(*out)[i] = values[i];
	return status;
}

bool fx_direct_plan_unpack(const fx_array *packed, fx_direct_plan *p)
{
	int values[6];

	if (packed->type != FX_F64 || packed->n != 6)
		return false;
	for (int i = 0; i < 6; i++) {
		double v = FX_F64_OF(packed)[i];

		if (!(v >= 0 && v <= 65536))
			return false;
		values[i] = (int)v;
	}
	*p = (fx_direct_plan){values[0], values[1], values[2], values[3], values[4], values[5]};
	return p->kernel == FX_DIRECT_TUNED;
}
