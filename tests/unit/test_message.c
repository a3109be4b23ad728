/* SPDX-License-Identifier: MIT */
#include <CUnit/CUnit.h>
#include <fornix/fornix.h>

#include <string.h>

static int n_released;
static void (*before)(fx_array *); /* how such an array is freed */

static void counting_release(fx_array *a)
{
	n_released++;
	before(a);
}

static fx_array *counted(int64_t n)
{
	fx_array *a;

	CU_ASSERT_EQUAL_FATAL(fx_array_new1(FX_F32, n, &a), FX_OK);
	before = a->release;
	a->release = counting_release;
	return a;
}

static const unsigned kinds[] = {FX_ACQUISITION, FX_WEIGHTED, FX_WAVEFORM, FX_TEXT, FX_FRAME, FX_IMAGE};
#define N_KINDS (sizeof kinds / sizeof kinds[0])

static void every_kind(void)
{
	for (size_t i = 0; i < N_KINDS; i++) {
		fx_msg *m = fx_msg_new(kinds[i]);

		CU_ASSERT_PTR_NOT_NULL_FATAL(m);
		CU_ASSERT_EQUAL(fx_msg_kind(m), kinds[i]);
		CU_ASSERT_EQUAL(fx_msg_acquisition(m) != NULL, kinds[i] == FX_ACQUISITION);
		CU_ASSERT_EQUAL(fx_msg_weighted(m) != NULL, kinds[i] == FX_WEIGHTED);
		CU_ASSERT_EQUAL(fx_msg_waveform(m) != NULL, kinds[i] == FX_WAVEFORM);
		CU_ASSERT_EQUAL(fx_msg_frame(m) != NULL, kinds[i] == FX_FRAME);
		CU_ASSERT_EQUAL(fx_msg_image(m) != NULL, kinds[i] == FX_IMAGE);
		CU_ASSERT_EQUAL(fx_msg_text(m) != NULL, kinds[i] == FX_TEXT);
		CU_ASSERT(strcmp(fx_kind_name(kinds[i]), "?") != 0);
		CU_ASSERT(fx_msg_bytes(m) > 0);
		fx_drop(m);
	}
	CU_ASSERT_PTR_NULL(fx_msg_new(0));
	CU_ASSERT_PTR_NULL(fx_msg_new(FX_ACQUISITION | FX_TEXT));
	CU_ASSERT_STRING_EQUAL(fx_kind_name(FX_ACQUISITION | FX_TEXT), "?");
	CU_ASSERT_STRING_EQUAL(fx_kind_name(FX_TRACTS), "tracts");
	fx_drop(NULL);
	CU_ASSERT_PTR_NULL(fx_msg_ref(NULL));
}

static void last_reference_frees_every_array(void)
{
	fx_msg *m = fx_msg_new(FX_WEIGHTED);
	fx_weighted *w = fx_msg_weighted(m);

	n_released = 0;
	w->readout.data = counted(2);
	w->readout.traj = counted(2);
	w->readout.k = counted(2);
	w->readout.weights = counted(2);
	w->phi2 = counted(2);
	fx_msg_ref(m);
	fx_drop(m);
	CU_ASSERT_EQUAL(n_released, 0);
	fx_drop(m);
	CU_ASSERT_EQUAL(n_released, 5);

	m = fx_msg_new(FX_FRAME);
	fx_frame *f = fx_msg_frame(m);
	n_released = 0;
	fx_array **slots[] = {&f->k, &f->weights, &f->phi2, &f->fhd, &f->direct, &f->maps, &f->kernel, &f->estimate};
	for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++)
		*slots[i] = counted(1);
	fx_drop(m);
	CU_ASSERT_EQUAL(n_released, 8);
}

static void own_shares_arrays_and_copies_strings(void)
{
	fx_msg *m = fx_msg_new(FX_IMAGE), *copy;
	fx_image *image = fx_msg_image(m);

	n_released = 0;
	image->data = counted(3);
	CU_ASSERT_EQUAL(fx_image_set_meta(image, "a", "1"), FX_OK);
	copy = m;
	CU_ASSERT_EQUAL(fx_msg_own(&copy), FX_OK);
	CU_ASSERT_PTR_EQUAL(copy, m);

	copy = fx_msg_ref(m);
	CU_ASSERT_EQUAL(fx_msg_own(&copy), FX_OK);
	CU_ASSERT_PTR_NOT_EQUAL_FATAL(copy, m);
	CU_ASSERT_PTR_EQUAL(fx_msg_image(copy)->data, image->data);
	CU_ASSERT_EQUAL(image->data->refs, 2);
	CU_ASSERT_EQUAL(fx_image_set_meta(fx_msg_image(copy), "a", "2"), FX_OK);
	CU_ASSERT_STRING_EQUAL(fx_image_get_meta(image, "a"), "1");
	fx_drop(m);
	CU_ASSERT_STRING_EQUAL(fx_image_get_meta(fx_msg_image(copy), "a"), "2");
	CU_ASSERT_EQUAL(n_released, 0);
	fx_drop(copy);
	CU_ASSERT_EQUAL(n_released, 1);

	m = fx_msg_new_text("hello");
	copy = fx_msg_ref(m);
	CU_ASSERT_EQUAL(fx_msg_own(&copy), FX_OK);
	fx_drop(m);
	CU_ASSERT_STRING_EQUAL(fx_msg_text(copy), "hello");
	fx_drop(copy);
}

