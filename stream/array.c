/* SPDX-License-Identifier: MIT */
#include <fornix/array.h>

#include "pool.h"

#include <complex.h>
#include <string.h>

static const struct {
	size_t size;
	const char *name;
} types[] = {
	[FX_U8] = {1, "u8"},     [FX_I16] = {2, "i16"},   [FX_U16] = {2, "u16"},
	[FX_I32] = {4, "i32"},   [FX_U32] = {4, "u32"},   [FX_F32] = {4, "f32"},
	[FX_F64] = {8, "f64"},   [FX_CF32] = {8, "cf32"}, [FX_CF64] = {16, "cf64"},
};

static bool known_type(int type)
{
	return type >= FX_U8 && type <= FX_CF64;
}

size_t fx_type_size(int type)
{
	return known_type(type) ? types[type].size : 0;
}

const char *fx_type_name(int type)
{
	return known_type(type) ? types[type].name : "?";
}

static void release_host(fx_array *a)
{
	fx_free(a->data);
}

/* What is not large lies behind its own descriptor: one piece of memory, since thousands of readouts a second come and go. */
#define INSIDE_BYTES ((int64_t)64 << 10)
#define DESCRIPTOR_BYTES ((int64_t)((sizeof(fx_array) + 63) / 64 * 64))

static void release_inside(fx_array *a)
{
	(void)a;
}

/* Bytes of such an array; false where there is none of that size or type. */
static bool array_bytes(int type, int n_dims, const int64_t *dims, int64_t *bytes)
{
	*bytes = (int64_t)fx_type_size(type);
	for (int i = 0; i < n_dims; i++)
		if (!fx_mul_size(*bytes, dims[i], bytes))
			return false;
	return *bytes > 0;
}

static void describe(fx_array *a, int type, int n_dims, const int64_t *dims)
{
	a->refs = 1;
	a->type = type;
	a->n_dims = n_dims;
	for (int i = 0; i < FX_MAX_DIMS; i++)
		a->dims[i] = i < n_dims ? dims[i] : 1;
}

int fx_array_wrap(int type, int n_dims, const int64_t *dims, int place, int device, void (*release)(fx_array *),
	fx_array **out)
{
	fx_array *a;
	int64_t n = 1, bytes;

	*out = NULL;
	if (!known_type(type) || n_dims < 0 || n_dims > FX_MAX_DIMS)
		return FX_EINVAL;
	for (int i = 0; i < n_dims; i++)
		if (!fx_mul_size(n, dims[i], &n))
			return dims[i] < 0 ? FX_EINVAL : FX_ENOMEM;
	if (!fx_mul_size(n, (int64_t)types[type].size, &bytes))
		return FX_ENOMEM;
	a = fx_alloc(1, sizeof *a);
	if (!a)
		return FX_ENOMEM;
	describe(a, type, n_dims, dims);
	a->place = place;
	a->device = device;
	a->n = n;
	a->bytes = bytes;
	a->release = release;
	*out = a;
	return FX_OK;
}

static void describe_inside(fx_array *a, int type, int n_dims, const int64_t *dims, int64_t bytes)
{
	describe(a, type, n_dims, dims);
	a->place = FX_HOST;
	a->n = bytes / (int64_t)types[type].size;
	a->bytes = bytes;
	a->data = (char *)a + DESCRIPTOR_BYTES;
}

int fx_array_new(int type, int n_dims, const int64_t *dims, fx_array **out)
{
	int64_t bytes;
	int status;

	*out = NULL;
	if (n_dims >= 0 && n_dims <= FX_MAX_DIMS && array_bytes(type, n_dims, dims, &bytes) && bytes <= INSIDE_BYTES) {
		fx_array *a = fx_alloc(1, (size_t)(DESCRIPTOR_BYTES + bytes));

		if (!a)
			return FX_ENOMEM;
		describe_inside(a, type, n_dims, dims, bytes);
		a->release = release_inside;
		*out = a;
		return FX_OK;
	}
	status = fx_array_wrap(type, n_dims, dims, FX_HOST, 0, release_host, out);
	if (status != FX_OK || (*out)->n == 0)
		return status;
	(*out)->data = fx_alloc((*out)->n, types[type].size);
	if (!(*out)->data) {
		fx_array_unref(*out);
		*out = NULL;
		return FX_ENOMEM;
	}
	return FX_OK;
}

static void release_pooled(fx_array *a)
{
	fxi_pool_give(a);
}

