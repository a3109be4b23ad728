/* SPDX-License-Identifier: MIT */
/*
 * bench_quality.c - `fornix bench quality`: the chapter's validation (Figs. 17.18 and 17.19) on a scan with a known answer.
 * An undersampled, noisy spiral of the Shepp-Logan head, one coil, reconstructed by bilinear gridding, convolution
 * gridding, the weighted sum, and conjugate gradients in single (the library's way, through Q) and in double (an oracle
 * that shares neither Q nor the vector operations: F and F^H themselves, at 1e-9).
 */
#include "apps/bench_quality.h"

#include <complex.h>
#include <fornix/fornix.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/bench.h"
#include "apps/common.h"
#include "io/files.h"
#include "recon/metrics.h"
#include "recon/phantom.h"

enum { BILINEAR, CONVOLUTION, DIRECT, SINGLE, DOUBLE, N_WAYS };

static const char *const names[N_WAYS] = {"bilinear gridding", "convolution gridding", "weighted direct sum",
	"iterative, single", "iterative, double"};
static const char *const files[N_WAYS] = {"bilinear.png", "convolution.png", "direct.png", "iterative.png",
	"iterative-double.png"};

struct quality {
	fx_error err;
	fx_math *m;
	int64_t dims[3];
	double scale, ceiling_db;
	int readouts, iterations;
	double noise, lambda;
	fxi_sampling sampling;
	fx_array *truth, *k, *weights, *samples;  /* f32 {x,y,1}; f64 {3,M}; f32 {M}; cf32 {M,1} */
	fx_array *images[N_WAYS];
	fxi_metrics metrics[N_WAYS];
};

/* ---- the scan ---- */

static int trajectory(struct quality *q)
{
	fxi_sampling *s = &q->sampling;
	fx_array *k = NULL, *w = NULL;
	int status;

	*s = (fxi_sampling){.kind = FXI_SPIRAL, .matrix = {q->dims[0], q->dims[1], 1}, .n_readouts = q->readouts};
	status = fxi_sampling_complete(s, &q->err);
	if (status == FX_OK)
		status = fx_array_new2(FX_F64, 3, s->n_readouts * s->n_samples, &q->k);
	if (status == FX_OK)
		status = fx_array_new1(FX_F32, s->n_readouts * s->n_samples, &q->weights);
	if (status == FX_OK)
		status = fx_array_new2(FX_F64, 3, s->n_samples, &k);
	for (int64_t i = 0; i < s->n_readouts && status == FX_OK; i++) {
		int64_t step[2];

		fxi_sampling_readout(s, i, FX_F64_OF(k), step);
		memcpy(FX_F64_OF(q->k) + 3 * i * s->n_samples, k->data, (size_t)k->bytes);
		status = fx_density_analytic(q->m, k, q->dims, s->n_readouts, &w);
		if (status == FX_OK && w)
			memcpy(FX_F32_OF(q->weights) + i * s->n_samples, w->data, (size_t)w->bytes);
		fx_array_unref(w);
		w = NULL;
	}
	fx_array_unref(k);
	return status == FX_OK ? FX_OK : fx_error_set(&q->err, status, "no memory for a spiral of %d readouts", q->readouts);
}

static int scan(struct quality *q)
{
	fxi_noise noise = {.sigma = q->noise, .seed = 1};
	fxi_phantom *p = NULL;
	fxi_coils *coil = NULL;
	fx_array *cartesian = NULL;
	fxi_metrics best;
	int status = trajectory(q);

	if (status == FX_OK)
		status = fxi_phantom_shepp_logan(2, q->dims, &q->err, &p);
	if (status == FX_OK)
		status = fxi_coils_new(1, 2, q->dims, &q->err, &coil);
	if (status == FX_OK)
		status = fxi_phantom_truth(p, q->dims, q->m->n_threads, &q->err, &q->truth);
	if (status == FX_OK)
		status = fxi_phantom_cartesian(p, q->dims, q->m->n_threads, &q->err, &cartesian);
	if (status == FX_OK)
		status = q->m->ops->fft(q->m, cartesian, +1, q->scale);
	if (status == FX_OK)
		status = fxi_compare(cartesian, q->truth, NULL, false, q->m->n_threads, &q->err, &best);
	if (status == FX_OK) {
		q->ceiling_db = best.psnr_db;
		status = fx_array_new2(FX_CF32, q->k->dims[1], 1, &q->samples);
	}
	if (status == FX_OK)
		status = fxi_phantom_samples(p, coil, FX_F64_OF(q->k), q->k->dims[1], q->scale, q->m->n_threads, &q->err,
			FX_CF32_OF(q->samples));
	if (status == FX_OK)
		fxi_noise_add(&noise, 0, 1, q->k->dims[1], 1, FX_CF32_OF(q->samples));
	fx_array_unref(cartesian);
	fxi_coils_free(coil);
	fxi_phantom_free(p);
	return status;
}