static void acquisition_turns_weighted(void)
{
	fx_msg *m = fx_msg_new(FX_ACQUISITION);
	fx_array *data = counted(4);

	fx_msg_acquisition(m)->data = data;
	fx_msg_acquisition(m)->head.scan_counter = 17;
	fx_msg_ref(m);
	CU_ASSERT_EQUAL(fx_msg_to_weighted(m), FX_EINVAL); /* shared */
	fx_drop(m);
	CU_ASSERT_EQUAL_FATAL(fx_msg_to_weighted(m), FX_OK);
	CU_ASSERT_PTR_NULL(fx_msg_acquisition(m));
	CU_ASSERT_PTR_EQUAL(fx_msg_weighted(m)->readout.data, data);
	CU_ASSERT_EQUAL(fx_msg_weighted(m)->readout.head.scan_counter, 17);
	CU_ASSERT_EQUAL(fx_msg_weighted(m)->frame_id, -1);
	CU_ASSERT_EQUAL(fx_msg_weighted(m)->data_norm2, 0);
	CU_ASSERT_PTR_NULL(fx_msg_weighted(m)->phi2);
	CU_ASSERT_EQUAL(fx_msg_to_weighted(m), FX_EINVAL);
	fx_drop(m);
}

static void bytes_follow_the_arrays(void)
{
	fx_msg *m = fx_msg_new(FX_ACQUISITION);
	int64_t empty = fx_msg_bytes(m);

	fx_msg_acquisition(m)->data = counted(1000);
	CU_ASSERT_EQUAL(fx_msg_bytes(m), empty + 4000);
	fx_slot_take(&fx_msg_acquisition(m)->data, NULL);
	CU_ASSERT_EQUAL(fx_msg_bytes(m), empty);
	fx_drop(m);
}

static void meta_replaces(void)
{
	fx_image image = {0};

	CU_ASSERT_PTR_NULL(fx_image_get_meta(&image, "x"));
	CU_ASSERT_EQUAL(fx_image_set_meta(&image, "x", "1"), FX_OK);
	CU_ASSERT_EQUAL(fx_image_set_meta(&image, "y", ""), FX_OK);
	CU_ASSERT_EQUAL(fx_image_set_meta(&image, "x", "2"), FX_OK);
	CU_ASSERT_EQUAL(image.n_meta, 2);
	CU_ASSERT_STRING_EQUAL(fx_image_get_meta(&image, "x"), "2");
	CU_ASSERT_STRING_EQUAL(fx_image_get_meta(&image, "y"), "");

	fx_msg *m = fx_msg_new(FX_IMAGE);
	*fx_msg_image(m) = image; /* the message frees it */
	fx_drop(m);
}

static void slots_drop_what_was_there(void)
{
	fx_array *slot = counted(1);

	n_released = 0;
	fx_slot_take(&slot, fx_array_ref(slot));
	CU_ASSERT_EQUAL(n_released, 0);
	CU_ASSERT_EQUAL(slot->refs, 1);
	fx_slot_take(&slot, counted(2));
	CU_ASSERT_EQUAL(n_released, 1);
	fx_slot_take(&slot, NULL);
	CU_ASSERT_EQUAL(n_released, 2);
	CU_ASSERT_PTR_NULL(slot);
}

static CU_TestInfo tests[] = {
	{"every kind has its payload alone", every_kind},
	{"the last reference frees every array", last_reference_frees_every_array},
	{"own shares arrays and copies strings", own_shares_arrays_and_copies_strings},
	{"an acquisition turns weighted in place", acquisition_turns_weighted},
	{"bytes follow the arrays", bytes_follow_the_arrays},
	{"meta entries replace", meta_replaces},
	{"a slot drops what was there", slots_drop_what_was_there},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_message = {"message", NULL, NULL, NULL, NULL, tests};
