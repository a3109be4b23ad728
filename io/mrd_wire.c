/* SPDX-License-Identifier: MIT */
/* mrd_wire.c - see mrd_wire.h. */
#include "mrd_wire.h"

static const struct {
	int mrd, type;
} types[] = {
	{ISMRMRD_USHORT, FX_U16}, {ISMRMRD_SHORT, FX_I16},   {ISMRMRD_UINT, FX_U32},     {ISMRMRD_INT, FX_I32},
	{ISMRMRD_FLOAT, FX_F32},  {ISMRMRD_DOUBLE, FX_F64},  {ISMRMRD_CXFLOAT, FX_CF32}, {ISMRMRD_CXDOUBLE, FX_CF64},
};

int fxi_mrd_to_type(int data_type)
{
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
		if (types[i].mrd == data_type)
			return types[i].type;
	return 0;
}

int fxi_mrd_from_type(int type)
{
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
		if (types[i].type == type)
			return types[i].mrd;
	return 0;
}
