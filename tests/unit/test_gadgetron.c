/* SPDX-License-Identifier: MIT */
/* Gadgetron's configurations: what they become, and what is refused with which words. */
#include <CUnit/CUnit.h>
#include <fornix/fornix.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>

#include "xml/gadgetron.h"
#include "xml/pipeline_file.h"

#define LEGACY "<gadgetronStreamConfiguration xmlns=\"http://gadgetron.sf.net/gadgetron\">"
#define LEGACY_END "</gadgetronStreamConfiguration>"
#define V2 "<configuration><version>2</version><stream>"
#define V2_END "</stream></configuration>"
#define CORE "<dll>gadgetron_mricore</dll><classname>"
#define NAMED(name, class) "<gadget><name>" name "</name>" CORE class "</classname>"
#define GADGET(class) "<gadget>" CORE class "</classname>"
#define NESTED(name, value) "<property><name>" name "</name><value>" value "</value></property>"
#define FLAT(name, value) "<property name=\"" name "\" value=\"" value "\"/>"
#define RECON GADGET("AcquisitionAccumulateTriggerGadget") "</gadget>" GADGET("BucketToBufferGadget") "</gadget>" \
	GADGET("SimpleReconGadget") "</gadget>"

/* The chain as the harness would write it: "a x=1 y=2 | b"; free with g_free. */
static char *chain_text(const fxi_pipeline *p)
{
	GString *text = g_string_new(NULL);

	for (int64_t i = 0; i < p->n_stages; i++) {
		g_string_append_printf(text, "%s%s", i ? " | " : "", p->stages[i].gadget);
		for (int64_t j = 0; j < p->stages[i].n_settings; j++)
			g_string_append_printf(text, " %s=%s", p->stages[i].settings[j].name, p->stages[i].settings[j].value);
	}
	return g_string_free(text, FALSE);
}

static void becomes(const char *xml, const char *chain)
{
	fx_error err = {0};
	fxi_pipeline *p = NULL;
	int status = fxi_pipeline_parse(xml, strlen(xml), "site.xml", ".", &err, &p);
	char *text;

	if (status != FX_OK)
		fprintf(stderr, "%s\n", err.text);
	CU_ASSERT_EQUAL_FATAL(status, FX_OK);
	text = chain_text(p);
	CU_ASSERT_STRING_EQUAL(text, chain);
	if (strcmp(text, chain))
		fprintf(stderr, "\n  got  \"%s\"\n  want \"%s\"\n", text, chain);
	g_free(text);
	fxi_pipeline_free(p);
}

/* Refused with this status, at this place, and the message holds both words. */
static void refused(const char *xml, int status, const char *place, const char *first, const char *second)
{
	fx_error err = {0};
	fxi_pipeline *p = (fxi_pipeline *)1;
	bool right;

	CU_ASSERT_EQUAL(fxi_pipeline_parse(xml, strlen(xml), "site.xml", ".", &err, &p), status);
	CU_ASSERT_PTR_NULL(p);
	right = strncmp(err.text, place, strlen(place)) == 0 && strstr(err.text, first) && strstr(err.text, second);
	CU_ASSERT_TRUE(right);
	if (!right || err.status != status)
		fprintf(stderr, "said (%d): %s\n", err.status, err.text);
}

#define IMAGES "cartesian averages=separate segments=separate matrix=encoded | combine method=rss"

