# SPDX-License-Identifier: MIT
"""`fornix compare` against numpy, on files that nibabel wrote."""
import json
import math
import os
import subprocess
import sys
import tempfile

import nibabel
import numpy as np

FORNIX = os.environ["FORNIX"]


def compare(*arguments, code=0):
    done = subprocess.run([FORNIX, "compare", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
    return done.stdout + done.stderr


def figures(*arguments, code=0):
    done = subprocess.run([FORNIX, "compare", "--json", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
    return json.loads(done.stdout)


def blur(volume):
    """Gaussian of sigma 1.5 cut at 5 voxels, normalised to what is inside."""
    for axis, n in enumerate(volume.shape):
        if n == 1:
            continue
        apart = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
        weights = np.exp(-apart ** 2 / (2 * 1.5 ** 2)) * (apart <= 5)
        weights /= weights.sum(1, keepdims=True)
        volume = np.moveaxis(np.tensordot(weights, volume, (1, axis)), 0, axis)
    return volume


def ssim_map(x, y, peak):
    c1, c2 = (0.01 * peak) ** 2, (0.03 * peak) ** 2
    mx, my = blur(x), blur(y)
    vx, vy, cov = blur(x * x) - mx ** 2, blur(y * y) - my ** 2, blur(x * y) - mx * my
    return (2 * mx * my + c1) * (2 * cov + c2) / ((mx ** 2 + my ** 2 + c1) * (vx + vy + c2))


def near(got, wanted, tolerance):
    assert abs(got - wanted) <= tolerance * max(1, abs(wanted)), (got, wanted)


def main():
    random = np.random.default_rng(5)
    affine = np.diag([2, 2, 3, 1.0])
    with tempfile.TemporaryDirectory() as folder:
        def save(name, array, where=affine):
            path = os.path.join(folder, name)
            nibabel.save(nibabel.Nifti1Image(array, where), path)
            return path

        b = random.random((17, 20, 9)).astype(np.float32) + np.linspace(0, 2, 9, dtype=np.float32)
        a = (b + 0.2 * random.standard_normal(b.shape)).astype(np.float32)
        file_a, file_b = save("a.nii.gz", a), save("b.nii", b)
        x, y = a.astype(float), b.astype(float)
        got = figures(file_a, file_b)
        rmse = np.sqrt(np.mean((x - y) ** 2))
        # sums in double on both sides
        near(got["nrmse"], np.linalg.norm(x - y) / np.linalg.norm(y), 1e-10)
        near(got["psnr_db"], 20 * np.log10(y.max() / rmse), 1e-10)
        near(got["ssim"], ssim_map(x, y, y.max()).mean(), 1e-10)
        assert got["voxels"] == b.size and got["complex"] is False and "scale_re" not in got

        mask = (random.random(b.shape) < 0.3).astype(np.uint8)
        got = figures(file_a, file_b, "--mask", save("mask.nii.gz", mask))
        inside = mask > 0
        near(got["nrmse"], np.linalg.norm((x - y)[inside]) / np.linalg.norm(y[inside]), 1e-10)
        near(got["ssim"], ssim_map(x, y, y[inside].max())[inside].mean(), 1e-10)
        assert got["voxels"] == inside.sum()

        turned = save("turned.nii.gz", (b * (1.5 - 0.5j)).astype(np.complex64))
        file_c = save("c.nii.gz", (b * (2 + 1j)).astype(np.complex64))
        got = figures(turned, file_c)
        near(got["nrmse"], abs((1.5 - 0.5j) / (2 + 1j) - 1), 1e-6)  # single-precision files
        assert got["complex"] is True
        got = figures(turned, file_c, "--fit-scale")
        scale = (2 + 1j) / (1.5 - 0.5j)
        assert got["nrmse"] < 1e-6
        near(got["scale_re"], scale.real, 1e-6)
        near(got["scale_im"], scale.imag, 1e-6)
        text = compare(turned, file_b)
        assert "magnitudes" in text and "only the image is complex" in text, text
        near(figures(turned, file_b)["nrmse"], abs(1.5 - 0.5j) - 1, 1e-6)

        same = figures(file_b, file_b)
        assert same["nrmse"] == 0 and same["psnr_db"] is None
        near(same["ssim"], 1, 1e-12)

        nrmse = figures(file_a, file_b)["nrmse"]
        assert figures(file_a, file_b, "--max-nrmse", nrmse * 1.01)["within"] is True
        assert figures(file_a, file_b, "--max-nrmse", nrmse * 0.99, code=1)["within"] is False
        assert math.isclose(figures(file_b, file_b, "--max-nrmse", 0)["nrmse"], 0)

        moved = affine.copy()
        moved[0, 3] = 4
        assert "lie differently in space" in compare(save("moved.nii.gz", b, moved), file_b)

        text = compare(save("other.nii.gz", b[:5]), file_b, code=1)
        assert "5 x 20 x 9" in text and "17 x 20 x 9" in text and "other.nii.gz" in text, text
        broken = b.copy()
        broken[3, 3, 3] = np.nan
        assert "not finite" in compare(save("nan.nii.gz", broken), file_b, code=1)
        assert "zero everywhere" in compare(file_b, save("zero.nii.gz", np.zeros_like(b)), code=1)
        assert "nowhere" in compare(os.path.join(folder, "nowhere.nii"), file_b, code=1)
        # MRD images of a run, slices that took turns: the same volume as its NIfTI, slice for slice the truth's.
        scan, out = os.path.join(folder, "scan.h5"), os.path.join(folder, "out")
        subprocess.run([FORNIX, "phantom", "ellipse", "--matrix", "40,32,1", "--slices", "5", "--interleaved-slices", "-o", scan],
                       check=True, stdout=subprocess.DEVNULL)
        subprocess.run([FORNIX, "run", "cartesian", scan, "-o", out], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        images, nifti = os.path.join(out, "images.h5"), os.path.join(out, "image.nii.gz")
        got = figures(images, nifti)
        assert got["nrmse"] < 1e-6 and got["voxels"] == 40 * 32 * 5, got  # a magnitude's rounding
        # Ringing at the edges of one large object; slices out of order would give 0.2 and more.
        assert figures(images, os.path.join(folder, "scan_truth.nii.gz"))["nrmse"] < 0.08
        assert "differently in space" not in compare(nifti, os.path.join(folder, "scan_truth.nii.gz"))

        compare(file_a, code=2)
        compare(file_a, file_b, "--max-nrmse", "-1", code=2)
        compare(file_a, file_b, "--max-nrmse", "much", code=2)
    return 0


sys.exit(main())
