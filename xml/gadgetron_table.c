/* SPDX-License-Identifier: MIT */
/*
 * gadgetron_table.c - the classes of Gadgetron's configurations: what each becomes here, property by property. Names, defaults
 * and meanings are those of Gadgetron 4.7 (commit 846ed3fb5). docs/gadgetron.md is the same for people.
 */
#include "gadgetron_model.h"

#include <string.h>

#include "stream/nearest.h"

#define PASS(name_, type_, min_, max_, to_) {.name = name_, .type = type_, .min = min_, .max = max_, .use = FXI_GT_PASS, .to = to_}
#define READ(name_, type_) {.name = name_, .type = type_, .min = 0, .max = 1e9, .use = FXI_GT_READ}
#define IGNORE(name_, type_) {.name = name_, .type = type_, .min = -1e30, .max = 1e30, .use = FXI_GT_IGNORE}
#define TOLD(name_, type_, remark_) {.name = name_, .type = type_, .min = -1e30, .max = 1e30, .use = FXI_GT_IGNORE, .remark = remark_}
#define END {.name = NULL}

#define PI_TEXT "3.14159265358979"

static const fxi_gt_alias_property noise[] = {
	READ("perform_noise_adjust", FXI_GT_BOOL),
	READ("pass_nonconformant_data", FXI_GT_BOOL),
	PASS("scale_only_channels_by_name", FXI_GT_TEXT, 0, 0, "scale_only"),
	IGNORE("noise_dependency_prefix", FXI_GT_TEXT), /* Gadgetron does not read it either */
	IGNORE("noise_dependency_folder", FXI_GT_TEXT),
	IGNORE("noise_dwell_time_us_preset", FXI_GT_FLOAT),
	END
};

static const fxi_gt_alias_property pca[] = {
	PASS("uncombined_channels_by_name", FXI_GT_TEXT, 0, 0, "uncombined"),
	IGNORE("present_uncombined_channels", FXI_GT_INT), /* an output */
	END
};

static const fxi_gt_alias_property reduction[] = {
	PASS("coils_out", FXI_GT_INT, 1, 65535, "coils"), PASS("coil_mask", FXI_GT_TEXT, 0, 0, "mask"), END
};

static const fxi_gt_alias_property trigger[] = {
	READ("trigger_dimension", FXI_GT_DIMENSION), READ("sorting_dimension", FXI_GT_DIMENSION),
	IGNORE("n_acquisitions_before_trigger", FXI_GT_INT), IGNORE("n_acquisitions_before_ongoing_trigger", FXI_GT_INT), END
};

static const fxi_gt_alias_property buffer[] = {
	READ("N_dimension", FXI_GT_DIMENSION), READ("S_dimension", FXI_GT_DIMENSION), READ("ignore_segment", FXI_GT_BOOL),
	IGNORE("split_slices", FXI_GT_BOOL), IGNORE("verbose", FXI_GT_BOOL), END
};

static const fxi_gt_alias_property extract[] = {
	READ("extract_mask", FXI_GT_INT),
	PASS("extract_magnitude", FXI_GT_BOOL, 0, 0, "magnitude"), PASS("extract_real", FXI_GT_BOOL, 0, 0, "real"),
	PASS("extract_imag", FXI_GT_BOOL, 0, 0, "imaginary"), PASS("extract_phase", FXI_GT_BOOL, 0, 0, "phase"),
	PASS("real_imag_offset", FXI_GT_FLOAT, -1e30, 1e30, "offset"), END
};

static const fxi_gt_alias_property auto_scale[] = {
	PASS("max_value", FXI_GT_FLOAT, 1e-30, 1e30, "max_value"), PASS("histogram_bins", FXI_GT_INT, 1, 1e6, "histogram_bins"), END
};

#define INTEGERS(low, high) { \
	PASS("max_intensity", FXI_GT_INT, low, high, "max"), PASS("min_intensity", FXI_GT_INT, low, high, "min"), \
	PASS("intensity_offset", FXI_GT_INT, -2147483648.0, 2147483647.0, "offset"), END}
static const fxi_gt_alias_property to_uint16[] = INTEGERS(0, 65535);
static const fxi_gt_alias_property to_int16[] = INTEGERS(-32768, 32767);
static const fxi_gt_alias_property to_int32[] = INTEGERS(-2147483648.0, 2147483647.0);
static const fxi_gt_alias_property to_uint32[] = INTEGERS(0, 4294967295.0);

