#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Fornix against MRtrix3 and DIPY on diffusion series, side by side in one run, from files to files, on whatever else the machine
# does: seconds by the clock are the best of the rounds, processor seconds (user + system) those of the same round.
# usage: bench/compare_diffusion.sh [build/bin/fornix [ROUNDS]]
set -euo pipefail

fornix=$(realpath "${1:-build/bin/fornix}")
rounds=${2:-3}
for tool in "$fornix" dwi2tensor tckgen /usr/bin/time; do
	command -v "$tool" >/dev/null || { echo "compare_diffusion.sh needs $tool (apt-get install mrtrix3 time)" >&2; exit 2; }
done
/usr/bin/python3 -c 'import dipy, nibabel' || { echo "compare_diffusion.sh needs DIPY: apt-get install python3-dipy" >&2; exit 2; }
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

# Fibres of the phantom's ring, 100 x 100 x 20 voxels of 2.5 mm, 5 b0 and 30 directions of b 1000, SNR 30. Everybody has the
# same series, the same mask (FA above 0.3 where there is signal), the same seeds (the centre of every second voxel of it),
# steps of 0.1 voxel, and fibres of up to 100 voxels; only geodesics go on until the mask or their 4096 steps end.
tracking_data() {
	"$fornix" phantom ring --matrix=100,100,20 --coils=1 --acceleration=1 --snr=30 --no-truth --images=ring.nii.gz \
		-o ring.h5 >ring.log
	gunzip ring.nii.gz
	dwi2tensor -quiet -fslgrad ring.bvec ring.bval ring.nii ring_tensor.nii
	tensor2metric -quiet ring_tensor.nii -fa fa.nii
	/usr/bin/python3 - <<'PYTHON'
import nibabel
import numpy as np
fa = nibabel.load("fa.nii")
b0 = nibabel.load("ring.nii").get_fdata()[..., 0]
mask = (np.nan_to_num(fa.get_fdata()) > 0.3) & (b0 > 0.3 * np.percentile(b0, 99))
seeds = np.zeros(mask.shape, bool)
seeds.flat[np.flatnonzero(mask)[::2]] = True
for name, data in (("mask.nii", mask), ("seeds.nii", seeds)):
    nibabel.save(nibabel.Nifti1Image(data.astype(np.uint8), fa.affine), name)
print(f"tracking: {mask.sum()} voxels, {seeds.sum()} seeds")
PYTHON
	for kind in inverse sharpened streamline; do
		method=geodesic metric=$kind
		[ "$kind" = streamline ] && method=streamline metric=inverse
		cat >"$kind.xml" <<-XML
			<pipeline xmlns="urn:fornix:pipeline:1"><dwi_mask image="mask.nii"/><tensor_fit/><metric kind="$metric"/>
			<track method="$method" integrator="rk2" step="0.1" seeds="seeds.nii" placement="centre"/><write_tracts/></pipeline>
		XML
	done
	# DIPY's own way to follow tensors: their ODFs' peaks on a sphere first, then fibres through these
	cat >dipy_track.py <<'PYTHON'
import json
import sys
import time
import nibabel
from dipy.core.gradients import gradient_table
from dipy.data import get_sphere
from dipy.direction import peaks_from_model
from dipy.reconst.dti import TensorModel
from dipy.tracking.local_tracking import LocalTracking
from dipy.tracking.stopping_criterion import BinaryStoppingCriterion
from dipy.tracking.utils import seeds_from_mask
import numpy as np
data, mask, seeds = (np.asarray(nibabel.load(name).dataobj) for name in ("ring.nii", "mask.nii", "seeds.nii"))
affine = nibabel.load("ring.nii").affine
gradients = gradient_table(np.loadtxt("ring.bval"), np.loadtxt("ring.bvec").T)
start = time.time(), time.process_time()
peaks = peaks_from_model(TensorModel(gradients), data, get_sphere("repulsion724"), 0.5, 25, mask=mask > 0, npeaks=1)
result = {"peaks": [time.time() - start[0], time.process_time() - start[1]], "tracking": []}
places = seeds_from_mask(seeds > 0, affine, 1)
for _ in range(int(sys.argv[1])):
    start = time.time(), time.process_time()
    fibres = list(LocalTracking(peaks, BinaryStoppingCriterion(mask > 0), places, affine, step_size=0.25, maxlen=500))
    result["tracking"].append([time.time() - start[0], time.process_time() - start[1], sum(map(len, fibres)), len(fibres)])
json.dump(result, open("dipy.json", "w"))
PYTHON
}