static void both_forms(void)
{
	static const char chain[] = "remove_oversampling | " IMAGES " | extract_parts phase_offset=3.14159265358979 magnitude=true "
		"real=false imaginary=false phase=false | auto_scale max_value=1000.5 | to_integer type=uint16 max=32767 | write_mrd";

	becomes("<?xml version=\"1.0\"?>\n" LEGACY
		"<reader><slot>1008</slot>" CORE "GadgetIsmrmrdAcquisitionMessageReader</classname></reader>"
		"<writer><slot>1022</slot>" CORE "MRIImageWriter</classname></writer>"
		NAMED("RO", "RemoveROOversamplingGadget") "</gadget>"
		NAMED("Acc", "AcquisitionAccumulateTriggerGadget") NESTED("trigger_dimension", "repetition")
		NESTED("sorting_dimension", "slice") "</gadget>"
		NAMED("Buff", "BucketToBufferGadget") NESTED("N_dimension", "") NESTED("S_dimension", "") NESTED("split_slices", "true")
		"</gadget>" NAMED("Recon", "SimpleReconGadget") "</gadget>" NAMED("Split", "ImageArraySplitGadget") "</gadget>"
		NAMED("Extract", "ExtractGadget") "</gadget>" NAMED("Scale", "AutoScaleGadget") NESTED("max_value", "1000.5") "</gadget>"
		NAMED("Short", "FloatToUShortGadget") NESTED("max_intensity", "32767") "</gadget>"
		NAMED("End", "ImageFinishGadget") "</gadget>" LEGACY_END, chain);
	becomes("<configuration><version>2</version>"
		"<readers><reader><dll>gadgetron_core_readers</dll><classname>AcquisitionReader</classname></reader></readers>"
		"<writers><writer><dll>gadgetron_core_writers</dll><classname>ImageWriter</classname></writer></writers>"
		"<stream key=\"main\">" GADGET("RemoveROOversamplingGadget") "</gadget>"
		GADGET("AcquisitionAccumulateTriggerGadget") FLAT("trigger_dimension", "repetition") "</gadget>"
		GADGET("BucketToBufferGadget") NESTED("N_dimension", "") "</gadget>" GADGET("SimpleReconGadget") "</gadget>"
		GADGET("ImageArraySplitGadget") "</gadget><!-- one by one -->" GADGET("ExtractGadget") "</gadget>"
		GADGET("AutoScaleGadget") FLAT("max_value", "1000.5") "</gadget>"
		GADGET("FloatToUShortGadget") NESTED("max_intensity", "32767") "</gadget>" V2_END, chain);
}

static void every_class(void)
{
	becomes(LEGACY GADGET("PCACoilGadget") FLAT("uncombined_channels_by_name", "A,B") "</gadget>"
		GADGET("CoilReductionGadget") FLAT("coils_out", "16") "</gadget>"
		GADGET("CoilReductionGadget") FLAT("coil_mask", "1 0 1") "</gadget>" LEGACY_END,
		"coil_pca uncombined=A,B | coil_select coils=16 | coil_select mask=1 0 1");
	becomes(LEGACY GADGET("NoiseAdjustGadget") "</gadget>" LEGACY_END, "noise_adjust unit=parts bandwidth=0.793 nonconforming=pass");
	becomes(LEGACY GADGET("NoiseAdjustGadget") FLAT("pass_nonconformant_data", "false") FLAT("noise_dependency_prefix", "X")
		FLAT("scale_only_channels_by_name", "A") "</gadget>" LEGACY_END,
		"noise_adjust unit=parts bandwidth=0.793 scale_only=A nonconforming=refuse");
	becomes(LEGACY GADGET("NoiseAdjustGadget") FLAT("perform_noise_adjust", "false") "</gadget>"
		GADGET("RemoveROOversamplingGadget") "</gadget>" LEGACY_END, "remove_oversampling");
	becomes(LEGACY GADGET("IsmrmrdDumpGadget") FLAT("folder", "/data") FLAT("file_prefix", "raw") "</gadget>" LEGACY_END,
		"write_scan prefix=raw");
	becomes(LEGACY GADGET("ComplexToFloatGadget") "</gadget>" LEGACY_END, "extract part=typed | write_mrd");
	becomes(LEGACY GADGET("ExtractGadget") FLAT("extract_mask", "9") FLAT("real_imag_offset", "-2e3") "</gadget>" LEGACY_END,
		"extract_parts phase_offset=3.14159265358979 offset=-2e3 magnitude=true real=false imaginary=false phase=true | write_mrd");
	becomes(LEGACY GADGET("ExtractGadget") FLAT("extract_mask", "6") FLAT("extract_magnitude", "0") "</gadget>" LEGACY_END,
		"extract_parts phase_offset=3.14159265358979 magnitude=false real=true imaginary=true phase=false | write_mrd");
	becomes(LEGACY GADGET("FloatToShortGadget") FLAT("min_intensity", "-5") "</gadget>" LEGACY_END,
		"to_integer type=int16 min=-5 max=32767 offset=0 | write_mrd");
	becomes(LEGACY GADGET("GenericReconImageArrayScalingGadget") FLAT("scalingFactor", "10.0") FLAT("verbose", "false")
		FLAT("use_constant_scalingFactor", "true") "</gadget>" LEGACY_END, "intensity factor=10.0 constant=true | write_mrd");
	becomes(LEGACY LEGACY_END, "discard");
	becomes(V2 GADGET("ImageArraySplitGadget") "</gadget>" V2_END, "write_mrd");
}

