/* SPDX-License-Identifier: MIT */
/* h5.c - see h5.h. Struct layouts come from MRD's C headers, so that memory and file cannot drift apart. */
#include "h5.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * At exit HDF5 closes what it still holds, again, and 1.10 crashes over a dataset whose last write failed. Every file of
 * ours is closed or given up by then, so there is nothing to be done.
 */
static void no_exit_handler(void)
{
	H5dont_atexit();
}

void fxi_h5_enter(fxi_h5_guard *guard)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, no_exit_handler);
	pthread_mutex_lock(&lock);
	H5Eget_auto2(H5E_DEFAULT, &guard->print, &guard->arg);
	H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

void fxi_h5_leave(const fxi_h5_guard *guard)
{
	H5Eset_auto2(H5E_DEFAULT, guard->print, guard->arg);
	pthread_mutex_unlock(&lock);
}

/* Walked from the innermost failure outwards: the first one says most. */
static herr_t first_reason(unsigned n, const H5E_error2_t *e, void *arg)
{
	const char **reason = arg;

	(void)n;
	if (!*reason && e->desc && e->desc[0])
		*reason = e->desc;
	return 0;
}

int fxi_h5_fail(fx_error *err, int status, const char *fmt, ...)
{
	char text[FX_ERROR_TEXT];
	const char *reason = NULL;
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, first_reason, &reason);
	if (reason)
		return fx_error_set(err, status, "%s (HDF5: %s)", text, reason);
	return fx_error_set(err, status, "%s", text);
}

void fxi_h5_close(hid_t *id)
{
	if (*id >= 0)
		H5Idec_ref(*id);
	*id = -1;
}

hid_t fxi_h5_access(void)
{
	hid_t access = H5Pcreate(H5P_FILE_ACCESS);

	if (access >= 0)
		H5Pset_file_locking(access, 0, 1);
	return access;
}

enum number { U16, U32, U64, I32, F32 };

struct field {
	const char *name;
	size_t offset;
	enum number number;
	hsize_t count;   /* 1: no array */
};

static hid_t native(enum number n)
{
	switch (n) {
	case U16:
		return H5T_NATIVE_UINT16;
	case U32:
		return H5T_NATIVE_UINT32;
	case U64:
		return H5T_NATIVE_UINT64;
	case I32:
		return H5T_NATIVE_INT32;
	default:
		return H5T_NATIVE_FLOAT;
	}
}

static bool insert_fields(hid_t type, const struct field *fields)
{
	bool ok = true;

	for (; ok && fields->name; fields++) {
		if (fields->count == 1) {
			ok = H5Tinsert(type, fields->name, fields->offset, native(fields->number)) >= 0;
		} else {
			hid_t array = H5Tarray_create2(native(fields->number), 1, &fields->count);

			ok = array >= 0 && H5Tinsert(type, fields->name, fields->offset, array) >= 0;
			fxi_h5_close(&array);
		}
	}
	return ok;
}

static hid_t compound(size_t size, const struct field *fields)
{
	hid_t type = H5Tcreate(H5T_COMPOUND, size);

	if (type >= 0 && !insert_fields(type, fields))
		fxi_h5_close(&type);
	return type;
}

#define COUNTER(name) {#name, offsetof(ISMRMRD_EncodingCounters, name), U16, 1}
static const struct field counter_fields[] = {
	COUNTER(kspace_encode_step_1), COUNTER(kspace_encode_step_2), COUNTER(average), COUNTER(slice),
	COUNTER(contrast), COUNTER(phase), COUNTER(repetition), COUNTER(set), COUNTER(segment),
	{"user", offsetof(ISMRMRD_EncodingCounters, user), U16, ISMRMRD_USER_INTS},
	{NULL, 0, U16, 0},
};

