# Compiler flags, sanitizers, and the hot kernels that are compiled once per instruction set.
include(CheckCCompilerFlag)

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_FLAGS_RELEASE "-O3 -g1" CACHE STRING "" FORCE)

add_library(fornix_flags INTERFACE)
target_compile_definitions(fornix_flags INTERFACE _GNU_SOURCE)
target_compile_options(fornix_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
	-Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla -fno-math-errno -fno-trapping-math -fopenmp-simd)
if(FORNIX_WERROR)
	target_compile_options(fornix_flags INTERFACE -Werror)
endif()
# Products of finite complex numbers without the C99 Annex G rescue branch: NaN and Inf still come out as NaN or Inf.
check_c_compiler_flag(-fcx-limited-range FORNIX_HAS_CX_LIMITED)
if(FORNIX_HAS_CX_LIMITED)
	target_compile_options(fornix_flags INTERFACE -fcx-limited-range)
endif()

# What the sanitizers weave in hides from gcc that a value is set: its warning then cries wolf.
if(FORNIX_SANITIZE AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
	target_compile_options(fornix_flags INTERFACE -Wno-maybe-uninitialized)
endif()
if(FORNIX_SANITIZE STREQUAL "address")
	target_compile_options(fornix_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -O1)
	target_link_options(fornix_flags INTERFACE -fsanitize=address,undefined)
elseif(FORNIX_SANITIZE STREQUAL "thread")
	target_compile_options(fornix_flags INTERFACE -fsanitize=thread -fno-omit-frame-pointer -O1)
	target_link_options(fornix_flags INTERFACE -fsanitize=thread)
elseif(FORNIX_SANITIZE)
	message(FATAL_ERROR "FORNIX_SANITIZE is '${FORNIX_SANITIZE}'; it takes address, thread, or nothing")
endif()

# host/kernels/*.c hold inner loops. Each is compiled once per instruction-set level with FXI_ISA set, which its
# functions carry as a suffix; host/kernels.h picks at run time. So one build is fast on every machine.
function(fornix_kernels target)
	if(NOT ARGN)
		return()
	endif()
	set(levels base)
	if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND NOT FORNIX_SANITIZE)
		list(APPEND levels v3 v4)
		target_compile_definitions(${target} PRIVATE FXI_HAVE_X86_LEVELS)
	endif()
	foreach(level ${levels})
		add_library(${target}_kernels_${level} OBJECT ${ARGN})
		target_compile_definitions(${target}_kernels_${level} PRIVATE FXI_ISA=${level})
		target_include_directories(${target}_kernels_${level} PRIVATE ${PROJECT_SOURCE_DIR}/include)
		target_link_libraries(${target}_kernels_${level} PRIVATE fornix_flags fornix_mrd_headers)
		# -std=c11 forbids fused multiply-add by default, half of what the vector units can do.
		target_compile_options(${target}_kernels_${level} PRIVATE -ffp-contract=fast)
		set_target_properties(${target}_kernels_${level} PROPERTIES POSITION_INDEPENDENT_CODE ON)
		if(level STREQUAL "v3")
			target_compile_options(${target}_kernels_${level} PRIVATE -march=x86-64-v3)
		elseif(level STREQUAL "v4")
			target_compile_options(${target}_kernels_${level} PRIVATE -march=x86-64-v4 -mprefer-vector-width=512)
		endif()
		target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_kernels_${level}>)
	endforeach()
endfunction()
add_link_options(-Wl,--allow-shlib-undefined) # BRINGUP
