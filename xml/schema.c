/* SPDX-License-Identifier: MIT */
/* schema.c - see schema.h. */
#include "xml/schema.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

static void put_annotation(GString *s, const char *indent, const char *text)
{
	char *escaped = g_markup_escape_text(text, -1);

	g_string_append_printf(s, "%s<xs:annotation><xs:documentation>%s</xs:documentation></xs:annotation>\n", indent, escaped);
	g_free(escaped);
}

static void put_bound(GString *s, const char *facet, double value)
{
	char text[G_ASCII_DTOSTR_BUF_SIZE];

	g_string_append_printf(s, "          <xs:%s value=\"%s\"/>\n", facet, g_ascii_dtostr(text, sizeof text, value));
}

/* The words that mean true and false to the property parser. */
static void put_bool(GString *s)
{
	static const char *const words[] = {"true", "false", "1", "0", "yes", "no", "on", "off"};

	g_string_append(s, "        <xs:simpleType><xs:restriction base=\"xs:token\">\n");
	for (size_t i = 0; i < G_N_ELEMENTS(words); i++)
		g_string_append_printf(s, "          <xs:enumeration value=\"%s\"/>\n", words[i]);
	g_string_append(s, "        </xs:restriction></xs:simpleType>\n");
}

static void put_type(GString *s, const fx_prop *p)
{
	switch (p->type) {
	case FX_PROP_BOOL:
		put_bool(s);
		return;
	case FX_PROP_INT:
	case FX_PROP_FLOAT:
	case FX_PROP_DOUBLE:
		g_string_append_printf(s, "        <xs:simpleType><xs:restriction base=\"%s\">\n",
			p->type == FX_PROP_INT ? "xs:decimal" : "xs:double");
		put_bound(s, "minInclusive", p->min);
		put_bound(s, "maxInclusive", p->max);
		g_string_append(s, "        </xs:restriction></xs:simpleType>\n");
		return;
	case FX_PROP_ENUM:
		g_string_append(s, "        <xs:simpleType><xs:restriction base=\"xs:token\">\n");
		for (const char *const *word = p->words; *word; word++)
			g_string_append_printf(s, "          <xs:enumeration value=\"%s\"/>\n", *word);
		g_string_append(s, "        </xs:restriction></xs:simpleType>\n");
		return;
	default:
		g_string_append_printf(s, "        <xs:simpleType><xs:restriction base=\"xs:string\"><xs:minLength value=\"%d\"/>"
			"</xs:restriction></xs:simpleType>\n", p->min > 0 ? 1 : 0);
	}
}

static void put_gadget(GString *s, const fx_gadget *g)
{
	g_string_append_printf(s, "  <xs:element name=\"%s\">\n", g->name);
	put_annotation(s, "    ", g->summary);
	g_string_append(s, "    <xs:complexType>\n");
	for (const fx_prop *p = g->props; p && p->name; p++) {
		char *def = g_markup_escape_text(p->def, -1);

		g_string_append_printf(s, "      <xs:attribute name=\"%s\" default=\"%s\">\n", p->name, def);
		put_annotation(s, "        ", p->help);
		put_type(s, p);
		g_string_append(s, "      </xs:attribute>\n");
		g_free(def);
	}
	g_string_append(s, "    </xs:complexType>\n  </xs:element>\n");
}

static void put_pipeline(GString *s, char **names)
{
	g_string_append(s, "  <xs:element name=\"pipeline\">\n    <xs:complexType>\n"
		"      <xs:choice minOccurs=\"0\" maxOccurs=\"unbounded\">\n");
	for (char **name = names; *name; name++)
		g_string_append_printf(s, "        <xs:element ref=\"%s\"/>\n", *name);
	g_string_append(s, "      </xs:choice>\n      <xs:attribute name=\"summary\" type=\"xs:string\"/>\n"
		"    </xs:complexType>\n  </xs:element>\n");
}

int fxi_schema_format(fxi_registry *registry, fx_error *err, char **out)
{
	GString *s = g_string_new("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<!-- Made by `fornix schema` from the gadgets' property tables. -->\n"
		"<xs:schema xmlns:xs=\"http://www.w3.org/2001/XMLSchema\" xmlns=\"urn:fornix:pipeline:1\"\n"
		"           targetNamespace=\"urn:fornix:pipeline:1\" elementFormDefault=\"qualified\">\n");
	char **names = fxi_registry_names(registry);
	int status = FX_OK;

	*out = NULL;
	put_pipeline(s, names);
	for (char **name = names; *name && status == FX_OK; name++) {
		const fx_gadget *g;

		status = fxi_registry_find(registry, *name, err, &g);
		if (status == FX_OK)
			put_gadget(s, g);
	}
	g_string_append(s, "</xs:schema>\n");
	g_strfreev(names);
	if (status == FX_OK)
		*out = strdup(s->str);
	g_string_free(s, TRUE);
	if (status == FX_OK && !*out)
		return fx_error_set(err, FX_ENOMEM, "no memory for the schema");
	return status;
}
