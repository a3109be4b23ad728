# Debian package names stand in ./bootstrap. All of these are C libraries with pkg-config files, but for the MRD headers.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

pkg_check_modules(FX_DEPS REQUIRED IMPORTED_TARGET
	glib-2.0>=2.70 gmodule-2.0 gio-2.0 json-glib-1.0 libxml-2.0 fftw3f fftw3 openblas lapacke cairo zlib)

# HDF5's serial flavour: Debian keeps it in a folder of its own.
pkg_check_modules(FX_HDF5 IMPORTED_TARGET hdf5-serial)
if(NOT FX_HDF5_FOUND)
	pkg_check_modules(FX_HDF5 REQUIRED IMPORTED_TARGET hdf5)
endif()

# MRD's structs only: nothing of libismrmrd is linked into Fornix.
find_path(FX_MRD_INCLUDE ismrmrd/ismrmrd.h REQUIRED)
add_library(fornix_mrd_headers INTERFACE)

find_path(FX_NIFTI_INCLUDE nifti/nifti2_io.h REQUIRED)
find_library(FX_NIFTI2_LIB nifti2 REQUIRED)
find_library(FX_ZNZ_LIB znz REQUIRED)

add_library(fornix_dependencies INTERFACE)
target_include_directories(fornix_dependencies INTERFACE ${FX_NIFTI_INCLUDE})
target_link_libraries(fornix_dependencies INTERFACE
	PkgConfig::FX_DEPS PkgConfig::FX_HDF5 ${FX_NIFTI2_LIB} ${FX_ZNZ_LIB} Threads::Threads ${CMAKE_DL_LIBS} m)