/* ---- the ways ---- */

static int fourier(struct quality *q, int method, int type, double tolerance, fx_fourier **f)
{
	fx_fourier_spec spec = {.method = method, .type = type, .tolerance = tolerance, .dims = {q->dims[0], q->dims[1], 1},
		.scale = q->scale};

	return fx_fourier_new(q->m, &spec, f);
}

static int direct_sum(struct quality *q)
{
	fx_fourier *f = NULL;
	fx_accumulator *sum = NULL;
	int status = fourier(q, FX_FOURIER_DIRECT, FX_CF32, 0, &f);

	if (status == FX_OK)
		status = fx_accumulator_new(f, 1, &sum);
	if (status == FX_OK)
		status = fx_accumulator_add(sum, q->k, q->samples, q->weights);
	if (status == FX_OK) {
		status = fx_accumulator_finish(sum, &q->images[DIRECT]);
		sum = NULL;
	}
	fx_accumulator_free(sum);
	fx_fourier_free(f);
	return status;
}

/* The library's own solver, through Q, as the gadgets call it. */
static int iterative_single(struct quality *q)
{
	fx_msg *msg = fx_msg_new(FX_FRAME);
	fx_frame *f = fx_msg_frame(msg);
	fx_cg_options options = {.iterations = q->iterations, .tolerance = 0};
	fx_cg_report report = {0};
	fx_fourier *op = NULL;
	fx_array *b = NULL, *x = NULL, *phi2 = NULL;
	double lambda_abs = 0;
	int status = f ? FX_OK : fx_error_set(&q->err, FX_ENOMEM, "no memory for a frame");

	if (status == FX_OK) {
		memcpy(f->grid, q->dims, sizeof f->grid);
		f->n_coils = 1;
		f->scale = q->scale;
		f->phi2_sum = (double)q->k->dims[1];
		f->lambda = q->lambda;
		f->has_prior = true;
		status = fx_apply_mu(q->m, NULL, q->samples, &phi2, &f->data_norm2);
	}
	if (status == FX_OK)
		status = fourier(q, FX_FOURIER_NUFFT, FX_CF32, 1e-5, &op);
	if (status == FX_OK)
		status = fx_fourier_adjoint(op, q->k, q->samples, &f->fhd);
	if (status == FX_OK)
		status = fx_toeplitz_kernel(q->m, FX_FOURIER_NUFFT, 1e-5, q->dims, q->scale, q->k, NULL, &f->kernel);
	if (status == FX_OK)
		status = fx_lambda_absolute(q->m, f, &lambda_abs);
	if (status == FX_OK)
		status = fx_frame_right_side(q->m, f, &b);
	if (status == FX_OK)
		status = fx_array_new(FX_CF32, 3, q->dims, &x);
	if (status == FX_OK)
		status = fx_frame_solve(q->m, f, lambda_abs, f->data_norm2, b, &options, x, &report);
	if (status == FX_OK)
		q->images[SINGLE] = fx_array_ref(x);
	fx_cg_report_free(&report);
	fx_fourier_free(op);
	fx_array_unref(b);
	fx_array_unref(x);
	fx_drop(msg);
	return status;
}

static double _Complex dot(const fx_array *a, const fx_array *b)
{
	double _Complex sum = 0;

	for (int64_t i = 0; i < a->n; i++)
		sum += conj(FX_CF64_OF(a)[i]) * FX_CF64_OF(b)[i];
	return sum;
}

/* y (new) = F^H F x + lambda x. */
static int normal(struct quality *q, fx_fourier *f, const fx_array *x, double lambda, fx_array **y)
{
	fx_array *s = NULL;
	int status = fx_fourier_forward(f, q->k, x, &s);

	if (status == FX_OK)
		status = fx_fourier_adjoint(f, q->k, s, y);
	fx_array_unref(s);
	for (int64_t i = 0; status == FX_OK && i < x->n; i++)
		FX_CF64_OF(*y)[i] += lambda * FX_CF64_OF(x)[i];
	return status;
}

/* Hestenes and Stiefel's recurrences on b, which becomes the residual; zero start. */
static int iterate(struct quality *q, fx_fourier *f, fx_array *r, fx_array *x)
{
	double lambda = q->lambda * q->scale * q->scale * (double)q->k->dims[1], rr = creal(dot(r, r));
	fx_array *p = NULL, *ap = NULL;
	int status = fx_array_convert(r, FX_CF64, &p);

	for (int i = 0; i < q->iterations && status == FX_OK; i++) {
		double before = rr, step;

		status = normal(q, f, p, lambda, &ap);
		if (status != FX_OK)
			break;
		step = rr / creal(dot(p, ap));
		for (int64_t n = 0; n < x->n; n++) {
			FX_CF64_OF(x)[n] += step * FX_CF64_OF(p)[n];
			FX_CF64_OF(r)[n] -= step * FX_CF64_OF(ap)[n];
		}
		rr = creal(dot(r, r));
		for (int64_t n = 0; n < x->n; n++)
			FX_CF64_OF(p)[n] = FX_CF64_OF(r)[n] + rr / before * FX_CF64_OF(p)[n];
		fx_array_unref(ap);
		ap = NULL;
	}
	fx_array_unref(p);
	return status;
}