static const fxi_gt_alias_property dump[] = {
	PASS("file_prefix", FXI_GT_TEXT, 0, 0, "prefix"), PASS("save_xml_header_only", FXI_GT_BOOL, 0, 0, "header_only"),
	PASS("pass_waveform_downstream", FXI_GT_BOOL, 0, 0, "pass_waveforms"),
	TOLD("folder", FXI_GT_TEXT, "the file goes into the run's output folder, not into the configuration's"),
	{.name = "ip_no_data_saving", .type = FXI_GT_TEXT, .use = FXI_GT_REFUSE, .def = "",
		.remark = "Fornix does not ask for the machine's addresses; leave the gadget out where nothing may be saved"},
	END
};

static const fxi_gt_alias_property scaling[] = {
	PASS("use_constant_scalingFactor", FXI_GT_BOOL, 0, 0, "constant"),
	PASS("scalingFactor", FXI_GT_FLOAT, -1e30, 1e30, "factor"),
	PASS("min_intensity_value", FXI_GT_INT, 0, 1e9, "low"), PASS("max_intensity_value", FXI_GT_INT, 1, 1e9, "high"),
	PASS("auto_scaling_only_once", FXI_GT_BOOL, 0, 0, "once"),
	PASS("use_dedicated_scalingFactor_meta_field", FXI_GT_TEXT, 0, 0, "dedicated_entry"),
	PASS("scalingFactor_dedicated", FXI_GT_FLOAT, -1e30, 1e30, "dedicated"),
	PASS("scalingFactor_gfactor_map", FXI_GT_FLOAT, -1e30, 1e30, "gfactor"),
	PASS("scalingFactor_snr_map", FXI_GT_FLOAT, -1e30, 1e30, "snr"),
	PASS("scalingFactor_snr_std_map", FXI_GT_FLOAT, -1e30, 1e30, "std"),
	IGNORE("perform_timing", FXI_GT_BOOL), IGNORE("verbose", FXI_GT_BOOL), IGNORE("debug_folder", FXI_GT_TEXT),
	IGNORE("time_tick", FXI_GT_FLOAT), END
};

#define CORE "gadgetron_mricore"

static const fxi_gt_alias aliases[] = {
	{.classname = "NoiseAdjustGadget", .dll = CORE, .role = FXI_GT_NOISE, .stage = "noise_adjust", .properties = noise,
		.fixed = {"unit=parts", "bandwidth=0.793"},
		.becomes = "noise_adjust, in units of the noise of real and imaginary part; noise of other scans is kept by measurement id"},
	{.classname = "PCACoilGadget", .dll = CORE, .role = FXI_GT_STAGE, .stage = "coil_pca", .properties = pca, .becomes = "coil_pca"},
	{.classname = "CoilReductionGadget", .dll = CORE, .role = FXI_GT_STAGE, .stage = "coil_select", .properties = reduction,
		.becomes = "coil_select"},
	{.classname = "RemoveROOversamplingGadget", .dll = CORE, .role = FXI_GT_STAGE, .stage = "remove_oversampling",
		.becomes = "remove_oversampling"},
	{.classname = "AcquisitionAccumulateTriggerGadget", .dll = CORE, .role = FXI_GT_TRIGGER, .properties = trigger},
	{.classname = "BucketToBufferGadget", .dll = CORE, .role = FXI_GT_BUFFER, .properties = buffer},
	{.classname = "SimpleReconGadget", .dll = CORE, .role = FXI_GT_RECON, .of_images = true,
		.becomes = "cartesian and combine: orthonormal FFT of the encoded matrix (partial Fourier filled with 0; accelerated scans are "
			"refused), root of the sum of squares"},
	{.classname = "ImageArraySplitGadget", .dll = CORE, .role = FXI_GT_NOTHING, .of_images = true,
		.becomes = "no gadget: images travel one by one"},
	{.classname = "ExtractGadget", .dll = CORE, .role = FXI_GT_EXTRACT, .of_images = true, .stage = "extract_parts",
		.properties = extract, .fixed = {"phase_offset=" PI_TEXT}, .becomes = "extract_parts"},
	{.classname = "AutoScaleGadget", .dll = CORE, .role = FXI_GT_STAGE, .of_images = true, .stage = "auto_scale",
		.properties = auto_scale, .becomes = "auto_scale"},
	{.classname = "FloatToUShortGadget", .dll = CORE, .role = FXI_GT_STAGE, .of_images = true, .stage = "to_integer",
		.properties = to_uint16, .fixed = {"type=uint16"}, .becomes = "to_integer (uint16)"},
	{.classname = "FloatToShortGadget", .dll = CORE, .role = FXI_GT_STAGE, .of_images = true, .stage = "to_integer",
		.properties = to_int16, .fixed = {"type=int16", "min=-32768", "max=32767", "offset=0"}, .becomes = "to_integer (int16)"},
	{.classname = "FloatToIntGadget", .dll = CORE, .role = FXI_GT_STAGE, .of_images = true, .stage = "to_integer",
		.properties = to_int32, .fixed = {"type=int32"}, .becomes = "to_integer (int32)"},
	{.classname = "FloatToUIntGadget", .dll = CORE, .role = FXI_GT_STAGE, .of_images = true, .stage = "to_integer",
		.properties = to_uint32, .fixed = {"type=uint32"}, .becomes = "to_integer (uint32)"},
	{.classname = "ComplexToFloatGadget", .dll = CORE, .role = FXI_GT_STAGE, .of_images = true, .stage = "extract",
		.fixed = {"part=typed"}, .becomes = "extract, by each image's type"},
	{.classname = "ImageFinishGadget", .dll = CORE, .role = FXI_GT_NOTHING, .of_images = true,
		.becomes = "no gadget: what leaves the chain goes to the client, and into images.h5"},
	{.classname = "IsmrmrdDumpGadget", .dll = CORE, .role = FXI_GT_STAGE, .stage = "write_scan", .properties = dump,
		.fixed = {"prefix=ISMRMRD_DUMP"}, .becomes = "write_scan"},
	{.classname = "GenericReconImageArrayScalingGadget", .dll = CORE, .role = FXI_GT_STAGE, .of_images = true, .stage = "intensity",
		.properties = scaling, .becomes = "intensity (a factor that is found is found on the first image, not on the first array)"},
};

