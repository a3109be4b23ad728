/* SPDX-License-Identifier: MIT */
/*
 * input.c - tells inputs apart by their first bytes. Converters give streams names that end in .h5 and HDF5 files names that
 * end in .mrd, so names say nothing; what is not MRD gets told what it looks like.
 */
#include "input.h"

#include "mrd_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define ACCEPTED "MRD (ISMRMRD) raw data, as an HDF5 file or as a stream, is accepted"
#define FILE_PREFIX 4096   /* the first numbers of a gzip file lie behind its name and code tables */

static const unsigned char hdf5_mark[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};

/* HDF5 allows a user block of 512, 1024, 2048, ... bytes in front of its mark. */
static bool hdf5_behind_block(int fd, off_t size)
{
	unsigned char mark[8];

	for (off_t at = 512; at + 8 <= size && at > 0; at *= 2)
		if (pread(fd, mark, 8, at) == 8 && memcmp(mark, hdf5_mark, 8) == 0)
			return true;
	return false;
}

static uint32_t u32_at(const unsigned char *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static bool starts_xml(const unsigned char *p, size_t n)
{
	size_t i = n >= 3 && p[0] == 0xef && p[1] == 0xbb && p[2] == 0xbf ? 3 : 0;

	while (i < n && (p[i] == ' ' || p[i] == '\t' || p[i] == '\r' || p[i] == '\n'))
		i++;
	return i < n && p[i] == '<';
}

/* Streams begin with a message id; those that may come first are checked one step further. */
static bool looks_like_stream(const unsigned char *p, size_t n)
{
	unsigned id = n >= 2 ? p[0] | (unsigned)p[1] << 8 : 0;

	switch (id) {
	case FXI_MRD_CONFIG_FILE:
		return n >= 3 && p[2] > 0x20 && p[2] < 0x7f;
	case FXI_MRD_CONFIG_TEXT:
	case FXI_MRD_HEADER:
		return n > 6 && u32_at(p + 2) > 0 && (starts_xml(p + 6, n - 6) || p[6] == 0xef || p[6] <= ' ');
	case FXI_MRD_CLOSE:
		return n == 2;
	case FXI_MRD_TEXT:
		return n > 6;
	case FXI_MRD_ACQUISITION:
	case FXI_MRD_IMAGE:
	case FXI_MRD_WAVEFORM:
		return n > 2;
	default:
		return false;
	}
}

static bool printable(const unsigned char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] < 0x20 && p[i] != '\t' && p[i] != '\n' && p[i] != '\r')
			return false;
	return n > 0;
}

/*
 * Siemens .dat: VD and later start with a small number (0), then the number of measurements, then each one's id; VB with the
 * length of the header, then the number of its buffers. There is no mark to go by.
 */
static bool looks_like_twix(const unsigned char *p, size_t n)
{
	uint32_t first, second;

	if (n < 16)
		return false;
	first = u32_at(p);
	second = u32_at(p + 4);
	if (first < 10000 && second > 0 && second <= 64)
		return true;
	return first >= 10000 && first < 10000000 && second > 0 && second < 32 && n > 16 && printable(p + 8, 5);
}

static bool nifti_size(const unsigned char *p)
{
	uint32_t size = u32_at(p);

	return size == 348 || size == 540 || size == 0x5c010000u || size == 0x1c020000u;
}

/* What the first bytes of a gzip file unpack to. */
static bool packs_nifti(const unsigned char *p, size_t n)
{
	unsigned char head[4] = {0};
	z_stream z = {.next_in = (z_const Bytef *)p, .avail_in = (uInt)n, .next_out = head, .avail_out = sizeof head};
	bool is;

	if (inflateInit2(&z, 15 + 16) != Z_OK)
		return false;
	(void)inflate(&z, Z_SYNC_FLUSH);   /* its input is cut; what it got out is in avail_out */
	is = z.avail_out == 0 && nifti_size(head);
	inflateEnd(&z);
	return is;
}

/* What the content looks like, in words that fit "it looks like ..."; NULL where there is no guess. */
static const char *guess(int fd, off_t size, const unsigned char *p, size_t n)
{
	char mark[4];

	if (n >= 2 && p[0] == 0x1f && p[1] == 0x8b)
		return packs_nifti(p, n) ? "a compressed NIfTI image, which holds no raw data" :
			"gzip-compressed data: unpack it first";
	if (n >= 4 && memcmp(p, "\x28\xb5\x2f\xfd", 4) == 0)
		return "zstd-compressed data: unpack it first";
	if (n >= 4 && memcmp(p, "PK\3\4", 4) == 0)
		return "a zip archive: unpack it first";
	if (n >= 4 && nifti_size(p))
		return "a NIfTI image, which holds no raw data";
	if (n >= 8 && memcmp(p, "\x89PNG", 4) == 0)
		return "a PNG picture";
	if (size >= 132 && pread(fd, mark, 4, 128) == 4 && memcmp(mark, "DICM", 4) == 0)
		return "a DICOM file, which holds images";
	if (n >= 6 && memcmp(p, "MATLAB", 6) == 0)
		return "a MATLAB file";
	if (starts_xml(p, n))
		return "XML: is it a pipeline that was meant to come before the input?";
	if (printable(p, n))
		return "text";
	if (looks_like_twix(p, n))
		return "Siemens raw data (.dat): convert it with siemens_to_ismrmrd first";
	return NULL;
}