size_t fxi_array_room(size_t bytes)
{
	return (size_t)DESCRIPTOR_BYTES + bytes;
}

int fxi_array_new_in(fxi_pool *p, int type, int n_dims, const int64_t *dims, fx_array **out)
{
	fx_array *a;
	int64_t bytes;

	*out = NULL;
	if (n_dims < 0 || n_dims > FX_MAX_DIMS || !array_bytes(type, n_dims, dims, &bytes) ||
	    (size_t)(DESCRIPTOR_BYTES + bytes) > fxi_pool_bytes(p))
		return FX_EINVAL;
	a = fxi_pool_take(p);
	if (!a)
		return FX_ENOMEM;
	memset(a, 0, sizeof *a);
	describe_inside(a, type, n_dims, dims, bytes);
	a->release = release_pooled;
	*out = a;
	return FX_OK;
}

int fx_array_new1(int type, int64_t d0, fx_array **out)
{
	return fx_array_new(type, 1, (int64_t[]){d0}, out);
}

int fx_array_new2(int type, int64_t d0, int64_t d1, fx_array **out)
{
	return fx_array_new(type, 2, (int64_t[]){d0, d1}, out);
}

int fx_array_new4(int type, int64_t d0, int64_t d1, int64_t d2, int64_t d3, fx_array **out)
{
	return fx_array_new(type, 4, (int64_t[]){d0, d1, d2, d3}, out);
}

fx_array *fx_array_ref(fx_array *a)
{
	if (a)
		__atomic_add_fetch(&a->refs, 1, __ATOMIC_RELAXED);
	return a;
}

void fx_array_unref(fx_array *a)
{
	if (a && __atomic_sub_fetch(&a->refs, 1, __ATOMIC_ACQ_REL) == 0) {
		bool pooled = a->release == release_pooled; /* descriptor and all */

		a->release(a);
		if (!pooled)
			fx_free(a);
	}
}

int fx_array_own(fx_array **a)
{
	fx_array *copy;
	int status;

	if (__atomic_load_n(&(*a)->refs, __ATOMIC_ACQUIRE) == 1)
		return FX_OK;
	status = fx_array_new((*a)->type, (*a)->n_dims, (*a)->dims, &copy);
	if (status != FX_OK)
		return status;
	if (copy->n > 0)
		memcpy(copy->data, (*a)->data, (size_t)copy->bytes);
	fx_array_unref(*a);
	*a = copy;
	return FX_OK;
}

/* Element i as a complex double, whatever the type: conversions go through it. */
static double _Complex element(const fx_array *a, int64_t i)
{
	switch (a->type) {
	case FX_U8:
		return ((const uint8_t *)a->data)[i];
	case FX_I16:
		return ((const int16_t *)a->data)[i];
	case FX_U16:
		return ((const uint16_t *)a->data)[i];
	case FX_I32:
		return ((const int32_t *)a->data)[i];
	case FX_U32:
		return ((const uint32_t *)a->data)[i];
	case FX_F32:
		return ((const float *)a->data)[i];
	case FX_F64:
		return ((const double *)a->data)[i];
	case FX_CF32:
		return ((const fx_cf32 *)a->data)[i];
	default:
		return ((const fx_cf64 *)a->data)[i];
	}
}

int fx_array_convert(const fx_array *a, int type, fx_array **out)
{
	bool from_complex = a->type >= FX_CF32, to_complex = type >= FX_CF32;
	fx_array *b;
	int status;

	*out = NULL;
	/* Narrowing to integers needs a rule for what does not fit; that is the gadget scale's business. */
	if ((from_complex && !to_complex) || type < FX_F32)
		return FX_EINVAL;
	status = fx_array_new(type, a->n_dims, a->dims, &b);
	if (status != FX_OK)
		return status;
	for (int64_t i = 0; i < a->n; i++) {
		double _Complex v = element(a, i);

		if (type == FX_F32)
			((float *)b->data)[i] = (float)creal(v);
		else if (type == FX_F64)
			((double *)b->data)[i] = creal(v);
		else if (type == FX_CF32)
			((fx_cf32 *)b->data)[i] = (fx_cf32)v;
		else
			((fx_cf64 *)b->data)[i] = v;
	}
	*out = b;
	return FX_OK;
}

bool fx_array_same_shape(const fx_array *a, const fx_array *b)
{
	if (a->type != b->type)
		return false;
	for (int i = 0; i < FX_MAX_DIMS; i++)
		if (a->dims[i] != b->dims[i])
			return false;
	return true;
}
