/* SPDX-License-Identifier: MIT */
/*
 * array.cu - arrays on the device: whose stream wrote them, who still reads them, and when their memory may be used again.
 */
#include "cuda.cuh"

#include <mutex>
#include <new>
#include <vector>

/* What stands behind fx_array.event of a device array. */
struct memory {
	std::mutex lock;             /* gadgets of several threads may read one array */
	fxi_stream *writer;
	cudaEvent_t written;         /* behind the last writing operation */
	std::vector<fxi_stream *> readers;  /* streams that read it since, and how far each is */
	std::vector<cudaEvent_t> read;
};

static memory *memory_of(const fx_array *a)
{
	return (memory *)a->event;
}

fxi_stream *fxi_stream_ref(fxi_stream *s)
{
	__atomic_add_fetch(&s->refs, 1, __ATOMIC_RELAXED);
	return s;
}

void fxi_stream_unref(fxi_stream *s)
{
	if (!s || __atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	cudaStreamDestroy(s->stream);
	delete s;
}

static void forget_readers(memory *mem)
{
	for (size_t i = 0; i < mem->readers.size(); i++) {
		cudaEventDestroy(mem->read[i]);
		fxi_stream_unref(mem->readers[i]);
	}
	mem->readers.clear();
	mem->read.clear();
}

/* fx_array_unref's last step, on whatever thread. */
static void release(fx_array *a)
{
	memory *mem = memory_of(a);
	int before = 0;

	if (!mem)
		return;
	cudaGetDevice(&before);
	cudaSetDevice(a->device);
	/* On the stream that read it last, which is behind the writer: a stream that only copies to the GPU must not wait for those that compute. */
	cudaStream_t last = mem->readers.empty() ? mem->writer->stream : mem->readers.back()->stream;
	for (size_t i = 0; i < mem->read.size(); i++)
		if (mem->readers[i]->stream != last)
			cudaStreamWaitEvent(last, mem->read[i], 0);
	if (a->data)
		cudaFreeAsync(a->data, last);
	forget_readers(mem);
	cudaEventDestroy(mem->written);
	fxi_stream_unref(mem->writer);
	delete mem;
	a->event = nullptr;
	a->data = nullptr;
	cudaSetDevice(before);
}

/*
 * From the pool. What other streams gave back a moment ago may not be free yet, and what the pool keeps may be in pieces: where there is none,
 * all of the device's work is waited for and the pool emptied, and then it is asked once more.
 */
static int take_memory(fx_math *m, cudaStream_t stream, int64_t bytes, void **out, const char *what)
{
	cudaMemPool_t pool;
	cudaError_t e = cudaMallocAsync(out, (size_t)bytes, stream);

	if (e == cudaErrorMemoryAllocation) {
		cudaGetLastError();
		e = cudaDeviceSynchronize();
		if (e == cudaSuccess)
			e = cudaDeviceGetDefaultMemPool(&pool, m->device);
		if (e == cudaSuccess)
			e = cudaMemPoolTrimTo(pool, 0);
		if (e == cudaSuccess)
			e = cudaMallocAsync(out, (size_t)bytes, stream);
	}
	if (e == cudaErrorMemoryAllocation) {
		*out = nullptr;
		return fxi_cuda_no_memory(m, (double)bytes, what);
	}
	return fxi_cuda_check(m, e, what);
}

static int array_on(fx_math *m, fxi_stream *stream, int type, int n_dims, const int64_t *dims, fx_array **out)
{
	fxi_cuda_queue *q = fxi_queue(m);
	memory *mem;
	int status = fx_array_wrap(type, n_dims, dims, FX_DEVICE, q->device, release, out);

	if (status != FX_OK)
		return fx_math_fail(m, status, "an array of %d dimensions cannot be had", n_dims);
	mem = new (std::nothrow) memory;
	if (mem) {
		mem->writer = fxi_stream_ref(stream);
		status = fxi_cuda_check(m, cudaEventCreateWithFlags(&mem->written, cudaEventDisableTiming), "an event");
	} else {
		status = fx_math_fail(m, FX_ENOMEM, "no memory for an array");
	}
	if (status == FX_OK && (*out)->bytes > 0) {
		status = take_memory(m, stream->stream, (*out)->bytes, &(*out)->data, "an array");
	}
	(*out)->event = mem;
	if (status != FX_OK) {
		fx_array_unref(*out);
		*out = nullptr;
	}
	return status;
}

int fxi_cuda_array(fx_math *m, int type, int n_dims, const int64_t *dims, fx_array **out)
{
	return array_on(m, fxi_queue(m)->stream, type, n_dims, dims, out);
}

int fxi_cuda_array_new(fx_math *m, int type, int n_dims, const int64_t *dims, fx_array **out)
{
	int status;

	cudaSetDevice(m->device);
	status = fxi_cuda_array(m, type, n_dims, dims, out);
	if (status == FX_OK && (*out)->bytes > 0) {
		fxi_use use(m);
		void *data = use.out(*out);

		status = fxi_cuda_check(m, cudaMemsetAsync(data, 0, (size_t)(*out)->bytes, fxi_stream_of(m)), "clearing an array");
		if (status == FX_OK)
			status = use.done("clearing an array");
		if (status != FX_OK) {
			fx_array_unref(*out);
			*out = nullptr;
		}
	}
	return status;
}

/* Bytes from which on a copy to the host goes to page-locked memory: at a tenth of the time to page-able memory. */
#define LARGE (1 << 20)

/* ---- staging ---------------------------------------------------------------------------------- */

/* What stands behind fx_array.event of a page-locked host array. */
struct staging {
	cudaEvent_t copied;          /* behind the last copy from it */
	bool used;
	bool plain;                  /* its holder does not know that it is page-locked: uploads wait for their copy */
	fxi_pinned *pinned;          /* where its memory goes back to */
	size_t bytes;
};

static void release_staging(fx_array *a)
{
	staging *st = (staging *)a->event;

	if (!st)
		return;
	if (st->used)
		cudaEventSynchronize(st->copied);
	if (st->copied)
		cudaEventDestroy(st->copied);
	fxi_pinned_give(st->pinned, a->data, st->bytes);
	fxi_pinned_unref(st->pinned);
	delete st;
	a->event = nullptr;
	a->data = nullptr;
}

/* cudaSuccess and an array, or why there is none. */
static cudaError_t page_locked(fx_math *m, int type, int n_dims, const int64_t *dims, fx_array **out)
{
	staging *st = new (std::nothrow) staging();
	cudaError_t e;

	*out = nullptr;
	cudaSetDevice(m->device);
	if (!st || fx_array_wrap(type, n_dims, dims, FX_HOST, 0, release_staging, out) != FX_OK) {
		delete st;
		return cudaErrorMemoryAllocation;
	}
	(*out)->event = st;
	st->pinned = fxi_pinned_ref(fxi_queue(m)->pinned);
	e = cudaEventCreateWithFlags(&st->copied, cudaEventDisableTiming);
	if (e == cudaSuccess && (*out)->bytes > 0)
		e = fxi_pinned_take(st->pinned, (size_t)(*out)->bytes, &(*out)->data, &st->bytes);
	if (e != cudaSuccess) {
		cudaGetLastError();
		fx_array_unref(*out);
		*out = nullptr;
	}
	return e;
}

int fxi_cuda_staging_new(fx_math *m, int type, int n_dims, const int64_t *dims, fx_array **out)
{
	return fxi_cuda_check(m, page_locked(m, type, n_dims, dims, out), "page-locking memory for an array");
}

int fxi_cuda_staging_wait(fx_math *m, const fx_array *array)
{
	const staging *st = (const staging *)array->event;

	return st->used ? fxi_cuda_check(m, cudaEventSynchronize(st->copied), "copying to the GPU") : FX_OK;
}

/* The queue's second stream, which copies while the first computes. */
static int copies_of(fx_math *m, fxi_stream **out)
{
	fxi_cuda_queue *q = fxi_queue(m);
	int status = FX_OK;

	if (!q->copies) {
		fxi_stream *s = new (std::nothrow) fxi_stream();

		if (!s)
			return fx_math_fail(m, FX_ENOMEM, "no memory for a stream");
		s->refs = 1;
		s->device = q->device;
		status = fxi_cuda_check(m, cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking), "a stream");
		if (status == FX_OK)
			q->copies = s;
		else
			delete s;
	}
	*out = q->copies;
	return status;
}

