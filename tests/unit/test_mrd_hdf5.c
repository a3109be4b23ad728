/* SPDX-License-Identifier: MIT */
/* Raw MRD HDF5 files: what is written is what is read, in libismrmrd's layout, and nothing appears before commit. */
#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

static CU_TestInfo tests[] = {
	{"nothing appears before commit", nothing_before_commit},
	{"fields that disagree are refused", disagreeing_fields_are_refused},
	{"a missing folder is an error", missing_folder_is_an_error},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_mrd_hdf5 = {"mrd_hdf5", make_folder, remove_folder, NULL, NULL, tests};
