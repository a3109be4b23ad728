/* SPDX-License-Identifier: MIT */
/* Raw MRD HDF5 files: what is written is what is read, in libismrmrd's layout, and nothing appears before commit. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hdf5.h>

#include "io/h5.h"
#include "io/input.h"
#include "io/mrd_hdf5_write.h"

static char folder[] = "/tmp/fornix-test-XXXXXX";
static char path[256];

static int make_folder(void)
{
	strcpy(folder, "/tmp/fornix-test-XXXXXX");
	if (!mkdtemp(folder))
		return 1;
	snprintf(path, sizeof path, "%s/raw.h5", folder);
	return 0;
}

static int remove_folder(void)
{
	return rmdir(folder);   /* fails where a test, or a hidden file, left something behind */
}

static bool exists(const char *name)
{
	struct stat s;

	return stat(name, &s) == 0;
}

/* Readout i: sizes that change from readout to readout, values that tell where they came from. */
static fx_msg *readout(int i, int n_dims)
{
	fx_msg *m = fx_msg_new(FX_ACQUISITION);
	fx_acquisition *a = fx_msg_acquisition(m);
	int64_t samples = 5 + i % 3, coils = 2 + i % 2;

	a->head.version = 1;
	a->head.scan_counter = (uint32_t)i;
	a->head.acquisition_time_stamp = (uint32_t)(10 * i);
	a->head.number_of_samples = (uint16_t)samples;
	a->head.active_channels = a->head.available_channels = (uint16_t)coils;
	a->head.trajectory_dimensions = (uint16_t)n_dims;
	a->head.idx.user[7] = (uint16_t)(i + 1);
	a->head.user_float[7] = (float)i + 0.5f;
	a->head.channel_mask[15] = 1ull << 63;
	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_CF32, samples, coils, &a->data), FX_OK);
	for (int64_t j = 0; j < a->data->n; j++) {
		((float *)a->data->data)[2 * j] = (float)(1000 * i + j);
		((float *)a->data->data)[2 * j + 1] = -(float)j;
	}
	if (n_dims > 0) {
		CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_F32, n_dims, samples, &a->traj), FX_OK);
		for (int64_t j = 0; j < a->traj->n; j++)
			FX_F32_OF(a->traj)[j] = (float)j / 8 + (float)i;
	}
	return m;
}

static void nothing_before_commit(void)
{
	fx_error err = {0};
	fxi_raw_writer *w;
	fx_msg *m = readout(0, 2);

	CU_ASSERT_EQUAL_FATAL(fxi_raw_writer_open(path, "<x/>", &err, &w), FX_OK);
	CU_ASSERT_EQUAL(fxi_raw_writer_add(w, fx_msg_acquisition(m), &err), FX_OK);
	CU_ASSERT_FALSE(exists(path));
	fxi_raw_writer_abandon(w);
	CU_ASSERT_FALSE(exists(path));
	CU_ASSERT_EQUAL_FATAL(fxi_raw_writer_open(path, "<x/>", &err, &w), FX_OK);
	CU_ASSERT_EQUAL(fxi_raw_writer_add(w, fx_msg_acquisition(m), &err), FX_OK);
	CU_ASSERT_EQUAL(fxi_raw_writer_commit(w, &err), FX_OK);
	CU_ASSERT(exists(path));
	unlink(path);
	fx_drop(m);
}

static void disagreeing_fields_are_refused(void)
{
	fx_error err = {0};
	fxi_raw_writer *w;
	fx_msg *m = readout(0, 2);

	CU_ASSERT_EQUAL_FATAL(fxi_raw_writer_open(path, "<x/>", &err, &w), FX_OK);
	fx_msg_acquisition(m)->head.number_of_samples++;
	CU_ASSERT_EQUAL(fxi_raw_writer_add(w, fx_msg_acquisition(m), &err), FX_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "6 samples"));
	fx_msg_acquisition(m)->head.number_of_samples--;
	fx_msg_acquisition(m)->head.trajectory_dimensions = 0;
	CU_ASSERT_EQUAL(fxi_raw_writer_add(w, fx_msg_acquisition(m), NULL), FX_EINVAL);
	fxi_raw_writer_abandon(w);
	fx_drop(m);
}

static void missing_folder_is_an_error(void)
{
	fx_error err = {0};
	fxi_raw_writer *w = (fxi_raw_writer *)1;

	CU_ASSERT_EQUAL(fxi_raw_writer_open("/nowhere/at/all.h5", "<x/>", &err, &w), FX_EIO);
	CU_ASSERT_PTR_NULL(w);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "/nowhere/at/all.h5"));
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "No such file"));
}

