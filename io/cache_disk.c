/* SPDX-License-Identifier: MIT */
/*
 * cache_disk.c - a file is a fixed head, the key, and the elements; the SHA-256 in the head covers all of it, so that a
 * flipped bit, a short file, or a file under another's name is seen.
 */
#include "cache_disk.h"

#include "aside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAGIC "fornixQ\n"
#define VERSION 1u
#define KEY_BYTES 128
#define DIGEST_BYTES 32
#define SUFFIX ".fxcache"
#define MARK_SUFFIX ".seen"
#define STALE_PART_S (24 * 3600)       /* a write takes seconds: what is left after a day was killed */
#define STALE_MARK_S (90 * 24 * 3600)  /* a trajectory not met again for a season is new again */

/* Host byte order: the folder belongs to one machine, and `order` refuses another's. */
struct head {
	char magic[8];
	uint32_t version, order;
	int32_t type, n_dims;
	int64_t dims[FX_MAX_DIMS];
	int64_t bytes;
	char key[KEY_BYTES];
	uint8_t digest[DIGEST_BYTES];  /* of head with this zeroed, then the elements */
};

static char *path_of(const char *folder, const char *key, const char *suffix)
{
	char *path = NULL;

	return asprintf(&path, "%s/%s%s", folder, key, suffix) < 0 ? NULL : path;
}

static int no_memory(const char *key, fx_error *err)
{
	return fx_error_set(err, FX_ENOMEM, "not enough memory for the cached array %s", key);
}

static void digest_of(const struct head *head, const fx_array *a, uint8_t digest[DIGEST_BYTES])
{
	struct head bare = *head;
	GChecksum *sum = g_checksum_new(G_CHECKSUM_SHA256);
	gsize size = DIGEST_BYTES;

	memset(bare.digest, 0, sizeof bare.digest);
	g_checksum_update(sum, (const guchar *)&bare, sizeof bare);
	for (int64_t at = 0; at < a->bytes;) {
		int64_t piece = a->bytes - at < (1 << 30) ? a->bytes - at : 1 << 30;

		g_checksum_update(sum, (const guchar *)a->data + at, (gssize)piece);
		at += piece;
	}
	g_checksum_get_digest(sum, digest, &size);
	g_checksum_free(sum);
}

static void fill_head(struct head *head, const char *key, const fx_array *a)
{
	memset(head, 0, sizeof *head);
	memcpy(head->magic, MAGIC, sizeof head->magic);
	head->version = VERSION;
	head->order = 0x01020304u;
	head->type = a->type;
	head->n_dims = a->n_dims;
	for (int i = 0; i < FX_MAX_DIMS; i++)
		head->dims[i] = i < a->n_dims ? a->dims[i] : 1;
	head->bytes = a->bytes;
	snprintf(head->key, sizeof head->key, "%s", key);
}

static bool read_all(int fd, void *data, int64_t bytes)
{
	char *to = data;

	while (bytes > 0) {
		ssize_t n = read(fd, to, bytes < (1 << 30) ? (size_t)bytes : (size_t)1 << 30);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		to += n;
		bytes -= n;
	}
	return true;
}

/* What is wrong with a head that claims to be `key`'s and to stand before `rest` bytes; NULL where nothing is. */
static const char *head_fault(const struct head *head, const char *key, int64_t rest)
{
	int64_t n = 1;

	if (memcmp(head->magic, MAGIC, sizeof head->magic) != 0)
		return "it is no cache file";
	if (head->version != VERSION || head->order != 0x01020304u)
		return "it was written by another version or machine";
	if (strncmp(head->key, key, sizeof head->key) != 0)
		return "it belongs to another key";
	if (head->n_dims < 0 || head->n_dims > FX_MAX_DIMS || fx_type_size(head->type) == 0)
		return "its head is damaged";
	for (int i = 0; i < head->n_dims; i++)
		if (!fx_mul_size(n, head->dims[i], &n))
			return "its head is damaged";
	if (!fx_mul_size(n, (int64_t)fx_type_size(head->type), &n) || n != head->bytes)
		return "its head is damaged";
	return head->bytes == rest ? NULL : "its length is wrong";
}

/* fault: what is wrong with the file's content, or NULL. Returns FX_ENOMEM or FX_OK. */
static int load_from(int fd, const char *key, const char **fault, fx_array **out)
{
	uint8_t digest[DIGEST_BYTES];
	struct head head;
	struct stat st;
	int status;

	if (fstat(fd, &st) != 0 || !read_all(fd, &head, sizeof head)) {
		*fault = "it is too short";
		return FX_OK;
	}
	*fault = head_fault(&head, key, (int64_t)st.st_size - (int64_t)sizeof head);
	if (*fault)
		return FX_OK;
	status = fx_array_new(head.type, head.n_dims, head.dims, out);
	if (status != FX_OK)
		return status;
	if (!read_all(fd, (*out)->data, head.bytes))
		*fault = "it cannot be read to its end";
	else {
		digest_of(&head, *out, digest);
		if (memcmp(digest, head.digest, sizeof digest) != 0)
			*fault = "its checksum is wrong";
	}
	if (*fault) {
		fx_array_unref(*out);
		*out = NULL;
	}
	return FX_OK;
}

