/* SPDX-License-Identifier: MIT */
/*
 * session_setup.c - configuration, then header, then data: what the client says in front of its scan. What to run is looked up only when
 * the first data come, since a FIRE client may name another configuration in a text behind the header.
 */
#include "serve/session_parts.h"

#include "stream/queue.h"
#include "xml/mrd_header.h"

#include <glib.h>
#include <json-glib/json-glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCAN_KINDS ((unsigned)FX_ACQUISITION | (unsigned)FX_WAVEFORM | (unsigned)FX_TEXT)

static int take_config(fxi_session *s, fxi_wire_message *m, fx_error *err)
{
	if (s->scan)
		return fx_error_set(err, FX_EDATA, "a configuration came behind the MRD header; it has to come in front of it");
	if (s->config)
		return fx_error_set(err, FX_EDATA, "a second configuration came; only one is allowed");
	s->config = m->text;
	m->text = NULL;
	s->config_kind = m->id == FXI_MRD_CONFIG_FILE ? FXI_CONFIG_NAME : FXI_CONFIG_SCRIPT;
	/* Gadgetron's configurations are files, FIRE's are modules; and FIRE's texts count their NUL. */
	if (s->config_kind == FXI_CONFIG_NAME ? !g_str_has_suffix(s->config, ".xml") : m->nul)
		s->outcome->fire = true;
	snprintf(s->outcome->config, sizeof s->outcome->config, "%s", s->config_kind == FXI_CONFIG_NAME ? s->config : "(script)");
	return FX_OK;
}

static int take_header(fxi_session *s, fxi_wire_message *m, fx_error *err)
{
	fx_error why = {0};
	int status;

	if (s->scan)
		return fx_error_set(err, FX_EDATA, "a second MRD header came; only one is allowed");
	if (!s->config)
		return fx_error_set(err, FX_EDATA, "the MRD header came before a configuration: say first what to run (message 1 or 2)");
	status = fxi_header_parse(m->text, strlen(m->text), &why, &s->scan);
	if (status != FX_OK)
		return fx_error_set(err, status, "the MRD header: %.900s", why.text);
	s->header_xml = m->text;
	m->text = NULL;
	s->header_s = fxi_now_s();
	s->outcome->fire = s->outcome->fire || m->nul;
	if (s->scan->measurement_id)
		snprintf(s->outcome->measurement, sizeof s->outcome->measurement, "%s", s->scan->measurement_id);
	fxi_wire_allow_data(s->in, true);
	return FX_OK;
}

/* The name under `parameters` in FIRE's JSON, or NULL. */
static const char *parameter(JsonParser *parser, const char *name)
{
	JsonNode *root = json_parser_get_root(parser), *node;
	JsonObject *object = root && JSON_NODE_HOLDS_OBJECT(root) ? json_node_get_object(root) : NULL;

	node = object && json_object_has_member(object, "parameters") ? json_object_get_member(object, "parameters") : NULL;
	object = node && JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
	node = object && json_object_has_member(object, name) ? json_object_get_member(object, name) : NULL;
	return node && JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_STRING ? json_node_get_string(node) :
		NULL;
}

/* A FIRE client's parameters: the text right behind the header, where it is JSON. They may name another configuration. */
static void take_parameters(fxi_session *s, const char *text)
{
	JsonParser *parser = json_parser_new();
	const char *name = NULL, *custom;
	char said[320];

	if (!json_parser_load_from_data(parser, text, -1, NULL)) {
		g_object_unref(parser);
		return;
	}
	s->parameters = strdup(text);
	s->outcome->fire = true;
	custom = parameter(parser, "customconfig");
	name = custom && custom[0] ? custom : parameter(parser, "config");
	if (name && name[0] && s->parameters) {
		snprintf(said, sizeof said, "the client's parameters change the configuration from '%.100s' to '%.100s'",
			s->outcome->config, name);
		fxi_session_say(s, FXI_INFO, NULL, said);
		free(s->config);
		s->config = strdup(name);
		s->config_kind = FXI_CONFIG_NAME;
		snprintf(s->outcome->config, sizeof s->outcome->config, "%s", name);
	}
	g_object_unref(parser);
}

bool fxi_session_aside(fxi_session *s, const fxi_wire_message *m, fx_error *err, int *status)
{
	char *text;

	*status = FX_OK;
	if (m->id == FXI_MRD_TEXT) {
		char line[512];

		s->outcome->n_texts_in++;
		if (s->scan && !s->parameters && s->outcome->n_acquisitions == 0 && !s->chain && m->text[strspn(m->text, " \t\r\n")] == '{')
			take_parameters(s, m->text);
		snprintf(line, sizeof line, "the client says: %.480s", m->text);
		fxi_session_say(s, FXI_INFO, NULL, line);
		return true;
	}
	if (m->id != FXI_MRD_QUERY)
		return m->id == FXI_MRD_RESPONSE || m->id == FXI_MRD_DEPENDENCY;
	s->outcome->n_queries++;
	text = fxi_session_answer(s, m->text);
	*status = text ? fxi_wire_send_response(s->out, m->correlation, text, err) : fx_error_set(err, FX_ENOMEM,
		"out of memory for an answer");
	free(text);
	return true;
}

int fxi_session_set_up(fxi_session *s, fx_error *err, bool *run)
{
	int status = FX_OK;

	*run = false;
	fxi_wire_allow_data(s->in, false);
	while (status == FX_OK && !s->closed && !*run) {
		fxi_wire_message m;

		status = fxi_wire_read(s->in, &m, err);
		if (status != FX_OK)
			return status;
		if (m.id == FXI_MRD_CONFIG_FILE || m.id == FXI_MRD_CONFIG_TEXT)
			status = take_config(s, &m, err);
		else if (m.id == FXI_MRD_HEADER)
			status = take_header(s, &m, err);
		else if (m.id == FXI_MRD_CLOSE)
			s->closed = true;
		else if (m.data) {
			s->first = m;
			m = (fxi_wire_message){0};
			*run = true;
		} else
			fxi_session_aside(s, &m, err, &status);
		fxi_wire_message_clear(&m);
	}
	/* A header alone is a scan of nothing: the chain says what it makes of that. */
	*run = *run || (status == FX_OK && s->scan);
	return status;
}

int fxi_session_configure(fxi_session *s, fx_error *err)
{
	const fxi_session_options *o = s->options;
	const fxi_session_request request = {.kind = s->config_kind, .text = s->config, .fire = s->outcome->fire, .scan = s->scan,
		.parameters = s->parameters};
	unsigned kinds = s->first.data && fx_msg_image(s->first.data) ? (unsigned)FX_IMAGE | FX_WAVEFORM | FX_TEXT : SCAN_KINDS;
	fxi_chain *chain = NULL;
	int status;

	if (s->config_kind == FXI_CONFIG_SCRIPT && !o->allow_client_pipelines)
		return fx_error_set(err, FX_EINVAL, "the client sent a configuration of its own (message 2), which this server does not run; "
			"name one that it has, or have it started with --allow-client-pipelines");
	if (!s->config)
		return fx_error_set(err, FX_ENOMEM, "out of memory for a session");
	status = o->hooks.configure(o->hooks.arg, &request, err, &s->pipeline);
	if (status != FX_OK)
		return status;
	snprintf(s->outcome->pipeline, sizeof s->outcome->pipeline, "%s", s->pipeline->file);
	status = fxi_chain_new(s->pipeline, o->registry, kinds, err, &chain);
	pthread_mutex_lock(&s->lock);
	s->chain = chain;
	pthread_mutex_unlock(&s->lock);
	return status;
}