#define ACQ(name, number, count) {#name, offsetof(ISMRMRD_AcquisitionHeader, name), number, count}
/* MRD lists `idx` between these two groups; libismrmrd writes members in that order. */
static const struct field acquisition_fields[] = {
	ACQ(version, U16, 1), ACQ(flags, U64, 1), ACQ(measurement_uid, U32, 1), ACQ(scan_counter, U32, 1),
	ACQ(acquisition_time_stamp, U32, 1), ACQ(physiology_time_stamp, U32, ISMRMRD_PHYS_STAMPS),
	ACQ(number_of_samples, U16, 1), ACQ(available_channels, U16, 1), ACQ(active_channels, U16, 1),
	ACQ(channel_mask, U64, ISMRMRD_CHANNEL_MASKS), ACQ(discard_pre, U16, 1), ACQ(discard_post, U16, 1),
	ACQ(center_sample, U16, 1), ACQ(encoding_space_ref, U16, 1), ACQ(trajectory_dimensions, U16, 1),
	ACQ(sample_time_us, F32, 1), ACQ(position, F32, 3), ACQ(read_dir, F32, 3), ACQ(phase_dir, F32, 3),
	ACQ(slice_dir, F32, 3), ACQ(patient_table_position, F32, 3),
	{NULL, 0, U16, 0},
};
static const struct field acquisition_user_fields[] = {
	ACQ(user_int, I32, ISMRMRD_USER_INTS), ACQ(user_float, F32, ISMRMRD_USER_FLOATS),
	{NULL, 0, U16, 0},
};

#define WAVE(name, number) {#name, offsetof(ISMRMRD_WaveformHeader, name), number, 1}
static const struct field waveform_fields[] = {
	WAVE(version, U16), WAVE(flags, U64), WAVE(measurement_uid, U32), WAVE(scan_counter, U32),
	WAVE(time_stamp, U32), WAVE(number_of_samples, U16), WAVE(channels, U16), WAVE(sample_time_us, F32),
	WAVE(waveform_id, U16),
	{NULL, 0, U16, 0},
};

#define IMG(name, number, count) {#name, offsetof(ISMRMRD_ImageHeader, name), number, count}
static const struct field image_fields[] = {
	IMG(version, U16, 1), IMG(data_type, U16, 1), IMG(flags, U64, 1), IMG(measurement_uid, U32, 1),
	IMG(matrix_size, U16, 3), IMG(field_of_view, F32, 3), IMG(channels, U16, 1), IMG(position, F32, 3),
	IMG(read_dir, F32, 3), IMG(phase_dir, F32, 3), IMG(slice_dir, F32, 3), IMG(patient_table_position, F32, 3),
	IMG(average, U16, 1), IMG(slice, U16, 1), IMG(contrast, U16, 1), IMG(phase, U16, 1), IMG(repetition, U16, 1),
	IMG(set, U16, 1), IMG(acquisition_time_stamp, U32, 1),
	IMG(physiology_time_stamp, U32, ISMRMRD_PHYS_STAMPS), IMG(image_type, U16, 1), IMG(image_index, U16, 1),
	IMG(image_series_index, U16, 1), IMG(user_int, I32, ISMRMRD_USER_INTS),
	IMG(user_float, F32, ISMRMRD_USER_FLOATS), IMG(attribute_string_len, U32, 1),
	{NULL, 0, U16, 0},
};

hid_t fxi_h5_acquisition_head_type(void)
{
	hid_t type = compound(sizeof(ISMRMRD_AcquisitionHeader), acquisition_fields);
	hid_t idx = compound(sizeof(ISMRMRD_EncodingCounters), counter_fields);

	if (type >= 0 && (idx < 0 || H5Tinsert(type, "idx", offsetof(ISMRMRD_AcquisitionHeader, idx), idx) < 0 ||
	    !insert_fields(type, acquisition_user_fields)))
		fxi_h5_close(&type);
	fxi_h5_close(&idx);
	return type;
}

hid_t fxi_h5_waveform_head_type(void)
{
	return compound(sizeof(ISMRMRD_WaveformHeader), waveform_fields);
}

hid_t fxi_h5_image_head_type(void)
{
	return compound(sizeof(ISMRMRD_ImageHeader), image_fields);
}

static bool insert_sequence(hid_t type, const char *name, size_t offset, hid_t of)
{
	hid_t sequence = H5Tvlen_create(of);
	bool ok = sequence >= 0 && H5Tinsert(type, name, offset, sequence) >= 0;

	fxi_h5_close(&sequence);
	return ok;
}

