/* SPDX-License-Identifier: MIT */
/* connect.h - what connect's files share: a cut fibre, the fibres kept of a pair, and where connections lie along a fibre. */
#ifndef FORNIX_DIFFUSION_CONNECT_H
#define FORNIX_DIFFUSION_CONNECT_H

#include "diffusion/regions.h"

#define FXI_CONNECT_VALUES 5 /* what a connection adds to a fibre's values: rank, source, target, family, jacobi */

/* A fibre cut to a connection, oriented from source to target. */
struct fxi_connection {
	double score;            /* larger ranks first: the measure, or minus the length where there is no measure */
	double length_mm, riemann, measure;
	int64_t fibre, seed;     /* number of the fibre in the stream, and of its seed: what breaks ties */
	int64_t n_points;
	float *points;           /* {3, n_points} */
	float *lengths;          /* {n_points}: Riemannian length from the start; NULL for streamlines */
	float values[FX_TRACT_VALUES]; /* of the fibre it was cut from */
	int64_t n_line;
	float *line;             /* {3, n_line}: coarser, for distances */
	bool asked;              /* whether the three below were tried for */
	double jacobi;           /* NaN where not known */
	int64_t conjugate;
	bool degenerate;
	int64_t family;          /* counted from 0; -1: none yet */
	bool leads;              /* represents its family */
	double distance;         /* to that one, mm */
	int64_t n_others;        /* fibres of its family that are no longer kept and that it stands for */
	double others_distance;  /* sum of their distances, mm, as they were taken in */
	double others_worst;     /* least of their scores */
};

struct fxi_family {
	int64_t leader;          /* in `kept` */
	int64_t n_fibres;
	double spread_mm, worst; /* mean distance to the leader; least score */
	bool degenerate;
};

/* All that is kept of a pair. */
struct fxi_pair {
	int32_t source, target;  /* as in regions; source 0: the seeds */
	int64_t n_fibres;        /* that joined it */
	int64_t n_dropped;       /* of them in families beyond those kept */
	int64_t n_kept, capacity;
	struct fxi_connection **kept; /* best first after fxi_pair_settle */
	int64_t n_families;
	struct fxi_family *families;  /* after fx_connect_finish */
};

struct fx_connect {
	fx_math *m;
	fx_connect_spec spec;
	const fx_regions *sources, *targets, *exclude;
	bool same_regions;       /* sources and targets are one image: a region is not joined with itself */
	double cluster_mm;
	fx_msg *metric;
	fx_tracts_info *info;    /* of the first batch */
	fx_tracts_info *out_info;
	int seed_value;          /* index of "seed_point", or -1 */
	unsigned caveats;
	struct fxi_visits visits[3]; /* sources, targets, exclusions of the fibre at hand */
	struct fxi_pair **pairs; /* those met, n_pairs; sorted by source and target once finished */
	int64_t n_pairs, pairs_capacity;
	int32_t *pair_at;        /* {targets, sources + 1}: 1 + place in `pairs`, or 0 */
	int64_t n_sources;       /* regions that can be sources, not counting the seeds */
	fx_connect_counts counts;
	bool finished;
	int64_t next_pair, next_kept, n_sent; /* of fx_connect_next */
	bool ended;
};

/* Where a connection lies on a fibre: from < to are positions; the source is at `to` where it is reversed. */
struct fxi_span {
	int32_t source, target;
	double from, to;
	bool reversed;
};

enum fxi_spans_result { FXI_SPANS_NONE, FXI_SPANS_SOME, FXI_SPANS_EXCLUDED, FXI_SPANS_INCOMPLETE };

/*
 * Goes over the connections of the fibre whose visits are in c->visits; calls `take` for each. *result says why there was none. Seed: a position.
 */
typedef int (*fxi_span_fn)(void *arg, const struct fxi_span *span);
int fxi_connect_spans(struct fx_connect *c, double seed, fxi_span_fn take, void *arg, int *result);

/* A fibre of the stream. */
struct fxi_fibre {
	const float *points, *riemann, *values;
	int64_t n, number, seed;
	int n_values;
};

/* A new connection cut from a fibre; *out NULL where it has no length or a length that is not finite. */
int fxi_connection_cut(const struct fx_connect *c, const struct fxi_fibre *f, const struct fxi_span *span,
	struct fxi_connection **out);
void fxi_connection_free(struct fxi_connection *k);
/* True where a ranks before b. */
bool fxi_connection_before(const struct fxi_connection *a, const struct fxi_connection *b);

struct fxi_pair *fxi_pair_new(int32_t source, int32_t target);
void fxi_pair_free(struct fxi_pair *p);
/* Adds one (given away, also on failure) and settles when twice as many as are kept have come. */
int fxi_pair_add(struct fx_connect *c, struct fxi_pair *p, struct fxi_connection *k);
/* Sorts, groups into families, and drops what is beyond spec.best and no leader of the first spec.families. */
int fxi_pair_settle(struct fx_connect *c, struct fxi_pair *p);
/* Settles, then numbers and sums up the families. */
int fxi_pair_finish(struct fx_connect *c, struct fxi_pair *p);

/* Jacobi determinant of a connection along c->metric; leaves NaN where it cannot be had. Asks once. */
void fxi_connection_jacobi(const struct fx_connect *c, struct fxi_connection *k);

/* Refuses fibres that the first batch's do not go together with. */
int fxi_connect_check_info(fx_connect *c, fx_tracts_info *info);
const char *fxi_metric_name(int kind);

/* Label of a source or target as users know it. */
int64_t fxi_connect_source_label(const struct fx_connect *c, int32_t source);
int64_t fxi_connect_target_label(const struct fx_connect *c, int32_t target);

#endif