static int iterative_double(struct quality *q)
{
	fx_fourier *f = NULL;
	fx_array *s = NULL, *r = NULL, *x = NULL;
	int status = fourier(q, FX_FOURIER_NUFFT, FX_CF64, 1e-9, &f);

	if (status == FX_OK)
		status = fx_array_convert(q->samples, FX_CF64, &s);
	if (status == FX_OK)
		status = fx_fourier_adjoint(f, q->k, s, &r);
	if (status == FX_OK)
		status = fx_array_new4(FX_CF64, q->dims[0], q->dims[1], 1, 1, &x);
	if (status == FX_OK)
		status = iterate(q, f, r, x);
	if (status == FX_OK)
		q->images[DOUBLE] = fx_array_ref(x);
	fx_fourier_free(f);
	fx_array_unref(s);
	fx_array_unref(r);
	fx_array_unref(x);
	return status;
}

static int reconstruct(struct quality *q)
{
	int status = fx_grid_image(q->m, FX_GRID_BILINEAR, q->dims, q->scale, q->k, q->samples, q->weights,
		&q->images[BILINEAR]);

	if (status == FX_OK)
		status = fx_grid_image(q->m, FX_GRID_CONVOLUTION, q->dims, q->scale, q->k, q->samples, q->weights,
			&q->images[CONVOLUTION]);
	if (status == FX_OK)
		status = direct_sum(q);
	if (status == FX_OK)
		status = iterative_single(q);
	if (status == FX_OK)
		status = iterative_double(q);
	for (int i = 0; i < N_WAYS && status == FX_OK; i++) {
		q->images[i]->n_dims = 3; /* one coil: the truth's own shape */
		status = fxi_compare(q->images[i], q->truth, NULL, false, q->m->n_threads, &q->err, &q->metrics[i]);
	}
	return status;
}

/* ---- what is told ---- */

static int put_picture(struct quality *q, fxi_files *folder, const char *name, const fx_array *data)
{
	fx_sink_options options = {.format = FX_FORMAT_PNG, .name = name, .window_low = 1, .window_high = 99.5};
	fx_image image = {.data = NULL};
	fxi_product *product = NULL;
	int status = fx_array_convert(data, data->type >= FX_CF32 ? FX_CF32 : FX_F32, &image.data);

	if (status != FX_OK)
		return fx_error_set(&q->err, status, "no memory for a picture");
	image.data->n_dims = 4;
	fx_image_describe(&image);
	for (int i = 0; i < 3; i++) {
		image.head.field_of_view[i] = i < 2 ? 240 : 5;
		image.head.read_dir[i] = i == 0;
		image.head.phase_dir[i] = i == 1;
		image.head.slice_dir[i] = i == 2;
	}
	status = folder->open(folder, &options, &q->err, &product);
	if (status == FX_OK)
		status = product->add(product, &image, &q->err);
	if (status == FX_OK)
		status = product->commit(product, &q->err);
	else if (product)
		product->abandon(product);
	fx_array_unref(image.data);
	return status;
}

static int put_pictures(struct quality *q, const char *dir)
{
	fxi_files *folder = NULL;
	int status = fxi_files_folder(dir, &q->err, &folder);

	if (status == FX_OK)
		status = put_picture(q, folder, "truth.png", q->truth);
	for (int i = 0; i < N_WAYS && status == FX_OK; i++)
		status = put_picture(q, folder, files[i], q->images[i]);
	if (folder)
		folder->close(folder);
	return status;
}

static void put_table(const struct quality *q)
{
	printf("Shepp-Logan, %lld x %lld, spiral of %lld readouts x %lld samples (Nyquist: %lld), noise %g, one coil\n",
		(long long)q->dims[0], (long long)q->dims[1], (long long)q->sampling.n_readouts, (long long)q->sampling.n_samples,
		(long long)((q->dims[0] + 7) / 8), q->noise);
	printf("iterative: %d iterations from zero, lambda %g\n\n%-24s %9s %8s %7s\n", q->iterations, q->lambda, "", "PSNR/dB",
		"NRMSE", "SSIM");
	for (int i = 0; i < N_WAYS; i++)
		printf("%-24s %9.2f %8.4f %7.4f\n", names[i], q->metrics[i].psnr_db, q->metrics[i].nrmse, q->metrics[i].ssim);
	printf("%-24s %9.2f\n\n", "ceiling (band limit)", q->ceiling_db);
	printf("iterative over bilinear gridding: %.1f dB; single against double: %.4f dB\n",
		q->metrics[SINGLE].psnr_db - q->metrics[BILINEAR].psnr_db,
		q->metrics[SINGLE].psnr_db - q->metrics[DOUBLE].psnr_db);
}