static int upload_staged(fx_math *m, const fx_array *host, fx_array **out)
{
	staging *st = (staging *)host->event;
	fxi_stream *s = nullptr;
	int status = copies_of(m, &s);

	if (status == FX_OK)
		status = array_on(m, s, host->type, host->n_dims, host->dims, out);
	if (status != FX_OK || host->bytes == 0)
		return status;
	status = fxi_cuda_check(m, cudaMemcpyAsync((*out)->data, host->data, (size_t)host->bytes, cudaMemcpyHostToDevice, s->stream),
		"copying to the GPU");
	if (status == FX_OK)
		status = fxi_cuda_check(m, cudaEventRecord(memory_of(*out)->written, s->stream), "marking an array");
	if (status == FX_OK)
		status = fxi_cuda_check(m, cudaEventRecord(st->copied, s->stream), "marking an array");
	st->used = true;
	if (status == FX_OK && st->plain)
		status = fxi_cuda_check(m, cudaEventSynchronize(st->copied), "copying to the GPU");
	if (status != FX_OK) {
		fx_array_unref(*out);
		*out = nullptr;
	}
	return status;
}

int fxi_cuda_upload(fx_math *m, const fx_array *host, fx_array **out)
{
	int status;

	*out = nullptr;
	if (host->place == FX_DEVICE && host->device == m->device) {
		*out = fx_array_ref((fx_array *)host);
		return FX_OK;
	}
	cudaSetDevice(m->device);
	if (host->event)
		return upload_staged(m, host, out);
	status = fxi_cuda_array(m, host->type, host->n_dims, host->dims, out);
	if (status == FX_OK && host->bytes > 0) {
		fxi_use use(m);
		void *data = use.out(*out);

		/* From pageable memory the copy is through when this returns, as far as the host array goes. */
		status = fxi_cuda_check(m, cudaMemcpyAsync(data, host->data, (size_t)host->bytes, cudaMemcpyHostToDevice,
			fxi_stream_of(m)), "copying to the GPU");
		if (status == FX_OK)
			status = use.done("copying to the GPU");
		if (status != FX_OK) {
			fx_array_unref(*out);
			*out = nullptr;
		}
	}
	return status;
}

