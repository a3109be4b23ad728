/* SPDX-License-Identifier: MIT */
/* noise_blob.c - a fixed head and the elements, in a memory file that has no name. */
#include "noise_blob.h"

#include <complex.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct head {
	int64_t n_coils, n_samples;
	double dwell_us;
};

int fxi_noise_check(const fx_noise *noise, fx_error *err)
{
	const fx_array *c = noise->covariance;

	if (c->type != FX_CF64 || c->n_dims != 2 || c->dims[0] != c->dims[1] || c->dims[0] < 1 || c->dims[0] > FXI_NOISE_MAX_COILS)
		return fx_error_set(err, FX_EDATA, "a noise covariance is square, of 1 to %d coils", FXI_NOISE_MAX_COILS);
	if (noise->n_samples < 1 || !isfinite(noise->dwell_us) || noise->dwell_us < 0)
		return fx_error_set(err, FX_EDATA, "a noise covariance of %lld samples of %g us", (long long)noise->n_samples,
			noise->dwell_us);
	for (int64_t i = 0; i < c->n; i++) {
		fx_cf64 v = FX_CF64_OF(c)[i];

		if (!isfinite(creal(v)) || !isfinite(cimag(v)))
			return fx_error_set(err, FX_EDATA, "a noise covariance with an element that is not finite");
		if (i % (c->dims[0] + 1) == 0 && creal(v) < 0)
			return fx_error_set(err, FX_EDATA, "a noise covariance whose coil %lld has negative power",
				(long long)(i / (c->dims[0] + 1)));
	}
	return FX_OK;
}

static bool write_all(int fd, const void *data, size_t bytes)
{
	const char *from = data;

	while (bytes > 0) {
		ssize_t n = write(fd, from, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		from += n;
		bytes -= (size_t)n;
	}
	return true;
}

static bool read_all(int fd, void *data, size_t bytes, off_t at)
{
	char *to = data;

	while (bytes > 0) {
		ssize_t n = pread(fd, to, bytes, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		to += n;
		at += n;
		bytes -= (size_t)n;
	}
	return true;
}

int fxi_noise_blob_write(const fx_noise *noise, fx_error *err, int *fd)
{
	struct head head = {.n_samples = noise->n_samples, .dwell_us = noise->dwell_us};
	int status = fxi_noise_check(noise, err);

	*fd = -1;
	if (status != FX_OK)
		return status;
	head.n_coils = noise->covariance->dims[0];
	*fd = memfd_create("fornix-noise", MFD_CLOEXEC);
	if (*fd >= 0 && write_all(*fd, &head, sizeof head) &&
		write_all(*fd, noise->covariance->data, (size_t)noise->covariance->bytes))
		return FX_OK;
	status = fx_error_set(err, FX_EIO, "cannot hand over a noise covariance: %s", strerror(errno));
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return status;
}

int fxi_noise_blob_read(int fd, fx_error *err, fx_noise *noise)
{
	struct head head;
	struct stat st;
	int status;

	*noise = (fx_noise){0};
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || !read_all(fd, &head, sizeof head, 0) || head.n_coils < 1 ||
		head.n_coils > FXI_NOISE_MAX_COILS ||
		st.st_size != (off_t)sizeof head + (off_t)(head.n_coils * head.n_coils) * (off_t)sizeof(fx_cf64))
		return fx_error_set(err, FX_EDATA, "what was handed over is no noise covariance");
	status = fx_array_new2(FX_CF64, head.n_coils, head.n_coils, &noise->covariance);
	if (status != FX_OK)
		return fx_error_set(err, status, "no memory for the noise covariance of %lld coils", (long long)head.n_coils);
	noise->n_samples = head.n_samples;
	noise->dwell_us = head.dwell_us;
	status = read_all(fd, noise->covariance->data, (size_t)noise->covariance->bytes, (off_t)sizeof head)
		? fxi_noise_check(noise, err)
		: fx_error_set(err, FX_EDATA, "a noise covariance that cannot be read to its end");
	if (status != FX_OK)
		fx_noise_clear(noise);
	return status;
}
