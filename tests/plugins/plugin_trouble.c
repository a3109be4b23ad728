/* SPDX-License-Identifier: MIT */
/* plugin_trouble.c - a gadget that brings its process down, in the way it is told, for tests of what contains it. */
#include <fornix/fornix.h>

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum how { FAIL, SEGV, ABORT, HANG, MEMORY, SLOW, GPU };

struct state {
	int how;
	int64_t at, n; /* the readout it happens at; 0: at the end */
};

static const char *const hows[] = {"fail", "segv", "abort", "hang", "memory", "slow", "gpu", NULL};

static const fx_prop props[] = {
	FX_PROP_WORD(struct state, how, "fail", hows, "What happens"),
	FX_PROP(struct state, at, "0", 0, 1000000, "The readout it happens at, from 1; 0: at the end"),
	FX_PROP_END
};

/* As much as it gets: what it cannot have is reported as any gadget does. */
static int take_memory(fx_ctx *ctx)
{
	void *kept[4096];
	int n = 0;

	while (n < 4096 && (kept[n] = fx_alloc(16 << 20, 1)))
		n++;
	for (int i = 0; i < n; i++)
		fx_free(kept[i]);
	return n < 4096 ? fx_fail(ctx, FX_ENOMEM, "no memory after %d pieces of 16 MiB", n) : FX_OK;
}

/* A kernel that writes where nothing is, through the driver alone: on a GPU that spoils all that its process had there. */
static int write_nowhere(fx_ctx *ctx)
{
	static const char ptx[] = ".version 6.0\n.target sm_70\n.address_size 64\n.visible .entry nowhere()\n{\n.reg .b64 a;\n.reg .b32 v;\n"
		"mov.u64 a, 0xdead0000;\nmov.u32 v, 1;\nst.global.u32 [a], v;\nret;\n}\n";
	static const char *const names[] = {"cuInit", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuModuleLoadData", "cuModuleGetFunction",
		"cuLaunchKernel", "cuCtxSynchronize"};
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *context, *module, *kernel, *found[7];
	struct {
		int (*init)(unsigned);
		int (*retain)(void **, int);
		int (*current)(void *);
		int (*load)(void **, const void *);
		int (*function)(void **, void *, const char *);
		int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
		int (*wait)(void);
	} cu;
	int result;

	for (int i = 0; i < 7; i++) {
		found[i] = library ? dlsym(library, names[i]) : NULL;
		if (!found[i])
			return fx_fail(ctx, FX_ENOTSUP, "there is no GPU here");
	}
	memcpy(&cu, found, sizeof cu);
	if (cu.init(0) || cu.retain(&context, 0) || cu.current(context) || cu.load(&module, ptx) || cu.function(&kernel, module, "nowhere") ||
		cu.launch(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL))
		return fx_fail(ctx, FX_ENOTSUP, "the kernel did not start");
	result = cu.wait();
	fx_info(ctx, "the kernel that writes nowhere ended with %d", result);
	return result ? FX_OK : fx_fail(ctx, FX_EINVAL, "the write was not noticed");
}

static int happen(struct state *s, fx_ctx *ctx)
{
	volatile uintptr_t nowhere = 64; /* in a page that is nobody's */

	switch (s->how) {
	case SEGV:
		*(volatile int *)nowhere = 1;
		return FX_OK;
	case ABORT:
		abort();
	case HANG:
		for (;;)
			pause();
	case MEMORY:
		return take_memory(ctx);
	case GPU:
		return write_nowhere(ctx);
	case SLOW:
		return FX_OK;
	default:
		return fx_fail(ctx, FX_EDATA, "readout %lld is not to its taste", (long long)s->n);
	}
}

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	struct state *s = self;
	int status = FX_OK;

	s->n++;
	if (s->how == SLOW)
		usleep(20000);
	if (s->n == s->at)
		status = happen(s, ctx);
	if (status == FX_OK)
		return fx_emit(ctx, msg);
	fx_drop(msg);
	return status;
}

static int flush(void *self, fx_ctx *ctx)
{
	struct state *s = self;

	return s->at == 0 ? happen(s, ctx) : FX_OK;
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "plugin_trouble", .summary = "Brings its process down",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_ACQUISITION, .gives = FX_ACQUISITION, .places = FX_HOST, .process = process, .flush = flush,
};