static void buckets_and_buffers(void)
{
#define THREE(trigger, buffer) V2 GADGET("AcquisitionAccumulateTriggerGadget") trigger "</gadget>\n" GADGET("BucketToBufferGadget") buffer \
	"</gadget>\n" GADGET("SimpleReconGadget") "</gadget>" V2_END
	becomes(THREE("", FLAT("ignore_segment", "true") FLAT("N_dimension", "PHASE") FLAT("S_dimension", "set")),
		"cartesian averages=separate segments=joined matrix=encoded | combine method=rss | write_mrd");
	becomes(THREE(FLAT("trigger_dimension", "segment"), ""), IMAGES " | write_mrd");
	refused(THREE(FLAT("trigger_dimension", "segment"), FLAT("ignore_segment", "true")), FX_ENOTSUP, "site.xml:1: <gadget>",
		"trigger_dimension is segment", "ignore_segment");
	refused(THREE(FLAT("trigger_dimension", "kspace_encode_step_1"), ""), FX_ENOTSUP, "site.xml:1: ", "trigger_dimension",
		"kspace_encode_step_1");
	refused(THREE(FLAT("trigger_dimension", "n_acquisitions"), ""), FX_ENOTSUP, "site.xml:1: ", "trigger_dimension", "n_acquisitions");
	refused(THREE(FLAT("sorting_dimension", "user_3"), ""), FX_ENOTSUP, "site.xml:1: ", "sorting_dimension", "user_3");
	refused(THREE(FLAT("trigger_dimension", "slize"), ""), FX_EINVAL, "site.xml:1: ", "trigger_dimension", "slize");
	refused(THREE("", FLAT("S_dimension", "segment")), FX_ENOTSUP, "site.xml:2: ", "S_dimension is segment", "Gadgetron");
	refused(V2 GADGET("SimpleReconGadget") "</gadget>" V2_END, FX_EINVAL, "site.xml:1: ", "in front", "BucketToBufferGadget");
	refused(V2 GADGET("AcquisitionAccumulateTriggerGadget") "</gadget>" V2_END, FX_EINVAL, "site.xml:1: ", "behind", "SimpleReconGadget");
	refused(V2 GADGET("BucketToBufferGadget") "</gadget>" V2_END, FX_EINVAL, "site.xml:1: ", "in front",
		"AcquisitionAccumulateTriggerGadget");
}

/* What is wrong is said of what is wrong: buckets for something that is missing are none of it. */
static void buckets_for_others(void)
{
	refused(V2 GADGET("AcquisitionAccumulateTriggerGadget") "</gadget>\n<external/>" V2_END, FX_ENOTSUP, "site.xml:2: <external>", "", "");
	refused(V2 GADGET("AcquisitionAccumulateTriggerGadget") "</gadget>" GADGET("BucketToBufferGadget") "</gadget>\n"
		GADGET("FFTGadget") "</gadget>" V2_END, FX_ENOTSUP, "site.xml:2: <gadget> (FFTGadget)", "no counterpart", "");
}

