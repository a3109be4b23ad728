/* SPDX-License-Identifier: MIT */
/* Kept noise: what comes back is what was put, across a restart; bounds, expiry, damage; and what crosses from process to process. */
#include <CUnit/CUnit.h>
#include <complex.h>
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "serve/link.h"
#include "serve/noise_blob.h"
#include "serve/noise_store.h"

#define MANY ((fxi_noise_bounds){.bytes = 64 << 20, .count = 100, .expiry_s = 3600})

static char folder[] = "/tmp/fornix-noise-XXXXXX";

static int set_up(void)
{
	strcpy(folder + strlen(folder) - 6, "XXXXXX");
	return mkdtemp(folder) ? 0 : 1;
}

/* Number of files that hold something; one of their names into `name` (may be NULL). `empty`: all are removed. */
static int files(char *name, size_t size, bool empty)
{
	DIR *dir = opendir(folder);
	int n = 0;

	for (const struct dirent *d = readdir(dir); d; d = readdir(dir)) {
		if (d->d_name[0] == '.' && strlen(d->d_name) < 3)
			continue;
		n++;
		if (name)
			snprintf(name, size, "%s/%s", folder, d->d_name);
		if (empty)
			unlinkat(dirfd(dir), d->d_name, 0);
	}
	closedir(dir);
	return n;
}

static int tear_down(void)
{
	files(NULL, 0, true);
	return rmdir(folder);
}

static fx_noise make(int64_t coils, double seed)
{
	fx_noise noise = {.dwell_us = 5 + seed, .n_samples = 1000};

	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_CF64, coils, coils, &noise.covariance), FX_OK);
	for (int64_t a = 0; a < coils; a++)
		for (int64_t b = 0; b < coils; b++)
			FX_CF64_OF(noise.covariance)[a * coils + b] = a == b ? FX_CF64((double)coils + seed, 0)
				: FX_CF64(sin((double)(a + b)), (double)(a - b));
	return noise;
}

static fxi_noise_files *open_store(fxi_noise_bounds bounds)
{
	fxi_noise_files *f;

	CU_ASSERT_EQUAL_FATAL(fxi_noise_files_open(folder, &bounds, NULL, &f), FX_OK);
	return f;
}

static bool same(const fx_noise *a, const fx_noise *b)
{
	return a->covariance && b->covariance && a->dwell_us == b->dwell_us && a->n_samples == b->n_samples &&
		a->covariance->bytes == b->covariance->bytes &&
		memcmp(a->covariance->data, b->covariance->data, (size_t)a->covariance->bytes) == 0;
}

static bool kept(fxi_noise_files *f, const char *id, const fx_noise *expected)
{
	fx_noise got;
	bool there;

	CU_ASSERT_EQUAL(fxi_noise_files_get(f, id, NULL, &got), FX_OK);
	there = got.covariance != NULL;
	if (there && expected)
		CU_ASSERT(same(&got, expected));
	fx_noise_clear(&got);
	return there;
}

static void what_was_put_comes_back(void)
{
	static const char *const ids[] = {"1", "../../etc/passwd", "a b\n/c", "M\xc3\xa9sure", "45096_105"};
	fxi_noise_files *f = open_store(MANY);
	fx_noise noise[5];

	for (int i = 0; i < 5; i++) {
		noise[i] = make(1 + 13 * i, i);
		CU_ASSERT_EQUAL(fxi_noise_files_put(f, ids[i], &noise[i], NULL), FX_OK);
	}
	CU_ASSERT_EQUAL(files(NULL, 0, false), 5);
	fxi_noise_files_free(f);
	f = open_store(MANY);
	for (int i = 0; i < 5; i++)
		CU_ASSERT(kept(f, ids[i], &noise[i]));
	CU_ASSERT_FALSE(kept(f, "2", NULL));
	CU_ASSERT_EQUAL(fxi_noise_files_put(f, ids[0], &noise[1], NULL), FX_OK); /* replaced */
	CU_ASSERT(kept(f, ids[0], &noise[1]));
	CU_ASSERT_EQUAL(files(NULL, 0, false), 5);
	for (int i = 0; i < 5; i++)
		fx_noise_clear(&noise[i]);
	fxi_noise_files_free(f);
	files(NULL, 0, true);
}

