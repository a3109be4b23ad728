# SPDX-License-Identifier: MIT
"""Every pipeline gives back the phantom's amplitude without a fit, and the same bytes on one thread and on several."""
import os
import subprocess
import sys
import tempfile
import time

import nibabel
import numpy as np

FORNIX = os.environ["FORNIX"]
# (trajectory, matrix, pipelines). 2-D and 3-D, even and odd.
SCANS = [
    ("cartesian", (64, 64, 1), ["cartesian"]),
    ("cartesian", (33, 40, 1), ["cartesian"]),
    ("radial", (64, 64, 1), ["gridding", "direct", "iterative"]),
    ("radial", (65, 65, 1), ["gridding", "direct", "iterative"]),
    ("spiral", (64, 64, 1), ["gridding", "direct", "iterative"]),
    ("radial3d", (32, 32, 32), ["gridding", "direct", "iterative"]),
]


def load(path):
    return np.squeeze(np.asarray(nibabel.load(path).dataobj, dtype=np.float64))


def main():
    with tempfile.TemporaryDirectory() as scratch:
        for number, (trajectory, matrix, pipelines) in enumerate(SCANS):
            scan = os.path.join(scratch, f"{number}.h5")
            truth_file = os.path.join(scratch, f"{number}_truth.nii.gz")
            subprocess.run([FORNIX, "phantom", "ellipse", "--trajectory", trajectory, "--coils", "4",
                            "--matrix", ",".join(map(str, matrix)), "-o", scan, "--truth", truth_file],
                           check=True, stdout=subprocess.DEVNULL)
            truth = load(truth_file)
            for pipeline in pipelines:
                bytes_of = []
                for threads in ("1", "2"):
                    out = os.path.join(scratch, "out")
                    subprocess.run([FORNIX, "run", pipeline, scan, "-o", out, "--threads", threads], check=True,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    image = load(os.path.join(out, "image.nii.gz"))
                    with open(os.path.join(out, "images.h5"), "rb") as file:
                        bytes_of.append((image.tobytes(), file.read()))
                    time.sleep(1.1 if threads == "1" else 0)  # files keep no time of day, of which HDF5 counts seconds
                assert bytes_of[0] == bytes_of[1], f"{pipeline} of {trajectory} differs between one and two threads"
                assert image.shape == truth.shape, (image.shape, truth.shape)
                # The factor that would fit the image to the truth: 1, up to edges, which the truth's averages over voxels
                # blur (0.7 % for this object at 32 voxels, less on finer grids), and what lambda shrinks where k-space is thin.
                factor = np.vdot(truth, image) / np.vdot(truth, truth)
                print(f"{trajectory} {matrix} {pipeline}: amplitude {factor:.4f}")
                assert abs(factor - 1) < 0.01, (trajectory, pipeline, factor)
    return 0


sys.exit(main())