static int put_json(struct quality *q, const char *path)
{
	JsonBuilder *b = fxi_bench_record("quality");
	const struct {
		const char *name;
		double value;
	} settings[] = {{"matrix", (double)q->dims[0]}, {"readouts", (double)q->sampling.n_readouts},
		{"samples", (double)q->sampling.n_samples}, {"noise", q->noise}, {"lambda", q->lambda},
		{"iterations", q->iterations}, {"ceiling_db", q->ceiling_db}};

	for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
		json_builder_set_member_name(b, settings[i].name);
		json_builder_add_double_value(b, settings[i].value);
	}
	json_builder_set_member_name(b, "ways");
	json_builder_begin_object(b);
	for (int i = 0; i < N_WAYS; i++) {
		json_builder_set_member_name(b, names[i]);
		json_builder_begin_object(b);
		json_builder_set_member_name(b, "psnr_db");
		json_builder_add_double_value(b, q->metrics[i].psnr_db);
		json_builder_set_member_name(b, "nrmse");
		json_builder_add_double_value(b, q->metrics[i].nrmse);
		json_builder_set_member_name(b, "ssim");
		json_builder_add_double_value(b, q->metrics[i].ssim);
		json_builder_end_object(b);
	}
	json_builder_end_object(b);
	return fxi_bench_record_end(b, path, &q->err);
}

static void release(struct quality *q)
{
	for (int i = 0; i < N_WAYS; i++)
		fx_array_unref(q->images[i]);
	fx_array_unref(q->truth);
	fx_array_unref(q->k);
	fx_array_unref(q->weights);
	fx_array_unref(q->samples);
	fx_math_free(q->m);
}

int fxi_bench_quality(int argc, char **argv)
{
	struct quality q = {.readouts = 10, .iterations = 30, .noise = 0.01, .lambda = 0.005};
	int matrix = 128;
	char *dir = NULL, *json = NULL;
	const GOptionEntry entries[] = {
		{"matrix", 0, 0, G_OPTION_ARG_INT, &matrix, "Voxels along each axis (128)", "N"},
		{"readouts", 0, 0, G_OPTION_ARG_INT, &q.readouts, "Spiral interleaves (10; an eighth of the matrix is Nyquist's)", "N"},
		{"noise", 0, 0, G_OPTION_ARG_DOUBLE, &q.noise, "Standard deviation in each part of a sample (0.01)", "SIGMA"},
		{"lambda", 0, 0, G_OPTION_ARG_DOUBLE, &q.lambda, "Of the iterative images (0.005)", "X"},
		{"iterations", 0, 0, G_OPTION_ARG_INT, &q.iterations, "Of the iterative images (30)", "N"},
		{"output", 'o', 0, G_OPTION_ARG_FILENAME, &dir, "Write pictures of the truth and of every way into this folder", "DIR"},
		{"json", 0, 0, G_OPTION_ARG_FILENAME, &json, "Write the figures as JSON too", "FILE"},
		G_OPTION_ENTRY_NULL,
	};
	int result = FXI_EXIT_USAGE, status;

	if (!fxi_apps_options("quality", "How far each way of reconstructing an undersampled, noisy spiral scan is from the truth.",
		    entries, 0, 0, &argc, &argv))
		goto done;
	if (matrix < 8 || matrix > 1024 || q.readouts < 1 || q.iterations < 1 || !(q.noise >= 0) || !(q.lambda >= 0)) {
		fxi_apps_say("bench quality: matrix is 8 to 1024, readouts and iterations are above 0, noise and lambda not below");
		goto done;
	}
	q.dims[0] = q.dims[1] = matrix;
	q.dims[2] = 1;
	q.scale = 1.0 / matrix;
	status = fx_math_new("host", 0, &q.err, &q.m);
	if (status == FX_OK)
		status = scan(&q);
	if (status == FX_OK)
		status = reconstruct(&q);
	if (status == FX_OK && dir)
		status = put_pictures(&q, dir);
	if (status == FX_OK && json)
		status = put_json(&q, json);
	if (status == FX_OK)
		put_table(&q);
	else
		fxi_apps_say("bench quality: %s", q.err.text);
	result = status == FX_OK ? FXI_EXIT_DONE : FXI_EXIT_FAILED;
done:
	release(&q);
	g_free(dir);
	g_free(json);
	return result;
}