int fxi_cuda_download(fx_math *m, const fx_array *device, fx_array **out)
{
	int status = FX_OK;

	*out = nullptr;
	if (device->place == FX_HOST) {
		*out = fx_array_ref((fx_array *)device);
		return FX_OK;
	}
	cudaSetDevice(m->device);
	/* page-locked memory is the faster way, not a need */
	if (device->bytes >= LARGE && page_locked(m, device->type, device->n_dims, device->dims, out) == cudaSuccess)
		((staging *)(*out)->event)->plain = true;
	else
		status = fx_array_new(device->type, device->n_dims, device->dims, out);
	if (status != FX_OK)
		return fx_math_fail(m, status, "no memory for a copy of %.1f MB from the GPU", (double)device->bytes / 1e6);
	if (device->bytes > 0) {
		fxi_use use(m);
		const void *data = use.in(device);

		status = use.ready();
		if (status == FX_OK)
			status = fxi_cuda_check(m, cudaMemcpyAsync((*out)->data, data, (size_t)device->bytes, cudaMemcpyDeviceToHost,
				fxi_stream_of(m)), "copying from the GPU");
		if (status == FX_OK)
			status = use.done("copying from the GPU");
		if (status == FX_OK)
			status = fxi_cuda_check(m, cudaStreamSynchronize(fxi_stream_of(m)), "copying from the GPU");
		if (status != FX_OK) {
			fx_array_unref(*out);
			*out = nullptr;
		}
	}
	return status;
}

int fxi_cuda_memory(fx_math *m, int64_t *available, int64_t *most)
{
	cudaMemPool_t pool;
	uint64_t reserved = 0, used = 0, high = 0;
	size_t unused = 0, total = 0;
	int status = fxi_cuda_check(m, cudaSetDevice(m->device), "choosing the GPU");

	if (status == FX_OK)
		status = fxi_cuda_check(m, cudaMemGetInfo(&unused, &total), "asking for its memory");
	if (status == FX_OK)
		status = fxi_cuda_check(m, cudaDeviceGetDefaultMemPool(&pool, m->device), "asking for its memory");
	if (status == FX_OK)
		status = fxi_cuda_check(m, cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved), "asking for its memory");
	if (status == FX_OK)
		status = fxi_cuda_check(m, cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used), "asking for its memory");
	if (status == FX_OK)
		status = fxi_cuda_check(m, cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &high), "asking for its memory");
	/* what the pool keeps is this process's to use again */
	*available = (int64_t)unused + (int64_t)(reserved - used);
	*most = (int64_t)high;
	return status;
}

int fxi_cuda_copy(fx_math *m, const fx_array *source, int64_t from, int64_t n, fx_array *target, int64_t to)
{
	size_t size = fx_type_size(source->type);
	fxi_use use(m);
	int status;

	if (source->type != target->type || n < 0 || from < 0 || to < 0 || from > source->n - n || to > target->n - n)
		return fx_math_fail(m, FX_EINVAL, "copying %lld elements from %lld of %lld to %lld of %lld", (long long)n, (long long)from,
			(long long)source->n, (long long)to, (long long)target->n);
	if (n == 0)
		return FX_OK;
	const char *at = (const char *)use.in(source);
	char *there = (char *)use.out(target);
	status = use.ready();
	if (status == FX_OK)
		status = fxi_cuda_check(m, cudaMemcpyAsync(there + (size_t)to * size, at + (size_t)from * size, (size_t)n * size,
			cudaMemcpyDeviceToDevice, fxi_stream_of(m)), "copying");
	return status == FX_OK ? use.done("copying") : status;
}

