# SPDX-License-Identifier: MIT
"""Scans of images: what was sampled comes back, where it was, and off-resonance is the sum that it says."""
import os
import subprocess
import sys
import tempfile

import h5py
import nibabel
import numpy as np

FORNIX = os.environ["FORNIX"]
DATA = os.environ["FORNIX_DATA"]
# turned about all three axes, voxels of 2 x 2.5 x 3 mm, off centre, the second axis reversed
TURN = np.linalg.qr(np.array([[1, .2, -.1], [-.25, 1, .3], [.15, -.2, 1]]))[0]
AFFINE = np.eye(4)
AFFINE[:3, :3] = TURN @ np.diag([2, 2.5, 3])
AFFINE[:3, 3] = [-20, 13, 7.5]


def fornix(*arguments, code=0):
    done = subprocess.run([FORNIX, *arguments], capture_output=True, text=True)
    assert done.returncode == code, (arguments, done.returncode, done.stderr)
    return done.stdout + done.stderr


def phantom(image, scan, *options, code=0):
    return fornix("phantom", "from-image", image, "-o", scan, *options, code=code)


def run(pipeline, scan, out, *settings):
    arguments = ["run", pipeline, scan, "-o", out, "--quiet", "--set", "write_nifti.complex=true"]
    for setting in settings:
        arguments += ["--set", setting]
    fornix(*arguments)
    return nibabel.load(os.path.join(out, "image.nii.gz"))


def error(image, truth):
    a, b = np.abs(np.squeeze(np.asarray(image.dataobj))), np.abs(np.squeeze(np.asarray(truth.dataobj)))
    assert a.shape == b.shape, (a.shape, b.shape)
    return np.linalg.norm(a - b) / np.linalg.norm(b)


def blobs(shape, seed):
    """Smooth, positive, different along every axis, 0 at the rim."""
    random = np.random.default_rng(seed)
    axes = np.meshgrid(*[np.linspace(-1, 1, n) if n > 1 else np.zeros(1) for n in shape], indexing="ij")
    image = np.zeros(shape)
    for _ in range(6):
        centre, width = random.uniform(-.4, .4, 3), random.uniform(.15, .3)
        image += random.uniform(.3, 1) * np.exp(-sum((x - c) ** 2 for x, c in zip(axes, centre)) / width ** 2)
    return image * (sum(x ** 2 for x in axes) < 0.8)


def save(folder, name, data):
    path = os.path.join(folder, name)
    nibabel.save(nibabel.Nifti1Image(data, AFFINE), path)
    return path


def read_scan(path):
    """k {readout, sample, 2}, data {readout, coil, sample}."""
    with h5py.File(path) as file:
        rows = file["dataset/data"][:]
    k = np.array([np.reshape(r["traj"], (-1, 2)) for r in rows])
    data = np.array([np.reshape(r["data"], (-1, k.shape[1], 2)) for r in rows])
    return k, data[..., 0] + 1j * data[..., 1]


