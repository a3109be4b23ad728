# SPDX-License-Identifier: MIT
"""A real 8-coil spiral scan, judged outside Fornix: do the image and the maps predict the measured k-space?"""
import json
import os
import subprocess
import sys
import tempfile

import nibabel
import numpy as np

import bart_tools

SCAN = os.path.join(os.environ["FORNIX_DATA"], "recon", "spiral_phantom_8ch.h5")
MATRIX = (256, 256)


def run(pipeline, out, *settings):
    """Runs a pipeline on the scan; returns its complex image {x, y} and run.json."""
    command = [os.environ["FORNIX"], "run", pipeline, SCAN, "-o", out, "--set", "write_nifti.complex=true"]
    for setting in settings:
        command += ["--set", setting]
    subprocess.run(command, check=True)
    with open(os.path.join(out, "run.json"), encoding="utf-8") as file:
        record = json.load(file)
    return np.squeeze(np.asarray(nibabel.load(os.path.join(out, "image.nii.gz")).dataobj)), record


def told(record):
    """The data residual that cg itself reports: of F^H D, Q and ||D||^2, without touching a sample again."""
    return next(g["record"]["residual_data"][-1] for g in record["gadgets"] if g["name"] == "cg")


def main():
    if not os.path.exists(SCAN):
        print(f"skip: no {SCAN}")
        return 77
    k, samples, _ = bart_tools.read_mrd(SCAN)
    with tempfile.TemporaryDirectory() as scratch:
        out = os.path.join(scratch, "iterative")
        image, record = run("iterative", out, "coil_maps.save=true")
        maps = np.squeeze(np.asarray(nibabel.load(os.path.join(out, "coil_maps.nii.gz")).dataobj))
        assert image.shape == MATRIX and maps.shape == MATRIX + (8,), (image.shape, maps.shape)

        predicted = bart_tools.predict(k, (image[:, :, None] * maps)[:, :, None, :])
        residual, factor = bart_tools.data_residual(samples, predicted)
        print(f"data residual {residual:.4f}, scale fit times the root of the voxels {abs(factor) * 256:.4f}")
        # BART 0.8 with its own maps (ecalib -m1 -r24; pics -l2 -r0.001 -i20) leaves 0.1945; what no image on this grid can
        # explain, coil by coil (nufft -i), is 0.180: noise, off-resonance and what lies outside the field of view.
        assert residual <= 0.20, residual
        # F carries 1/sqrt(voxels), so the fitted factor must be that, up to what lambda and early stopping shrink.
        assert abs(abs(factor) * 256 - 1) < 0.05, factor

        # cg's own figure has no scale fit, which changes little where the factor is 1; single-precision sums, Q to 1e-5.
        assert abs(told(record) / residual - 1) < 0.01, (told(record), residual)
        # Bottles reach beyond the field of view: a larger grid lets the fit explain them.
        _, larger = run("iterative", os.path.join(scratch, "larger"), "fhd.fov_factor=1.5")
        print(f"cg says {told(record):.4f}, on a grid 1.5 times larger {told(larger):.4f}")
        assert told(larger) < 0.8 * told(record), told(larger)

        if not bart_tools.have_bart():
            print("skip: no bart, so the images were not compared with its own")
            return 0
        bart_tools.to_bart(scratch, k, samples, 60, MATRIX)
        bart_tools.bart("nufft", "-i", "-m", "10", "-d", "256:256:1", "traj", "ksp", "coils", folder=scratch)
        theirs = np.sqrt(np.sum(np.abs(bart_tools.read_cfl(os.path.join(scratch, "coils"))) ** 2, axis=-1))
        difference = np.linalg.norm(np.abs(image) - theirs) / np.linalg.norm(theirs)
        print(f"root of the sum of squares against bart nufft -i: {difference:.4f}")
        assert difference <= 0.10, difference  # no scale fit: both hold F to 1/sqrt(voxels)
    return 0


sys.exit(main())
