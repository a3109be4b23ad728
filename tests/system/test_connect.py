# SPDX-License-Identifier: MIT
"""Tensor image to ranked connections through `fornix run`: constant field, exact measures, files read by json, csv and nibabel."""
import csv
import json
import os
import subprocess
import sys
import tempfile

try:
    import nibabel
    import numpy as np
except ImportError as missing:
    print("skipped:", missing)
    sys.exit(77)

FORNIX = os.environ.get("FORNIX", "build/bin/fornix")
work = tempfile.mkdtemp()
AFFINE = np.array([[-2, 0, 0, 30], [0, 2, 0, -10], [0, 0, 2.0, 5]] + [[0, 0, 0, 1]])  # x runs from right to left
SHAPE = (24, 9, 9)


def save(name, data, affine=AFFINE):
    path = os.path.join(work, name)
    nibabel.save(nibabel.Nifti1Image(data, affine), path)
    return path


def run(out, threads, *options, fails=None):
    chain = os.path.join(work, "chain.xml")
    with open(chain, "w") as f:
        f.write('<pipeline xmlns="urn:fornix:pipeline:1" summary="test"><metric/><track step="0.3" seeds="%s" both_ways="false"/>'
                '<connect/><write_tracts/></pipeline>' % seeds)
    done = subprocess.run([FORNIX, "run", chain, tensors, "-o", out, "--threads", threads, "--no-cache", *options],
                          capture_output=True, text=True)
    assert done.returncode == (fails or 0), done.stderr
    return done.stderr


d = np.zeros(SHAPE + (1, 6), np.float32)
d[..., :] = [1.7, 0, 0.3, 0, 0, 0.3]
image = nibabel.Nifti1Image(d, AFFINE)
image.header.set_intent(1005, (3,))
tensors = os.path.join(work, "tensors.nii.gz")
nibabel.save(image, tensors)
labels = np.zeros(SHAPE, np.int16)
labels[20:22] = 4
labels = save("labels.nii.gz", labels)
elsewhere = save("elsewhere.nii.gz", np.ones(SHAPE, np.int16), AFFINE + np.array([[0, 0, 0, 1.0]] + 3 * [[0, 0, 0, 0]]))
seeds = os.path.join(work, "seeds.txt")
with open(seeds, "w") as f:  # from voxel x = 3.2; the target begins at 19.5
    for k in range(5):
        f.write(f"{30 - 2 * 3.2} {-4 + k} 12.7 -1 0 0\n")

one, four = os.path.join(work, "one"), os.path.join(work, "four")
run(one, "1", "--set", "connect.targets=" + labels)
run(four, "4", "--set", "connect.targets=" + labels)
for name in ("connectivity.json", "connectivity.csv"):
    with open(os.path.join(one, name), "rb") as a, open(os.path.join(four, name), "rb") as b:
        assert a.read() == b.read(), name

with open(os.path.join(one, "connectivity.json")) as f:
    found = json.load(f)
assert found["measure"]["unit"] == "sqrt(um^2/ms)" and found["n_fibres"] == 5
(pair,) = found["pairs"]
assert (pair["source"], pair["target"], pair["n_fibres"]) == (0, 4, 5)
for fibre in pair["fibres"]:  # float32 running sums over a hundred steps; in flat space the determinant is 1
    assert abs(fibre["measure"] - 1.7 ** 0.5) < 1e-4 and abs(fibre["length_mm"] - 2 * (19.5 - 3.2)) < 1e-3, fibre
    assert abs(fibre["jacobi"] - 1) < 1e-3 and not fibre["degenerate"], fibre
with open(os.path.join(one, "connectivity.csv")) as f:
    rows = list(csv.DictReader(f))
assert [int(r["rank"]) for r in rows] == [1, 2, 3, 4, 5]
tracts = [n for n in os.listdir(one) if n.endswith((".tck", ".trk"))]
for name in tracts:
    lines = nibabel.streamlines.load(os.path.join(one, name)).streamlines
    assert len(lines) == 5
    for line in lines:  # cut at the face of the target
        assert abs(line[-1][0] - (30 - 2 * 19.5)) < 1e-3 and abs(line[0][0] - (30 - 2 * 3.2)) < 1e-3, line
assert tracts, os.listdir(one)

bad = os.path.join(work, "bad")
assert "another space" in run(bad, "2", "--set", "connect.targets=" + elsewhere, fails=1)
assert "label 9 has no voxel" in run(bad, "2", "--set", "connect.targets=" + labels, "--set", "connect.target_labels=9", fails=1)
print("connections read back as they must be")
