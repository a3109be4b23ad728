/* SPDX-License-Identifier: MIT */
/* check_scan.c - prints what the doctor found in a raw scan. */
#include "apps/check_scan.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "apps/common.h"
#include "io/input.h"
#include "recon/doctor.h"
#include "xml/mrd_header.h"

bool fxi_check_is_scan(const char *name)
{
	struct stat s;
	char head[64];
	size_t n, at = 0;
	FILE *file;

	if (strcmp(name, "-") == 0)
		return true;
	if (g_str_has_suffix(name, ".xml") || stat(name, &s) != 0 || S_ISDIR(s.st_mode))
		return false;
	if (!S_ISREG(s.st_mode))
		return true;
	file = fopen(name, "rbe");
	if (!file)
		return true;
	n = fread(head, 1, sizeof head, file);
	fclose(file);
	if (n >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0)
		at = 3;
	while (at < n && strchr(" \t\r\n", head[at]) && head[at] != '\0')
		at++;
	return at == n || head[at] != '<';
}

static int gather(fxi_source *source, fxi_doctor *doctor, int64_t *n_waveforms, fx_error *err)
{
	fx_msg *msg = NULL;
	int status = FX_OK;

	while (status == FX_OK) {
		status = source->next(source, &msg, err);
		if (status != FX_OK || !msg)
			break;
		if (fx_msg_kind(msg) == FX_ACQUISITION)
			status = fxi_doctor_add(doctor, fx_msg_acquisition(msg), err);
		*n_waveforms += fx_msg_kind(msg) == FX_WAVEFORM;
		fx_drop(msg);
	}
	return status;
}

static void print_encoding(const fx_header *header, const fxi_doctor *doctor, int64_t e)
{
	const fx_encoding *encoding = &header->encodings[e];
	const fxi_counts *c = fxi_doctor_counts(doctor, e);
	const fx_space *space = &encoding->encoded;

	printf("encoding %lld: %s, %lld x %lld x %lld voxels of %g x %g x %g mm\n", (long long)e,
		fx_trajectory_kind_name(encoding->trajectory), (long long)space->matrix[0], (long long)space->matrix[1],
		(long long)space->matrix[2], space->fov_mm[0] / (double)space->matrix[0], space->fov_mm[1] / (double)space->matrix[1],
		space->fov_mm[2] / (double)space->matrix[2]);
	printf("  readouts:");
	for (int t = FXI_N_READOUT_TYPES - 1; t >= 0; t--)
		if (c->readouts[t] > 0 || t == FXI_READOUT_IMAGING)
			printf(" %lld %s", (long long)c->readouts[t], fxi_readout_type_name(t));
	if (c->readouts[FXI_READOUT_IMAGING] > 0)
		printf("; %lld coils, %lld to %lld samples, %lld trajectory columns, dwell %g us\n  counters:", (long long)c->max_coils,
			(long long)c->min_samples, (long long)c->max_samples, (long long)c->columns, c->dwell_us);
	for (int i = 0; c->readouts[FXI_READOUT_IMAGING] > 0 && i < FX_N_COUNTERS; i++)
		if (c->max[i] > 0)
			printf(" %s %lld..%lld", fx_counter_name(i), (long long)c->min[i], (long long)c->max[i]);
	putchar('\n');
}

/* The number of refusals and of warnings. */
static void print_findings(const fxi_report *report, int64_t n_encodings, int64_t *refusals, int64_t *warnings)
{
	*refusals = *warnings = 0;
	for (int64_t i = 0; i < report->n_findings; i++) {
		const fxi_finding *f = &report->findings[i];
		char where[32] = "";

		if (f->encoding >= 0 && n_encodings > 1)
			snprintf(where, sizeof where, "encoding %lld: ", (long long)f->encoding);
		printf("%-14s %-12s %s%s\n", fxi_verdict_name(f->verdict), f->aspect, where, f->text);
		*refusals += f->verdict == FXI_REFUSAL;
		*warnings += f->verdict == FXI_DOUBT;
	}
}

static int look(const char *path, fxi_source *source, const fx_header *header, fx_error *err)
{
	fxi_doctor *doctor = NULL;
	fxi_report report;
	int64_t n_waveforms = 0, refusals = 0, warnings;
	int status = fxi_doctor_new(header, err, &doctor);

	if (status == FX_OK)
		status = gather(source, doctor, &n_waveforms, err);
	if (status == FX_OK)
		status = fxi_doctor_end(doctor, err, &report);
	if (status == FX_OK) {
		printf("%s: %s, %lld encoding%s, %lld waveforms, %g T\n", path, source->format, (long long)header->n_encodings,
			header->n_encodings == 1 ? "" : "s", (long long)n_waveforms, header->field_t);
		for (int64_t e = 0; e < header->n_encodings; e++)
			print_encoding(header, doctor, e);
		print_findings(&report, header->n_encodings, &refusals, &warnings);
		printf("%s: %lld refusals, %lld warnings\n", refusals > 0 ? "refused" : "ok", (long long)refusals, (long long)warnings);
		if (refusals > 0)
			status = FX_EDATA;
	}
	fxi_doctor_free(doctor);
	return status;
}

int fxi_check_scan(const char *path, const char *group)
{
	fxi_source *source = NULL;
	fx_header *header = NULL;
	fx_error err = {0};
	int status = fxi_input_open(path, group, &err, &source), result;

	result = status == FX_EINVAL ? FXI_EXIT_USAGE : FXI_EXIT_FAILED;
	if (status == FX_OK)
		status = fxi_header_parse(source->header_xml, strlen(source->header_xml), &err, &header);
	if (status == FX_OK)
		status = look(path, source, header, &err);
	if (err.status != FX_OK)
		fxi_apps_say("%s%s%s", strstr(err.text, path) ? "" : path, strstr(err.text, path) ? "" : ": ", err.text);
	if (source)
		source->close(source);
	fx_header_free(header);
	return status == FX_OK ? FXI_EXIT_DONE : result;
}