static const fxi_gt_port readers[] = {
	{"GadgetIsmrmrdAcquisitionMessageReader", CORE, 1008, false, "readouts"},
	{"GadgetIsmrmrdWaveformMessageReader", CORE, 1026, false, "waveforms"},
	{"MRIImageReader", CORE, 1022, false, "images"},
	{"AcquisitionReader", "gadgetron_core_readers", 1008, false, "readouts"},
	{"WaveformReader", "gadgetron_core_readers", 1026, false, "waveforms"},
	{"ImageReader", "gadgetron_core_readers", 1022, false, "images"},
	{"BufferReader", "gadgetron_core_readers", 1023, true, "buffered readouts are a message between Gadgetron's own servers"},
	{"IsmrmrdImageArrayReader", "gadgetron_core_readers", 1024, true, "image arrays are a message between Gadgetron's own servers"},
	{"AcquisitionBucketReader", "gadgetron_core_readers", 1050, true, "buckets are a message between Gadgetron's own servers"},
};

static const fxi_gt_port writers[] = {
	{"MRIImageWriter", CORE, 1022, false, "images"},
	{"ImageWriter", "gadgetron_core_writers", 1022, false, "images"},
	{"MRIImageWriterCPLX", CORE, 1022, false, "images"},
	{"MRIImageWriterFLOAT", CORE, 1022, false, "images"},
	{"MRIImageWriterUSHORT", CORE, 1022, false, "images"},
	{"GadgetIsmrmrdAcquisitionMessageWriter", CORE, 1008, true, "readouts are not sent back to a client"},
	{"AcquisitionWriter", "gadgetron_core_writers", 1008, true, "readouts are not sent back to a client"},
	{"WaveformWriter", "gadgetron_core_writers", 1026, true, "waveforms are not sent back to a client"},
	{"DicomImageWriter", "gadgetron_dicom", 1018, true, "DICOM is not written"},
	{"DependencyQueryWriter", CORE, 1019, true, "a client that asks for kept noise is answered by `fornix serve` itself"},
	{"BufferWriter", "gadgetron_core_writers", 1023, true, "buffered readouts are a message between Gadgetron's own servers"},
	{"IsmrmrdImageArrayWriter", "gadgetron_core_writers", 1024, true, "image arrays are a message between Gadgetron's own servers"},
};

