/* SPDX-License-Identifier: MIT */
/* meta.h - an image's meta data as the XML that MRD keeps beside it. */
#ifndef FORNIX_IO_META_H
#define FORNIX_IO_META_H

#include <fornix/message.h>

#define FXI_META_MAX_BYTES ((int64_t)16 << 20)

/** <ismrmrdMeta>...; "" where the image has no meta data. NULL when memory is short. Free with free(). */
char *fxi_meta_format(const fx_image *image);
/**
 * Adds what `bytes` of such XML hold to the image; a NUL ends it early, an empty text is fine. Several values of one name
 * are joined by a backslash, as DICOM does. FX_EDATA where it is not well formed.
 */
int fxi_meta_parse(const char *xml, size_t bytes, fx_image *image, fx_error *err);

#endif