tracking() {
	tracking_data
	local kind round
	for ((round = 1; round <= rounds; round++)); do
		measure tckgen tckgen -quiet -force -nthreads 2 -algorithm Tensor_Det -fslgrad ring.bvec ring.bval -mask mask.nii \
			-seed_grid_per_voxel seeds.nii 1 -select 0 ring.nii theirs.tck
		for kind in inverse sharpened streamline; do
			measure "$kind" "$fornix" run -q --threads=2 -o "$kind" "$kind.xml" ring.nii
			cp "$kind/run.json" "$kind.$round.json"
		done
	done
	/usr/bin/python3 dipy_track.py "$rounds"
	/usr/bin/python3 - "$rounds" <<'PYTHON'
import json
import sys
rounds = int(sys.argv[1])


def points_of(path):
    """Points of a .tck: triplets of floats, less one NaN a fibre and the infinity at the end."""
    text = open(path, "rb").read()
    fields = dict(line.split(b": ", 1) for line in text[:text.index(b"END\n")].split(b"\n") if b": " in line)
    fibres = int(fields[b"count"])
    return (len(text) - int(fields[b"file"].split()[1])) // 12 - fibres - 1, fibres


def row(name, fibres, points, seconds, processor):
    print(f"  {name:44s} {fibres:6d} fibres {points / 1e6:6.2f} M points {seconds:7.3f} s, processor {processor:7.3f} s: "
        f"{points / seconds / 1e6:6.2f} M points/s, {points / processor / 1e6:6.2f} a processor second")
    return points / seconds, points / processor


def best(name):
    seconds, user, system, _ = min(tuple(map(float, line.split())) for line in open(f"{name}.txt"))
    return seconds, user + system


points, fibres = points_of("theirs.tck")
mrtrix = row("tckgen Tensor_Det, 2 threads, whole command", fibres, points, *best("tckgen"))
result = json.load(open("dipy.json"))
print("  DIPY peaks_from_model of tensors, ahead of it: %.1f s, processor %.1f s" % tuple(result["peaks"]))
seconds, processor, points, fibres = min(result["tracking"])
dipy = row("DIPY LocalTracking, tracking alone", fibres, points, seconds, processor)
for kind in ("inverse", "sharpened", "streamline"):
    runs = [json.load(open(f"{kind}.{i}.json")) for i in range(1, rounds + 1)]
    track = min((next(g for g in run["gadgets"] if g["name"] == "track") for run in runs), key=lambda g: g["seconds"])
    points, fibres = points_of(f"{kind}/tracts.tck")
    if points != track["record"]["n_points"]:
        sys.exit(f"{kind}/tracts.tck has {points} points, run.json says {track['record']['n_points']}")
    rate = track["record"]["points_per_s"]
    whole = row(f"fornix {kind}, fit to file", fibres, points, *best(kind))
    print(f"  fornix {kind}, track alone: {track['seconds']:.3f} s, {rate / 1e6:.2f} M points/s")
    print(f"    ratios: {rate / mrtrix[0]:.1f} of track to tckgen, {rate / dipy[0]:.1f} to DIPY; whole command to tckgen "
        f"{whole[0] / mrtrix[0]:.1f} (processor {whole[1] / mrtrix[1]:.1f}), to DIPY {whole[0] / dipy[0]:.1f} "
        f"(processor {whole[1] / dipy[1]:.1f})")
PYTHON
}

processor=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)
echo "$(date -I), $(nproc) processors ($processor), load $(cut -d' ' -f1-3 /proc/loadavg)"
dipy=$(/usr/bin/python3 -c 'import dipy; print(dipy.__version__)')
echo "$("$fornix" --version | head -1); $(dwi2tensor --version | head -1 | tr -d '='); DIPY $dipy"
tensor_fit
tracking
echo "van Aart et al.'s workload, geodesics in a box:"
"$fornix" bench track
echo "load at the end: $(cut -d' ' -f1-3 /proc/loadavg)"