static void references(void)
{
	becomes(V2 NAMED("N", "NoiseAdjustGadget") FLAT("scale_only_channels_by_name", "uncombined_channels_by_name@PCA") "</gadget>"
		NAMED("PCA", "PCACoilGadget") FLAT("uncombined_channels_by_name", "Loop_7:L7") "</gadget>" V2_END,
		"noise_adjust unit=parts bandwidth=0.793 scale_only=Loop_7:L7 nonconforming=pass | coil_pca uncombined=Loop_7:L7");
	/* by way of a third */
	becomes(LEGACY NAMED("A", "AutoScaleGadget") NESTED("max_value", "max_value@B") "</gadget>"
		NAMED("B", "AutoScaleGadget") NESTED("max_value", "max_intensity@C") "</gadget>"
		NAMED("C", "FloatToUShortGadget") NESTED("max_intensity", "512") "</gadget>" LEGACY_END,
		"auto_scale max_value=512 | auto_scale max_value=512 | to_integer type=uint16 max=512 | write_mrd");
	refused(V2 "\n" NAMED("N", "NoiseAdjustGadget") FLAT("scale_only_channels_by_name", "uncombined_channels_by_name@PCB") "</gadget>"
		NAMED("PCA", "PCACoilGadget") "</gadget>" V2_END, FX_EINVAL, "site.xml:2: <gadget> N (NoiseAdjustGadget)",
		"scale_only_channels_by_name", "did you mean 'PCA'");
	refused(V2 NAMED("N", "NoiseAdjustGadget") FLAT("scale_only_channels_by_name", "uncombined_channels_by_name@PCA") "</gadget>"
		NAMED("PCA", "PCACoilGadget") "</gadget>" V2_END, FX_EINVAL, "site.xml:1: ", "gives no property", "uncombined_channels_by_name");
	refused(V2 NAMED("A", "AutoScaleGadget") FLAT("max_value", "max_value@B") "</gadget>\n"
		NAMED("B", "AutoScaleGadget") FLAT("max_value", "max_value@A") "</gadget>" V2_END, FX_EINVAL, "site.xml:1: <gadget> A",
		"max_value@B", "leads back to itself");
	refused(V2 NAMED("A", "AutoScaleGadget") FLAT("max_value", "max_value@A") "</gadget>" V2_END, FX_EINVAL, "site.xml:1: <gadget> A",
		"max_value", "leads back to itself");
	refused(V2 NAMED("A", "AutoScaleGadget") FLAT("max_value", "@") "</gadget>" V2_END, FX_EINVAL, "site.xml:1: ", "max_value", "'@'");
	refused(V2 NAMED("A", "AutoScaleGadget") "</gadget>" NAMED("A", "AutoScaleGadget") "</gadget>\n"
		NAMED("B", "AutoScaleGadget") FLAT("max_value", "max_value@A") "</gadget>" V2_END, FX_EINVAL, "site.xml:2: ", "more than one",
		"'A'");
}

