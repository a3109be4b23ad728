/* SPDX-License-Identifier: MIT */
/*
 * trajectory.h - trajectories that did not come with the data: from a table or from a rule, and what delayed gradients
 * do to them.
 */
#ifndef FORNIX_TRAJECTORY_H
#define FORNIX_TRAJECTORY_H

#include <fornix/backend.h>
#include <fornix/message.h>
#include <fornix/scan.h>

#ifdef __cplusplus
extern "C" {
#endif

enum fx_rule_kind {
	FX_RULE_TABLE = 0, /**< numbers from a file */
	FX_RULE_RADIAL,    /**< spokes equally far apart; a stack of stars where the matrix has several planes */
	FX_RULE_GOLDEN,    /**< spokes 180/phi = 111.246 degrees apart (Winkelmann et al. 2007); likewise */
	FX_RULE_GOLDEN3D,  /**< two golden means (Chan et al. 2009) */
	FX_RULE_SPIRAL     /**< Archimedean, from the centre outwards */
};

/** Which of its readouts a rule takes a readout for. */
enum fx_rule_index {
	FX_INDEX_AUTO = 0, /**< order for the golden kinds, step_1 otherwise */
	FX_INDEX_STEP_1,   /**< by the counter kspace_encode_step_1 */
	FX_INDEX_ORDER     /**< by arrival, counted apart for every slice, contrast, set and kspace_encode_step_2 */
};

typedef struct fx_rule_options {
	int kind, index;
	bool full_turn;          /**< radial: 360/n degrees apart instead of 180/n */
	int64_t n_spokes;        /**< readouts of a whole turn; 0: by the header's limits of kspace_encoding_step_1 */
	const fx_array *table;   /**< FX_RULE_TABLE: f64 {2 or 3, rows}, any unit; kept by reference */
	const fx_array *lengths; /**< FX_RULE_TABLE: i32 {blocks}: how many rows each readout has */
	const char *name;        /**< of the table's file, for messages; borrowed */
} fx_rule_options;

/** What makes a trajectory. */
typedef struct fx_rule fx_rule;
/**
 * A rule for one encoding. Spiral parameters stand in its trajectoryDescription: `turns` (of one interleaf), `equal_arcs` (1:
 * equal arcs outside and equal radii at the centre; 0: equal angles), `interleaves` where the limits do not tell their
 * number, and `k_max` in cycles/voxel (0.5). FX_EDATA with everything that is missing.
 */
FX_EXPORT int fx_rule_new(const fx_encoding *encoding, const fx_rule_options *options, fx_error *err, fx_rule **out);
FX_EXPORT void fx_rule_free(fx_rule *r);
/**
 * Gives a readout its trajectory (f32 {2 or 3, samples}, replaced): cycles/voxel of the encoded matrix, a table's in its own
 * unit. A spoke spans the matrix: its centre_sample is k = 0, its farther end half a cycle/voxel. FX_EDATA where it does not fit.
 */
FX_EXPORT int fx_rule_readout(fx_rule *r, fx_math *m, fx_acquisition *a);

/* ---- delayed gradients ------------------------------------------------------------------------- */

/** "1.5" or "1.5,0,-0.3" in microseconds into us[3] (one number holds for all axes). FX_EINVAL where it is something else. */
FX_EXPORT int fx_delay_parse(const char *text, fx_error *err, double us[3]);
/**
 * k_d(j) <- k_d(j - shift_d) in a->k: gradients that come `shift` samples late. Cubic interpolation; before the first sample
 * a readout that starts at k = 0 stays there, others go on in a straight line, as they do behind the last.
 */
FX_EXPORT int fx_trajectory_delay(fx_math *m, fx_acquisition *a, const double shift[3]);

typedef struct fx_delay_report {
	int64_t n_spokes;   /**< readouts that are straight, even and through k = 0 */
	int64_t n_pairs;    /**< of them that were opposed to 2 degrees */
	double shift[3];    /**< samples; 0 along axes that no pair tells of */
	bool known[3];
	double residual;    /**< root mean square misfit, samples */
} fx_delay_report;

/**
 * First-order delays from opposed spokes (Peters, Derbyshire, McVeigh, Magn. Reson. Med. 50:1, 2003; Block & Uecker, Proc.
 * ISMRM 2816, 2011): delays shift a spoke along n by sum_d n_d^2 shift_d samples and its opposite the other way, so
 * that their projections differ by a phase slope. Each pair's slope maximises the projections' correlation over all
 * coils; the shifts are the least-squares fit of all pairs. Displacements across the spokes are neglected. Readouts must have
 * k and data. *report tells; too few pairs are no failure.
 */
FX_EXPORT int fx_delay_estimate(fx_math *m, fx_acquisition *const *list, int64_t n, fx_delay_report *report);

#ifdef __cplusplus
}
#endif
#endif
