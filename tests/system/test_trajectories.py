# SPDX-License-Identifier: MIT
"""Scans without a trajectory get it from a rule or a file, and delays that were simulated are found and undone."""
import json
import os
import subprocess
import sys
import tempfile

import h5py
import nibabel
import numpy as np

FORNIX = os.environ["FORNIX"]


def phantom(path, *options):
    subprocess.run([FORNIX, "phantom", "shepp-logan", "-o", path, *options], check=True, stdout=subprocess.DEVNULL)


def image(folder, scan, *settings, pipeline="gridding"):
    out = os.path.join(folder, "out")
    command = [FORNIX, "run", pipeline, scan, "-o", out, "--quiet", "--set", "write_nifti.complex=true"]
    for setting in settings:
        command += ["--set", setting]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return None, done.stderr
    with open(os.path.join(out, "run.json"), encoding="utf-8") as file:
        stages = json.load(file)["gadgets"]
    record = next(s for s in stages if s["name"] == "trajectory")
    return np.asarray(nibabel.load(os.path.join(out, "image.nii.gz")).dataobj), record


def distance(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


def trajectories(path):
    with h5py.File(path) as file:
        return [np.asarray(row["traj"]).reshape(-1, 2) for row in file["dataset/data"][:]]


def rules(folder):
    scans = [("radial", ["-t", "radial", "--readouts", "50"], ["trajectory.kind=radial"]),
             ("full turn", ["-t", "radial", "--readouts", "50", "--full-turn"],
              ["trajectory.kind=radial", "trajectory.turn=full"]),
             ("golden", ["-t", "radial", "--readouts", "50", "--golden"], ["trajectory.kind=golden"]),
             ("spiral", ["-t", "spiral", "--readouts", "4"], ["trajectory.kind=spiral"]),
             ("golden3d", ["-t", "radial3d", "--golden", "--matrix", "16,16,16", "--readouts", "300"],
              ["trajectory.kind=golden3d"]),
             ("stack", ["-t", "stack-of-stars", "--matrix", "16,16,8", "--readouts", "20"], ["trajectory.kind=radial"])]
    for name, options, settings in scans:
        options = options if "--matrix" in options else options + ["--matrix", "32,32,1"]
        with_it, without = os.path.join(folder, "with.h5"), os.path.join(folder, "without.h5")
        phantom(with_it, "--no-truth", *options)
        phantom(without, "--no-truth", "--no-trajectory", *options)
        wanted, _ = image(folder, with_it)
        got, why = image(folder, without, *settings)
        assert got is not None, (name, why)
        # k is rounded to single in the file, and by the rule from the same numbers: half a unit in 2^-25 of 1 cycle/voxel
        # over 16 voxels turns phases by 3e-6
        assert distance(got, wanted) < 1e-5, (name, distance(got, wanted))
        print(f"{name}: {distance(got, wanted):.1e}")
    got, why = image(folder, without)
    assert got is None and "carries no trajectory" in why, why


def files(folder):
    scan, bare = os.path.join(folder, "with.h5"), os.path.join(folder, "bare.h5")
    options = ["--no-truth", "-t", "spiral", "--readouts", "4", "--matrix", "32,32,1", "--units", "cycles_per_fov"]
    phantom(scan, *options)
    phantom(bare, "--no-trajectory", *options)
    k = trajectories(scan)
    every, first = os.path.join(folder, "every.txt"), os.path.join(folder, "first.csv")
    with open(every, "w", encoding="utf-8") as file:
        file.write("# kx ky\n" + "\n".join("".join(f"{x:.9g} {y:.9g}\n" for x, y in block) for block in k))
    with open(first, "w", encoding="utf-8") as file:
        file.write("".join(f"{x:.9g},{y:.9g}\n" for x, y in k[0]))
    wanted, _ = image(folder, scan)
    for source in (every, first, scan):
        got, why = image(folder, bare, f"trajectory.file={source}", "trajectory.unit=cycles_per_fov")
        assert got is not None, why
        assert distance(got, wanted) < 1e-5, (source, distance(got, wanted))
    with open(first, "a", encoding="utf-8") as file:
        file.write("1,2,3\n")
    got, why = image(folder, bare, f"trajectory.file={first}")
    assert got is None and "3 columns" in why, why
    got, why = image(folder, bare, f"trajectory.file={every}", "trajectory.kind=radial")
    assert got is None and "set one of them" in why, why


def delays(folder):
    scan, late = os.path.join(folder, "scan.h5"), os.path.join(folder, "late.h5")
    options = ["--no-truth", "-t", "radial", "--full-turn", "--readouts", "200", "--matrix", "64,64,1", "--coils", "4"]
    phantom(scan, *options)
    phantom(late, "--delay-us", "2.4,1.6,0", *options)  # dwell 4 us: 0.6 and 0.4 samples
    wanted, _ = image(folder, scan)
    worse, _ = image(folder, late)
    told, _ = image(folder, late, "trajectory.delay_us=2.4,1.6,0")
    found, record = image(folder, late, "trajectory.delay=auto")
    us = record["record"]["delay_us"]
    print(f"delays of 2.4 and 1.6 us were found to be {us}; error {distance(worse, wanted):.4f} uncorrected, "
          f"{distance(found, wanted):.4f} corrected, {distance(told, wanted):.4f} with the true ones")
    # first order leaves sideways shifts out: a tenth of the axes' difference
    assert abs(us[0] - 2.4) < 0.15 and abs(us[1] - 1.6) < 0.15 and us[2] is None, us
    # known delays leave what other sample positions and the lost rim of k-space change; found ones little more
    assert distance(told, wanted) < distance(worse, wanted) / 3
    assert distance(found, wanted) < distance(worse, wanted) / 2.5
    phantom(late, "--delay-us", "2.4,1.6,0", *[o for o in options if o != "--full-turn"])
    _, record = image(folder, late, "trajectory.delay=auto")
    assert any("opposed" in text for text in record["warnings"]), record
    got, why = image(folder, late, "trajectory.delay_us=1,2")
    assert got is None and "three between commas" in why, why


def main():
    with tempfile.TemporaryDirectory() as folder:
        rules(folder)
        files(folder)
        delays(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