static void names_and_values(void)
{
	refused(LEGACY "\n" NAMED("Scale", "AutoscaleGadget") "</gadget>" LEGACY_END, FX_EINVAL,
		"site.xml:2: <gadget> Scale (AutoscaleGadget)", "did you mean", "AutoScaleGadget");
	refused(LEGACY "\n\n" GADGET("GenericReconCartesianGrappaGadget") "</gadget>" LEGACY_END, FX_ENOTSUP, "site.xml:3: ", "no counterpart",
		"GenericReconCartesianGrappaGadget");
	refused(LEGACY GADGET("Xyzzy") "</gadget>" LEGACY_END, FX_EINVAL, "site.xml:1: ", "no such class", "Xyzzy");
	refused(LEGACY "<gadget><dll>gadgetron_mri</dll><classname>AutoScaleGadget</classname></gadget>" LEGACY_END, FX_EINVAL, "site.xml:1: ",
		"gadgetron_mri'", "gadgetron_mricore");
	refused(LEGACY "<gadget><classname>AutoScaleGadget</classname></gadget>" LEGACY_END, FX_EINVAL, "site.xml:1: ", "no <dll>", "");
	refused(LEGACY "<gadget><dll>gadgetron_mricore</dll></gadget>" LEGACY_END, FX_EINVAL, "site.xml:1: ", "no <classname>", "");
	refused(LEGACY "\n" GADGET("AutoScaleGadget") FLAT("max_valu", "1") "</gadget>" LEGACY_END, FX_EINVAL, "site.xml:2: ", "'max_valu'",
		"did you mean 'max_value'");
	refused(LEGACY GADGET("RemoveROOversamplingGadget") FLAT("a", "1") "</gadget>" LEGACY_END, FX_EINVAL, "site.xml:1: ", "no property", "'a'");
	refused(LEGACY GADGET("AutoScaleGadget") "\n" FLAT("max_value", "bright") "</gadget>" LEGACY_END, FX_EINVAL, "site.xml:1: ",
		"max_value (line 2)", "bright");
	refused(LEGACY GADGET("AutoScaleGadget") FLAT("histogram_bins", "1.5") "</gadget>" LEGACY_END, FX_EINVAL, "site.xml:1: ",
		"histogram_bins", "whole");
	refused(LEGACY GADGET("AutoScaleGadget") FLAT("max_value", "nan") "</gadget>" LEGACY_END, FX_EINVAL, "site.xml:1: ", "max_value", "nan");
	refused(LEGACY GADGET("AutoScaleGadget") FLAT("histogram_bins", "1e300") "</gadget>" LEGACY_END, FX_EINVAL, "site.xml:1: ",
		"histogram_bins", "1e300");
	refused(LEGACY GADGET("FloatToUShortGadget") FLAT("max_intensity", "65536") "</gadget>" LEGACY_END, FX_EINVAL, "site.xml:1: ",
		"max_intensity", "65535");
	refused(LEGACY GADGET("ExtractGadget") FLAT("extract_phase", "maybe") "</gadget>" LEGACY_END, FX_EINVAL, "site.xml:1: ",
		"extract_phase", "true or false");
	refused(LEGACY GADGET("ExtractGadget") FLAT("extract_mask", "16") "</gadget>" LEGACY_END, FX_EINVAL, "site.xml:1: ", "extract_mask", "16");
	refused(LEGACY GADGET("ExtractGadget") FLAT("extract_magnitude", "false") "</gadget>" LEGACY_END, FX_EINVAL, "site.xml:1: ",
		"extract_magnitude", "are false");
	refused(LEGACY GADGET("AutoScaleGadget") FLAT("max_value", "1") FLAT("max_value", "2") "</gadget>" LEGACY_END, FX_EINVAL, "site.xml:1: ",
		"max_value", "twice");
	refused(LEGACY GADGET("IsmrmrdDumpGadget") FLAT("ip_no_data_saving", "10.0.0.1") "</gadget>" LEGACY_END, FX_ENOTSUP, "site.xml:1: ",
		"ip_no_data_saving", "addresses");
}

/* Nothing but what is installed: no path, in whatever disguise. */
static void plugins_elsewhere(void)
{
	static const char *const paths[] = {"/tmp/evil", "../evil", "./evil", "evil.so", "a\\b", "..", "/usr/lib/libgadgetron_mricore.so"};

	for (size_t i = 0; i < G_N_ELEMENTS(paths); i++) {
		char *xml = g_strdup_printf(LEGACY "<gadget><dll>%s</dll><classname>AutoScaleGadget</classname></gadget>" LEGACY_END, paths[i]);

		refused(xml, FX_EINVAL, "site.xml:1: ", "is a path", paths[i]);
		g_free(xml);
	}
}

