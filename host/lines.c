/* SPDX-License-Identifier: MIT */
/* lines.c - passes of 1-D transforms, and the cache of plans behind them; see the header. */
#include "lines.h"

#include "fftw_lock.h"
#include "kernels/columns.h"
#include "vfft.h"

#include <fftw3.h>

/* Blocks that one task takes, so that handing out tasks costs nothing beside the transforms. */
#define BLOCKS_PER_TASK 4

/*
 * Plans are kept for the life of the process: a few kilobytes for each line length that was ever met. Nodes are only
 * ever added, under FFTW's lock, and a plan is executed without it.
 */
struct cached {
	struct cached *next;
	int64_t n;
	int sign, type;
	const void *plan;
};

static struct cached *cache;

/* Distance of a block's lines: whole cache lines, and not a power of two, which would put all lines in one cache set. */
static int64_t leading(int64_t n, int type)
{
	int64_t size = (int64_t)fx_type_size(type), unit = 64 / size;
	int64_t ld = (n + unit - 1) / unit * unit;

	return ld * size % 1024 == 0 ? ld + unit : ld;
}

/* What stands for an exponent where there is none. */
enum { REAL_PLAN = 0, LANES_PLAN = 2 };

static void *make_plan(int64_t n, int64_t ld, int sign, int type)
{
	int size = (int)n, step = (int)ld;
	void *memory, *plan = NULL;

	if (sign == LANES_PLAN) {
		fxi_vfft *lanes_plan = fx_alloc(1, sizeof *lanes_plan);

		if (lanes_plan && fxi_vfft_new(n, lanes_plan) == FX_OK)
			return lanes_plan;
		fx_free(lanes_plan);
		return NULL;
	}
	memory = fx_alloc(FXI_LINES * ld, fx_type_size(type));
	if (!memory)
		return NULL;
	if (type == FX_CF32)
		plan = fftwf_plan_many_dft(1, &size, FXI_LINES, memory, NULL, 1, step, memory, NULL, 1, step, sign, FFTW_ESTIMATE);
	else if (sign != REAL_PLAN)
		plan = fftw_plan_many_dft(1, &size, FXI_LINES, memory, NULL, 1, step, memory, NULL, 1, step, sign, FFTW_ESTIMATE);
	else
		plan = fftw_plan_many_dft_r2c(1, &size, FXI_LINES, memory, NULL, 1, 2 * step, memory, NULL, 1, step, FFTW_ESTIMATE);
	fx_free(memory);
	return plan;
}

static const void *find_plan(fx_math *m, int64_t n, int64_t ld, int sign, int type)
{
	struct cached *c;
	const void *plan = NULL;

	if (n > INT32_MAX / FXI_LINES - 64) {
		fx_math_fail(m, FX_EINVAL, "an axis of %lld is too long to transform", (long long)n);
		return NULL;
	}
	fxi_fftw_lock();
	for (c = cache; c && (c->n != n || c->sign != sign || c->type != type); c = c->next)
		;
	if (!c && (c = fx_alloc(1, sizeof *c)) != NULL) {
		*c = (struct cached){.next = cache, .n = n, .sign = sign, .type = type, .plan = make_plan(n, ld, sign, type)};
		if (c->plan) {
			cache = c;
		} else {
			fx_free(c);
			c = NULL;
		}
	}
	if (c)
		plan = c->plan;
	fxi_fftw_unlock();
	if (!plan)
		fx_math_fail(m, FX_ENOMEM, "no memory to plan a Fourier transform of length %lld", (long long)n);
	return plan;
}

/* Its odd radices cost their square; the fine grids' 3, 5 and 7 are well worth it. */
static bool good_for_lanes(int64_t n)
{
	for (int p = 2; p <= 13; p++)
		while (n % p == 0)
			n /= p;
	return n == 1;
}

const fxi_vfft *fxi_lanes_plan(fx_math *m, int64_t n)
{
	return find_plan(m, n, 0, LANES_PLAN, FX_CF32);
}

