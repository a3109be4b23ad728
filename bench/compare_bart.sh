#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Fornix against BART, side by side in one run: 128^3 voxels, 131,072 samples of a 3-D radial scan, one coil, ten
# iterations from zero, from files to files. usage: bench/compare_bart.sh [build/bin/fornix [ROUNDS]]
set -euo pipefail

fornix=$(realpath "${1:-build/bin/fornix}")
for tool in "$fornix" bart /usr/bin/time; do
	command -v "$tool" >/dev/null || { echo "compare_bart.sh needs $tool (apt-get install bart time)" >&2; exit 2; }
done
tools=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../tests/system")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
export XDG_CACHE_HOME=$scratch/cache # no kernel of an earlier run

# One scan for both: Fornix's phantom, turned into BART's files.
"$fornix" phantom shepp-logan --trajectory radial3d --matrix 128,128,128 --readouts 1024 --samples 128 --no-truth -o scan.h5
/usr/bin/python3 - "$tools" <<'PYTHON'
import sys
sys.path.insert(0, sys.argv[1])
import bart_tools
k, samples, heads = bart_tools.read_mrd("scan.h5")
bart_tools.to_bart(".", k, samples, len(heads), (128, 128, 128))
PYTHON
bart ones 4 128 128 128 1 maps

measure() { # measure NAME COMMAND…: wall seconds, processor seconds and peak memory into NAME.txt
	local name=$1
	shift
	/usr/bin/time -o "$name.txt" -f '%e %U %S %M' "$@" >"$name.log" 2>&1 || { cat "$name.log" >&2; exit 1; }
}
printf '%-24s %8s %10s %10s\n' "$(nproc) processors" seconds processor "peak MiB"
for ((round = 1; round <= ${2:-3}; round++)); do
	measure bart bart pics -l2 -r0.001 -i10 -t traj ksp maps img
	measure fornix "$fornix" run iterative scan.h5 -o "out$round" --set cg.iterations=10 --set cg.tolerance=0 \
		--set cg.start=zero --set prior.lambda=0 --set write_nifti.complex=true --no-cache
	for name in bart fornix; do
		read -r seconds user system kib <"$name.txt"
		printf '%-24s %8s %10s %10d\n' "$name, round $round" "$seconds" \
			"$(awk "BEGIN { print $user + $system }")" $((kib / 1024))
	done
done
/usr/bin/python3 - "$tools" <<'PYTHON'
import sys
sys.path.insert(0, sys.argv[1])
import bart_tools
import nibabel
import numpy as np
theirs, ours = bart_tools.read_cfl("img"), np.squeeze(np.asarray(nibabel.load("out1/image.nii.gz").dataobj))
theirs = theirs * (np.vdot(theirs, ours) / np.vdot(theirs, theirs))
print(f"the images differ by {np.linalg.norm(ours - theirs) / np.linalg.norm(ours):.4f} after a scale fit")
PYTHON
