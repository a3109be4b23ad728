/* SPDX-License-Identifier: MIT */
/*
 * doctor.h - what can be said of a raw scan before it is reconstructed: what it holds, what is fine, what will go
 * wrong, and what its data cannot tell.
 */
#ifndef FORNIX_RECON_DOCTOR_H
#define FORNIX_RECON_DOCTOR_H

#include <fornix/recon.h>

enum fxi_verdict {
	FXI_FINE = 0, /**< nothing to worry about */
	FXI_UNTOLD,   /**< the data cannot tell */
	FXI_DOUBT,    /**< a warning: a reconstruction will run, and may not be what is wanted */
	FXI_REFUSAL   /**< a reconstruction would refuse, or its result would be worthless */
};

/** "ok", "cannot be told", "warning", "refusal". */
const char *fxi_verdict_name(int verdict);

typedef struct fxi_finding {
	int verdict;         /**< enum fxi_verdict */
	int64_t encoding;    /**< -1: of the whole scan */
	const char *aspect;  /**< "units", "geometry", ...: a static word */
	char text[FX_ERROR_TEXT];
} fxi_finding;

/** What kinds of readout there are; a readout with several flags is counted once, by the first of these that fits. */
enum fxi_readout_type {
	FXI_READOUT_NOISE = 0, FXI_READOUT_CALIBRATION, FXI_READOUT_NAVIGATION, FXI_READOUT_OTHER, FXI_READOUT_EMPTY,
	FXI_READOUT_IMAGING, FXI_N_READOUT_TYPES
};
const char *fxi_readout_type_name(int type);

typedef struct fxi_counts {
	int64_t readouts[FXI_N_READOUT_TYPES];
	int64_t min_coils, max_coils;
	int64_t min_samples, max_samples;        /**< of imaging readouts */
	int64_t min[FX_N_COUNTERS], max[FX_N_COUNTERS];
	int64_t columns;                         /**< of the trajectory; 0: imaging readouts have none */
	double dwell_us;                         /**< of the first imaging readout */
} fxi_counts;

typedef struct fxi_report {
	int64_t n_findings;
	const fxi_finding *findings;
} fxi_report;

typedef struct fxi_doctor fxi_doctor;
/** `header` is kept by reference. */
int fxi_doctor_new(const fx_header *header, fx_error *err, fxi_doctor **out);
void fxi_doctor_free(fxi_doctor *d);
/** Looks at one readout (borrowed; trajectories of the first frame are kept by reference). FX_ENOMEM only. */
int fxi_doctor_add(fxi_doctor *d, const fx_acquisition *a, fx_error *err);
/** What an encoding holds; owned by the doctor. */
const fxi_counts *fxi_doctor_counts(const fxi_doctor *d, int64_t encoding);
/** Every finding, scan first, then by encoding. *report is owned by the doctor. FX_ENOMEM only. */
int fxi_doctor_end(fxi_doctor *d, fx_error *err, fxi_report *report);

#endif
