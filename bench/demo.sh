#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The main jobs, small, on raw 8-coil scans with a known answer: a 3-D radial scan reconstructed by gridding and
# iteratively, and a diffusion scan taken from k-space to fibres and ranked connections in one run.
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

say "a raw diffusion scan: a ring of fibres, 56 x 56 x 16 voxels, single-shot spirals, 5 b0 and 30 directions, SNR 30"
"$fornix" phantom ring --matrix 56,56,16 --snr 30 -o "$out/ring.h5" >/dev/null
say "fornix run kspace_to_fibres $out/ring.h5 -o $out/fibres (connections between the scan's three regions)"
"$fornix" run kspace_to_fibres "$out/ring.h5" -o "$out/fibres" --quiet \
	--set connect.targets="$out/ring_truth_labels.nii.gz" --set connect.source="$out/ring_truth_labels.nii.gz"
"$fornix" compare --json --mask "$out/ring_truth_bundle.nii.gz" "$out/fibres/fa.nii.gz" "$out/ring_truth_fa.nii.gz" \
	>"$out/fibres/compare.json"

say "results"
python3 "$here/demo_table.py" "$out"
