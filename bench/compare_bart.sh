#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Fornix against BART, side by side in one run: 128^3 voxels, 131,072 samples of a 3-D radial scan, one coil, ten
# iterations, from files to files. usage: bench/compare_bart.sh [build/bin/fornix]
set -euo pipefail

fornix=$(realpath "${1:-build/bin/fornix}")
for tool in "$fornix" bart /usr/bin/time; do
	command -v "$tool" >/dev/null || { echo "compare_bart.sh needs $tool (apt-get install bart time)" >&2; exit 2; }
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
export XDG_CACHE_HOME=$scratch/cache # no kernel of an earlier run

# One scan for both: Fornix's phantom, turned into BART's files.
"$fornix" phantom shepp-logan --trajectory radial3d --matrix 128,128,128 --readouts 1024 --samples 128 --no-truth -o scan.h5
/usr/bin/python3 - "$(dirname "$fornix")/../../tests/system" <<'PYTHON' || exit 1
import sys
sys.path.insert(0, sys.argv[1])
import bart_tools
k, samples, heads = bart_tools.read_mrd("scan.h5")
bart_tools.to_bart(".", k, samples, len(heads), (128, 128, 128))
PYTHON
bart ones 4 128 128 128 1 maps

measure() { # measure NAME COMMAND…: wall seconds and peak memory into NAME.txt
	local name=$1
	shift
	/usr/bin/time -o "$name.txt" -f '%e %M' "$@" >"$name.log" 2>&1 || { cat "$name.log" >&2; exit 1; }
}
printf '%-28s %8s %10s\n' "$(nproc) processors" seconds "peak MiB"
for round in 1 2 3; do
	measure bart bart pics -l2 -r0.001 -i10 -t traj ksp maps img
	measure fornix "$fornix" run iterative scan.h5 -o "out$round" --set cg.iterations=10 --set cg.tolerance=0 \
		--no-cache
	for name in bart fornix; do
		read -r seconds kib <"$name.txt"
		printf '%-28s %8s %10d\n' "$name, round $round" "$seconds" $((kib / 1024))
	done
done
