/* SPDX-License-Identifier: MIT */
/* cartesian and remove_oversampling against a plain double sum over an image of known values. */
#include <CUnit/CUnit.h>
#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gadgets/harness.h"

#define NX 12
#define NY 9

/* An image without symmetries, zero outside the inner half along x where it is oversampled. */
static double _Complex object(int64_t x, int64_t y)
{
	if (x < NX / 4 || x >= 3 * NX / 4)
		return 0;
	return (double)(1 + x + 3 * y % 7) + I * (double)((x * y) % 5 - 2);
}

/* One sample of the scan: D(k) = sum rho e^{-i2pi k.x} / sqrt(N), indices counted from floor(N/2). */
static double _Complex sample(int64_t kx, int64_t ky)
{
	double _Complex sum = 0;

	for (int64_t y = 0; y < NY; y++)
		for (int64_t x = 0; x < NX; x++)
			sum += object(x, y) * cexp(-2 * M_PI * I *
				((double)(kx * (x - NX / 2)) / NX + (double)(ky * (y - NY / 2)) / NY));
	return sum / sqrt(NX * NY);
}

/* Line ky with samples first .. first + n - 1 of the full readout; center_sample says where k = 0 is. */
static fx_msg *line(int64_t ky, int64_t first, int64_t n, int64_t step)
{
	fx_msg *msg = harness_acquisition(n, 1, 0);
	fx_acquisition *a = fx_msg_acquisition(msg);

	a->head.idx.kspace_encode_step_1 = (uint16_t)step;
	a->head.center_sample = (uint16_t)(NX / 2 - first);
	for (int64_t i = 0; i < n; i++)
		FX_CF32_OF(a->data)[i] = (fx_cf32)sample(first + i - NX / 2, ky);
	return msg;
}

static char *header(double recon_fov, int repeat)
{
	char *xml = NULL;

	if (asprintf(&xml,
			"<ismrmrdHeader xmlns=\"http://www.ismrm.org/ISMRMRD\"><experimentalConditions><H1resonanceFrequency_Hz>1"
			"</H1resonanceFrequency_Hz></experimentalConditions><encoding><encodedSpace><matrixSize><x>%d</x><y>%d</y><z>1</z>"
			"</matrixSize><fieldOfView_mm><x>120</x><y>90</y><z>5</z></fieldOfView_mm></encodedSpace><reconSpace><matrixSize>"
			"<x>%d</x><y>%d</y><z>1</z></matrixSize><fieldOfView_mm><x>%g</x><y>90</y><z>5</z></fieldOfView_mm></reconSpace>"
			"<encodingLimits><kspace_encoding_step_1><minimum>0</minimum><maximum>%d</maximum><center>%d</center>"
			"</kspace_encoding_step_1><average><minimum>0</minimum><maximum>%d</maximum><center>0</center></average></encodingLimits><trajectory>cartesian</trajectory></encoding></ismrmrdHeader>",
			NX, NY, (int)lround(NX * recon_fov / 120), NY, recon_fov, NY - 1, NY / 2, repeat - 1) < 0)
		return NULL;
	return xml;
}

/* rms error of an image of nx voxels that shows the object's columns from x0 on, relative to the object's rms. */
static double error_of(const fx_msg *image, int64_t nx, int64_t x0)
{
	const fx_array *d = fx_msg_image((fx_msg *)(uintptr_t)image)->data;
	double sum = 0, norm = 0;

	CU_ASSERT_EQUAL_FATAL(d->dims[0], nx);
	CU_ASSERT_EQUAL_FATAL(d->dims[1], NY);
	for (int64_t y = 0; y < NY; y++)
		for (int64_t x = 0; x < nx; x++) {
			double want = cabs(object(x + x0, y)), got = d->type == FX_F32 ? (double)FX_F32_OF(d)[y * nx + x] :
				cabs((double _Complex)FX_CF32_OF(d)[y * nx + x]);

			sum += (want - got) * (want - got);
			norm += want * want;
		}
	return sqrt(sum / norm);
}

static void run(harness *h, const char *chain, double recon_fov, int64_t first, int64_t n, int repeat)
{
	fx_msg *in[3 * NY];
	char *xml = header(recon_fov, repeat);
	int64_t count = 0;

	for (int r = 0; r < repeat; r++)
		for (int64_t i = 0; i < NY; i++) {
			int64_t step = (i * 2) % NY; /* any order */

			in[count] = line(step - NY / 2, first, n, step);
			fx_msg_acquisition(in[count])->head.idx.average = (uint16_t)r;
			count++;
		}
	fx_msg_acquisition(in[count - 1])->head.flags = UINT64_C(1) << (ISMRMRD_ACQ_LAST_IN_SLICE - 1);
	harness_run(h, chain, xml, in, count);
	free(xml);
	CU_ASSERT_EQUAL_FATAL(h->status, FX_OK);
	CU_ASSERT_EQUAL_FATAL(h->n_out, 1);
}

/* Single precision FFTs of 108 points: a few 1e-7 rms. */
#define EXACT 2e-6

static void gives_the_objects_amplitude(void)
{
	harness h;

	run(&h, "cartesian | combine", 120, 0, NX, 1);
	CU_ASSERT(error_of(h.out[0], NX, 0) < EXACT);
	harness_free(&h);
}