static void form(void)
{
	static const char *const branches[] = {"parallel", "external", "distributed", "parallelprocess", "puredistributed"};

	for (size_t i = 0; i < G_N_ELEMENTS(branches); i++) {
		char *xml = g_strdup_printf(V2 "\n<%s><x/></%s>" V2_END, branches[i], branches[i]), *place = g_strdup_printf("site.xml:2: <%s>",
			branches[i]);

		refused(xml, FX_ENOTSUP, place, "", "");
		g_free(xml);
		g_free(place);
	}
	refused("<configuration>\n<version>3</version><stream/></configuration>", FX_EINVAL, "site.xml:2: <version>", "'3'", "2 is the one");
	refused("<configuration><stream/></configuration>", FX_EINVAL, "site.xml:1: <configuration>", "<version>2</version>", "");
	refused("<configuration><version>2</version></configuration>", FX_EINVAL, "site.xml:1: <configuration>", "no <stream>", "");
	refused("<configuration><version>2</version><stream/>\n<stream/></configuration>", FX_EINVAL, "site.xml:2: <stream>", "one stream", "");
	refused("<configuration><version>2</version><steam/></configuration>", FX_EINVAL, "site.xml:1: <steam>", "did you mean <stream>", "");
	refused(V2 "\n<gadgte/>" V2_END, FX_EINVAL, "site.xml:2: <gadgte>", "did you mean <gadget>", "");
	refused(V2 GADGET("AutoScaleGadget") "<clasname/></gadget>" V2_END, FX_EINVAL, "site.xml:1: ", "<clasname>", "did you mean <classname>");
	refused(V2 "stray" V2_END, FX_EINVAL, "site.xml:1: <stream>", "text", "");
	refused(V2 GADGET("AutoScaleGadget") "<property name=\"a\"/></gadget>" V2_END, FX_EINVAL, "site.xml:1: ", "lacks its name or its value", "");
	refused(V2 GADGET("AutoScaleGadget") "<property name=\"max_value\" value=\"1\"><name>a</name></property></gadget>" V2_END, FX_EINVAL,
		"site.xml:1: ", "both as attributes and as elements", "");
	refused(LEGACY "<reader><slot>1022</slot>" CORE "GadgetIsmrmrdAcquisitionMessageReader</classname></reader>" LEGACY_END, FX_EINVAL,
		"site.xml:1: <reader>", "slot is '1022'", "1008");
	becomes(LEGACY "<writer><slot>1006</slot>" CORE "MRIImageWriterUSHORT</classname></writer>" LEGACY_END, "discard");
	refused(LEGACY "<writer>" CORE "MRIImageWritr</classname></writer>" LEGACY_END, FX_EINVAL, "site.xml:1: <writer>", "did you mean",
		"MRIImageWriter");
	refused(LEGACY "<writer><dll>gadgetron_dicom</dll><classname>DicomImageWriter</classname></writer>" LEGACY_END, FX_ENOTSUP,
		"site.xml:1: <writer>", "DICOM", "");
}

/* Documents that are made to hurt: refused before anything of them is expanded or fetched. */
static void bombs(void)
{
	GString *deep = g_string_new(V2), *large = g_string_new(V2 "<!--");

	refused("<!DOCTYPE configuration [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\"><!ENTITY c \"&b;&b;&b;&b;&b;&b;\">]>"
		"<configuration><version>2</version><stream>&c;</stream></configuration>", FX_EINVAL, "site.xml", "", ""); /* some libxml2 refuse it before we do */
	refused("<!DOCTYPE configuration [<!ENTITY a SYSTEM \"file:///etc/passwd\">]><configuration><version>&a;</version></configuration>",
		FX_EINVAL, "site.xml", "DOCTYPE", "");
	refused("<!DOCTYPE configuration SYSTEM \"http://127.0.0.1:9/x.dtd\"><configuration><version>2</version><stream/></configuration>",
		FX_EINVAL, "site.xml", "DOCTYPE", "");
	refused(V2 "&x;" V2_END, FX_EINVAL, "site.xml:1: ", "not well-formed", "");
	for (int i = 0; i < 100000; i++)
		g_string_append(deep, "<a>");
	refused(deep->str, FX_EINVAL, "site.xml:1: ", "not well-formed", "");
	for (int i = 0; i < 1 << 20; i++)
		g_string_append_c(large, 'x');
	g_string_append(large, "-->" V2_END);
	refused(large->str, FX_EINVAL, "site.xml: ", "more than", "");
	g_string_free(deep, TRUE);
	g_string_free(large, TRUE);
}

