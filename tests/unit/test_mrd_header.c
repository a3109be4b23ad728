/* SPDX-License-Identifier: MIT */
/* Headers as real and simulated files have them, each written here with the quirk that it stands for. */
#include <CUnit/CUnit.h>
#include <fornix/fornix.h>
#include <libxml/parser.h>
#include <libxml/xmlschemas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "xml/mrd_header.h"

#define OPEN "<?xml version=\"1.0\"?><ismrmrdHeader xmlns=\"http://www.ismrm.org/ISMRMRD\">"
#define CLOSE "</ismrmrdHeader>"
#define MATRIX(x, y, z) "<matrixSize><x>" x "</x><y>" y "</y><z>" z "</z></matrixSize>"
#define FOV(x, y, z) "<fieldOfView_mm><x>" x "</x><y>" y "</y><z>" z "</z></fieldOfView_mm>"
#define SPACES "<encodedSpace>" MATRIX("8", "9", "10") FOV("80", "90", "100") "</encodedSpace>"

static fx_header *parse(const char *xml)
{
	fx_error err = {0};
	fx_header *h;
	int status = fxi_header_parse(xml, strlen(xml), &err, &h);

	if (status != FX_OK)
		fprintf(stderr, "%s\n", err.text);
	CU_ASSERT_EQUAL_FATAL(status, FX_OK);
	return h;
}

/* Refused as bad data, and the message has all of what the user needs. */
static void refused(const char *xml, size_t size, const char *first, const char *second)
{
	fx_error err = {0};
	fx_header *h = (fx_header *)1;

	CU_ASSERT_EQUAL(fxi_header_parse(xml, size, &err, &h), FX_EDATA);
	CU_ASSERT_PTR_NULL(h);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, first));
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, second));
	if (!strstr(err.text, first) || !strstr(err.text, second))
		fprintf(stderr, "said: %s\n", err.text);
}