int fxi_cache_load(const char *folder, const char *key, fx_error *err, fx_array **out)
{
	char *path = path_of(folder, key, SUFFIX);
	const char *fault = NULL;
	int fd, status;

	*out = NULL;
	if (!path)
		return no_memory(key, err);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0) {
		status = errno == ENOENT || errno == ENOTDIR ? FX_OK
			: fx_error_set(err, FX_EIO, "cannot read %s: %s", path, strerror(errno));
		free(path);
		return status;
	}
	status = load_from(fd, key, &fault, out);
	if (status != FX_OK)
		status = no_memory(key, err);
	else if (fault) {
		status = fx_error_set(err, FX_EDATA, "%s is damaged (%s); it was removed and will be computed again", path, fault);
		unlink(path);
	} else
		futimens(fd, NULL); /* last use, for trimming; a read-only folder does without */
	close(fd);
	free(path);
	return status;
}

static int make_folder(const char *folder, fx_error *err)
{
	if (g_mkdir_with_parents(folder, 0700) != 0)
		return fx_error_set(err, FX_EIO, "cannot make the cache folder %s: %s", folder, strerror(errno));
	return FX_OK;
}

int fxi_cache_store(const char *folder, const char *key, const fx_array *array, fx_error *err)
{
	char *path = path_of(folder, key, SUFFIX);
	fxi_aside *aside = NULL;
	struct head head;
	int status;

	if (!path)
		return no_memory(key, err);
	fill_head(&head, key, array);
	digest_of(&head, array, head.digest);
	status = make_folder(folder, err);
	if (status == FX_OK)
		status = fxi_aside_open(path, err, &aside);
	if (status == FX_OK)
		status = fxi_aside_write(aside, &head, sizeof head, err);
	if (status == FX_OK)
		status = fxi_aside_write(aside, array->data, (size_t)array->bytes, err);
	if (status == FX_OK)
		status = fxi_aside_commit(aside, err);
	else
		fxi_aside_abandon(aside);
	free(path);
	return status;
}

bool fxi_cache_stored(const char *folder, const char *key)
{
	char *path = path_of(folder, key, SUFFIX);
	bool there = path && access(path, F_OK) == 0;

	free(path);
	return there;
}

int fxi_cache_mark(const char *folder, const char *key, fx_error *err, bool *before)
{
	char *path = path_of(folder, key, MARK_SUFFIX);
	int fd, status;

	*before = false;
	if (!path)
		return no_memory(key, err);
	status = make_folder(folder, err);
	if (status == FX_OK) {
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd >= 0)
			close(fd);
		else if (errno == EEXIST)
			*before = true;
		else
			status = fx_error_set(err, FX_EIO, "cannot write %s: %s", path, strerror(errno));
	}
	free(path);
	return status;
}

/* ---- the bound ------------------------------------------------------------------------------- */

struct entry {
	char *name;
	int64_t bytes;
	struct timespec used;
};

static int oldest_first(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->used.tv_sec != y->used.tv_sec)
		return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
	if (x->used.tv_nsec != y->used.tv_nsec)
		return x->used.tv_nsec < y->used.tv_nsec ? -1 : 1;
	return strcmp(x->name, y->name);
}

static bool ends_with(const char *name, const char *suffix)
{
	size_t n = strlen(name), m = strlen(suffix);

	return n > m && strcmp(name + n - m, suffix) == 0;
}

/* Notes an array's file in the list; removes what is stale. The folder is ours alone, by its name. */
static void look_at(int folder, const char *name, time_t now, struct entry **list, int64_t *n)
{
	struct entry *grown;
	struct stat st;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
		return;
	if ((name[0] == '.' && ends_with(name, ".part") && now - st.st_mtime > STALE_PART_S) ||
		(ends_with(name, MARK_SUFFIX) && now - st.st_mtime > STALE_MARK_S)) {
		unlinkat(folder, name, 0);
		return;
	}
	if (name[0] == '.' || !ends_with(name, SUFFIX))
		return;
	grown = realloc(*list, (size_t)(*n + 1) * sizeof **list);
	if (!grown)
		return;
	*list = grown;
	grown[*n].name = strdup(name);
	grown[*n].bytes = (int64_t)st.st_size;
	grown[*n].used = st.st_mtim;
	if (grown[*n].name)
		++*n;
}

void fxi_cache_trim(const char *folder, int64_t max_bytes, const char *keep)
{
	DIR *dir = opendir(folder);
	struct entry *list = NULL;
	int64_t n = 0, total = 0;
	size_t keep_length = strlen(keep);

	if (!dir)
		return;
	for (const struct dirent *d = readdir(dir); d; d = readdir(dir))
		look_at(dirfd(dir), d->d_name, time(NULL), &list, &n);
	for (int64_t i = 0; i < n; i++)
		total += list[i].bytes;
	if (n > 1)
		qsort(list, (size_t)n, sizeof *list, oldest_first);
	for (int64_t i = 0; i < n && total > max_bytes; i++) {
		if (strncmp(list[i].name, keep, keep_length) == 0 && strcmp(list[i].name + keep_length, SUFFIX) == 0)
			continue;
		/* Another process may have been faster: then it is gone all the same. */
		if (unlinkat(dirfd(dir), list[i].name, 0) == 0 || errno == ENOENT)
			total -= list[i].bytes;
	}
	for (int64_t i = 0; i < n; i++)
		free(list[i].name);
	free(list);
	closedir(dir);
}
