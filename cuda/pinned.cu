/* SPDX-License-Identifier: MIT */
/*
 * pinned.cu - page-locked memory that a queue keeps for the next who asks: locking and unlocking pages takes longer than copying what is
 * in them. What is given back stays up to KEEP bytes; arrays may outlive the queue, so the store is counted by reference.
 */
#include "cuda.cuh"

#include <mutex>
#include <new>
#include <vector>

#define KEEP ((size_t)512 << 20)

struct block {
	void *data;
	size_t bytes;
};

struct fxi_pinned {
	int refs; /* atomic */
	std::mutex lock;
	std::vector<block> free;
	size_t kept;
};

fxi_pinned *fxi_pinned_new(void)
{
	fxi_pinned *p = new (std::nothrow) fxi_pinned();

	if (p)
		p->refs = 1;
	return p;
}

fxi_pinned *fxi_pinned_ref(fxi_pinned *p)
{
	__atomic_add_fetch(&p->refs, 1, __ATOMIC_RELAXED);
	return p;
}

void fxi_pinned_unref(fxi_pinned *p)
{
	if (!p || __atomic_sub_fetch(&p->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	for (const block &b : p->free)
		cudaFreeHost(b.data);
	delete p;
}

cudaError_t fxi_pinned_take(fxi_pinned *p, size_t bytes, void **data, size_t *got)
{
	std::unique_lock<std::mutex> guard(p->lock);
	size_t best = p->free.size();

	for (size_t i = 0; i < p->free.size(); i++)
		if (p->free[i].bytes >= bytes && p->free[i].bytes / 2 <= bytes && (best == p->free.size() ||
			p->free[i].bytes < p->free[best].bytes))
			best = i;
	if (best < p->free.size()) {
		*data = p->free[best].data;
		*got = p->free[best].bytes;
		p->kept -= *got;
		p->free.erase(p->free.begin() + (long)best);
		return cudaSuccess;
	}
	guard.unlock();
	*got = bytes;
	return cudaMallocHost(data, bytes);
}

void fxi_pinned_give(fxi_pinned *p, void *data, size_t bytes)
{
	if (!data)
		return;
	{
		std::lock_guard<std::mutex> guard(p->lock);

		if (p->kept + bytes <= KEEP) {
			p->free.push_back({data, bytes});
			p->kept += bytes;
			return;
		}
	}
	cudaFreeHost(data);
}
