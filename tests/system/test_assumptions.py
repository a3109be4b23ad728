# SPDX-License-Identifier: MIT
"""What a reconstruction might take for granted: few coils, even and equal matrices, one encoding, a sampled centre."""
import os
import subprocess
import sys
import tempfile

import h5py
import nibabel
import numpy as np

FORNIX = os.environ["FORNIX"]


def run(*arguments):
    done = subprocess.run([FORNIX, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done


def load(path):
    return np.squeeze(np.asarray(nibabel.load(path).dataobj))


def scan(folder, name, *options):
    file, truth = os.path.join(folder, name + ".h5"), os.path.join(folder, name + "_truth.nii.gz")
    run("phantom", "ellipse", "-o", file, "--truth", truth, *options)
    return file, load(truth)


def image(file, folder, *options, pipeline="iterative"):
    run("run", pipeline, file, "-o", folder, *options)
    return load(os.path.join(folder, "image.nii.gz"))


def error(found, truth):
    return np.linalg.norm(found - truth) / np.linalg.norm(truth)


def coils(folder):
    """One coil, and 64 whose maps turn their phase several times: the image is the same object."""
    errors = {}
    for n in (1, 8, 64):
        file, truth = scan(folder, f"coils{n}", "--trajectory", "radial", "--matrix", "48,48,1", "--coils", n)
        errors[n] = error(image(file, os.path.join(folder, "out")), truth)
        everything = error(image(file, os.path.join(folder, "out"), "--set", "coil_compress.energy=1",
                                 "--set", "coil_compress.channels=64"), truth)
        assert abs(everything - errors[n]) < 0.01, (n, errors[n], everything)  # compression keeps what there is
    print("coils:", {n: round(float(e), 4) for n, e in errors.items()})
    # The disc of k-space and the truth's voxel averages make 0.044 of it; maps must add little to that.
    assert max(errors.values()) < 0.055, errors


def matrices(folder):
    """Odd, unequal, and anisotropic voxels, in two and three dimensions, by every non-Cartesian pipeline."""
    for matrix, fov, trajectory in (("45,45,1", "225,225,5", "radial"), ("49,36,1", "245,180,4", "random"),
                                    ("40,40,1", "200,120,5", "spiral"), ("21,18,15", "210,180,90", "random"),
                                    ("24,24,9", "240,240,90", "stack-of-stars")):
        file, truth = scan(folder, "m", "--trajectory", trajectory, "--matrix", matrix, "--fov-mm", fov, "--coils", 4)
        for maps in (True, False):
            more = () if maps else ("--set", "coil_maps.radius=1")
            found = error(image(file, os.path.join(folder, "out"), "--set", "cg.iterations=30", *more), truth)
            print(f"{trajectory} {matrix} {fov}: {found:.3f}")
            # edges make it: 0.05 to 0.12, the more the fewer voxels there are; a mistaken axis or centre makes 0.5
            assert found < 0.15, (matrix, trajectory, found)


def two_encodings(folder):
    """Readouts of two encodings with matrices of their own, taking turns: two images, each as if it were alone."""
    files = [scan(folder, f"e{n}", "--trajectory", "radial", "--matrix", f"{n},{n},1", "--coils", 3) for n in (32, 44)]
    alone = [image(file, os.path.join(folder, f"alone{i}")) for i, (file, _) in enumerate(files)]
    records, headers = [], []
    for i, (file, _) in enumerate(files):
        with h5py.File(file) as h5:
            part = h5["dataset/data"][:]
            kind = h5["dataset/data"].dtype
            text = h5["dataset/xml"][0]
            headers.append(text.decode() if isinstance(text, bytes) else text)
        part["head"]["encoding_space_ref"] = i
        part["head"]["flags"] &= np.uint64(0b11 << 6)  # FIRST and LAST of a slice: the measurement ends only once
        records.append(part)
    second = headers[1][headers[1].index("<encoding>"):headers[1].index("</encoding>") + len("</encoding>")]
    header = headers[0].replace("</encoding>", "</encoding>" + second, 1)
    order = np.argsort(np.concatenate([np.linspace(0, 1, len(r)) for r in records]), kind="stable")
    both = os.path.join(folder, "both.h5")
    with h5py.File(both, "w") as h5:
        h5.create_dataset("dataset/data", data=np.concatenate(records)[order], dtype=kind)
        h5.create_dataset("dataset/xml", data=[header], dtype=h5py.string_dtype())
    out = os.path.join(folder, "both")
    run("run", "iterative", both, "-o", out)
    found = {load(os.path.join(out, name)).shape: load(os.path.join(out, name)) for name in os.listdir(out)
             if name.endswith(".nii.gz")}
    assert set(found) == {(32, 32), (44, 44)}, found.keys()
    for one in alone:
        assert np.array_equal(found[one.shape], one), "an encoding's image depends on the other one"


def centre_missing(folder):
    """Without the innermost samples the fit still ends, finite, and the doctor says what is wrong."""
    file, truth = scan(folder, "c", "--trajectory", "radial", "--matrix", "48,48,1", "--coils", 4)
    whole = image(file, os.path.join(folder, "out"))
    with h5py.File(file, "r+") as h5:
        records = h5["dataset/data"][:]
        samples = int(records["head"]["number_of_samples"][0])
        keep = np.ones(samples, bool)
        keep[samples // 2 - 2:samples // 2 + 3] = False
        for i in range(len(records)):
            records["data"][i] = records["data"][i].view(np.complex64).reshape(-1, samples)[:, keep].ravel().view(np.float32)
            records["traj"][i] = records["traj"][i].reshape(samples, -1)[keep].ravel()
        records["head"]["number_of_samples"] = keep.sum()
        h5["dataset/data"][:] = records
    for pipeline in ("gridding", "iterative"):
        part = image(file, os.path.join(folder, "out"), pipeline=pipeline)
        assert np.isfinite(part).all(), pipeline
        print(f"centre missing, {pipeline}: error {error(part, truth):.3f}")
        # Edges without their areas: less energy than the object has, and not more than the data have.
        assert 0 < np.linalg.norm(part) < np.linalg.norm(whole), pipeline
    told = subprocess.run([FORNIX, "check", file], capture_output=True, text=True, check=False).stdout
    line = [text for text in told.splitlines() if "centre" in text]
    print("\n".join(line))
    assert line and not line[0].lstrip().lower().startswith("ok"), told


def main():
    for test in (coils, matrices, two_encodings, centre_missing):
        with tempfile.TemporaryDirectory() as folder:
            test(folder)
    return 0


sys.exit(main())
