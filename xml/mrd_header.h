/* SPDX-License-Identifier: MIT */
/* mrd_header.h - the MRD XML header into fx_header and back. */
#ifndef FORNIX_XML_MRD_HEADER_H
#define FORNIX_XML_MRD_HEADER_H

#include <fornix/scan.h>

#define FXI_HEADER_MAX_BYTES (16 << 20)

/**
 * Parses `size` bytes of an MRD XML header (trailing NULs and blanks are fine). Namespaces, order and unknown
 * elements do not matter, since the wild's headers are seldom valid against the schema; matrix sizes, numbers and
 * the presence of an encoding do. Refuses document types and entities; never touches network or files.
 * Free *out with fx_header_free. FX_EDATA names the element, FX_ENOMEM.
 */
int fxi_header_parse(const char *xml, size_t size, fx_error *err, fx_header **out);

/**
 * An MRD header that holds what the struct holds (the `xml` member is not looked at), valid against ismrmrd.xsd:
 * what the schema demands and the struct does not know is written as the schema's neutral value (patient
 * position HFS, resonance frequency 0). A trajectory description's string parameters have no place in the schema
 * and are left out. NULL when memory is short; release with free().
 */
char *fxi_header_format(const fx_header *h);

#endif
