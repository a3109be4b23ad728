/* SPDX-License-Identifier: MIT */
/* h5_file.c - see h5_file.h. */
#include "h5_file.h"

#include <string.h>

int fxi_h5_file_create(const char *path, fx_error *err, fxi_h5_file *out)
{
	hid_t access;
	int status;

	memset(out, 0, sizeof *out);
	out->id = -1;
	status = fxi_aside_open(path, err, &out->aside);
	if (status != FX_OK)
		return status;
	out->disk.fd = out->aside->fd;
	access = fxi_h5_disk_access(&out->disk);
	if (access >= 0)
		out->id = H5Fcreate(out->aside->temp, H5F_ACC_TRUNC, H5P_DEFAULT, access);
	if (out->id < 0) {
		status = fxi_h5_file_failed(out, err);
		fxi_h5_file_abandon(out);
	}
	fxi_h5_close(&access);
	return status;
}

int fxi_h5_file_check(const fxi_h5_file *f, fx_error *err)
{
	if (f->disk.failed == 0)
		return FX_OK;
	return fx_error_set(err, FX_EIO, "cannot write %s: %s", f->aside->final, strerror(f->disk.failed));
}

int fxi_h5_file_failed(const fxi_h5_file *f, fx_error *err)
{
	int status = fxi_h5_file_check(f, err);

	return status != FX_OK ? status : fxi_h5_fail(err, FX_EIO, "cannot write %s", f->aside->final);
}

int fxi_h5_file_commit(fxi_h5_file *f, fx_error *err)
{
	fxi_aside *aside = f->aside;
	int status = H5Fclose(f->id) < 0 ? fxi_h5_file_failed(f, err) : fxi_h5_file_check(f, err);

	f->id = -1;
	if (status != FX_OK) {
		fxi_h5_file_abandon(f);
		return status;
	}
	f->aside = NULL;
	fxi_h5_disk_clear(&f->disk);
	return fxi_aside_commit(aside, err);
}

void fxi_h5_file_abandon(fxi_h5_file *f)
{
	if (f->id >= 0)
		H5Fclose(f->id);
	f->id = -1;
	fxi_h5_disk_clear(&f->disk);
	fxi_aside_abandon(f->aside);
	f->aside = NULL;
}

/* How datasets are made here: without the time of day, so that the same run gives the same bytes. Negative: failed. */
static hid_t timeless(void)
{
	hid_t create = H5Pcreate(H5P_DATASET_CREATE);

	if (create >= 0 && H5Pset_obj_track_times(create, false) < 0)
		fxi_h5_close(&create);
	return create;
}

bool fxi_h5_put_text(hid_t parent, const char *name, const char *text)
{
	hsize_t one = 1;
	hid_t type = fxi_h5_text_type(H5T_CSET_ASCII), space = H5Screate_simple(1, &one, NULL), create = timeless();
	hid_t data = -1;
	bool ok = false;

	/* Tagged ASCII even where it holds UTF-8: libismrmrd 1.8 refuses to read anything else. */
	if (type >= 0 && space >= 0 && create >= 0)
		data = H5Dcreate2(parent, name, type, space, H5P_DEFAULT, create, H5P_DEFAULT);
	if (data >= 0)
		ok = H5Dwrite(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, &text) >= 0;
	fxi_h5_close(&data);
	fxi_h5_close(&create);
	fxi_h5_close(&space);
	fxi_h5_close(&type);
	return ok;
}

static void shorten_chunks(hsize_t *chunks, int rank, hsize_t element, hsize_t max_bytes)
{
	for (int i = 0; i < rank; i++) {
		hsize_t rest = element;

		for (int j = i + 1; j < rank; j++)
			rest *= chunks[j];
		if (rest * chunks[i] <= max_bytes)
			return;
		chunks[i] = rest < max_bytes ? max_bytes / rest : 1;
	}
}

hid_t fxi_h5_growing(hid_t parent, const char *name, hid_t type, int n_tail, const hsize_t *tail, hsize_t chunk,
	hsize_t max_bytes)
{
	hsize_t dims[H5S_MAX_RANK] = {0}, most[H5S_MAX_RANK] = {H5S_UNLIMITED}, chunks[H5S_MAX_RANK] = {chunk};
	hid_t space, create, data = -1;

	for (int i = 0; i < n_tail; i++)
		dims[i + 1] = most[i + 1] = chunks[i + 1] = tail[i];
	if (max_bytes > 0)
		shorten_chunks(chunks, n_tail + 1, H5Tget_size(type), max_bytes);
	space = H5Screate_simple(n_tail + 1, dims, most);
	create = timeless();
	if (space >= 0 && create >= 0 && H5Pset_chunk(create, n_tail + 1, chunks) >= 0)
		data = H5Dcreate2(parent, name, type, space, H5P_DEFAULT, create, H5P_DEFAULT);
	fxi_h5_close(&create);
	fxi_h5_close(&space);
	return data;
}

bool fxi_h5_append(hid_t dataset, hid_t memory_type, hsize_t have, hsize_t n, const void *entries)
{
	hsize_t dims[H5S_MAX_RANK], start[H5S_MAX_RANK] = {have};
	hid_t space = H5Dget_space(dataset), memory = -1;
	int rank = space >= 0 ? H5Sget_simple_extent_dims(space, dims, NULL) : -1;
	bool ok = false;

	fxi_h5_close(&space);
	if (rank < 1)
		return false;
	dims[0] = have + n;
	if (H5Dset_extent(dataset, dims) < 0)
		return false;
	dims[0] = n;
	space = H5Dget_space(dataset);
	memory = H5Screate_simple(rank, dims, NULL);
	if (space >= 0 && memory >= 0 && H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, dims, NULL) >= 0)
		ok = H5Dwrite(dataset, memory_type, memory, space, H5P_DEFAULT, entries) >= 0;
	fxi_h5_close(&memory);
	fxi_h5_close(&space);
	return ok;
}