static void full_header(void)
{
	fx_header *h = parse(OPEN
		"<measurementInformation><measurementID>7_1</measurementID><patientPosition>FFS</patientPosition>"
		"<protocolName>a &lt; b</protocolName>"
		"<measurementDependency><dependencyType>SenMap</dependencyType><measurementID>no</measurementID></measurementDependency>"
		"<measurementDependency><dependencyType>Noise</dependencyType><measurementID>7_0</measurementID></measurementDependency>"
		"</measurementInformation>"
		"<acquisitionSystemInformation><systemFieldStrength_T>2.89362</systemFieldStrength_T>"
		"<relativeReceiverNoiseBandwidth>0.793</relativeReceiverNoiseBandwidth><receiverChannels>32</receiverChannels>"
		"<coilLabel><coilNumber>7</coilNumber><coilName>Spine_1:SP1</coilName></coilLabel>"
		"<coilLabel><coilNumber>3</coilNumber><coilName>Loop &amp; 2</coilName></coilLabel>"
		"</acquisitionSystemInformation>"
		"<experimentalConditions><H1resonanceFrequency_Hz>123249220</H1resonanceFrequency_Hz></experimentalConditions>"
		"<encoding>" SPACES "<reconSpace>" MATRIX("4", "5", "6") FOV("40", "50", "60") "</reconSpace>"
		"<encodingLimits><kspace_encoding_step_1><minimum>0</minimum><maximum>78</maximum><center>39</center>"
		"</kspace_encoding_step_1><slice><minimum>1</minimum><maximum>4</maximum><center>2</center></slice><set/>"
		"</encodingLimits><trajectory>spiral</trajectory>"
		"<trajectoryDescription><identifier>HargreavesVDS2000</identifier><userParameterLong><name>interleaves</name>"
		"<value>79</value></userParameterLong><userParameterDouble><name>krmax</name><value>1.5e2</value></userParameterDouble>"
		"</trajectoryDescription><parallelImaging><accelerationFactor><kspace_encoding_step_1>2</kspace_encoding_step_1>"
		"<kspace_encoding_step_2>3</kspace_encoding_step_2></accelerationFactor></parallelImaging></encoding>"
		"<encoding>" SPACES "<trajectory>radial</trajectory></encoding>"
		"<userParameters><userParameterString><name>who</name><value>me</value></userParameterString></userParameters>" CLOSE);
	const fx_encoding *e = &h->encodings[0];

	CU_ASSERT_STRING_EQUAL(h->measurement_id, "7_1");
	CU_ASSERT_STRING_EQUAL(h->patient_position, "FFS");
	CU_ASSERT_STRING_EQUAL(h->protocol, "a < b");
	CU_ASSERT_STRING_EQUAL(h->noise_dependency, "7_0");
	CU_ASSERT_EQUAL(h->field_t, 2.89362);
	CU_ASSERT_EQUAL(h->noise_bandwidth, 0.793);
	CU_ASSERT_EQUAL(h->receiver_channels, 32);
	CU_ASSERT_EQUAL_FATAL(h->n_coil_names, 2);
	CU_ASSERT_STRING_EQUAL(h->coil_names[0], "Spine_1:SP1");
	CU_ASSERT_STRING_EQUAL(h->coil_names[1], "Loop & 2");
	CU_ASSERT_EQUAL(h->h1_hz, 123249220);
	CU_ASSERT_EQUAL_FATAL(h->n_encodings, 2);
	CU_ASSERT_EQUAL(e->encoded.matrix[0], 8);
	CU_ASSERT_EQUAL(e->encoded.fov_mm[2], 100);
	CU_ASSERT_TRUE(e->has_recon);
	CU_ASSERT_EQUAL(e->recon.matrix[2], 6);
	CU_ASSERT_EQUAL(e->recon.fov_mm[1], 50);
	CU_ASSERT_TRUE(e->limits[FX_STEP_1].present);
	CU_ASSERT_EQUAL(e->limits[FX_STEP_1].max, 78);
	CU_ASSERT_EQUAL(e->limits[FX_STEP_1].center, 39);
	CU_ASSERT_EQUAL(e->limits[FX_SLICE].min, 1);
	CU_ASSERT_FALSE(e->limits[FX_SET].present);
	CU_ASSERT_FALSE(e->limits[FX_STEP_2].present);
	CU_ASSERT_EQUAL(e->trajectory, FX_TRAJ_SPIRAL);
	CU_ASSERT_STRING_EQUAL(e->description_id, "HargreavesVDS2000");
	CU_ASSERT_PTR_NOT_NULL_FATAL(fx_param_find(&e->description, "krmax"));
	CU_ASSERT_EQUAL(fx_param_find(&e->description, "krmax")->number, 150);
	CU_ASSERT_EQUAL(fx_param_find(&e->description, "interleaves")->type, FX_PARAM_LONG);
	CU_ASSERT_PTR_NULL(fx_param_find(&e->description, "other"));
	CU_ASSERT_EQUAL(e->acceleration[1], 3);
	CU_ASSERT_EQUAL(h->encodings[1].trajectory, FX_TRAJ_RADIAL);
	CU_ASSERT_EQUAL(h->encodings[1].acceleration[0], 1);
	CU_ASSERT_STRING_EQUAL(fx_param_find(&h->user, "who")->text, "me");
	CU_ASSERT_TRUE(isnan(fx_param_find(&h->user, "who")->number));
	fx_header_free(h);
}

static void nested_parameters(void)
{
	fx_header *h = parse(OPEN "<encoding>" SPACES "<trajectory>other</trajectory></encoding><userParameters><userParameters>"
		"<userParameterLong><name>gpu</name><value>true</value></userParameterLong>"
		"<userParameterDouble><name>\xce\x94t</name><value> 0.001 </value></userParameterDouble>"
		"</userParameters></userParameters>" CLOSE);

	CU_ASSERT_EQUAL_FATAL(h->user.n, 2);
	CU_ASSERT_STRING_EQUAL(h->user.list[0].text, "true");
	CU_ASSERT_TRUE(isnan(h->user.list[0].number));
	CU_ASSERT_EQUAL(fx_param_find(&h->user, "\xce\x94t")->number, 0.001);
	fx_header_free(h);
}