/* The whole of a file that cannot run is told about, not its first fault alone. */
static void report(void)
{
	static const char text[] = LEGACY "\n" GADGET("NoiseAdjustGadget") "</gadget>\n"
		NAMED("Acc", "AcquisitionAccumulateTriggerGadget") "</gadget>\n" GADGET("BucketToBufferGadget") "</gadget>\n"
		NAMED("G", "GenericReconCartesianGrappaGadget") "</gadget>\n" GADGET("IsmrmrdDumpGadget") FLAT("folder", "/data") "</gadget>\n"
		GADGET("AutoScaleGadget") FLAT("max_value", "x") "</gadget>" LEGACY_END;
	char *folder = g_dir_make_tmp("fornix-XXXXXX", NULL), *path = g_build_filename(folder, "site.xml", NULL);
	fxi_gadgetron *g = NULL;
	fxi_pipeline *p = NULL;

	CU_ASSERT_TRUE_FATAL(g_file_set_contents(path, text, -1, NULL));
	CU_ASSERT_EQUAL(fxi_pipeline_load_telling(path, NULL, &g, &p), FX_ENOTSUP);
	CU_ASSERT_PTR_NULL(p);
	CU_ASSERT_PTR_NOT_NULL_FATAL(g);
	CU_ASSERT_EQUAL(g->version, 1);
	CU_ASSERT_EQUAL_FATAL(g->n_items, 6);
	CU_ASSERT_EQUAL(g->n_verdicts[FXI_GADGETRON_RUNS], 3);
	CU_ASSERT_EQUAL(g->n_verdicts[FXI_GADGETRON_APPROXIMATED], 1);
	CU_ASSERT_EQUAL(g->n_verdicts[FXI_GADGETRON_MISSING], 2);
	CU_ASSERT_STRING_EQUAL(g->items[1].name, "Acc");
	CU_ASSERT_PTR_NOT_NULL(strstr(g->items[1].text, "GenericReconCartesianGrappaGadget"));
	CU_ASSERT_EQUAL(g->items[3].line, 5);
	CU_ASSERT_EQUAL(g->items[3].status, FX_ENOTSUP);
	CU_ASSERT_EQUAL(g->items[4].verdict, FXI_GADGETRON_APPROXIMATED);
	CU_ASSERT_PTR_NOT_NULL(strstr(g->items[4].text, "output folder"));
	CU_ASSERT_EQUAL(g->items[5].status, FX_EINVAL);
	fxi_gadgetron_free(g);
	/* a native file is none */
	CU_ASSERT_TRUE_FATAL(g_file_set_contents(path, "<pipeline xmlns=\"urn:fornix:pipeline:1\"><cg/></pipeline>", -1, NULL));
	CU_ASSERT_EQUAL(fxi_pipeline_load_telling(path, NULL, &g, &p), FX_OK);
	CU_ASSERT_PTR_NULL(g);
	fxi_pipeline_free(p);
	g_remove(path);
	g_rmdir(folder);
	g_free(path);
	g_free(folder);
}

/* Any prefix and any changed byte gives an answer: a pipeline or an error with words, and no leak for the sanitizer to find. */
static void damaged_anywhere(void)
{
	static const char text[] = V2 NAMED("A", "PCACoilGadget") FLAT("uncombined_channels_by_name", "x@B") "</gadget>" RECON
		NAMED("B", "ExtractGadget") NESTED("extract_mask", "9") "</gadget>" V2_END;
	char copy[sizeof text];

	for (size_t i = 0; i < sizeof text - 1; i++)
		for (int how = 0; how < 3; how++) {
			fx_error err = {0};
			fxi_pipeline *p;
			size_t size = how == 0 ? i : sizeof text - 1;

			memcpy(copy, text, sizeof text);
			if (how > 0)
				copy[i] = how == 1 ? '<' : 'q';
			if (fxi_pipeline_parse(copy, size, "f", ".", &err, &p) == FX_OK)
				fxi_pipeline_free(p);
			else
				CU_ASSERT_NOT_EQUAL(err.text[0], '\0');
		}
}

static CU_TestInfo tests[] = {
	{"both forms", both_forms},
	{"every class", every_class},
	{"buckets and buffers", buckets_and_buffers},
	{"buckets for what is missing", buckets_for_others},
	{"references", references},
	{"names and values", names_and_values},
	{"plugins elsewhere", plugins_elsewhere},
	{"what the form has no place for", form},
	{"bombs", bombs},
	{"a report of everything", report},
	{"damaged anywhere", damaged_anywhere},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_gadgetron = {"gadgetron", NULL, NULL, NULL, NULL, tests};