def comes_back(folder):
    scan, out = os.path.join(folder, "scan.h5"), os.path.join(folder, "out")
    truth_path = os.path.join(folder, "scan_truth.nii.gz")
    volume = save(folder, "volume.nii.gz", blobs((20, 16, 12), 1).astype(np.float32))
    # a full Cartesian scan is an orthonormal transform: rounding to single is all that is lost, once in the samples and once
    # in the FFT
    for options in ([], ["--slices", "12"], ["--coils", "4"], ["--oversampling", "2"], ["--matrix", "15,12,8"]):
        phantom(volume, scan, *options)
        # the maps' sum of squares is 1: the root of the coils' sum of squares needs no maps
        image, truth = run("cartesian", scan, out, "combine.method=rss"), nibabel.load(truth_path)
        print(options, error(image, truth))
        assert error(image, truth) < 1e-5, (options, error(image, truth))
        if options != ["--matrix", "15,12,8"]:
            assert np.allclose(image.affine, AFFINE, atol=1e-4), (options, image.affine)
            assert error(truth, nibabel.load(volume)) < 1e-7
        # the centre voxel stays where it was, whatever the matrix
        middle = [n // 2 for n in image.shape[:3]] + [1]
        assert np.allclose(image.affine @ middle, AFFINE @ [10, 8, 6, 1], atol=1e-3), (options, image.affine)
    # frames
    series = np.stack([blobs((16, 16, 1), seed) * np.exp(1j * seed) for seed in range(3)], axis=-1).astype(np.complex64)
    phantom(save(folder, "series.nii.gz", series), scan)
    image = run("cartesian", scan, out)
    assert image.shape[3] == 3 and error(image, nibabel.load(truth_path)) < 1e-5
    # non-Cartesian, denser than Nyquist asks: lambda = 1e-4 shrinks by about as much, single precision and the corners of
    # k-space, where a smooth object has next to nothing, are less
    flat = save(folder, "flat.nii.gz", blobs((32, 32, 1), 2).astype(np.float32))
    for options in (["-t", "radial", "--readouts", "100"], ["-t", "spiral", "--readouts", "8"]):
        phantom(flat, scan, *options)
        image = run("iterative", scan, out, "prior.lambda=1e-4", "cg.iterations=40")
        print(options[1], error(image, nibabel.load(truth_path)))
        assert error(image, nibabel.load(truth_path)) < 2e-3, options


def off_resonance(folder):
    scan = os.path.join(folder, "scan.h5")
    image, n = blobs((16, 12, 1), 3).astype(np.float32), (16, 12)
    field = (200 * np.random.default_rng(4).standard_normal((16, 12, 1))).astype(np.float32)
    path, map_path = save(folder, "image.nii", image), save(folder, "map.nii", field)
    phantom(path, scan, "-t", "spiral", "--readouts", "2", "--samples", "90", "--dwell-us", "20", "--te-ms", "3", "--field-map",
            map_path, "--no-truth")
    k, data = read_scan(scan)
    x, y = np.meshgrid(np.arange(n[0]) - n[0] // 2, np.arange(n[1]) - n[1] // 2, indexing="ij")
    t = 3e-3 + np.arange(90) * 20e-6
    turn = (k[..., 0, None, None] * x + k[..., 1, None, None] * y + t[None, :, None, None] * field[:, :, 0])
    wanted = np.sum(image[:, :, 0] * np.exp(-2j * np.pi * turn), axis=(2, 3)) / np.sqrt(n[0] * n[1])
    difference = np.linalg.norm(data[:, 0] - wanted) / np.linalg.norm(wanted)
    print(f"off-resonance against numpy's sum: {difference:.1e}")
    assert difference < 1e-6, difference  # k is read back in single
    # without the map, the NUFFT gives the same sum at f = 0
    phantom(path, scan, "-t", "spiral", "--readouts", "2", "--samples", "90", "--no-truth")
    k, data = read_scan(scan)
    turn = k[..., 0, None, None] * x + k[..., 1, None, None] * y
    wanted = np.sum(image[:, :, 0] * np.exp(-2j * np.pi * turn), axis=(2, 3)) / np.sqrt(n[0] * n[1])
    assert np.linalg.norm(data[:, 0] - wanted) < 1e-6 * np.linalg.norm(wanted)


def refused(folder):
    scan, path = os.path.join(folder, "scan.h5"), save(folder, "image.nii", blobs((8, 8, 4), 5).astype(np.float32))
    assert "no detail beyond" in phantom(path, scan, "--matrix", "16,8,4", code=2)
    assert "4 planes" in phantom(path, scan, "--slices", "3", code=2)
    assert "itself" in phantom(path, scan, "--fov-mm", "1,1,1", code=2)
    assert "--field-map" in phantom(path, scan, "--field-map", save(folder, "f.nii", np.zeros((8, 8, 2), np.float32)), code=2)
    assert "needs an image" in fornix("phantom", "from-image", "-o", scan, code=2)
    assert "takes no image" in fornix("phantom", "ellipse", path, "-o", scan, code=2)
    sheared = AFFINE.copy()
    sheared[:3, 1] += sheared[:3, 0]
    nibabel.save(nibabel.Nifti1Image(np.ones((4, 4, 4), np.float32), sheared), os.path.join(folder, "sheared.nii"))
    assert "sheared" in phantom(os.path.join(folder, "sheared.nii"), scan, code=1)
    assert not os.path.exists(scan)


def real(folder):
    path = os.path.join(DATA, "diffusion", "dti_nopf_x2_ortho_2.nii.gz")
    odd = os.path.join(DATA, "diffusion", "S0_10slices.nii.gz")
    if os.path.exists(odd):  # its affine's columns are 53 mm long and far from right angles
        assert "sheared" in phantom(odd, os.path.join(folder, "odd.h5"), code=1)
    if not os.path.exists(path):
        print(f"skip: no {path}")
        return
    scan, out = os.path.join(folder, "brain.h5"), os.path.join(folder, "out")
    image = nibabel.load(path)
    phantom(path, scan, "--slices", str(image.shape[2]))
    back = run("cartesian", scan, out)
    print(f"{os.path.basename(path)} {image.shape}: {error(back, image):.1e} through a Cartesian scan")
    assert error(back, image) < 1e-5
    assert np.allclose(back.affine, image.affine, atol=1e-3), (back.affine, image.affine)


def main():
    with tempfile.TemporaryDirectory() as folder:
        refused(folder)
    with tempfile.TemporaryDirectory() as folder:
        comes_back(folder)
        off_resonance(folder)
        real(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
