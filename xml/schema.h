/* SPDX-License-Identifier: MIT */
/* schema.h - the XML schema of native pipelines, made from the gadgets' property tables: for editors and validators. */
#ifndef FORNIX_XML_SCHEMA_H
#define FORNIX_XML_SCHEMA_H

#include "stream/registry.h"

/**
 * An XSD 1.0 schema that accepts the pipelines whose gadgets, properties, words and ranges the registry knows; help stands
 * in annotations. The same bytes for the same tables. *out is freed with free(). Fails where a plugin cannot be loaded.
 */
int fxi_schema_format(fxi_registry *registry, fx_error *err, char **out);

#endif
