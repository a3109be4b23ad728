# SPDX-License-Identifier: MIT
"""A voxel function given as complex samples: data that carry its phase reconstruct as if they did not, which they would
not if F^H D took phi instead of its conjugate."""
import os
import subprocess
import sys
import tempfile

import h5py
import nibabel
import numpy as np

FORNIX = os.environ["FORNIX"]


def run(*arguments):
    return subprocess.run([FORNIX, *arguments], capture_output=True, text=True, check=False)


def image(scan, out, *settings):
    fixed = ("write_nifti.complex=true", "fhd.method=direct", "cg.start=zero", "cg.iterations=3", "cg.tolerance=0")
    done = run("run", "iterative", scan, "-o", out, "--no-cache",
               *[word for s in (*fixed, *settings) for word in ("--set", s)])
    assert done.returncode == 0, done.stderr
    return np.asarray(nibabel.load(os.path.join(out, "image.nii.gz")).dataobj)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        def path(name):
            return os.path.join(scratch, name)

        made = run("phantom", "shepp-logan", "--trajectory", "radial", "--matrix", "24,24,1", "--coils", "3", "--no-truth",
                   "-o", path("scan.h5"))
        assert made.returncode == 0, made.stderr
        plain = image(path("scan.h5"), path("plain"))
        with h5py.File(path("scan.h5")) as file:
            records = file["dataset/data"][:]
            header = file["dataset/xml"][0]
        samples, readouts = int(records["head"]["number_of_samples"][0]), len(records)
        phase = np.random.default_rng(1).uniform(-np.pi, np.pi, (readouts, samples))
        for name, phi in (("one", np.exp(1j * np.tile(phase[:1], (readouts, 1)))), ("all", np.exp(1j * phase))):
            turned = records.copy()
            for i in range(readouts):
                data = records["data"][i].view(np.complex64).reshape(-1, samples) * phi[i].astype(np.complex64)
                turned["data"][i] = data.astype(np.complex64).ravel().view(np.float32)
            with h5py.File(path("scan.h5")) as whole, h5py.File(path(f"{name}.h5"), "w") as file:
                kind = whole["dataset/data"].dtype
                file.create_dataset("dataset/data", data=turned, dtype=kind)
                file.create_dataset("dataset/xml", data=[header], dtype=h5py.string_dtype())
            held = phi[:1] if name == "one" else phi
            nibabel.save(nibabel.Nifti1Image(held.T.astype(np.complex64), np.eye(4)), path(f"{name}.nii"))
            found = image(path(f"{name}.h5"), path(name), "mu.voxel=file", f"mu.phi={path(name + '.nii')}")
            # |phi| = 1: the same normal equations up to single precision, by direct sums. Three iterations: rounding, which
            # each one amplifies about threefold on a radial scan, has not grown yet.
            error = np.linalg.norm(found - plain) / np.linalg.norm(plain)
            print(f"{name}: relative difference {error:.1e}")
            assert error < 2e-5, error
            lost = image(path(f"{name}.h5"), path(name + "_without"))
            assert np.linalg.norm(lost - plain) > 0.3 * np.linalg.norm(plain), "without phi the image is the same"
        nibabel.save(nibabel.Nifti1Image(held[:, :-1].T.astype(np.complex64), np.eye(4)), path("short.nii"))
        done = run("run", "iterative", path("all.h5"), "-o", path("x"), "--set", "mu.voxel=file", "--set",
                   f"mu.phi={path('short.nii')}")
        assert done.returncode == 1 and "values of phi" in done.stderr, done.stderr
        done = run("run", "iterative", path("all.h5"), "-o", path("x"), "--set", "mu.voxel=file")
        assert done.returncode == 1 and "go together" in done.stderr, done.stderr
    return 0


sys.exit(main())