/* Classes that Gadgetron's configurations name and that have no counterpart yet, in the order of the alphabet. */
static const char *const elsewhere[] = {
	"AcquisitionDistributor", "AcquisitionFanout", "AsymmetricEchoAdjustROGadget", "AugmentImageMetadataGadget", "BartGadget",
	"BufferDistributor", "CMRT3DGadget", "CMRTGadget", "CPUGriddingReconGadget", "CSIGadget", "CartesianToGenericGadget",
	"CmrCartesianKSpaceBinningCineGadget", "CmrParametricT1SRMappingGadget", "CmrRealTimeLAXCineAIAnalysisGadget", "CollectGadget",
	"CombineGadget", "DenoiseGadget", "DependencyQueryGadget", "DeviceChannelSplitterGadgetUSHORT", "DicomFinishGadget",
	"EPICorrGadget", "EPIReconXGadget", "FFTGadget", "FFTXGadget", "FatWaterGadget", "FlagTriggerGadget", "FlowPhaseSubtractionGadget",
	"GenericReconCartesianFFTGadget", "GenericReconCartesianGrappaAIGadget", "GenericReconCartesianGrappaGadget",
	"GenericReconCartesianNonLinearSpirit2DTGadget", "GenericReconCartesianReferencePrepGadget", "GenericReconCartesianSpiritGadget",
	"GenericReconEigenChannelGadget", "GenericReconFieldOfViewAdjustmentGadget", "GenericReconKSpaceFilteringGadget",
	"GenericReconNoiseStdMapComputingGadget", "GenericReconPartialFourierHandlingFilterGadget",
	"GenericReconPartialFourierHandlingPOCSGadget", "GrappaGadget", "GrappaUnmixingGadget", "GriddingReconGadget",
	"GtPlusAccumulatorWorkOrderTriggerGadget", "GtPlusRecon2DTGadget", "ImageAccumulator", "ImageAccumulatorGadget", "ImageFFTGadget",
	"ImageFanout", "ImageIndexGadget", "ImageInverter", "ImageLayerer", "ImageSortGadget", "IsmrmrdAcquisitionDistributeGadget",
	"MaxwellCorrectionGadget", "NFFT2DGadget", "NoiseAdjustGadget_unoptimized", "NoiseCovariancePlottingGadget", "NoiseSummaryGadget",
	"OneEncodingGadget", "PhysioInterpolationGadget", "PseudoReplicatorGadget", "PythonGadget", "SliceAccumulator",
	"SpiralToGenericGadget", "T1MocoGadget", "Unmixing", "cpuRegistrationAveragingGadget2D", "cpuWeightsCalculator",
	"gpuCSICoilEstimationGadget", "gpuCgKtSenseGadget", "gpuCgSenseGadget", "gpuCgSpiritGadget", "gpuGenericSensePrepGadget",
	"gpuLALMSenseGadget", "gpuNlcgSenseGadget", "gpuRadialSensePrepGadget", "gpuRadialSpiritPrepGadget",
	"gpuRegistrationAveragingGadget2D", "gpuSbSenseGadget", "gpuSpiralDeblurGadget", "gpuSpiralSensePrepGadget",
	"gpuWeightsCalculator",
};

const fxi_gt_alias *fxi_gt_find(const char *classname)
{
	for (size_t i = 0; i < G_N_ELEMENTS(aliases); i++)
		if (strcmp(aliases[i].classname, classname) == 0)
			return &aliases[i];
	return NULL;
}

const fxi_gt_port *fxi_gt_find_port(int kind, const char *classname)
{
	const fxi_gt_port *ports = kind == FXI_GT_READER ? readers : writers;
	size_t n = kind == FXI_GT_READER ? G_N_ELEMENTS(readers) : G_N_ELEMENTS(writers);

	for (size_t i = 0; i < n; i++)
		if (strcmp(ports[i].classname, classname) == 0)
			return &ports[i];
	return NULL;
}

bool fxi_gt_elsewhere(const char *classname)
{
	for (size_t i = 0; i < G_N_ELEMENTS(elsewhere); i++)
		if (strcmp(elsewhere[i], classname) == 0)
			return true;
	return false;
}

const char *fxi_gt_nearest(int kind, const char *classname)
{
	const char *names[G_N_ELEMENTS(aliases) + G_N_ELEMENTS(elsewhere) + G_N_ELEMENTS(writers)];
	int64_t n = 0;

	for (size_t i = 0; i < G_N_ELEMENTS(aliases) && kind == FXI_GT_GADGET; i++)
		names[n++] = aliases[i].classname;
	for (size_t i = 0; i < G_N_ELEMENTS(elsewhere) && kind == FXI_GT_GADGET; i++)
		names[n++] = elsewhere[i];
	for (size_t i = 0; i < G_N_ELEMENTS(readers) && kind == FXI_GT_READER; i++)
		names[n++] = readers[i].classname;
	for (size_t i = 0; i < G_N_ELEMENTS(writers) && kind == FXI_GT_WRITER; i++)
		names[n++] = writers[i].classname;
	return fxi_nearest_name(classname, names, n);
}

const char *fxi_gt_dimension(const char *word)
{
	static const char *const words[] = {"kspace_encode_step_1", "kspace_encode_step_2", "average", "slice", "contrast", "phase",
		"repetition", "set", "segment", "user_0", "user_1", "user_2", "user_3", "user_4", "user_5", "user_6", "user_7",
		"n_acquisitions", "none"};

	for (size_t i = 0; i < G_N_ELEMENTS(words); i++)
		if (g_ascii_strcasecmp(words[i], *word ? word : "none") == 0)
			return words[i];
	return NULL;
}
