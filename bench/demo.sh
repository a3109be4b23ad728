#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The main job, small: a raw 8-coil 3-D radial scan with a known answer, reconstructed by gridding and iteratively.
# usage: bench/demo.sh FORNIX FOLDER
set -euo pipefail

fornix=$1
out=$2
here=$(dirname "${BASH_SOURCE[0]}")

say() { printf '\n==> %s\n' "$*"; }

mkdir -p "$out"
# A quarter of the spokes that Nyquist asks for, and noise: what a scan in a hurry looks like.
say "a raw scan: 64 x 64 x 64 voxels, 8 coils, 3-D radial, undersampled, with noise"
"$fornix" phantom shepp-logan --trajectory radial3d --matrix 64,64,64 --coils 8 --readouts 1600 --noise 0.01 \
	-o "$out/scan.h5" | tee "$out/phantom.txt"
for pipeline in gridding iterative; do
	say "fornix run $pipeline $out/scan.h5 -o $out/$pipeline"
	"$fornix" run "$pipeline" "$out/scan.h5" -o "$out/$pipeline"
done

say "against the truth"
for pipeline in gridding iterative; do
	"$fornix" compare --json "$out/$pipeline/image.nii.gz" "$out/scan_truth.nii.gz" >"$out/$pipeline/compare.json"
done
python3 "$here/demo_table.py" "$out"
