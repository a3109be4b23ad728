#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Fornix against MRtrix3 on diffusion series, side by side in one run, from files to files, on whatever else the machine does.
# usage: bench/compare_diffusion.sh [build/bin/fornix [ROUNDS]]
set -euo pipefail

fornix=$(realpath "${1:-build/bin/fornix}")
rounds=${2:-3}
for tool in "$fornix" dwi2tensor /usr/bin/time; do
	command -v "$tool" >/dev/null || { echo "compare_diffusion.sh needs $tool (apt-get install mrtrix3 time)" >&2; exit 2; }
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
export XDG_CACHE_HOME=$scratch/cache

measure() { # measure NAME COMMAND…: appends wall seconds, processor seconds and peak memory to NAME.txt
	local name=$1
	shift
	/usr/bin/time -a -o "$name.txt" -f '%e %U %S %M' "$@" >"$name.log" 2>&1 || { cat "$name.log" >&2; exit 1; }
}

report() { # report TITLE THEIRS OURS: the best of the rounds, and their ratio
	local theirs ours
	theirs=$(sort -n "$2.txt" | head -1)
	ours=$(sort -n "$3.txt" | head -1)
	awk -v title="$1" -v theirs="$theirs" -v ours="$ours" -v a="$2" -v b="$3" 'BEGIN {
		split(theirs, t); split(ours, o)
		printf "%s\n  %-28s %7.2f s  processor %7.2f s  peak %5d MiB\n", title, a, t[1], t[2] + t[3], t[4] / 1024
		printf "  %-28s %7.2f s  processor %7.2f s  peak %5d MiB\n", b, o[1], o[2] + o[3], o[4] / 1024
		printf "  ratio: %.1f in time, %.1f in processor time\n", t[1] / o[1], (t[2] + t[3]) / (o[2] + o[3]) }'
}

# 196,608 voxels of noisy tensors, 6 b0 and 60 directions of b 1000, 52 MB: the WLS fit with two reweightings, which is both
# programs' default. Ours writes a compressed tensor image, MRtrix a plain one: ours has more to do.
tensor_fit() {
	/usr/bin/python3 - <<'PYTHON'
import nibabel
import numpy as np
random = np.random.default_rng(1)
dims, n = (64, 64, 48), 66
i = np.arange(60)
z, a = 1 - (i + 0.5) / 60, 2.399963 * i
g = np.zeros((3, n))
g[:, 6:] = np.sqrt(1 - z * z) * np.cos(a), np.sqrt(1 - z * z) * np.sin(a), z
b = np.where(np.arange(n) < 6, 0, 1000)
j = random.normal(size=(np.prod(dims), 3, 3)) * 0.6
d = np.einsum("vij,vkj->vik", j, j) * 0.5 + 0.3 * np.eye(3)
s = np.stack([1000 * np.exp(-b[k] / 1000 * np.einsum("i,vij,j->v", g[:, k], d, g[:, k])) for k in range(n)], -1)
s = np.abs(s + random.normal(size=s.shape) * 20).astype(np.float32)
nibabel.save(nibabel.Nifti1Image(s.reshape(*dims, n), np.diag([-2, 2, 2, 1])), "dwi.nii")
np.savetxt("dwi.bval", b[None], fmt="%g")
np.savetxt("dwi.bvec", g, fmt="%.8f")
PYTHON
	cat >fit.xml <<-'XML'
		<pipeline xmlns="urn:fornix:pipeline:1"><tensor_fit/><write_tensors maps="tensor" order="mrtrix"/></pipeline>
	XML
	for ((round = 1; round <= rounds; round++)); do
		measure dwi2tensor dwi2tensor -quiet -force -fslgrad dwi.bvec dwi.bval dwi.nii theirs.nii
		measure fornix_fit "$fornix" run -q -o ours fit.xml dwi.nii
	done
	report "tensor fit, 196,608 voxels x 66 volumes" dwi2tensor fornix_fit
	/usr/bin/python3 - <<'PYTHON'
import json
import nibabel
import numpy as np
theirs, ours = (np.asarray(nibabel.load(name).dataobj) for name in ("theirs.nii", "ours/tensor.nii.gz"))
error = np.linalg.norm(ours - theirs, axis=-1) / np.linalg.norm(theirs, axis=-1)
clamped = json.load(open("ours/run.json"))["gadgets"][0]["record"]
print(f"  tensors differ by {np.median(error):.1e} (median), {np.percentile(error, 99.9):.1e} (99.9 %), relative to their norm; "
      f"{clamped['clamped']} voxels were clamped\n  of our time the fit took {clamped['seconds_to_final']:.3f} s")
PYTHON
}

echo "$(nproc) processors, load $(cut -d' ' -f1 /proc/loadavg); $(dwi2tensor --version | head -1 | tr -d '=')"
tensor_fit