static void what_is_no_noise_is_refused(void)
{
	fxi_noise_files *f = open_store(MANY);
	fx_noise noise = make(3, 0), got;
	char long_id[1100];
	fx_error err = {0};

	memset(long_id, 'x', sizeof long_id);
	long_id[sizeof long_id - 1] = '\0';
	CU_ASSERT_EQUAL(fxi_noise_files_put(f, "", &noise, NULL), FX_EINVAL);
	CU_ASSERT_EQUAL(fxi_noise_files_put(f, long_id, &noise, NULL), FX_EINVAL);
	CU_ASSERT_EQUAL(fxi_noise_files_get(f, long_id, NULL, &got), FX_EINVAL);
	FX_CF64_OF(noise.covariance)[4] = -1;
	CU_ASSERT_EQUAL(fxi_noise_files_put(f, "1", &noise, &err), FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "coil 1"));
	FX_CF64_OF(noise.covariance)[4] = (double)NAN;
	CU_ASSERT_EQUAL(fxi_noise_files_put(f, "1", &noise, NULL), FX_EDATA);
	CU_ASSERT_EQUAL(files(NULL, 0, false), 0);
	fx_noise_clear(&noise);
	fxi_noise_files_free(f);
}

/* Used longest ago goes first; what was just put never does. */
static void bounds_are_kept(void)
{
	fxi_noise_files *f = open_store((fxi_noise_bounds){.bytes = 64 << 20, .count = 3, .expiry_s = 3600});
	fx_noise noise = make(8, 0);
	char id[2] = "a";

	for (int i = 0; i < 5; i++) {
		id[0] = (char)('a' + i);
		usleep(20000); /* clocks of file systems are coarse */
		CU_ASSERT_EQUAL(fxi_noise_files_put(f, id, &noise, NULL), FX_OK);
		if (i >= 1)
			usleep(20000);
		if (i >= 1) /* a stays in use */
			CU_ASSERT(kept(f, "a", &noise));
	}
	CU_ASSERT_EQUAL(files(NULL, 0, false), 3);
	CU_ASSERT(kept(f, "a", &noise) && kept(f, "d", &noise) && kept(f, "e", &noise));
	fxi_noise_files_free(f);

	f = open_store((fxi_noise_bounds){.bytes = 5000, .count = 100, .expiry_s = 3600}); /* one of 8 coils takes 1.3 kB */
	CU_ASSERT_EQUAL(files(NULL, 0, false), 3);
	CU_ASSERT_EQUAL(fxi_noise_files_put(f, "f", &noise, NULL), FX_OK);
	CU_ASSERT(files(NULL, 0, false) <= 3);
	fx_noise_clear(&noise);
	noise = make(64, 0);
	CU_ASSERT_EQUAL(fxi_noise_files_put(f, "g", &noise, NULL), FX_EINVAL); /* 65 kB */
	fx_noise_clear(&noise);
	fxi_noise_files_free(f);
	files(NULL, 0, true);
}

static void old_noise_is_gone(void)
{
	fxi_noise_files *f = open_store((fxi_noise_bounds){.bytes = 64 << 20, .count = 3, .expiry_s = 0.05});
	fx_noise noise = make(2, 0);

	CU_ASSERT_EQUAL(fxi_noise_files_put(f, "a", &noise, NULL), FX_OK);
	usleep(80000);
	CU_ASSERT_FALSE(kept(f, "a", NULL));
	CU_ASSERT_EQUAL(files(NULL, 0, false), 0);
	fx_noise_clear(&noise);
	fxi_noise_files_free(f);
}