static fx_msg *waveform(uint32_t time_stamp)
{
	fx_msg *m = fx_msg_new(FX_WAVEFORM);
	fx_waveform *w = fx_msg_waveform(m);

	w->head.time_stamp = time_stamp;
	w->head.number_of_samples = 3;
	w->head.channels = 2;
	w->head.sample_time_us = 2.5f;
	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_U32, 3, 2, &w->data), FX_OK);
	for (uint32_t j = 0; j < 6; j++)
		((uint32_t *)w->data->data)[j] = time_stamp + j;
	return m;
}

static bool same_array(const fx_array *a, const fx_array *b)
{
	return (!a && !b) || (a && b && fx_array_same_shape(a, b) &&
		(a->n == 0 || memcmp(a->data, b->data, (size_t)a->bytes) == 0));
}

static bool same_readout(fx_msg *one, fx_msg *two)
{
	const fx_acquisition *a = fx_msg_acquisition(one), *b = fx_msg_acquisition(two);

	return a && b && memcmp(&a->head, &b->head, sizeof a->head) == 0 && same_array(a->data, b->data) &&
		same_array(a->traj, b->traj);
}

/* More readouts than a block or a read holds, with and without trajectory. */
#define N_READOUTS 700

static void write_many(void)
{
	fx_error err = {0};
	fxi_raw_writer *w;

	CU_ASSERT_EQUAL_FATAL(fxi_raw_writer_open(path, "<x>\xc3\xa9</x>", &err, &w), FX_OK);
	for (int i = 0; i < N_READOUTS; i++) {
		fx_msg *m = readout(i, i % 4);

		CU_ASSERT_EQUAL_FATAL(fxi_raw_writer_add(w, fx_msg_acquisition(m), &err), FX_OK);
		fx_drop(m);
		if (i % 100 == 50) {
			m = waveform((uint32_t)(10 * i - 5));
			CU_ASSERT_EQUAL_FATAL(fxi_raw_writer_add_waveform(w, fx_msg_waveform(m), &err), FX_OK);
			fx_drop(m);
		}
	}
	CU_ASSERT_EQUAL_FATAL(fxi_raw_writer_commit(w, &err), FX_OK);
}

static void what_is_written_is_read(void)
{
	fx_error err = {0};
	fxi_source *source;
	fx_msg *m;
	int n = 0, n_waves = 0;

	write_many();
	CU_ASSERT_EQUAL_FATAL(fxi_input_open(path, NULL, &err, &source), FX_OK);
	CU_ASSERT_STRING_EQUAL(source->format, "MRD HDF5");
	CU_ASSERT_STRING_EQUAL(source->header_xml, "<x>\xc3\xa9</x>");
	CU_ASSERT_PTR_NOT_NULL_FATAL(source->digest);
	CU_ASSERT_EQUAL(strncmp(source->digest, "sha256:", 7), 0);
	while (source->next(source, &m, &err) == FX_OK && m) {
		if (fx_msg_waveform(m)) {
			/* In front of the first readout that is not earlier. */
			CU_ASSERT_EQUAL(fx_msg_waveform(m)->head.time_stamp, (uint32_t)(10 * n - 5));
			CU_ASSERT_EQUAL(((uint32_t *)fx_msg_waveform(m)->data->data)[5], (uint32_t)(10 * n));
			n_waves++;
		} else {
			fx_msg *expected = readout(n, n % 4);

			CU_ASSERT(same_readout(m, expected));
			fx_drop(expected);
			n++;
		}
		fx_drop(m);
	}
	CU_ASSERT_EQUAL(err.status, FX_OK);
	CU_ASSERT_EQUAL(n, N_READOUTS);
	CU_ASSERT_EQUAL(n_waves, 7);
	CU_ASSERT_EQUAL(source->progress(source), 1);
	source->close(source);
	unlink(path);
}

/* What the reader says of the file at `path`, drained; NULL where it is fine. */
static const char *complaint(const char *group, int *status)
{
	static fx_error err;
	fxi_source *source;
	fx_msg *m;

	memset(&err, 0, sizeof err);
	*status = fxi_input_open(path, group, &err, &source);
	if (*status == FX_OK) {
		while ((*status = source->next(source, &m, &err)) == FX_OK && m)
			fx_drop(m);
		source->close(source);
	}
	CU_ASSERT_EQUAL(*status, err.status);
	return *status == FX_OK ? NULL : err.text;
}

