/* SPDX-License-Identifier: MIT */
/* phantom_dwi.c - see phantom_dwi.h: where the bundles are, and which tensors they have. */
#include "phantom_dwi.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846
#define GOLDEN_ANGLE (PI * 0.76393202250021030359) /* 2 pi (1 - 1/phi) */

void fxi_dwi_defaults(int kind, const double fov_mm[3], fxi_dwi_object *out)
{
	double fov = fmin(fov_mm[0], fov_mm[1]);

	*out = (fxi_dwi_object){
		.kind = kind, .radius = (kind == FXI_DWI_HELIX ? 0.22 : 0.28) * fov, .width = 0.15 * fov, .length = 0.76 * fov, .turns = 1.25,
		.pitch = fmax(0.6 * fov_mm[2], 0.18 * fov), .angle_deg = 60, .head_mm = 0.44 * fov, .head_axis = {0, 0, 1},
		.along = 1.7, .across = 0.3, .tissue = 0.8, .water = 3, .s0_fibre = 1, .s0_tissue = 1.2, .s0_water = 2,
	};
}

int fxi_dwi_check(const fxi_dwi_object *o, fx_error *err)
{
	if (!(o->width > 0))
		return fx_error_set(err, FX_EINVAL, "a bundle of width %g mm: it must be above 0", o->width);
	if (!(o->along > 0) || !(o->across > 0) || !(o->tissue >= 0) || !(o->water >= 0))
		return fx_error_set(err, FX_EINVAL, "diffusivities %g and %g um^2/ms of fibres, %g of tissue, %g of water: those of fibres must be "
			"above 0, none negative", o->along, o->across, o->tissue, o->water);
	if (!(o->s0_fibre >= 0) || !(o->s0_tissue >= 0) || !(o->s0_water >= 0) || !(o->lake_mm >= 0) || !(o->head_mm >= 0) ||
		!(o->height >= 0))
		return fx_error_set(err, FX_EINVAL, "sizes and amplitudes must not be negative");
	if (o->kind == FXI_DWI_CROSSING) {
		if (!(o->length > 0) || !(o->angle_deg > 0 && o->angle_deg <= 90))
			return fx_error_set(err, FX_EINVAL, "bundles of length %g mm, %g degrees apart: lengths are above 0, angles above 0 and up "
				"to 90", o->length, o->angle_deg);
		return FX_OK;
	}
	if (!(o->radius > o->width / 2))
		return fx_error_set(err, FX_EINVAL, "a bundle %g mm wide at radius %g mm meets its own axis: the radius must be above half the "
			"width", o->width, o->radius);
	if (o->kind == FXI_DWI_HELIX && (!(o->turns > 0) || !(o->pitch > o->width)))
		return fx_error_set(err, FX_EINVAL, "a helix of %g turns rising %g mm a turn, %g mm wide: turns are above 0, and the pitch above the "
			"width, or turns overlap", o->turns, o->pitch, o->width);
	return FX_OK;
}

/* across I + (along - across) t t^T */
static void fibre(const fxi_dwi_object *o, const double t[3], double d[6])
{
	double more = (o->along - o->across) / (t[0] * t[0] + t[1] * t[1] + t[2] * t[2]);

	d[0] = o->across + more * t[0] * t[0];
	d[1] = more * t[0] * t[1];
	d[2] = o->across + more * t[1] * t[1];
	d[3] = more * t[0] * t[2];
	d[4] = more * t[1] * t[2];
	d[5] = o->across + more * t[2] * t[2];
}

static void add(fxi_dwi_point *p, double s0, const double d[6])
{
	p->s0[p->n] = s0;
	memcpy(p->d[p->n++], d, 6 * sizeof *d);
}

static void add_isotropic(fxi_dwi_point *p, double s0, double md)
{
	const double d[6] = {md, 0, md, 0, 0, md};

	if (s0 > 0)
		add(p, s0, d);
}

static void add_fibre(const fxi_dwi_object *o, const double t[3], fxi_dwi_point *p)
{
	double d[6];

	fibre(o, t, d);
	add(p, o->s0_fibre, d);
	p->bundles++;
}

static void ring(const fxi_dwi_object *o, const double x[3], double label_mm, fxi_dwi_point *p)
{
	double r = hypot(x[0], x[1]), out = r - o->radius, angle = atan2(x[1], x[0]);
	bool inside = o->height > 0 ? fabs(out) <= o->width / 2 && fabs(x[2]) <= o->height / 2 : hypot(out, x[2]) <= o->width / 2;

	if (!inside)
		return;
	add_fibre(o, (double[3]){-x[1], x[0], 0}, p);
	for (int i = 0; i < 3; i++)
		if (fabs(remainder(angle - PI / 2 * i, 2 * PI)) * r <= label_mm)
			p->label = i + 1;
}

