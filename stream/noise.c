/* SPDX-License-Identifier: MIT */
/* noise.c - noise covariances that outlive a scan, as a gadget sees them; whoever runs the chain keeps them. */
#include "context.h"

void fx_noise_clear(fx_noise *noise)
{
	fx_array_unref(noise->covariance);
	*noise = (fx_noise){0};
}

int fx_noise_get(fx_ctx *ctx, const char *measurement_id, fx_noise *noise)
{
	fxi_noise_store *store = ctx->chain->services.noise;

	*noise = (fx_noise){0};
	return store ? store->get(store, measurement_id, noise, &ctx->err) : FX_OK;
}

int fx_noise_put(fx_ctx *ctx, const char *measurement_id, const fx_noise *noise)
{
	fxi_noise_store *store = ctx->chain->services.noise;

	int status = store ? store->put(store, measurement_id, noise, &ctx->err) : FX_OK;

	if (store && status == FX_OK)
		atomic_store_explicit(&ctx->chain->noise_kept, true, memory_order_release);
	return status;
}

bool fx_noise_only(fx_ctx *ctx)
{
	const fxi_chain *c = ctx->chain;

	return atomic_load_explicit(&c->noise_only, memory_order_acquire) && atomic_load_explicit(&c->noise_kept, memory_order_acquire);
}
