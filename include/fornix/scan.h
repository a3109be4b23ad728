/* SPDX-License-Identifier: MIT */
/*
 * scan.h - what the MRD XML header says of a scan, parsed once and read by every gadget.
 */
#ifndef FORNIX_SCAN_H
#define FORNIX_SCAN_H

#include <fornix/base.h>

#ifdef __cplusplus
extern "C" {
#endif

enum fx_trajectory_kind {
	FX_TRAJ_CARTESIAN = 0, FX_TRAJ_EPI, FX_TRAJ_RADIAL, FX_TRAJ_GOLDENANGLE, FX_TRAJ_SPIRAL, FX_TRAJ_OTHER
};

enum fx_counter {
	FX_STEP_1 = 0, FX_STEP_2, FX_AVERAGE, FX_SLICE, FX_CONTRAST, FX_PHASE, FX_REPETITION, FX_SET,
	FX_SEGMENT, FX_N_COUNTERS
};

typedef struct fx_limit {
	bool present;
	int64_t min, max, center;
} fx_limit;

typedef struct fx_space {
	int64_t matrix[3];
	double fov_mm[3];  /**< as written; may be 0 in files from simulators */
} fx_space;

enum fx_param_type { FX_PARAM_LONG = 1, FX_PARAM_DOUBLE, FX_PARAM_STRING };

typedef struct fx_param {
	char *name;
	int type;          /**< enum fx_param_type */
	double number;     /**< LONG and DOUBLE (NaN where the text is no number) */
	char *text;        /**< as written, for every type */
} fx_param;

typedef struct fx_params {
	int64_t n;
	fx_param *list;
} fx_params;

typedef struct fx_encoding {
	fx_space encoded, recon;      /**< recon is a copy of encoded where the header has none */
	bool has_recon;
	int trajectory;               /**< enum fx_trajectory_kind */
	char *trajectory_text;        /**< as written */
	fx_limit limits[FX_N_COUNTERS];
	char *description_id;         /**< trajectoryDescription/identifier, or NULL */
	fx_params description;        /**< trajectoryDescription's parameters */
	double acceleration[2];       /**< parallel imaging factors; 1 where absent */
} fx_encoding;

/** Which counter tells diffusion weightings apart (MRD's sequenceParameters/diffusionDimension). */
enum fx_diffusion_dimension {
	FX_DIFFUSION_NONE = 0, FX_DIFFUSION_AVERAGE, FX_DIFFUSION_CONTRAST, FX_DIFFUSION_PHASE, FX_DIFFUSION_REPETITION,
	FX_DIFFUSION_SET, FX_DIFFUSION_SEGMENT, FX_DIFFUSION_USER_0, FX_DIFFUSION_USER_7 = FX_DIFFUSION_USER_0 + 7,
	FX_N_DIFFUSION_DIMENSIONS
};

/** One volume's diffusion weighting. */
typedef struct fx_gradient {
	double b;          /**< s/mm^2 */
	double dir[3];     /**< unit vector, RAS; 0 where there is none (b = 0) */
} fx_gradient;

/** The whole header. Owned by whoever parsed it; gadgets borrow it through fx_scan. */
typedef struct fx_header {
	int64_t n_encodings;
	fx_encoding *encodings;
	int64_t receiver_channels;    /**< 0 where absent */
	double field_t;               /**< 0 where absent */
	double h1_hz;                 /**< 0 where absent */
	double noise_bandwidth;       /**< relativeReceiverNoiseBandwidth; 0 where absent */
	char *measurement_id;         /**< or NULL */
	char *patient_position;       /**< "HFS" and the like, or NULL */
	char *protocol;               /**< or NULL */
	char *noise_dependency;       /**< measurementDependency of type Noise: its measurement id, or NULL */
	int diffusion_dimension;      /**< enum fx_diffusion_dimension */
	int64_t n_diffusion;
	fx_gradient *diffusion;       /**< by that counter, from 0: directions in RAS, as long as they were written; see
	                                   fx_gradients_from_header */
	char *diffusion_scheme;       /**< or NULL */
	fx_params user;               /**< userParameters, however deeply nested */
	int64_t n_coil_names;         /**< coilLabel elements; the i-th names coil i, as writers list them */
	char **coil_names;
	char *xml;                    /**< the text as it came, NUL-terminated */
} fx_header;

FX_EXPORT void fx_header_free(fx_header *h);
/** The user parameter of that name, or NULL. */
FX_EXPORT const fx_param *fx_param_find(const fx_params *params, const char *name);
/** "spiral" and the like. */
FX_EXPORT const char *fx_trajectory_kind_name(int kind);
/** "slice", "repetition" and the like. */
FX_EXPORT const char *fx_counter_name(int counter);
/** "repetition", "user_0" and the like; "none". */
FX_EXPORT const char *fx_diffusion_dimension_name(int dimension);

#ifdef __cplusplus
}
#endif
#endif