int fxi_lines_plan(fx_math *m, fxi_lines *p)
{
	p->plan = NULL;
	p->lanes = NULL;
	if (p->type == FX_CF32 && good_for_lanes(p->n)) {
		p->lanes = fxi_lanes_plan(m, p->n);
		return p->lanes ? FX_OK : m->err->status;
	}
	p->ld = leading(p->n, p->type);
	p->plan = find_plan(m, p->n, p->ld, p->sign, p->type);
	return p->plan ? FX_OK : m->err->status;
}

const void *fxi_real_plan(fx_math *m, int64_t n, int64_t *ld)
{
	*ld = leading(n / 2 + 1, FX_CF64);
	return find_plan(m, n, *ld, REAL_PLAN, FX_CF64);
}

int64_t fxi_lines_scratch(const fxi_lines *p)
{
	if (p->lanes)
		return FXI_COLUMNS_SCRATCH(p->n) * (int64_t)sizeof(float);
	return FXI_LINES * p->ld * (int64_t)fx_type_size(p->type);
}

static fxi_line_layout layout_of(const fxi_lines *p, const fxi_line_side *side, int64_t block)
{
	int64_t left = p->n_lines - block * FXI_LINES;

	return (fxi_line_layout){
		.n_lines = (int)(left < FXI_LINES ? left : FXI_LINES),
		.line = side->line, .element = side->element, .count = side->count, .centre = side->centre,
		.n = p->n, .ld = p->ld,
	};
}

void fxi_lines_block(const fxi_lines *p, int64_t group, int64_t block, void *scratch)
{
	fxi_line_layout in = layout_of(p, &p->from, block), out = layout_of(p, &p->to, block);
	int64_t from = group * p->from.group + block * FXI_LINES * p->from.line;
	int64_t to = group * p->to.group + block * FXI_LINES * p->to.line;

	if (p->lanes) {
		FXI_PICK(fxi_columns_pass)(p->lanes, p->sign > 0, &in, (const float *)p->from.data + 2 * from, p->from.weight, &out,
			(float *)p->to.data + 2 * to, p->to.weight, scratch);
	} else if (p->type == FX_CF32) {
		FXI_PICK(fxi_lines_gather_f32)(&in, (const fx_cf32 *)p->from.data + from, p->from.weight, scratch);
		fftwf_execute_dft((fftwf_plan)(uintptr_t)p->plan, scratch, scratch);
		FXI_PICK(fxi_lines_scatter_f32)(&out, scratch, p->to.weight, (fx_cf32 *)p->to.data + to);
	} else {
		FXI_PICK(fxi_lines_gather_f64)(&in, (const fx_cf64 *)p->from.data + from, p->from.weight, scratch);
		fftw_execute_dft((fftw_plan)(uintptr_t)p->plan, scratch, scratch);
		FXI_PICK(fxi_lines_scatter_f64)(&out, scratch, p->to.weight, (fx_cf64 *)p->to.data + to);
	}
}

struct run {
	const fxi_lines *p;
	int64_t blocks;  /* of one group */
	fxi_scratch scratch;
};

static void run_task(void *arg, int64_t i)
{
	struct run *r = arg;
	void *scratch = fxi_scratch_take(&r->scratch);

	for (int64_t b = i * BLOCKS_PER_TASK; b < (i + 1) * BLOCKS_PER_TASK && b < r->blocks * r->p->n_groups; b++)
		fxi_lines_block(r->p, b / r->blocks, b % r->blocks, scratch);
	fxi_scratch_give(&r->scratch, scratch);
}

int fxi_lines_run(fx_math *m, fxi_lines *p)
{
	struct run r = {.p = p, .blocks = (p->n_lines + FXI_LINES - 1) / FXI_LINES};
	int64_t total = r.blocks * p->n_groups;
	int status;

	status = fxi_lines_plan(m, p);
	if (status != FX_OK || total == 0)
		return status;
	status = fxi_scratch_new(m, fxi_lines_scratch(p), &r.scratch);
	if (status != FX_OK)
		return status;
	fx_parallel(m->n_threads, (total + BLOCKS_PER_TASK - 1) / BLOCKS_PER_TASK, run_task, &r);
	fxi_scratch_free(&r.scratch);
	return FX_OK;
}