/* Every point goes on a helix of its own with the bundle's pitch; a half plane through the axis cuts the bundle in discs. */
static void helix(const fxi_dwi_object *o, const double x[3], double label_mm, fxi_dwi_point *p)
{
	double r = hypot(x[0], x[1]), rise = o->pitch / (2 * PI), angle = atan2(x[1], x[0]), end = PI * o->turns;
	double turn = angle + 2 * PI * round((x[2] / rise - angle) / (2 * PI)), arc = hypot(r, rise);

	if (hypot(r - o->radius, x[2] - rise * turn) > o->width / 2 || fabs(turn) > end)
		return;
	add_fibre(o, (double[3]){-x[1], x[0], rise}, p);
	if ((turn + end) * arc <= 2 * label_mm)
		p->label = 1;
	if ((end - turn) * arc <= 2 * label_mm)
		p->label = 2;
}

static void crossing(const fxi_dwi_object *o, const double x[3], double label_mm, fxi_dwi_point *p)
{
	for (int i = 0; i < 2; i++) {
		double angle = (i == 0 ? -1 : 1) * o->angle_deg / 2 * PI / 180;
		const double t[3] = {cos(angle), sin(angle), 0};
		double along = x[0] * t[0] + x[1] * t[1], off = hypot(x[1] * t[0] - x[0] * t[1], x[2]);

		if (off > o->width / 2 || fabs(along) > o->length / 2)
			continue;
		add_fibre(o, t, p);
		if (fabs(along) >= o->length / 2 - 2 * label_mm)
			p->label = 2 * i + (along < 0 ? 1 : 2);
	}
	for (int i = 0; i < p->n; i++) /* each fills its share of a crossing */
		p->s0[i] /= p->n;
}

/* Where a lake of water touches what it lies beside: inside a ring or helix, between the bundles of a crossing. */
static void lake_centre(const fxi_dwi_object *o, double c[3])
{
	c[0] = c[1] = c[2] = 0;
	if (o->kind == FXI_DWI_CROSSING)
		c[1] = (o->lake_mm + o->width / 2) / cos(o->angle_deg / 2 * PI / 180);
}

void fxi_dwi_at(const fxi_dwi_object *o, const double at[3], double label_mm, fxi_dwi_point *out)
{
	double x[3], c[3], along = 0, off = 0, from_lake = 0;

	memset(out, 0, sizeof *out);
	lake_centre(o, c);
	for (int i = 0; i < 3; i++) {
		x[i] = at[i] - o->centre[i];
		along += x[i] * o->head_axis[i];
		from_lake += (x[i] - c[i]) * (x[i] - c[i]);
	}
	if (o->kind == FXI_DWI_RING)
		ring(o, x, label_mm, out);
	else if (o->kind == FXI_DWI_HELIX)
		helix(o, x, label_mm, out);
	else
		crossing(o, x, label_mm, out);
	if (out->n > 0)
		return;
	if (o->lake_mm > 0 && from_lake <= o->lake_mm * o->lake_mm) {
		add_isotropic(out, o->s0_water, o->water);
		return;
	}
	for (int i = 0; i < 3; i++)
		off += (x[i] - along * o->head_axis[i]) * (x[i] - along * o->head_axis[i]);
	if (off <= o->head_mm * o->head_mm)
		add_isotropic(out, o->s0_tissue, o->tissue);
}

double fxi_dwi_signal(const fxi_dwi_point *p, const fx_gradient *g)
{
	const double *v = g->dir;
	double signal = 0;

	for (int i = 0; i < p->n; i++) {
		const double *d = p->d[i];
		double q = d[0] * v[0] * v[0] + d[2] * v[1] * v[1] + d[5] * v[2] * v[2] +
			2 * (d[1] * v[0] * v[1] + d[3] * v[0] * v[2] + d[4] * v[1] * v[2]);

		signal += p->s0[i] * exp(-1e-3 * g->b * q);
	}
	return signal;
}

int fxi_dwi_n_bundles(const fxi_dwi_object *o)
{
	return o->kind == FXI_DWI_CROSSING ? 2 : 1;
}

void fxi_dwi_centre_line(const fxi_dwi_object *o, int bundle, double t, double x[3])
{
	double angle = o->kind == FXI_DWI_RING ? 2 * PI * t : 2 * PI * o->turns * (t - 0.5), r = o->radius, z = 0;

	if (o->kind == FXI_DWI_CROSSING) {
		angle = (bundle == 0 ? -1 : 1) * o->angle_deg / 2 * PI / 180;
		r = o->length * (t - 0.5);
	} else if (o->kind == FXI_DWI_HELIX) {
		z = o->pitch * o->turns * (t - 0.5);
	}
	x[0] = o->centre[0] + r * cos(angle);
	x[1] = o->centre[1] + r * sin(angle);
	x[2] = o->centre[2] + z;
}

void fxi_dwi_gradients(int64_t n_b0, int64_t n_directions, double b, fx_gradient *out)
{
	int64_t n = n_b0 + n_directions, weighted = 0;

	for (int64_t v = 0; v < n; v++) {
		double z, ring, angle;

		memset(&out[v], 0, sizeof out[v]);
		/* the b0 volume number i comes at ceil(i n / n_b0) */
		if (n_b0 > 0 && (v * n_b0) % n < n_b0)
			continue;
		z = 1 - ((double)weighted + 0.5) / (double)n_directions;
		ring = sqrt(1 - z * z);
		angle = GOLDEN_ANGLE * (double)weighted++;
		out[v] = (fx_gradient){.b = b, .dir = {ring * cos(angle), ring * sin(angle), z}};
	}
}