hid_t fxi_h5_record_type(void)
{
	hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(fxi_h5_record)), head = fxi_h5_acquisition_head_type();

	if (type >= 0 && (head < 0 || H5Tinsert(type, "head", offsetof(fxi_h5_record, head), head) < 0 ||
	    !insert_sequence(type, "traj", offsetof(fxi_h5_record, traj), H5T_NATIVE_FLOAT) ||
	    !insert_sequence(type, "data", offsetof(fxi_h5_record, data), H5T_NATIVE_FLOAT)))
		fxi_h5_close(&type);
	fxi_h5_close(&head);
	return type;
}

hid_t fxi_h5_waveform_type(void)
{
	hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(fxi_h5_waveform)), head = fxi_h5_waveform_head_type();

	if (type >= 0 && (head < 0 || H5Tinsert(type, "head", offsetof(fxi_h5_waveform, head), head) < 0 ||
	    !insert_sequence(type, "data", offsetof(fxi_h5_waveform, data), H5T_NATIVE_UINT32)))
		fxi_h5_close(&type);
	fxi_h5_close(&head);
	return type;
}

hid_t fxi_h5_complex_type(bool of_double)
{
	hid_t part = of_double ? H5T_NATIVE_DOUBLE : H5T_NATIVE_FLOAT;
	size_t size = of_double ? sizeof(double) : sizeof(float);
	hid_t type = H5Tcreate(H5T_COMPOUND, 2 * size);

	if (type >= 0 && (H5Tinsert(type, "real", 0, part) < 0 || H5Tinsert(type, "imag", size, part) < 0))
		fxi_h5_close(&type);
	return type;
}

hid_t fxi_h5_text_type(H5T_cset_t cset)
{
	hid_t type = H5Tcopy(H5T_C_S1);

	if (type >= 0 && (H5Tset_size(type, H5T_VARIABLE) < 0 || H5Tset_cset(type, cset) < 0))
		fxi_h5_close(&type);
	return type;
}

static bool is_number(hid_t type)
{
	H5T_class_t c = H5Tget_class(type);

	return c == H5T_INTEGER || c == H5T_FLOAT;
}

/* One member against what memory wants: numbers may differ in width, arrays not in length. */
static const char *member_problem(hid_t in_file, hid_t wanted)
{
	H5T_class_t want = H5Tget_class(wanted), have = H5Tget_class(in_file);
	const char *problem = NULL;

	if (is_number(wanted))
		return is_number(in_file) ? NULL : "is not a number";
	if (want != have)
		return want == H5T_VLEN ? "is not a variable-length sequence" :
			want == H5T_ARRAY ? "is not an array" : "is not a compound";
	if (want == H5T_VLEN || want == H5T_ARRAY) {
		hid_t a = H5Tget_super(in_file), b = H5Tget_super(wanted);

		if (!is_number(a) || !is_number(b))
			problem = "does not hold numbers";
		fxi_h5_close(&a);
		fxi_h5_close(&b);
	}
	if (!problem && want == H5T_ARRAY) {
		hsize_t n = 0, m = 0;

		if (H5Tget_array_ndims(in_file) != 1 || H5Tget_array_dims2(in_file, &n) < 0 ||
		    H5Tget_array_dims2(wanted, &m) < 0 || n != m)
			problem = "has another length than MRD gives it";
	}
	return problem;
}

static int check_member(hid_t in_file, hid_t wanted, unsigned i, const char *where, fx_error *err)
{
	char *name = H5Tget_member_name(wanted, i), path[512];
	hid_t have = -1, want = H5Tget_member_type(wanted, i);
	const char *problem = "is missing";
	int at, status = FX_OK;

	if (!name || want < 0) {
		status = fxi_h5_fail(err, FX_ENOMEM, "cannot describe %s", where);
		goto done;
	}
	snprintf(path, sizeof path, "%s.%s", where, name);
	at = H5Tget_member_index(in_file, name);
	if (at >= 0 && (have = H5Tget_member_type(in_file, (unsigned)at)) >= 0)
		problem = member_problem(have, want);
	if (problem)
		status = fx_error_set(err, FX_EDATA, "%s %s: these are not records as MRD (ISMRMRD) defines them", path,
			problem);
	else if (H5Tget_class(want) == H5T_COMPOUND)
		status = fxi_h5_check_members(have, want, path, err);
done:
	fxi_h5_close(&have);
	fxi_h5_close(&want);
	if (name)
		H5free_memory(name);
	return status;
}

