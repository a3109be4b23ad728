/* SPDX-License-Identifier: MIT */
/*
 * property.h - a gadget's property table: the only source of parsing, defaults, ranges, help, the
 * docs page and the XML schema.
 *
 * The table points into the gadget's state by offset. The engine fills the fields before `open`.
 */
#ifndef FORNIX_PROPERTY_H
#define FORNIX_PROPERTY_H

#include <fornix/base.h>

#ifdef __cplusplus
extern "C" {
#endif

enum fx_prop_type {
	FX_PROP_BOOL = 1, /**< field is bool; true|false|1|0|yes|no|on|off */
	FX_PROP_INT,      /**< int64_t */
	FX_PROP_FLOAT,    /**< float */
	FX_PROP_DOUBLE,   /**< double */
	FX_PROP_STRING,   /**< const char *, owned by the engine, never NULL */
	FX_PROP_PATH,     /**< const char *; relative to the pipeline file in XML, to the working folder in --set */
	FX_PROP_ENUM      /**< int: index of the word in `words` */
};

typedef struct fx_prop {
	const char *name;         /**< the field's name; NULL ends the table */
	const char *def;          /**< default, in text; goes through the same parser as the XML */
	const char *help;         /**< one sentence, with the unit */
	double min, max;          /**< inclusive, for numbers; text: min 1 means it must not be empty */
	size_t offset;
	int type;                 /**< enum fx_prop_type */
	const char *const *words; /**< FX_PROP_ENUM: the allowed words, ends with NULL */
} fx_prop;

/** The one of `words` (ends with NULL) that was probably meant, for "did you mean"; NULL where none is near. */
FX_EXPORT const char *fx_nearest_word(const char *wanted, const char *const *words);

#ifndef __cplusplus
/* _Generic keeps the table and the field from disagreeing: an unsupported type does not compile. */
#define FX_PROP_TYPE_OF(x) _Generic((x), \
	bool: FX_PROP_BOOL, int64_t: FX_PROP_INT, float: FX_PROP_FLOAT, double: FX_PROP_DOUBLE, \
	const char *: FX_PROP_STRING)
#define FX_IS_TEXT(x) _Generic((x), const char *: FX_PROP_PATH)
#define FX_IS_WORD(x) _Generic((x), int: FX_PROP_ENUM)

#define FX_PROP(T, field, def_, lo, hi, help_) { .name = #field, .def = def_, .help = help_, \
	.min = lo, .max = hi, .offset = offsetof(T, field), .type = FX_PROP_TYPE_OF(((T *)0)->field), \
	.words = NULL }
#define FX_PROP_FILE(T, field, def_, help_) { .name = #field, .def = def_, .help = help_, \
	.min = 0, .max = 0, .offset = offsetof(T, field), .type = FX_IS_TEXT(((T *)0)->field), \
	.words = NULL }
#define FX_PROP_WORD(T, field, def_, words_, help_) { .name = #field, .def = def_, .help = help_, \
	.min = 0, .max = 0, .offset = offsetof(T, field), .type = FX_IS_WORD(((T *)0)->field), \
	.words = words_ }
#define FX_PROP_END { .name = NULL, .def = NULL, .help = NULL, .min = 0, .max = 0, .offset = 0, \
	.type = 0, .words = NULL }
#endif

#ifdef __cplusplus
}
#endif
#endif
