/* SPDX-License-Identifier: MIT */
/* connect_keep.c - the fibres kept of a pair of regions: ranked, in families, in bounded memory while they stream by. */
#include "diffusion/cluster.h"
#include "diffusion/connect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_ROOM 32 /* fibres that come before a pair is settled again, so that settling is rare */

struct fxi_pair *fxi_pair_new(int32_t source, int32_t target)
{
	struct fxi_pair *p = fx_alloc(1, sizeof *p);

	if (p) {
		p->source = source;
		p->target = target;
	}
	return p;
}

void fxi_pair_free(struct fxi_pair *p)
{
	if (!p)
		return;
	for (int64_t i = 0; i < p->n_kept; i++)
		fxi_connection_free(p->kept[i]);
	fx_free(p->kept);
	fx_free(p->families);
	fx_free(p);
}

int fxi_pair_add(struct fx_connect *c, struct fxi_pair *p, struct fxi_connection *k)
{
	int64_t room = c->spec.best + c->spec.families;

	room = 2 * room > room + LEAST_ROOM ? 2 * room : room + LEAST_ROOM;
	if (!p->kept) {
		p->kept = fx_alloc(room, sizeof *p->kept);
		p->capacity = room;
	}
	if (!p->kept) {
		fxi_connection_free(k);
		return fx_error_set(c->m->err, FX_ENOMEM, "no memory for the %lld fibres of a pair of regions", (long long)room);
	}
	p->n_fibres++;
	p->kept[p->n_kept++] = k;
	return p->n_kept == p->capacity ? fxi_pair_settle(c, p) : FX_OK;
}

static int compare_rank(const void *a, const void *b)
{
	const struct fxi_connection *x = *(struct fxi_connection *const *)a, *y = *(struct fxi_connection *const *)b;

	return fxi_connection_before(x, y) ? -1 : fxi_connection_before(y, x);
}

static double between(const void *arg, int64_t i, int64_t j)
{
	struct fxi_connection *const *kept = arg;

	return fx_tract_distance(kept[i]->line, kept[i]->n_line, kept[j]->line, kept[j]->n_line);
}

static double apart(const float *a, const float *b)
{
	double x = (double)a[0] - b[0], y = (double)a[1] - b[1], z = (double)a[2] - b[2];

	return sqrt(x * x + y * y + z * z);
}

/*
 * True where both may belong to a continuum of geodesics between two conjugate points. A fan whose normalised determinant is J has narrowed
 * to sqrt(|J|) times its length, so a fibre cut at a region's border ends at most that far from where all meet.
 */
static bool may_meet(const struct fx_connect *c, const struct fxi_connection *a, const struct fxi_connection *b)
{
	double slack = sqrt(c->spec.degenerate) * (a->length_mm + b->length_mm);

	return apart(a->points, b->points) <= c->cluster_mm
		&& apart(a->points + 3 * (a->n_points - 1), b->points + 3 * (b->n_points - 1)) <= c->cluster_mm + slack;
}

static bool is_degenerate(const struct fx_connect *c, struct fxi_connection *k)
{
	fxi_connection_jacobi(c, k);
	return k->degenerate;
}

/* The earlier leader whose continuum leader i belongs to, or i. */
static int64_t continuum_of(const struct fx_connect *c, struct fxi_pair *p, const int64_t *leader, int64_t i)
{
	for (int64_t j = 0; j < i; j++)
		if (leader[j] == j && may_meet(c, p->kept[i], p->kept[j]) && is_degenerate(c, p->kept[i])
			&& is_degenerate(c, p->kept[j]))
			return j;
	return i;
}

/*
 * Groups are arbitrary slices of a continuum: degenerate leaders that meet at both ends become one family, led by the best. Leaders
 * that will not be kept anyway are not asked for their determinants, which cost an integration each.
 */
