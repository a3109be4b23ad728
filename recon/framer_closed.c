/* SPDX-License-Identifier: MIT */
/*
 * framer_closed.c - the memory of complete frames. A long real-time scan completes many, so they are kept in a table
 * of a few bytes each whose growth can fail cleanly.
 */
#include "framer.h"

bool fxi_key_same(const fxi_frame_key *a, const fxi_frame_key *b)
{
	return a->encoding == b->encoding && a->slice == b->slice && a->contrast == b->contrast && a->phase == b->phase &&
		a->repetition == b->repetition && a->set == b->set && a->diffusion == b->diffusion && a->average == b->average &&
		a->segment == b->segment;
}

/* Multiply and shift over both halves of the key; the multiplier is the odd number nearest 2^64 / golden ratio. */
static uint64_t hash(const fxi_frame_key *key)
{
	uint64_t a = (uint64_t)key->encoding << 48 | (uint64_t)key->slice << 32 | (uint64_t)key->contrast << 16 | key->phase;
	uint64_t b = (uint64_t)key->diffusion << 32 | (uint64_t)key->repetition << 16 | key->set;

	b ^= (uint64_t)key->average << 48 ^ ((uint64_t)key->segment << 16 | key->segment) * 0x9e3779b1u;
	a = (a ^ (b * 0x9e3779b97f4a7c15u)) * 0x9e3779b97f4a7c15u;
	return a ^ (a >> 32);
}

static fxi_closed *place_of(fxi_closed *places, int64_t size, const fxi_frame_key *key)
{
	uint64_t mask = (uint64_t)size - 1, i = hash(key) & mask;

	while (places[i].reason != 0 && !fxi_key_same(&places[i].key, key))
		i = (i + 1) & mask;
	return &places[i];
}

const fxi_closed *fxi_closed_find(const fxi_closed_table *t, const fxi_frame_key *key)
{
	const fxi_closed *place;

	if (t->size == 0)
		return NULL;
	place = place_of(t->places, t->size, key);
	return place->reason != 0 ? place : NULL;
}

int fxi_closed_reserve(fxi_closed_table *t, int64_t more)
{
	int64_t size = t->size ? t->size : 64;
	fxi_closed *places;

	/* At most half full, so that runs of taken places stay short. */
	while (size / 2 < t->n + more)
		size *= 2;
	if (size == t->size)
		return FX_OK;
	places = fx_alloc(size, sizeof *places);
	if (!places)
		return FX_ENOMEM;
	for (int64_t i = 0; i < t->size; i++)
		if (t->places[i].reason != 0)
			*place_of(places, size, &t->places[i].key) = t->places[i];
	fx_free(t->places);
	t->places = places;
	t->size = size;
	return FX_OK;
}

void fxi_closed_add(fxi_closed_table *t, const fxi_closed *entry)
{
	*place_of(t->places, t->size, &entry->key) = *entry;
	t->n++;
}

void fxi_closed_free(fxi_closed_table *t)
{
	fx_free(t->places);
	*t = (fxi_closed_table){0};
}
