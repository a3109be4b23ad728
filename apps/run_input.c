/* SPDX-License-Identifier: MIT */
#include "apps/run_input.h"

#include "io/input.h"

#define COLLECTOR "dwi_collect"

int fxi_run_open_nifti(const char *path, const char *group, const fxi_nifti_options *o, fx_error *err, fxi_source **out)
{
	*out = NULL;
	if (!fxi_input_is_nifti(path)) {
		if (o->tensor_order || o->tensor_frame || o->tensor_unit)
			return fx_error_set(err, FX_EINVAL, "--tensor-order, --tensor-frame and --tensor-unit are for tensor images in NIfTI, "
				"which %s is not", path);
		return FX_OK;
	}
	if (group)
		return fx_error_set(err, FX_EINVAL, "%s is a NIfTI file: it has no groups such as '%s'", path, group);
	return fxi_nifti_source_open(path, o, err, out);
}

char **fxi_run_assignments(char *const *assignments, const fxi_nifti_options *o, bool raw)
{
	const char *const files[][2] = {{"bval", o->bval}, {"bvec", o->bvec}, {"grad", o->grad}};
	GPtrArray *all = g_ptr_array_new();

	for (; assignments && *assignments; assignments++)
		g_ptr_array_add(all, g_strdup(*assignments));
	for (size_t i = 0; raw && i < G_N_ELEMENTS(files); i++)
		if (files[i][1])
			g_ptr_array_add(all, g_strdup_printf(COLLECTOR ".%s=%s", files[i][0], files[i][1]));
	g_ptr_array_add(all, NULL);
	return (char **)g_ptr_array_free(all, FALSE);
}
