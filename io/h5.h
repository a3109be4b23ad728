/* SPDX-License-Identifier: MIT */
/*
 * h5.h - what every user of HDF5 in io/ shares: one lock, silence, messages, and MRD's compound types.
 */
#ifndef FORNIX_IO_H5_H
#define FORNIX_IO_H5_H

#include <fornix/base.h>
#include <hdf5.h>
#include <ismrmrd/ismrmrd.h>
#include <ismrmrd/waveform.h>

/** HDF5's own printing, as it was before fxi_h5_enter. */
typedef struct fxi_h5_guard {
	H5E_auto2_t print;
	void *arg;
} fxi_h5_guard;

/** Takes the lock (HDF5 is not thread safe in every build) and stops HDF5 from printing. Not recursive. */
void fxi_h5_enter(fxi_h5_guard *guard);
void fxi_h5_leave(const fxi_h5_guard *guard);

/** fx_error_set with HDF5's innermost reason in brackets behind the text, where it has one. */
int fxi_h5_fail(fx_error *err, int status, const char *fmt, ...) FX_PRINTF(3, 4);

/** Closes any handle but a file's and sets it to -1; negative ones are left alone. */
void fxi_h5_close(hid_t *id);

/** Access properties for files: no locks, so that read-only folders and network file systems work. */
hid_t fxi_h5_access(void);

/** A record of the dataset `data`, in memory and (so libismrmrd writes it) in the file. */
typedef struct fxi_h5_record {
	ISMRMRD_AcquisitionHeader head;
	hvl_t traj, data;
} fxi_h5_record;

typedef struct fxi_h5_waveform {
	ISMRMRD_WaveformHeader head;
	hvl_t data;
} fxi_h5_waveform;

/* Each is a new type, negative on failure. */
hid_t fxi_h5_acquisition_head_type(void);
hid_t fxi_h5_waveform_head_type(void);
hid_t fxi_h5_image_head_type(void);
hid_t fxi_h5_record_type(void);
hid_t fxi_h5_waveform_type(void);
/** {real, imag} of float or double. */
hid_t fxi_h5_complex_type(bool of_double);
/** A variable-length string of that character set. */
hid_t fxi_h5_text_type(H5T_cset_t cset);

/**
 * Checks that a file's compound type has every member of the memory type `wanted`, by name, numbers being numbers
 * and arrays of the same length; nested compounds too. The first that is missing or wrong is named: FX_EDATA.
 */
int fxi_h5_check_members(hid_t in_file, hid_t wanted, const char *where, fx_error *err);

/** The text of dataset `name` under `parent`: any string type, scalar or one element. Free with free(). */
int fxi_h5_read_text(hid_t parent, const char *name, const char *where, fx_error *err, char **out);

#endif