static void join_continua(const struct fx_connect *c, struct fxi_pair *p, int64_t *leader)
{
	int64_t n_leaders = 0;

	for (int64_t i = 0; i < p->n_kept && c->spec.jacobi; i++) {
		int64_t to;

		if (leader[i] != i)
			continue;
		if (n_leaders >= c->spec.families && i >= c->spec.best)
			return;
		to = continuum_of(c, p, leader, i);
		n_leaders += to == i;
		for (int64_t k = i; k < p->n_kept && to != i; k++)
			if (leader[k] == i)
				leader[k] = to;
	}
}

/* k and those it stands for go to the account of `to`. */
static void take_in(struct fxi_connection *to, struct fxi_connection *k)
{
	to->n_others += 1 + k->n_others;
	to->others_distance += k->distance + k->others_distance;
	to->others_worst = fmin(to->others_worst, fmin(k->score, k->others_worst));
	fxi_connection_free(k);
}

/* Drops what is beyond the best and leads no family that is kept; the order of the rest stays. */
static void drop_rest(const struct fx_connect *c, struct fxi_pair *p, const int64_t *leader)
{
	int64_t n_left = 0;

	p->n_families = 0;
	for (int64_t i = 0; i < p->n_kept; i++) { /* a leader comes before all that it leads */
		struct fxi_connection *k = p->kept[i];

		k->leads = leader[i] == i;
		k->family = p->kept[leader[i]]->family;
		if (k->leads)
			k->family = p->n_families < c->spec.families || i < c->spec.best ? p->n_families++ : -1;
	}
	for (int64_t i = p->n_kept - 1; i >= 0; i--) {
		struct fxi_connection *k = p->kept[i];

		if (i < c->spec.best || (k->leads && k->family >= 0))
			continue;
		if (k->family >= 0) { /* so its leader stays */
			take_in(p->kept[leader[i]], k);
		} else {
			p->n_dropped += 1 + k->n_others;
			fxi_connection_free(k);
		}
		p->kept[i] = NULL;
	}
	for (int64_t i = 0; i < p->n_kept; i++)
		if (p->kept[i])
			p->kept[n_left++] = p->kept[i];
	p->n_kept = n_left;
}

int fxi_pair_settle(struct fx_connect *c, struct fxi_pair *p)
{
	int64_t *leader = fx_alloc(p->n_kept, sizeof *leader);

	if (!leader && p->n_kept > 0)
		return fx_error_set(c->m->err, FX_ENOMEM, "no memory to group %lld fibres", (long long)p->n_kept);
	if (p->n_kept > 0)
		qsort(p->kept, (size_t)p->n_kept, sizeof p->kept[0], compare_rank);
	fxi_cluster_leaders(p->n_kept, between, p->kept, c->cluster_mm, leader, NULL);
	join_continua(c, p, leader);
	for (int64_t i = 0; i < p->n_kept; i++)
		p->kept[i]->distance = leader[i] == i ? 0 : between(p->kept, i, leader[i]);
	drop_rest(c, p, leader);
	fx_free(leader);
	return FX_OK;
}

int fxi_pair_finish(struct fx_connect *c, struct fxi_pair *p)
{
	int status = fxi_pair_settle(c, p);

	if (status != FX_OK)
		return status;
	p->families = fx_alloc(p->n_families, sizeof *p->families);
	if (!p->families)
		return fx_error_set(c->m->err, FX_ENOMEM, "no memory for %lld families", (long long)p->n_families);
	for (int64_t i = 0; i < p->n_kept; i++) {
		struct fxi_connection *k = p->kept[i];
		struct fxi_family *f = &p->families[k->family];

		if (c->spec.jacobi)
			fxi_connection_jacobi(c, k);
		if (k->leads)
			*f = (struct fxi_family){.leader = i, .worst = k->score, .degenerate = k->degenerate};
		f->n_fibres += 1 + k->n_others;
		f->spread_mm += k->distance + k->others_distance;
		f->worst = fmin(f->worst, fmin(k->score, k->others_worst));
	}
	for (int64_t i = 0; i < p->n_families; i++)
		if (p->families[i].n_fibres > 1)
			p->families[i].spread_mm /= (double)(p->families[i].n_fibres - 1);
	return FX_OK;
}