/* Every byte of a file counts: damaged, it is as if there were none, and is gone. */
static void damage_is_seen(void)
{
	fxi_noise_files *f = open_store(MANY);
	fx_noise noise = make(2, 0), got;
	char name[256];
	struct stat st;

	for (long at = 0;; at += 7) {
		unsigned char byte = 0;
		int fd;

		CU_ASSERT_EQUAL_FATAL(fxi_noise_files_put(f, "a", &noise, NULL), FX_OK);
		CU_ASSERT_EQUAL_FATAL(files(name, sizeof name, false), 1);
		CU_ASSERT_EQUAL_FATAL(stat(name, &st), 0);
		if (at >= (long)st.st_size)
			break;
		fd = open(name, O_RDWR);
		CU_ASSERT_FATAL(fd >= 0 && pread(fd, &byte, 1, at) == 1);
		byte ^= 0x41;
		CU_ASSERT_FATAL(pwrite(fd, &byte, 1, at) == 1);
		close(fd);
		CU_ASSERT_EQUAL(fxi_noise_files_get(f, "a", NULL, &got), FX_EDATA);
		CU_ASSERT_PTR_NULL(got.covariance);
		CU_ASSERT_FALSE(kept(f, "a", NULL));
	}
	fx_noise_clear(&noise);
	fxi_noise_files_free(f);
	files(NULL, 0, true);
}

static void it_crosses_processes(void)
{
	fx_noise noise = make(5, 1), got;
	fxi_link_message m = {.kind = FXI_LINK_NOISE_PUT, .u.text = "measurement"}, heard;
	int ends[2], fd, came;

	CU_ASSERT_EQUAL_FATAL(fxi_link_pair(ends, NULL), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fxi_noise_blob_write(&noise, NULL, &fd), FX_OK);
	CU_ASSERT(fxi_link_send(ends[0], &m, fd));
	close(fd);
	CU_ASSERT_EQUAL_FATAL(fxi_link_receive(ends[1], &heard, &came), 1);
	CU_ASSERT_STRING_EQUAL(heard.u.text, "measurement");
	CU_ASSERT_FATAL(came >= 0);
	CU_ASSERT_EQUAL(fcntl(came, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	CU_ASSERT_EQUAL(fxi_noise_blob_read(came, NULL, &got), FX_OK);
	CU_ASSERT(same(&got, &noise));
	fx_noise_clear(&got);
	CU_ASSERT_EQUAL(ftruncate(came, 40), 0); /* as a worker that was damaged might send it */
	CU_ASSERT_EQUAL(fxi_noise_blob_read(came, NULL, &got), FX_EDATA);
	CU_ASSERT_EQUAL(ftruncate(came, 1 << 30), 0);
	CU_ASSERT_EQUAL(fxi_noise_blob_read(came, NULL, &got), FX_EDATA);
	close(came);

	/* no record, and nothing at all */
	CU_ASSERT_EQUAL(send(ends[0], "hello", 5, 0), 5);
	CU_ASSERT_EQUAL(fxi_link_receive(ends[1], &heard, &came), -1);
	fcntl(ends[1], F_SETFL, O_NONBLOCK);
	CU_ASSERT_EQUAL(fxi_link_receive(ends[1], &heard, &came), 0);
	memset(&m, 'x', sizeof m); /* texts without an end */
	for (int kind = FXI_LINK_READY; kind <= FXI_LINK_NOISE; kind++) {
		m.kind = kind;
		CU_ASSERT(fxi_link_send(ends[0], &m, -1));
		CU_ASSERT_EQUAL(fxi_link_receive(ends[1], &heard, &came), 1);
		CU_ASSERT(kind != FXI_LINK_OUTCOME || strlen(heard.u.outcome.error) < sizeof heard.u.outcome.error);
		CU_ASSERT(kind != FXI_LINK_READY || (heard.u.gpus.n >= 0 && heard.u.gpus.n <= FXI_LINK_GPUS));
		CU_ASSERT(kind != FXI_LINK_NOISE_GET || strlen(heard.u.text) < sizeof heard.u.text);
	}
	close(ends[0]);
	CU_ASSERT_EQUAL(fxi_link_receive(ends[1], &heard, &came), -1);
	close(ends[1]);
	fx_noise_clear(&noise);
}

static CU_TestInfo tests[] = {
	{"what was put comes back", what_was_put_comes_back},
	{"what is no noise is refused", what_is_no_noise_is_refused},
	{"bounds are kept", bounds_are_kept},
	{"old noise is gone", old_noise_is_gone},
	{"damage is seen", damage_is_seen},
	{"it crosses processes", it_crosses_processes},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_noise_store = {"noise_store", set_up, tear_down, NULL, NULL, tests};
