/* SPDX-License-Identifier: MIT */
#include <fornix/base.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

const char *fx_status_text(int status)
{
	switch (status) {
	case FX_OK:
		return "done";
	case FX_ENOMEM:
		return "out of memory";
	case FX_EINVAL:
		return "wrong call";
	case FX_EDATA:
		return "bad data";
	case FX_EIO:
		return "input or output failed";
	case FX_ENOTSUP:
		return "not supported";
	case FX_ECANCELED:
		return "stopped";
	default:
		return "unknown failure";
	}
}

int fx_error_setv(fx_error *err, int status, const char *fmt, va_list args)
{
	if (err && err->status == FX_OK) {
		err->status = status;
		vsnprintf(err->text, sizeof err->text, fmt, args);
	}
	return status;
}

int fx_error_set(fx_error *err, int status, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fx_error_setv(err, status, fmt, args);
	va_end(args);
	return status;
}

bool fx_mul_size(int64_t a, int64_t b, int64_t *out)
{
	int64_t product;

	if (a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product))
		return false;
	*out = product;
	return true;
}

/* Page size that Linux gives on request: volumes in such pages cost few page faults and few TLB misses. */
#define HUGE_PAGE (INT64_C(2) << 20)

void *fx_alloc(int64_t count, size_t size)
{
	int64_t bytes;
	void *memory = NULL;

	if (!fx_mul_size(count, (int64_t)size, &bytes) || bytes > INT64_MAX - 64)
		return NULL;
	if (posix_memalign(&memory, bytes >= HUGE_PAGE ? (size_t)HUGE_PAGE : 64, bytes ? (size_t)bytes : 64) != 0)
		return NULL;
#ifdef MADV_HUGEPAGE
	if (bytes >= HUGE_PAGE) /* a request: where it is refused, pages are small */
		madvise(memory, (size_t)(bytes / HUGE_PAGE * HUGE_PAGE), MADV_HUGEPAGE);
#endif
	memset(memory, 0, (size_t)bytes);
	return memory;
}

void fx_free(void *memory)
{
	free(memory);
}

/* One number out of a small file such as those of /sys/fs/cgroup; -1 where there is none. */
static int64_t read_number(const char *path, const char *key)
{
	FILE *file = fopen(path, "re");
	char line[256];
	int64_t value = -1;

	if (!file)
		return -1;
	while (fgets(line, sizeof line, file)) {
		size_t n = strlen(key);
		long long number;

		if (strncmp(line, key, n) == 0 && sscanf(line + n, "%lld", &number) == 1) {
			value = number;
			break;
		}
	}
	fclose(file);
	return value;
}

/* What the process may write to may be bounded: a server bounds its sessions so. */
static int64_t own_limit(int64_t available)
{
	struct rlimit limit;
	int64_t used, left;

	if (getrlimit(RLIMIT_DATA, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > INT64_MAX)
		return available;
	used = read_number("/proc/self/status", "VmData:");
	left = used < 0 ? (int64_t)limit.rlim_cur : (int64_t)limit.rlim_cur - used * 1024;
	return left < 0 ? 0 : left < available ? left : available;
}

/* What one cgroup leaves of `available`. */
static int64_t group_limit(const char *folder, int64_t available)
{
	char path[600];
	int64_t limit, used;

	snprintf(path, sizeof path, "%s/memory.max", folder);
	limit = read_number(path, "");
	snprintf(path, sizeof path, "%s/memory.current", folder);
	used = read_number(path, "");
	if (limit < 0 || used < 0 || limit - used >= available)
		return available;
	return limit > used ? limit - used : 0;
}

/* Of the process's own cgroup (a service's MemoryMax=) and all those around it. */
static int64_t groups_limit(int64_t available)
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	char line[512], folder[560] = "/sys/fs/cgroup";

	while (file && fgets(line, sizeof line, file)) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "0::/", 4) == 0)
			snprintf(folder, sizeof folder, "/sys/fs/cgroup%s", line + 3);
	}
	if (file)
		fclose(file);
	for (;;) {
		available = group_limit(folder, available);
		if (strcmp(folder, "/sys/fs/cgroup") == 0 || !strrchr(folder + 1, '/'))
			return available;
		*strrchr(folder, '/') = '\0';
	}
}

int64_t fx_memory_available_bytes(void)
{
	int64_t kilobytes = read_number("/proc/meminfo", "MemAvailable:");
	int64_t available = kilobytes >= 0 ? kilobytes * 1024 : INT64_MAX;

	return own_limit(groups_limit(available));
}