static void careless_simulators(void)
{
	/* capital letter, no recon space, no limits, FOV 0, decimals for whole numbers, other prefix, blanks in front */
	fx_header *h = parse("\n <m:ismrmrdHeader xmlns:m=\"http://elsewhere\"><m:experimentalConditions>"
		"<m:H1resonanceFrequency_Hz>139771965675296</m:H1resonanceFrequency_Hz></m:experimentalConditions><m:encoding>"
		"<m:encodedSpace><m:matrixSize><m:x>256.0</m:x><m:y> 256 </m:y><m:z/></m:matrixSize>"
		"<m:fieldOfView_mm><m:x>0.0</m:x><m:y>0.0</m:y><m:z>0.0</m:z></m:fieldOfView_mm></m:encodedSpace>"
		"<m:encodingLimits></m:encodingLimits><m:trajectory>Cartesian</m:trajectory></m:encoding></m:ismrmrdHeader>\n");
	const fx_encoding *e = &h->encodings[0];

	CU_ASSERT_EQUAL(e->encoded.matrix[0], 256);
	CU_ASSERT_EQUAL(e->encoded.matrix[2], 1);
	CU_ASSERT_EQUAL(e->encoded.fov_mm[0], 0);
	CU_ASSERT_FALSE(e->has_recon);
	CU_ASSERT_EQUAL(e->recon.matrix[1], 256);
	CU_ASSERT_EQUAL(e->trajectory, FX_TRAJ_CARTESIAN);
	CU_ASSERT_STRING_EQUAL(e->trajectory_text, "Cartesian");
	CU_ASSERT_EQUAL(h->receiver_channels, 0);
	fx_header_free(h);
}

static void padded_text(void)
{
	static const char xml[] = OPEN "<encoding>" SPACES "<trajectory>spoke</trajectory></encoding>" CLOSE "\0\0\n\0";
	fx_header *h;

	CU_ASSERT_EQUAL_FATAL(fxi_header_parse(xml, sizeof xml, NULL, &h), FX_OK);
	CU_ASSERT_EQUAL(h->encodings[0].trajectory, FX_TRAJ_OTHER);
	CU_ASSERT_STRING_EQUAL(h->encodings[0].trajectory_text, "spoke");
	CU_ASSERT_EQUAL(strlen(h->xml), strlen(xml));
	fx_header_free(h);
}

#define REFUSED(xml, first, second) refused(xml, strlen(xml), first, second)
#define ONE(space, rest) OPEN "<encoding><encodedSpace>" space "</encodedSpace>" rest "</encoding>" CLOSE

static void what_matters_is_strict(void)
{
	REFUSED(OPEN CLOSE, "<encoding>", "nothing can be");
	REFUSED(OPEN "<encoding/>" CLOSE, "encoding 0", "<encodedSpace>");
	REFUSED(ONE("", ""), "encoding 0/encodedSpace", "<matrixSize>");
	REFUSED(ONE(MATRIX("0", "8", "1"), ""), "encodedSpace/matrixSize/x", "from 1 to 16384");
	REFUSED(ONE(MATRIX("8", "16385", "1"), ""), "matrixSize/y", "16385");
	REFUSED(ONE(MATRIX("8", "-8", "1"), ""), "matrixSize/y", "-8");
	REFUSED(ONE(MATRIX("8", "8.5", "1"), ""), "matrixSize/y", "whole");
	REFUSED(ONE(MATRIX("8", "", "1"), ""), "matrixSize/y", "missing");
	REFUSED(ONE(MATRIX("8", "8", "nan"), ""), "matrixSize/z", "nan");
	REFUSED(ONE(MATRIX("8", "8", "1 2"), ""), "matrixSize/z", "no number");
	REFUSED(ONE(MATRIX("8", "8", "1") FOV("1", "-1", "1"), ""), "fieldOfView_mm/y", "-1");
	REFUSED(ONE(MATRIX("8", "8", "1") FOV("inf", "1", "1"), ""), "fieldOfView_mm/x", "inf");
	REFUSED(ONE(MATRIX("8", "8", "1"), "<encodingLimits><slice><minimum>3</minimum><maximum>2</maximum></slice></encodingLimits>"),
		"encodingLimits/slice", "below");
	REFUSED(ONE(MATRIX("8", "8", "1"), "<encodingLimits><set><maximum>65536</maximum></set></encodingLimits>"), "set/maximum",
		"65535");
	REFUSED(ONE(MATRIX("8", "8", "1"), "<reconSpace/>"), "encoding 0/reconSpace", "<matrixSize>");
	REFUSED("<pipeline/>", "<pipeline>", "not an MRD header");
	REFUSED("", "empty", "MRD header");
	REFUSED(OPEN "\n<encoding>", "MRD header:2", "not well-formed");
}