static void averages_are_averaged(void)
{
	harness h;

	run(&h, "cartesian | combine", 120, 0, NX, 3);
	CU_ASSERT(error_of(h.out[0], NX, 0) < EXACT);
	harness_free(&h);
}

static void oversampling_is_cropped(void)
{
	harness h;

	run(&h, "cartesian | combine", 60, 0, NX, 1);
	CU_ASSERT(error_of(h.out[0], NX / 2, NX / 4) < EXACT);
	CU_ASSERT_DOUBLE_EQUAL(fx_msg_image(h.out[0])->head.field_of_view[0], 60, 1e-4);
	harness_free(&h);
}

/* Cropping readouts first gives the same image: the object lies inside what is kept. */
static void oversampling_is_removed_early(void)
{
	harness h;

	run(&h, "remove_oversampling | cartesian | combine", 60, 0, NX, 1);
	CU_ASSERT(error_of(h.out[0], NX / 2, NX / 4) < EXACT);
	CU_ASSERT_DOUBLE_EQUAL(fx_msg_image(h.out[0])->head.field_of_view[0], 60, 1e-4);
	harness_free(&h);
}

/* An asymmetric echo is placed by center_sample: only the high frequencies of one side are missing. */
static void asymmetric_echo_lies_right(void)
{
	double _Complex full[NX * NY], got;
	harness h;

	run(&h, "cartesian | combine", 120, 2, NX - 2, 1);
	const fx_array *d = fx_msg_image(h.out[0])->data;
	for (int64_t y = 0; y < NY; y++)
		for (int64_t x = 0; x < NX; x++) {
			full[y * NX + x] = 0;
			for (int64_t ky = -(NY / 2); ky < NY - NY / 2; ky++)
				for (int64_t kx = 2 - NX / 2; kx < NX / 2; kx++)
					full[y * NX + x] += sample(kx, ky) / sqrt(NX * NY) * cexp(2 * M_PI * I *
						((double)(kx * (x - NX / 2)) / NX + (double)(ky * (y - NY / 2)) / NY));
			got = d->type == FX_F32 ? (double)FX_F32_OF(d)[y * NX + x] : (double _Complex)FX_CF32_OF(d)[y * NX + x];
			CU_ASSERT(fabs(cabs(got) - cabs(full[y * NX + x])) < 1e-4); /* values to 30, single precision */
		}
	harness_free(&h);
}

static void what_does_not_fit_is_refused(void)
{
	fx_msg *in[] = {line(0, 0, NX, 4 * NY)}, *with_traj[] = {harness_acquisition(NX, 1, 2)};
	char *xml = header(60, 1);
	harness h;

	harness_run(&h, "cartesian | combine", xml, in, 1);
	CU_ASSERT_EQUAL(h.status, FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.err.text, "does not fit"));
	harness_free(&h);
	harness_run(&h, "remove_oversampling", xml, with_traj, 1);
	CU_ASSERT_EQUAL(h.status, FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.err.text, "trajectory"));
	harness_free(&h);
	harness_run(&h, "cartesian | combine", xml, NULL, 0);
	CU_ASSERT_EQUAL(h.status, FX_EDATA); /* an input without readouts is no image */
	harness_free(&h);
	free(xml);
}

static void scale_clips_and_counts(void)
{
	fx_msg *msg = fx_msg_new(FX_IMAGE);
	fx_image *image = fx_msg_image(msg);
	harness h;

	fx_array_new4(FX_CF32, 2, 2, 1, 1, &image->data);
	FX_CF32_OF(image->data)[0] = 3.0f + 4.0f * I;
	FX_CF32_OF(image->data)[1] = 40000;
	FX_CF32_OF(image->data)[2] = 0.26f;
	fx_image_describe(image);
	harness_run(&h, "scale factor=2 type=uint16", NULL, &msg, 1);
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	CU_ASSERT_EQUAL_FATAL(h.n_out, 1);
	image = fx_msg_image(h.out[0]);
	CU_ASSERT_EQUAL_FATAL(image->data->type, FX_U16);
	CU_ASSERT_EQUAL(image->head.data_type, ISMRMRD_USHORT);
	CU_ASSERT_EQUAL(((uint16_t *)image->data->data)[0], 10);
	CU_ASSERT_EQUAL(((uint16_t *)image->data->data)[1], UINT16_MAX);
	CU_ASSERT_EQUAL(((uint16_t *)image->data->data)[2], 1);
	CU_ASSERT_EQUAL(harness_count(&h, 0, "clipped"), 1);
	CU_ASSERT(harness_warned(&h, "clipped"));
	harness_free(&h);
}

static CU_TestInfo tests[] = {
	{"gives the object's amplitude", gives_the_objects_amplitude},
	{"averages are averaged", averages_are_averaged},
	{"oversampling is cropped", oversampling_is_cropped},
	{"oversampling is removed early", oversampling_is_removed_early},
	{"an asymmetric echo lies right", asymmetric_echo_lies_right},
	{"what does not fit is refused", what_does_not_fit_is_refused},
	{"scale clips and counts", scale_clips_and_counts},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_cartesian = {"cartesian", NULL, NULL, NULL, NULL, tests};
