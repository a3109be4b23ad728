# SPDX-License-Identifier: MIT
"""Gradient tables in scanner axes beside MRtrix's: real tables and images, and every table under flipped, oblique and
sheared affines. The sign rule is where programs differ without noticing."""
import glob
import os
import shutil
import subprocess
import sys
import tempfile

DATA = os.environ["FORNIX_DATA"]
TOOL = os.path.join(os.environ["FORNIX_BUILD"], "tests", "gradient_table")

try:
    import nibabel
    import numpy
except ImportError as missing:
    print("skipped:", missing)
    sys.exit(77)
if not shutil.which("mrinfo"):
    print("skipped: MRtrix's mrinfo is not installed")
    sys.exit(77)
if not os.path.isdir(os.path.join(DATA, "diffusion")):
    print("skipped: no", os.path.join(DATA, "diffusion"))
    sys.exit(77)


def turn(axis, angle):
    i, j = (axis + 1) % 3, (axis + 2) % 3
    r = numpy.eye(3)
    r[i, i] = r[j, j] = numpy.cos(angle)
    r[i, j], r[j, i] = -numpy.sin(angle), numpy.sin(angle)
    return r


OBLIQUE = turn(0, 0.31) @ turn(1, -0.2) @ turn(2, 0.5)
SHEAR = numpy.array([[1, 0.2, 0], [0, 1, -0.1], [0, 0, 1]])
AFFINES = {
    "radiological": numpy.diag([-2, 2, 2.5]),
    "neurological": numpy.diag([2, 2, 2.5]),
    "y flipped": numpy.diag([-2, -2, 2.5]),
    "z flipped": numpy.diag([-2, 2, -2.5]),
    "axes exchanged": numpy.array([[0, 0, 3.0], [-2, 0, 0], [0, 2, 0]]),
    "oblique, det > 0": OBLIQUE @ numpy.diag([2, 2, 3.0]),
    "oblique, det < 0": OBLIQUE @ numpy.diag([-2, 2, 3.0]),
    "oblique and sheared": OBLIQUE @ SHEAR @ numpy.diag([2, 2.2, 3.0]),
    "mirrored and sheared": OBLIQUE @ SHEAR @ numpy.diag([-2, 2.2, 3.0]),
}


def ours(image, bval, bvec):
    run = subprocess.run([TOOL, image, bval, bvec], capture_output=True, text=True, check=False)
    assert run.returncode == 0, (image, run.stderr)
    return numpy.array([[float(x) for x in line.split()] for line in run.stdout.splitlines()])


def mrtrix(image, bval, bvec):
    run = subprocess.run(["mrinfo", image, "-quiet", "-fslgrad", bvec, bval, "-bvalue_scaling", "false", "-dwgrad"],
                         capture_output=True, text=True, check=True)
    table = numpy.array([[float(x) for x in line.split()] for line in run.stdout.splitlines()])
    return numpy.nan_to_num(table)  # rows of nan stay so there; they are b = 0


def compare(what, image, bval, bvec):
    a, b = ours(image, bval, bvec), mrtrix(image, bval, bvec)
    assert a.shape == b.shape, (what, a.shape, b.shape)
    # Both work in double; 12 and 15 digits are printed.
    angle = numpy.abs(a[:, :3] - b[:, :3]).max()
    assert angle < 1e-11, (what, angle)
    assert numpy.allclose(a[:, 3], b[:, 3], rtol=1e-9, atol=1e-9), what
    return angle


def main():
    worst, n = 0, 0
    folder = os.path.join(DATA, "diffusion")
    for bval in sorted(glob.glob(os.path.join(folder, "*.bval"))):
        stem = bval[:-5]
        image = next(p for p in (stem + ".nii.gz", stem + ".nii") if os.path.exists(p))
        worst = max(worst, compare(stem, image, bval, stem + ".bvec"))
        n += 1
    with tempfile.TemporaryDirectory() as scratch:
        image = os.path.join(scratch, "a.nii")
        for bval in sorted(glob.glob(os.path.join(DATA, "odd", "*.bval")) + glob.glob(os.path.join(folder, "*64D.bval"))):
            volumes = numpy.loadtxt(bval).size
            for name, axes in AFFINES.items():
                affine = numpy.eye(4)
                affine[:3, :3] = axes
                affine[:3, 3] = [-10, 20, 5]
                nifti = nibabel.Nifti1Image(numpy.zeros((2, 3, 2, volumes), "i2"), affine)
                nifti.set_qform(None, 0)  # or a sheared sform would come with a qform that is not
                nibabel.save(nifti, image)
                worst = max(worst, compare(f"{os.path.basename(bval)}, {name}", image, bval, bval[:-5] + ".bvec"))
                n += 1
    assert n >= 14, n
    print(f"{n} tables agree with MRtrix's, the largest difference of a component is {worst:.1e}")


main()
