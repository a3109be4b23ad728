/* SPDX-License-Identifier: MIT */
/* phantom.c - `fornix phantom KIND -o FILE`: a raw test scan with a known answer. */
#include "apps/phantom.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common.h"
#include "apps/phantom_dwi.h"
#include "apps/phantom_image.h"
#include "apps/phantom_options.h"

static const char summary[] =
	"Writes a raw MRD scan of an object whose k-space is known exactly, and the object's voxel averages as NIfTI.\n\n"
	"KIND is shepp-logan (high-contrast head, amplitudes 0 to 1), ellipse (one, amplitude 1), shapes (see --shape) or\n"
	"from-image IMAGE.nii[.gz] (2-D, 3-D, or a series of frames; on its own matrix, or a smaller --matrix);\n"
	"ring, crossing and helix are diffusion scans of fibre bundles with known tensors.\n"
	"Samples are scaled so that a full Cartesian scan's orthonormal inverse FFT gives the object's own amplitude.\n"
	"The printed ceiling is the PSNR of the best band-limited image against the voxel averages.";

/* Signal handlers get no argument. */
static volatile sig_atomic_t stop;

static void on_signal(int number)
{
	(void)number;
	stop = 1;
}

static void catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

/* scan.h5 -> scan_truth.nii.gz, beside it */
static char *truth_path(const fxi_phantom_options *o)
{
	const char *dot = strrchr(o->output, '.'), *slash = strrchr(o->output, '/');
	size_t length = dot && dot > (slash ? slash + 1 : o->output) ? (size_t)(dot - o->output) : strlen(o->output);

	if (o->truth)
		return g_strdup(o->truth);
	return g_strdup_printf("%.*s_truth.nii.gz", (int)length, o->output);
}

static int write_scan(const fxi_phantom_job *job, const fxi_phantom_options *o, fx_error *err)
{
	fxi_phantom_output *output = NULL;
	char *xml = NULL;
	int status = fxi_phantom_header(job, err, &xml);

	if (status == FX_OK)
		status = fxi_phantom_output_open(o->output, o->stream, xml, err, &output);
	if (status == FX_OK)
		status = fxi_phantom_scan(job, output, &stop, err);
	if (status == FX_OK)
		status = fxi_phantom_output_commit(output, err);
	else
		fxi_phantom_output_abandon(output);
	free(xml);
	return status;
}

/* On stderr where the scan itself is on stdout. */
static void tell(const fxi_phantom_job *job, const fxi_phantom_options *o, const char *kind)
{
	const int64_t *m = job->sampling.matrix;

	fprintf(strcmp(o->output, "-") == 0 ? stderr : stdout,
		"%s: %s, %s, %lld x %lld x %lld voxels, %lld coil%s, %lld readouts of %lld samples\n", o->output, kind,
		fxi_sampling_name(job->sampling.kind), (long long)m[0], (long long)m[1], (long long)(m[2] * job->n_slices),
		(long long)job->n_coils, job->n_coils == 1 ? "" : "s", (long long)fxi_phantom_n_readouts(job),
		(long long)job->sampling.n_samples);
}

static int write_truth(const fxi_phantom_job *job, const fxi_phantom_options *o, fx_error *err)
{
	char *path;
	fxi_ceiling ceiling;
	int status;

	if (o->no_truth || (strcmp(o->output, "-") == 0 && !o->truth))
		return FX_OK;
	path = truth_path(o);
	status = fxi_phantom_write_truth(job, path, err, &ceiling);
	if (status == FX_OK && job->dwi)
		status = fxi_phantom_dwi_write_truth(job, path, err);
	if (status == FX_OK && job->image)
		fprintf(strcmp(o->output, "-") == 0 ? stderr : stdout, "%s: the image on the scan's matrix, which a full Cartesian scan "
			"gives back exactly\n", path);
	else if (status == FX_OK)
		fprintf(strcmp(o->output, "-") == 0 ? stderr : stdout,
			"%s: voxel averages; the best band-limited image reaches PSNR %.2f dB (NRMSE %.4f) against them\n", path,
			ceiling.psnr_db, ceiling.nrmse);
	g_free(path);
	return status;
}

int fxi_app_phantom(int argc, char **argv)
{
	fxi_phantom_options o = fxi_phantom_defaults();
	GOptionEntry *entries = fxi_phantom_entries(&o);
	fxi_phantom_job job = {0};
	fx_error err = {0};
	int status, result = FXI_EXIT_USAGE;

	if (!fxi_apps_options("KIND [IMAGE] -o FILE", summary, entries, 1, 2, &argc, &argv))
		goto done;
	status = fxi_phantom_read_options(&o, argv[1], &err, &job);
	if (status == FX_OK && (argc > 2) != (job.object == FXI_OBJECT_IMAGE))
		status = fx_error_set(&err, FX_EINVAL, argc > 2 ? "%s takes no image" : "%s needs an image: from-image FILE.nii -o SCAN",
			argv[1]);
	if (status == FX_OK && job.object == FXI_OBJECT_IMAGE)
		status = fxi_phantom_image_load(&job, argv[2], o.field_map, o.te, o.matrix != NULL, o.slices > 1, &err);
	if (status == FX_OK)
		status = fxi_phantom_prepare(&job, &err);
	if (status == FX_OK && job.dwi)
		status = fxi_phantom_dwi_make(&job, &err);
	if (status == FX_EINVAL) {
		fxi_apps_say("phantom: %s", err.text);
		goto done;
	}
	if (status == FX_OK) {
		catch_signals();
		if (job.image)
			status = fxi_phantom_image_sample(&job, &stop, &err);
	}
	if (status == FX_OK) {
		status = write_scan(&job, &o, &err);
	}
	if (status == FX_OK && job.dwi && job.dwi->images)
		status = fxi_phantom_dwi_write_images(&job, &err);
	if (status == FX_OK) {
		tell(&job, &o, argv[1]);
		status = write_truth(&job, &o, &err);
	}
	result = status == FX_OK ? FXI_EXIT_DONE : stop ? FXI_EXIT_STOPPED : FXI_EXIT_FAILED;
	if (status != FX_OK)
		fxi_apps_say("phantom: %s", err.text);
done:
	fxi_phantom_clear(&job);
	fxi_phantom_options_clear(&o);
	g_free(entries);
	return result;
}