static void entities_are_refused(void)
{
	REFUSED("<!DOCTYPE ismrmrdHeader [<!ENTITY a \"aaaa\">]><ismrmrdHeader><encoding>&a;</encoding></ismrmrdHeader>",
		"DOCTYPE", "MRD header");
	REFUSED("<!DOCTYPE ismrmrdHeader SYSTEM \"file:///etc/passwd\"><ismrmrdHeader/>", "DOCTYPE", "MRD header");
}

static void size_is_bounded(void)
{
	size_t size = FXI_HEADER_MAX_BYTES + 1u;
	char *xml = malloc(size);

	CU_ASSERT_PTR_NOT_NULL_FATAL(xml);
	memset(xml, 'x', size);
	refused(xml, size, "16777217", "bytes");
	free(xml);
}

/* Every prefix of a good header is refused or parsed, never worse (what ASan looks at). */
static void truncated_anywhere(void)
{
	static const char xml[] = OPEN "<encoding>" SPACES "<trajectory>radial</trajectory></encoding><userParameters>"
		"<userParameterLong><name>a</name><value>1</value></userParameterLong></userParameters>" CLOSE;

	for (size_t size = 0; size < sizeof xml - 1; size++) {
		fx_error err = {0};
		fx_header *h;

		CU_ASSERT_EQUAL(fxi_header_parse(xml, size, &err, &h), FX_EDATA);
		CU_ASSERT(err.text[0] != '\0');
	}
}

static const char rich[] = OPEN
	"<measurementInformation><measurementID>a&amp;b</measurementID><patientPosition>HFP</patientPosition>"
	"<measurementDependency><dependencyType>Noise</dependencyType><measurementID>n</measurementID></measurementDependency>"
	"</measurementInformation><acquisitionSystemInformation><systemFieldStrength_T>2.89362001</systemFieldStrength_T>"
	"<relativeReceiverNoiseBandwidth>0.79</relativeReceiverNoiseBandwidth><receiverChannels>8</receiverChannels>"
	"</acquisitionSystemInformation><experimentalConditions><H1resonanceFrequency_Hz>123249220</H1resonanceFrequency_Hz>"
	"</experimentalConditions><encoding><encodedSpace>" MATRIX("64", "65", "1") FOV("220.1", "0.1", "5") "</encodedSpace>"
	"<reconSpace>" MATRIX("32", "65", "1") FOV("110.05", "0.30000000000000004", "5") "</reconSpace><encodingLimits>"
	"<slice><minimum>0</minimum><maximum>4</maximum><center>2</center></slice></encodingLimits>"
	"<trajectory>goldenangle</trajectory><trajectoryDescription><identifier>id</identifier><userParameterLong>"
	"<name>l</name><value>-3</value></userParameterLong></trajectoryDescription><parallelImaging><accelerationFactor>"
	"<kspace_encoding_step_1>2</kspace_encoding_step_1><kspace_encoding_step_2>1</kspace_encoding_step_2>"
	"</accelerationFactor></parallelImaging></encoding><userParameters>"
	"<userParameterLong><name>one</name><value>1</value></userParameterLong>"
	"<userParameterDouble><name>two</name><value>2.5</value></userParameterDouble>"
	"<userParameterString><name>three</name><value>&lt;3&gt;</value></userParameterString></userParameters>" CLOSE;

static void round_trip(void)
{
	fx_header *a = parse(rich), *b;
	char *first = fxi_header_format(a), *second;

	CU_ASSERT_PTR_NOT_NULL_FATAL(first);
	b = parse(first);
	second = fxi_header_format(b);
	CU_ASSERT_STRING_EQUAL(first, second);
	CU_ASSERT_STRING_EQUAL(b->measurement_id, "a&b");
	CU_ASSERT_STRING_EQUAL(b->noise_dependency, "n");
	CU_ASSERT_EQUAL(b->field_t, a->field_t);
	CU_ASSERT_EQUAL(b->noise_bandwidth, a->noise_bandwidth);
	CU_ASSERT_EQUAL(b->receiver_channels, 8);
	CU_ASSERT_EQUAL(b->h1_hz, a->h1_hz);
	CU_ASSERT_EQUAL(memcmp(&a->encodings[0].encoded, &b->encodings[0].encoded, sizeof(fx_space)), 0);
	CU_ASSERT_EQUAL(memcmp(&a->encodings[0].recon, &b->encodings[0].recon, sizeof(fx_space)), 0);
	CU_ASSERT_EQUAL(b->encodings[0].limits[FX_SLICE].max, 4);
	CU_ASSERT_EQUAL(b->encodings[0].trajectory, FX_TRAJ_GOLDENANGLE);
	CU_ASSERT_EQUAL(b->encodings[0].acceleration[0], 2);
	CU_ASSERT_EQUAL(fx_param_find(&b->encodings[0].description, "l")->number, -3);
	CU_ASSERT_EQUAL(b->user.n, 3);
	CU_ASSERT_STRING_EQUAL(fx_param_find(&b->user, "three")->text, "<3>");
	free(first);
	free(second);
	fx_header_free(a);
	fx_header_free(b);
}

