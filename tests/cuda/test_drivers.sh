#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What is said of a machine whose driver is missing, too old, or has no GPU, with drivers made for it: the GPU asked for by name is
# refused in a sentence, and auto computes on the host and says why.
# usage: test_drivers.sh BUILD COMPILER; exits 77 where there is no CUDA backend.
set -euo pipefail
build=$1 compiler=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ -e "$build/lib/libfornix-cuda.so" ] || { echo "skipped: this build has no CUDA backend"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# expect NAME VERSION INIT SENTENCE
expect() {
	mkdir "$work/$1"
	"$compiler" -shared -fPIC -DFAKE_VERSION="$2" -DFAKE_INIT="$3" -Wl,-soname,libcuda.so.1 "$here/driver/fake_cuda.c" \
		-o "$work/$1/libcuda.so.1"
	local status=0 said
	said=$(LD_LIBRARY_PATH="$work/$1" "$build/bin/run_parity" 2>&1) || status=$?
	if [ "$status" != 77 ] || ! grep -qF "$4" <<< "$said"; then
		echo "FAILED: with $1 the parity tests ended with $status and said: $said"
		exit 1
	fi
	echo "$1: $said"
}

expect no_gpu 13000 100 "there is no GPU that CUDA can use"
expect old_driver 11000 0 "the NVIDIA driver knows CUDA 11.0 and this build needs"
