/* SPDX-License-Identifier: MIT */
/*
 * libismrmrd_dump FILE GROUP [SERIES] - what libismrmrd itself reads of an MRD file: one line for each image of the series,
 * or for each acquisition, with sums that a test can compare.
 */
#include <complex.h>
#include <ismrmrd/dataset.h>
#include <stdio.h>
#include <stdlib.h>

static double number(const ISMRMRD_Image *im, size_t i)
{
	switch (im->head.data_type) {
	case ISMRMRD_USHORT:
		return ((uint16_t *)im->data)[i];
	case ISMRMRD_SHORT:
		return ((int16_t *)im->data)[i];
	case ISMRMRD_FLOAT:
		return (double)((float *)im->data)[i];
	case ISMRMRD_CXFLOAT:
		return (double)crealf(((complex_float_t *)im->data)[i]);
	default:
		return 0;
	}
}

static int dump_images(ISMRMRD_Dataset *d, const char *series)
{
	uint32_t n = ismrmrd_get_number_of_images(d, series);

	for (uint32_t k = 0; k < n; k++) {
		ISMRMRD_Image im;
		size_t count;
		double sum = 0;

		ismrmrd_init_image(&im);
		if (ismrmrd_read_image(d, series, k, &im) != ISMRMRD_NOERROR)
			return 1;
		count = (size_t)im.head.matrix_size[0] * im.head.matrix_size[1] * im.head.matrix_size[2] * im.head.channels;
		for (size_t i = 0; i < count; i++)
			sum += number(&im, i) * (double)(i + 1);
		printf("%u %d %d %d %d %d %d %.9g %.9g %u %d %.17g\n", k, im.head.data_type, im.head.matrix_size[0],
			im.head.matrix_size[1], im.head.matrix_size[2], im.head.channels, im.head.repetition,
			(double)im.head.position[1], (double)im.head.slice_dir[2], im.head.attribute_string_len,
			im.attribute_string ? im.attribute_string[0] : -1, sum);
		ismrmrd_cleanup_image(&im);
	}
	return n == 0;
}

static int dump_acquisitions(ISMRMRD_Dataset *d)
{
	uint32_t n = ismrmrd_get_number_of_acquisitions(d);
	char *header = ismrmrd_read_header(d);

	if (!header)
		return 1;
	free(header);
	for (uint32_t k = 0; k < n; k++) {
		ISMRMRD_Acquisition a;
		double complex sum = 0;
		double traj = 0;

		ismrmrd_init_acquisition(&a);
		if (ismrmrd_read_acquisition(d, k, &a) != ISMRMRD_NOERROR)
			return 1;
		for (size_t i = 0; i < (size_t)a.head.number_of_samples * a.head.active_channels; i++)
			sum += a.data[i];
		for (size_t i = 0; i < (size_t)a.head.number_of_samples * a.head.trajectory_dimensions; i++)
			traj += (double)a.traj[i];
		printf("%u %d %d %d %u %.9g %.9g %.9g\n", k, a.head.number_of_samples, a.head.active_channels,
			a.head.trajectory_dimensions, a.head.scan_counter, creal(sum), cimag(sum), traj);
		ismrmrd_cleanup_acquisition(&a);
	}
	return n == 0;
}

int main(int argc, char **argv)
{
	ISMRMRD_Dataset d;

	if (argc < 3 || ismrmrd_init_dataset(&d, argv[1], argv[2]) != ISMRMRD_NOERROR ||
	    ismrmrd_open_dataset(&d, false) != ISMRMRD_NOERROR)
		return 2;
	return argc > 3 ? dump_images(&d, argv[3]) : dump_acquisitions(&d);
}
