#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# An installed prefix works after it was moved, and a gadget built against it alone is loaded and does its work.
set -euo pipefail

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
die() { printf 'FAIL: %s\n' "$*" >&2; exit 1; }

cmake --install "$FORNIX_BUILD" --prefix "$scratch/first" >/dev/null
mv "$scratch/first" "$scratch/moved"
prefix=$scratch/moved
fornix=$prefix/bin/fornix

# Neither the build tree nor a library path may be what makes it run.
unset LD_LIBRARY_PATH FORNIX_GADGET_PATH
library=$(ldd "$fornix" | sed -n 's/.*libfornix[^ ]* => \([^ ]*\).*/\1/p')
[[ $(realpath "$library") == "$prefix"/lib/* ]] || die "the moved command uses $library, not the moved library"

"$fornix" list gadgets >"$scratch/gadgets"
"$fornix" list pipelines >"$scratch/pipelines"
for source in "$FORNIX_SOURCE"/gadgets/*.c; do
	name=$(basename "$source" .c)
	grep -qw "$name" "$scratch/gadgets" || die "'fornix list gadgets' does not know $name"
done
for pipeline in "$FORNIX_SOURCE"/pipelines/*.xml; do
	name=$(basename "$pipeline" .xml)
	grep -qw "$name" "$scratch/pipelines" || die "'fornix list pipelines' does not know $name"
	"$fornix" check "$name" || die "$name does not check from the moved prefix"
done

# The tutorial's commands.
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
mkdir "$scratch/my-gadgets"
read -ra cflags < <(pkg-config --cflags fornix)
read -ra libs < <(pkg-config --libs fornix)
"${CC:-cc}" -std=c11 -O2 -shared -fPIC -fvisibility=hidden "${cflags[@]}" \
	"$FORNIX_SOURCE/docs/example-gadget/apodise.c" -o "$scratch/my-gadgets/apodise.so" "${libs[@]}" -lm
# The same through CMake's package.
mkdir "$scratch/with-cmake"
cat >"$scratch/with-cmake/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.22)
project(outside C)
find_package(fornix REQUIRED)
add_library(apodise MODULE $FORNIX_SOURCE/docs/example-gadget/apodise.c)
set_target_properties(apodise PROPERTIES PREFIX "" C_STANDARD 11 C_VISIBILITY_PRESET hidden)
target_link_libraries(apodise PRIVATE fornix::fornix m)
CMAKE
cmake -S "$scratch/with-cmake" -B "$scratch/with-cmake/build" -DCMAKE_PREFIX_PATH="$prefix" >"$scratch/cmake.log" ||
	die "find_package(fornix) failed: $(cat "$scratch/cmake.log")"
cmake --build "$scratch/with-cmake/build" >"$scratch/cmake.log" || die "the gadget does not build: $(cat "$scratch/cmake.log")"
cmp -s <(FORNIX_GADGET_PATH=$scratch/with-cmake/build "$fornix" describe apodise) \
	<(FORNIX_GADGET_PATH=$scratch/my-gadgets "$fornix" describe apodise) || die "the gadget built by CMake is another one"
if "$fornix" describe apodise >/dev/null 2>&1; then die "apodise is known without FORNIX_GADGET_PATH"; fi
export FORNIX_GADGET_PATH=$scratch/my-gadgets
"$fornix" describe apodise >"$scratch/described"
grep -q strength "$scratch/described" || die "describe does not show the gadget's property"

# Behind the trajectory of the gridding pipeline: once with the window fully open, once closed.
sed 's|<trajectory\([^/>]*\)/>|&<apodise/>|' "$prefix/share/fornix/pipelines/gridding.xml" >"$scratch/apodised.xml"
grep -q '<apodise/>' "$scratch/apodised.xml" || die "gridding.xml has no <trajectory/> to put the gadget behind"
"$fornix" phantom shepp-logan --trajectory radial --matrix 64,64,1 --coils 1 -o "$scratch/scan.h5"
for strength in 0 1; do
	"$fornix" run "$scratch/apodised.xml" "$scratch/scan.h5" -o "$scratch/out$strength" --set "apodise.strength=$strength"
done
"$fornix" run gridding "$scratch/scan.h5" -o "$scratch/plain"
/usr/bin/python3 - "$scratch" <<'PYTHON'
import sys
import nibabel
import numpy as np

plain, open_, closed = (np.squeeze(nibabel.load(f"{sys.argv[1]}/{name}/image.nii.gz").get_fdata()) for name in ("plain", "out0", "out1"))
assert np.array_equal(plain, open_), "strength 0 changed the image"
rough = [np.sum(np.diff(i, axis=0) ** 2) + np.sum(np.diff(i, axis=1) ** 2) for i in (open_, closed)]
# A Hann window halves the signal at |k| = 0.25: well over a third of a disc's gradient energy lies beyond.
assert rough[1] < 0.7 * rough[0], f"the window did not smooth: {rough}"
# The window is 1 at k = 0; the magnitude's mean moves a little since the ringing outside the object goes.
assert abs(closed.mean() / open_.mean() - 1) < 0.1, f"the mean moved: {closed.mean()} from {open_.mean()}"
PYTHON
if "$fornix" run "$scratch/apodised.xml" "$scratch/scan.h5" -o "$scratch/x" --set apodise.strength=2 2>"$scratch/said"; then
	die "a strength beyond the table's range was accepted"
fi
grep -q strength "$scratch/said" || die "the refusal does not name the property: $(cat "$scratch/said")"
echo "installed, moved, and extended by apodise"
