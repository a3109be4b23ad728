/* SPDX-License-Identifier: MIT */
/* doctor_parts.h - what the doctor's files share: what was gathered of a scan. */
#ifndef FORNIX_RECON_DOCTOR_PARTS_H
#define FORNIX_RECON_DOCTOR_PARTS_H

#include "recon/doctor.h"

/* The counters of one imaging readout. */
struct fxi_place {
	uint16_t counter[FX_N_COUNTERS];
};

/* What was gathered of one encoding. */
struct fxi_seen {
	fxi_counts counts;
	ISMRMRD_AcquisitionHeader first;     /* imaging readout; valid where has_first */
	bool has_first;
	int64_t n_with_trajectory, n_last_flags, n_bad_directions, n_beyond_limits;
	int64_t n_not_finite, first_not_finite; /* readouts; the first one's scan counter */
	int64_t n_lengths_differ;            /* trajectories that are not as long as their data */
	double largest;                      /* |sample| */
	double max_abs[3];                   /* of the trajectory's columns, the file's unit */
	double third_min, third_max;
	int64_t n_places, places_room;
	struct fxi_place *places;            /* of every imaging readout */
	int64_t n_kept, kept_room, n_left_out;
	fx_acquisition *kept;                /* head and trajectory of the first frame's readouts */
	double *energy;                      /* of a Cartesian first frame by sample, `n_energy` of them */
	int64_t n_energy;
};

struct fxi_doctor {
	const fx_header *header;
	int64_t n_encodings;
	struct fxi_seen *seen;
	int64_t n_strays, first_stray;       /* readouts of encodings that the header has not */
	int64_t n_noise, n_noise_without_dwell;
	int64_t n_findings, room;
	fxi_finding *findings;
	bool short_of_memory;
};

/** Adds a finding; sets short_of_memory where there is no room for it. */
void fxi_found(fxi_doctor *d, int verdict, int64_t encoding, const char *aspect, const char *fmt, ...) FX_PRINTF(5, 6);
/** doctor_scan.c: what header and counters say. */
void fxi_doctor_scan(fxi_doctor *d);
void fxi_doctor_encoding(fxi_doctor *d, int64_t e);
/** doctor_sampling.c: what the trajectory says; only where readouts have one. */
void fxi_doctor_sampling(fxi_doctor *d, int64_t e);

#endif