int fxi_h5_check_members(hid_t in_file, hid_t wanted, const char *where, fx_error *err)
{
	int n = H5Tget_nmembers(wanted), status = FX_OK;

	if (H5Tget_class(in_file) != H5T_COMPOUND)
		return fx_error_set(err, FX_EDATA, "%s does not hold compound records as MRD (ISMRMRD) defines them", where);
	for (int i = 0; i < n && status == FX_OK; i++)
		status = check_member(in_file, wanted, (unsigned)i, where, err);
	return status;
}

/* An XML header is kilobytes; whatever claims more than this is damage. */
#define TEXT_MAX_BYTES ((size_t)64 << 20)

static int read_variable_text(hid_t data, hid_t type, const char *where, fx_error *err, char **out)
{
	char *text = NULL;
	hid_t memory = fxi_h5_text_type(H5Tget_cset(type));
	int status = FX_OK;

	if (memory < 0 || H5Dread(data, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, &text) < 0)
		status = fxi_h5_fail(err, FX_EDATA, "cannot read %s", where);
	else if (text && strnlen(text, TEXT_MAX_BYTES) == TEXT_MAX_BYTES)
		status = fx_error_set(err, FX_EDATA, "%s is longer than 64 MiB", where);
	else if (!(*out = strdup(text ? text : "")))
		status = fx_error_set(err, FX_ENOMEM, "out of memory while reading %s", where);
	if (text)
		H5free_memory(text);
	fxi_h5_close(&memory);
	return status;
}

static int read_fixed_text(hid_t data, hid_t type, const char *where, fx_error *err, char **out)
{
	size_t size = H5Tget_size(type);
	char *text;

	if (size == 0 || size > TEXT_MAX_BYTES)
		return fx_error_set(err, FX_EDATA, "%s has a size of %zu bytes; between 1 and 64 MiB are accepted", where, size);
	text = calloc(size + 1, 1);
	if (!text)
		return fx_error_set(err, FX_ENOMEM, "out of memory while reading %s (%zu bytes)", where, size);
	if (H5Dread(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text) < 0) {
		free(text);
		return fxi_h5_fail(err, FX_EDATA, "cannot read %s", where);
	}
	if (H5Tget_strpad(type) == H5T_STR_SPACEPAD)
		while (size > 0 && text[size - 1] == ' ')
			text[--size] = 0;
	*out = text;
	return FX_OK;
}

int fxi_h5_read_text(hid_t parent, const char *name, const char *where, fx_error *err, char **out)
{
	hid_t data = H5Dopen2(parent, name, H5P_DEFAULT), type = -1, space = -1;
	int status;

	*out = NULL;
	if (data < 0 || (type = H5Dget_type(data)) < 0 || (space = H5Dget_space(data)) < 0)
		status = fxi_h5_fail(err, FX_EDATA, "cannot open %s", where);
	else if (H5Tget_class(type) != H5T_STRING)
		status = fx_error_set(err, FX_EDATA, "%s is not text: MRD keeps its XML header there", where);
	else if (H5Sget_simple_extent_npoints(space) != 1)
		status = fx_error_set(err, FX_EDATA, "%s has %lld elements; one is expected", where,
			(long long)H5Sget_simple_extent_npoints(space));
	else if (H5Tis_variable_str(type) > 0)
		status = read_variable_text(data, type, where, err, out);
	else
		status = read_fixed_text(data, type, where, err, out);
	fxi_h5_close(&space);
	fxi_h5_close(&type);
	fxi_h5_close(&data);
	return status;
}