static void copy_group(const char *to)
{
	hid_t f = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT), links = H5Pcreate(H5P_LINK_CREATE);

	H5Pset_create_intermediate_group(links, 1);
	CU_ASSERT(H5Ocopy(f, "dataset", f, to, H5P_DEFAULT, links) >= 0);
	H5Pclose(links);
	H5Fclose(f);
}

static void ambiguous_and_wrong_groups_are_listed(void)
{
	const char *text;
	int status;

	write_many();
	copy_group("deep/inside");
	text = complaint(NULL, &status);
	CU_ASSERT_EQUAL(status, FX_EINVAL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "'dataset'"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "'deep/inside'"));
	CU_ASSERT_PTR_NULL(complaint("dataset", &status));
	CU_ASSERT_PTR_NULL(complaint("/deep/inside/", &status));
	text = complaint("deep", &status);
	CU_ASSERT_EQUAL(status, FX_EINVAL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "'deep/inside'"));
	unlink(path);
}

static void empty_data_are_refused(void)
{
	fx_error err = {0};
	fxi_raw_writer *w;
	const char *text;
	int status;

	CU_ASSERT_EQUAL_FATAL(fxi_raw_writer_open(path, "<x/>", &err, &w), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fxi_raw_writer_commit(w, &err), FX_OK);
	text = complaint(NULL, &status);
	CU_ASSERT_EQUAL(status, FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "no acquisitions"));
	unlink(path);
}

/* Cut anywhere: an error that names the file, never a crash (run under a sanitizer), never a silent end. */
static void truncated_files_are_refused(void)
{
	struct stat s;

	write_many();
	CU_ASSERT_EQUAL_FATAL(stat(path, &s), 0);
	for (int i = 49; i >= 0; i--) {
		const char *text;
		int status;

		CU_ASSERT_EQUAL_FATAL(truncate(path, s.st_size * i / 50), 0);
		text = complaint(NULL, &status);
		CU_ASSERT_EQUAL(status, FX_EDATA);
		CU_ASSERT(text && strstr(text, path));
	}
	unlink(path);
}

/* The same compound as another program might store it: members reversed, numbers as wide as they come; one left out. */
static hid_t as_others_do(hid_t type, const char *without)
{
	hid_t wide = -1, part;

	switch (H5Tget_class(type)) {
	case H5T_INTEGER:
		return H5Tcopy(H5T_STD_U64BE);
	case H5T_FLOAT:
		return H5Tcopy(H5T_IEEE_F64BE);
	case H5T_ARRAY: {
		hsize_t n;

		H5Tget_array_dims2(type, &n);
		part = H5Tget_super(type);
		wide = as_others_do(part, without);
		H5Tclose(part);
		part = wide;
		wide = H5Tarray_create2(part, 1, &n);
		H5Tclose(part);
		return wide;
	}
	case H5T_VLEN:
		return H5Tvlen_create(H5T_IEEE_F64LE);
	default:
		wide = H5Tcreate(H5T_COMPOUND, 8192);
	}
	for (int i = H5Tget_nmembers(type) - 1, at = 8; i >= 0; i--) {
		char *name = H5Tget_member_name(type, (unsigned)i);

		if (!without || strcmp(name, without) != 0) {
			part = H5Tget_member_type(type, (unsigned)i);
			hid_t other = as_others_do(part, without);

			CU_ASSERT(H5Tinsert(wide, name, (size_t)at, other) >= 0);
			at += (int)H5Tget_size(other) + 4;
			H5Tclose(other);
			H5Tclose(part);
		}
		H5free_memory(name);
	}
	H5Tpack(wide);
	return wide;
}

enum text_kind { FIXED_SCALAR, SPACE_PADDED, VARIABLE_UTF8 };

static void put_text_as(hid_t group, enum text_kind kind)
{
	static const char fixed[12] = "<x/>\0\0\0\0\0\0\0", padded[12] = "<x/>        ";
	static const char *const variable = "<x/>";
	hsize_t one = 1;
	hid_t type = H5Tcopy(H5T_C_S1), space = kind == FIXED_SCALAR ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &one, NULL);
	hid_t data;

	H5Tset_size(type, kind == VARIABLE_UTF8 ? H5T_VARIABLE : 12);
	if (kind == VARIABLE_UTF8)
		H5Tset_cset(type, H5T_CSET_UTF8);
	if (kind == SPACE_PADDED)
		H5Tset_strpad(type, H5T_STR_SPACEPAD);
	data = H5Dcreate2(group, "xml", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	CU_ASSERT(H5Dwrite(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, kind == FIXED_SCALAR ? (const void *)fixed :
		kind == SPACE_PADDED ? (const void *)padded : (const void *)&variable) >= 0);
	H5Dclose(data);
	H5Sclose(space);
	H5Tclose(type);
}

