/* SPDX-License-Identifier: MIT */
/* Raw MRD HDF5 files: what is written is what is read, in libismrmrd's layout, and nothing appears before commit. */
#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hdf5.h>

#include "io/input.h"
#include "io/mrd_hdf5_write.h"

static char folder[] = "/tmp/fornix-test-XXXXXX";
static char path[64];

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

static CU_TestInfo tests[] = {
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