#define GRADIENT(x, y, z, b) "<diffusion><gradientDirection><rl>" x "</rl><ap>" y "</ap><fh>" z "</fh></gradientDirection>" \
	"<bvalue>" b "</bvalue></diffusion>"
#define DIFFUSION(dimension, list) OPEN "<encoding>" SPACES "</encoding><sequenceParameters><TR>3000</TR><TE>80</TE>" \
	dimension list "</sequenceParameters>" CLOSE

/* MRD's axes are LPS: towards the left, the back and the head. Ours are RAS. */
static void diffusion_weightings(void)
{
	fx_header *h = parse(DIFFUSION("<diffusionDimension>user_3</diffusionDimension>",
		GRADIENT("0", "0", "0", "0") GRADIENT("0.6", "-0.8", "0", "1000") GRADIENT("0", "0", "-2", "2500.5")
		"<diffusion><bvalue>5</bvalue></diffusion><diffusionScheme>Monopolar</diffusionScheme>")), *again;
	const double expected[4][4] = {{0, 0, 0, 0}, {-0.6, 0.8, 0, 1000}, {0, 0, -2, 2500.5}, {0, 0, 0, 5}};
	char *text;
	fx_gradient g[4];
	fx_error err = {0};
	int64_t n_scaled;

	CU_ASSERT_EQUAL(h->diffusion_dimension, FX_DIFFUSION_USER_0 + 3);
	CU_ASSERT_STRING_EQUAL(h->diffusion_scheme, "Monopolar");
	text = fxi_header_format(h);
	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	again = parse(text);
	CU_ASSERT_EQUAL(again->diffusion_dimension, FX_DIFFUSION_USER_0 + 3);
	CU_ASSERT_STRING_EQUAL(again->diffusion_scheme, "Monopolar");
	CU_ASSERT_EQUAL_FATAL(h->n_diffusion, 4);
	CU_ASSERT_EQUAL_FATAL(again->n_diffusion, 4);
	for (int v = 0; v < 4; v++) {
		for (int i = 0; i < 3; i++) {
			CU_ASSERT_EQUAL(h->diffusion[v].dir[i], expected[v][i]);
			CU_ASSERT_EQUAL(again->diffusion[v].dir[i], expected[v][i]);
		}
		CU_ASSERT_EQUAL(h->diffusion[v].b, expected[v][3]);
		CU_ASSERT_EQUAL(again->diffusion[v].b, expected[v][3]);
	}
	CU_ASSERT_PTR_NULL(strstr(text, ">-0<"));
	CU_ASSERT_EQUAL(fx_gradients_from_header(h, g, &n_scaled, &err), FX_OK);
	CU_ASSERT_EQUAL(n_scaled, 1);
	CU_ASSERT_EQUAL(g[2].dir[2], -1);
	CU_ASSERT_EQUAL(g[2].b, 2500.5);
	free(text);
	fx_header_free(h);
	fx_header_free(again);
}

static void diffusion_that_is_refused(void)
{
	static const char unknown[] = DIFFUSION("<diffusionDimension>slice</diffusionDimension>", "");
	static const char negative[] = DIFFUSION("", GRADIENT("1", "0", "0", "-4")), word[] = DIFFUSION("", GRADIENT("x", "0", "0", "4"));
	fx_header *undirected = parse(DIFFUSION("", GRADIENT("0", "0", "0", "800"))), *none = parse(OPEN "<encoding>" SPACES "</encoding>" CLOSE);
	fx_gradient g[1];
	fx_error err = {0};
	int64_t n_scaled;

	refused(unknown, sizeof unknown, "diffusionDimension", "user_0");
	refused(negative, sizeof negative, "diffusion 0", "bvalue");
	refused(word, sizeof word, "gradientDirection/rl", "no number");
	CU_ASSERT_EQUAL(none->diffusion_dimension, FX_DIFFUSION_NONE);
	CU_ASSERT_EQUAL(fx_gradients_from_header(none, g, &n_scaled, &err), FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "bval="));
	/* The header is read, since images do not need the list; only who uses it refuses it. */
	err = (fx_error){0};
	CU_ASSERT_EQUAL(fx_gradients_from_header(undirected, g, &n_scaled, &err), FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no direction"));
	fx_header_free(undirected);
	fx_header_free(none);
}