static int refuse(const char *name, int fd, off_t size, const unsigned char *p, size_t n, fx_error *err)
{
	const char *what = guess(fd, size, p, n);

	if (n == 0)
		return fx_error_set(err, FX_EDATA, "%s is empty; " ACCEPTED, name);
	if (what)
		return fx_error_set(err, FX_EDATA, "%s is no MRD data; it looks like %s. " ACCEPTED, name, what);
	return fx_error_set(err, FX_EDATA, "%s is no MRD data (its first bytes are %02x %02x %02x %02x). " ACCEPTED, name,
		p[0], n > 1 ? p[1] : 0, n > 2 ? p[2] : 0, n > 3 ? p[3] : 0);
}

/* Reads what can be had of the first bytes of a pipe; fewer than asked for only at its end. */
static ssize_t read_prefix(int fd, unsigned char *p, size_t n)
{
	size_t have = 0;

	while (have < n) {
		ssize_t got = read(fd, p + have, n - have);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		if (got == 0)
			break;
		have += (size_t)got;
	}
	return (ssize_t)have;
}

/* A pipe, a socket or standard input: cannot be read twice, so streams only. */
static int open_pipe(int fd, bool own, const char *name, const char *group, fx_error *err, fxi_source **out)
{
	unsigned char p[8];
	/* 8 bytes tell; waiting for more could wait for ever on a live stream. */
	ssize_t n = read_prefix(fd, p, sizeof p);

	if (n < 0)
		return fx_error_set(err, FX_EIO, "cannot read %s: %s", name, strerror(errno));
	if (n == 8 && memcmp(p, hdf5_mark, 8) == 0)
		return fx_error_set(err, FX_ENOTSUP, "%s is an HDF5 file, which cannot be read from a pipe: give its path, or "
			"send an MRD stream", name);
	if (!looks_like_stream(p, (size_t)n))
		return refuse(name, -1, 0, p, (size_t)n, err);
	if (group)
		return fx_error_set(err, FX_EINVAL, "%s is an MRD stream: it has no groups such as '%s'", name, group);
	return fxi_mrd_stream_open(fd, own, name, p, (size_t)n, 0, err, out);
}

static int open_file(int fd, const char *path, off_t size, const char *group, fx_error *err, fxi_source **out)
{
	unsigned char p[FILE_PREFIX];
	ssize_t n = pread(fd, p, sizeof p, 0);

	if (n < 0)
		return fx_error_set(err, FX_EIO, "cannot read %s: %s", path, strerror(errno));
	if ((n >= 8 && memcmp(p, hdf5_mark, 8) == 0) || hdf5_behind_block(fd, size))
		return fxi_mrd_hdf5_open(path, group, err, out);
	if (!looks_like_stream(p, (size_t)n))
		return refuse(path, fd, size, p, (size_t)n, err);
	if (group)
		return fx_error_set(err, FX_EINVAL, "%s is an MRD stream: it has no groups such as '%s'", path, group);
	return fxi_mrd_stream_open(fd, true, path, NULL, 0, size, err, out);
}

int fxi_input_open(const char *path, const char *group, fx_error *err, fxi_source **out)
{
	struct stat s;
	int fd, status;

	*out = NULL;
	if (strcmp(path, "-") == 0)
		return open_pipe(STDIN_FILENO, false, "standard input", group, err, out);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &s) != 0)
		status = fx_error_set(err, FX_EIO, "cannot open %s: %s", path, strerror(errno));
	else if (S_ISDIR(s.st_mode))
		status = fx_error_set(err, FX_EIO, "%s is a folder; " ACCEPTED, path);
	else if (S_ISREG(s.st_mode))
		status = open_file(fd, path, s.st_size, group, err, out);
	else
		status = open_pipe(fd, true, path, group, err, out);
	/* A stream keeps the descriptor; HDF5 opens the file itself. */
	if (fd >= 0 && (status != FX_OK || strcmp((*out)->format, "MRD stream") != 0))
		close(fd);
	return status;
}

bool fxi_input_is_nifti(const char *path)
{
	unsigned char p[FILE_PREFIX];
	struct stat s;
	ssize_t n = 0;
	int fd;

	/* A pipe is not touched: what was read from it would be lost, and waiting for a writer may take for ever. */
	if (stat(path, &s) != 0 || !S_ISREG(s.st_mode))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = pread(fd, p, sizeof p, 0);
		close(fd);
	}
	if (n < 4)
		return false;
	if (p[0] != 0x1f || p[1] != 0x8b)
		return nifti_size(p);
	/* MRD is never gzip, so here a name may say what a torn file no longer does. */
	return packs_nifti(p, (size_t)n) || (strlen(path) > 7 && strcmp(path + strlen(path) - 7, ".nii.gz") == 0);
}

bool fxi_input_may_stream(const char *path)
{
	unsigned char p[FILE_PREFIX];
	struct stat s;
	ssize_t n = 0;
	int fd;

	/* Nothing is read from a pipe before it is opened as an input. */
	if (strcmp(path, "-") == 0 || stat(path, &s) != 0 || !S_ISREG(s.st_mode))
		return true;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = pread(fd, p, sizeof p, 0);
		close(fd);
	}
	return n > 0 && looks_like_stream(p, (size_t)n);
}