/* ---- the arrays of one operation -------------------------------------------------------------- */

void fxi_use::add(const fx_array *a, bool write)
{
	fxi_cuda_queue *q = fxi_queue(math);
	memory *mem;

	if (status != FX_OK)
		return;
	if (n == 0)
		status = fxi_cuda_check(math, cudaSetDevice(q->device), "choosing the GPU");
	if (a->place != FX_DEVICE || a->device != q->device)
		status = fx_math_fail(math, FX_EINVAL, "an array on %s reached an operation of GPU %d; it has to be uploaded first",
			a->place == FX_DEVICE ? "another GPU" : "the host", q->device);
	if (status == FX_OK && n == MOST)
		status = fx_math_fail(math, FX_EINVAL, "an operation uses more than %d arrays", MOST);
	if (status != FX_OK)
		return;
	mem = memory_of(a);
	std::lock_guard<std::mutex> guard(mem->lock);
	if (mem->writer != q->stream)
		status = fxi_cuda_check(math, cudaStreamWaitEvent(q->stream->stream, mem->written, 0), "waiting for an array");
	for (size_t i = 0; write && status == FX_OK && i < mem->readers.size(); i++)
		if (mem->readers[i] != q->stream)
			status = fxi_cuda_check(math, cudaStreamWaitEvent(q->stream->stream, mem->read[i], 0), "waiting for readers");
	arrays[n] = a;
	written[n++] = write;
}

const void *fxi_use::in(const fx_array *a)
{
	add(a, false);
	return a->data;
}

void *fxi_use::out(fx_array *a)
{
	add(a, true);
	return a->data;
}

int fxi_use::done(const char *what)
{
	fxi_cuda_queue *q = fxi_queue(math);

	if (status == FX_OK)
		status = fxi_cuda_launched(math, what);
	for (int i = 0; status == FX_OK && i < n; i++) {
		memory *mem = memory_of(arrays[i]);
		std::lock_guard<std::mutex> guard(mem->lock);

		if (written[i]) {
			forget_readers(mem);
			if (mem->writer != q->stream) {
				fxi_stream_unref(mem->writer);
				mem->writer = fxi_stream_ref(q->stream);
			}
			status = fxi_cuda_check(math, cudaEventRecord(mem->written, q->stream->stream), "marking an array");
		} else if (mem->writer != q->stream) {
			size_t r = 0;
			cudaEvent_t event = nullptr;

			while (r < mem->readers.size() && mem->readers[r] != q->stream)
				r++;
			if (r == mem->readers.size()) {
				status = fxi_cuda_check(math, cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event");
				if (status != FX_OK)
					break;
				mem->readers.push_back(fxi_stream_ref(q->stream));
				mem->read.push_back(event);
			}
			status = fxi_cuda_check(math, cudaEventRecord(mem->read[r], q->stream->stream), "marking an array");
		}
	}
	return status;
}

fxi_work::fxi_work(fx_math *m, int64_t count, size_t size) : stream(fxi_stream_of(m)), memory(nullptr), state(FX_OK)
{
	int64_t bytes = 0;

	cudaSetDevice(m->device);
	if (!fx_mul_size(count, (int64_t)size, &bytes)) {
		state = fx_math_fail(m, FX_ENOMEM, "work memory of %lld elements is too much", (long long)count);
		return;
	}
	if (bytes > 0)
		state = take_memory(m, stream, bytes, &memory, "work memory");
}

fxi_work::~fxi_work()
{
	if (memory)
		cudaFreeAsync(memory, stream);
}

fxi_counts::fxi_counts(fx_math *m, int count) : math(m), n(count), state(FX_OK), work(m, count, sizeof(unsigned long long))
{
	state = work.status();
	if (state == FX_OK && n > 0)
		state = fxi_cuda_check(m, cudaMemsetAsync(work.get(), 0, n * sizeof(unsigned long long), fxi_stream_of(m)), "clearing counts");
}

int fxi_counts::get(int64_t *out)
{
	const unsigned long long *result = (const unsigned long long *)fxi_queue(math)->result;
	int status = fxi_cuda_check(math, cudaMemcpyAsync(fxi_queue(math)->result, work.get(), n * sizeof *result, cudaMemcpyDeviceToHost,
		fxi_stream_of(math)), "fetching counts");

	if (status == FX_OK)
		status = fxi_cuda_check(math, cudaStreamSynchronize(fxi_stream_of(math)), "fetching counts");
	for (int i = 0; status == FX_OK && i < n; i++)
		out[i] = (int64_t)result[i];
	return status;
}