static bool valid(xmlSchemaValidCtxt *context, const char *text)
{
	xmlDoc *doc = xmlReadMemory(text, (int)strlen(text), "header", NULL, XML_PARSE_NONET);
	int result = doc ? xmlSchemaValidateDoc(context, doc) : -1;

	xmlFreeDoc(doc);
	return result == 0;
}

/* What is written passes MRD's own schema, where the Debian package of it is installed. */
static void valid_by_schema(void)
{
	static const char path[] = "/usr/share/ismrmrd/schema/ismrmrd.xsd";
	fx_header *full = parse(rich), *bare = parse(OPEN "<encoding>" SPACES "</encoding>" CLOSE);
	char *a = fxi_header_format(full), *b = fxi_header_format(bare);

	if (access(path, R_OK) != 0)
		printf("SKIPPED: %s is not there ", path);
	else {
		xmlSchemaParserCtxt *parser = xmlSchemaNewParserCtxt(path);
		xmlSchema *schema = xmlSchemaParse(parser);
		xmlSchemaValidCtxt *context = xmlSchemaNewValidCtxt(schema);

		CU_ASSERT_TRUE(valid(context, a));
		CU_ASSERT_TRUE(valid(context, b));
		CU_ASSERT_FALSE(valid(context, "<ismrmrdHeader/>"));
		xmlSchemaFreeValidCtxt(context);
		xmlSchemaFree(schema);
		xmlSchemaFreeParserCtxt(parser);
	}
	free(a);
	free(b);
	fx_header_free(full);
	fx_header_free(bare);
}

static void names(void)
{
	CU_ASSERT_STRING_EQUAL(fx_trajectory_kind_name(FX_TRAJ_OTHER), "other");
	CU_ASSERT_STRING_EQUAL(fx_trajectory_kind_name(FX_TRAJ_CARTESIAN), "cartesian");
	CU_ASSERT_STRING_EQUAL(fx_trajectory_kind_name(6), "?");
	CU_ASSERT_STRING_EQUAL(fx_counter_name(FX_REPETITION), "repetition");
	CU_ASSERT_STRING_EQUAL(fx_counter_name(FX_SEGMENT), "segment");
	CU_ASSERT_STRING_EQUAL(fx_counter_name(FX_N_COUNTERS), "?");
	CU_ASSERT_STRING_EQUAL(fx_counter_name(-1), "?");
	CU_ASSERT_STRING_EQUAL(fx_diffusion_dimension_name(FX_DIFFUSION_NONE), "none");
	CU_ASSERT_STRING_EQUAL(fx_diffusion_dimension_name(FX_DIFFUSION_SEGMENT), "segment");
	CU_ASSERT_STRING_EQUAL(fx_diffusion_dimension_name(FX_DIFFUSION_USER_7), "user_7");
	CU_ASSERT_STRING_EQUAL(fx_diffusion_dimension_name(FX_N_DIFFUSION_DIMENSIONS), "?");
}

static CU_TestInfo tests[] = {
	{"a full header", full_header},
	{"nested user parameters, a LONG that is no number", nested_parameters},
	{"what simulators leave out or misspell", careless_simulators},
	{"padding behind the text", padded_text},
	{"sizes, numbers and encodings are checked", what_matters_is_strict},
	{"document types and entities", entities_are_refused},
	{"the size is bounded", size_is_bounded},
	{"cut short anywhere", truncated_anywhere},
	{"written and read again", round_trip},
	{"diffusion weightings, LPS into RAS", diffusion_weightings},
	{"diffusion weightings that are refused", diffusion_that_is_refused},
	{"valid against MRD's schema", valid_by_schema},
	{"names of kinds and counters", names},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_mrd_header = {"mrd_header", NULL, NULL, NULL, NULL, tests};
