/* SPDX-License-Identifier: MIT */
/*
 * mrd_wire.h - the MRD wire format: messages of a 16-bit id and a body, little-endian, back to back.
 *
 * MRD's acquisition and image headers are packed to 2 bytes and the waveform header aligned, as in its C headers; the
 * asserts here hold compilers to it.
 */
#ifndef FORNIX_IO_MRD_WIRE_H
#define FORNIX_IO_MRD_WIRE_H

#include <fornix/message.h>

enum fxi_mrd_id {
	FXI_MRD_CONFIG_FILE = 1,   /* char[1024] */
	FXI_MRD_CONFIG_TEXT = 2,   /* u32 length, text */
	FXI_MRD_HEADER = 3,        /* u32 length, XML */
	FXI_MRD_CLOSE = 4,
	FXI_MRD_TEXT = 5,          /* u32 length, text */
	FXI_MRD_QUERY = 6,         /* u64 reserved, u64 id, u64 length, text */
	FXI_MRD_RESPONSE = 7,      /* u64 id, u64 length, text */
	FXI_MRD_ACQUISITION = 1008, /* header, f32 trajectory {dims, samples}, cf32 data {samples, channels} */
	FXI_MRD_DEPENDENCY = 1019, /* u64 length, XML */
	FXI_MRD_IMAGE = 1022,      /* header, u64 length of meta XML, meta, data {x, y, z, channels} */
	FXI_MRD_WAVEFORM = 1026    /* header, u32 {samples, channels} */
};

#define FXI_MRD_CONFIG_FILE_BYTES 1024

#ifndef __cplusplus
_Static_assert(sizeof(ISMRMRD_AcquisitionHeader) == 340, "MRD's wire format");
_Static_assert(sizeof(ISMRMRD_ImageHeader) == 198, "MRD's wire format");
_Static_assert(sizeof(ISMRMRD_WaveformHeader) == 40, "MRD's wire format");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "headers are copied as they are");
#endif

/** FX_U16 and the like for an MRD data type; 0 where unknown. */
int fxi_mrd_to_type(int data_type);
/** ISMRMRD_USHORT and the like for an fx_type; 0 where MRD has none. */
int fxi_mrd_from_type(int type);

#endif