/* One readout, stored as another program might; extra numbers behind its samples where they should not be. */
static void write_foreign(const char *without, enum text_kind text, size_t extra_numbers)
{
	fx_msg *m = readout(4, 2);
	const fx_acquisition *a = fx_msg_acquisition(m);
	float samples[64] = {0};
	fxi_h5_record record = {a->head, {(size_t)a->traj->n, a->traj->data}, {2 * (size_t)a->data->n + extra_numbers, samples}};
	hsize_t one = 1;
	hid_t f = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
	hid_t g = H5Gcreate2(f, "other", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	hid_t memory = fxi_h5_record_type(), type = as_others_do(memory, without), space = H5Screate_simple(1, &one, NULL);
	hid_t data = H5Dcreate2(g, "data", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);

	memcpy(samples, a->data->data, (size_t)a->data->bytes);
	CU_ASSERT(H5Dwrite(data, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, &record) >= 0);
	put_text_as(g, text);
	H5Dclose(data);
	H5Sclose(space);
	H5Tclose(type);
	H5Tclose(memory);
	H5Gclose(g);
	H5Fclose(f);
	fx_drop(m);
}

static void other_writers(void)
{
	for (int text = FIXED_SCALAR; text <= VARIABLE_UTF8; text++) {
		fx_error err = {0};
		fxi_source *source;
		fx_msg *m = NULL, *expected = readout(4, 2);

		write_foreign(NULL, (enum text_kind)text, 0);
		CU_ASSERT_EQUAL_FATAL(fxi_input_open(path, NULL, &err, &source), FX_OK);
		CU_ASSERT_STRING_EQUAL(source->header_xml, "<x/>");
		CU_ASSERT_EQUAL(source->next(source, &m, &err), FX_OK);
		CU_ASSERT(m && same_readout(m, expected));
		fx_drop(m);
		fx_drop(expected);
		source->close(source);
	}
	unlink(path);
}

static void what_is_wrong_is_named(void)
{
	static const char *const members[] = {"traj", "flags", "segment"};
	static const char *const places[] = {"data.traj is missing", "data.head.flags is missing", "data.head.idx.segment is missing"};
	const char *text;
	int status;

	for (int i = 0; i < 3; i++) {
		write_foreign(members[i], VARIABLE_UTF8, 0);
		text = complaint(NULL, &status);
		CU_ASSERT_EQUAL(status, FX_EDATA);
		CU_ASSERT(text && strstr(text, path) && strstr(text, places[i]));
	}
	write_foreign(NULL, VARIABLE_UTF8, 3);
	text = complaint(NULL, &status);
	CU_ASSERT_EQUAL(status, FX_EDATA);
	CU_ASSERT(text && strstr(text, "record 0 of") && strstr(text, "`data` holds 27 numbers, its head makes that 24"));
	unlink(path);
}

/* HDF5 lets others put 512, 1024, ... bytes of their own in front. */
static void user_block(void)
{
	hid_t create = H5Pcreate(H5P_FILE_CREATE), f;
	const char *text;
	int status;

	H5Pset_userblock(create, 2048);
	f = H5Fcreate(path, H5F_ACC_TRUNC, create, H5P_DEFAULT);
	H5Pclose(create);
	H5Fclose(f);
	text = complaint(NULL, &status);
	CU_ASSERT_EQUAL(status, FX_EDATA);
	CU_ASSERT(text && strstr(text, "is HDF5 but holds no raw MRD data"));
	unlink(path);
}

static CU_TestInfo tests[] = {
	{"HDF5 behind a user block", user_block},
	{"files of other writers", other_writers},
	{"what is wrong is named", what_is_wrong_is_named},
	{"what is written is what is read", what_is_written_is_read},
	{"ambiguous and wrong groups are listed", ambiguous_and_wrong_groups_are_listed},
	{"empty data are refused", empty_data_are_refused},
	{"truncated files are refused", truncated_files_are_refused},
	{"nothing appears before commit", nothing_before_commit},
	{"fields that disagree are refused", disagreeing_fields_are_refused},
	{"a missing folder is an error", missing_folder_is_an_error},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_mrd_hdf5 = {"mrd_hdf5", make_folder, remove_folder, NULL, NULL, tests};
