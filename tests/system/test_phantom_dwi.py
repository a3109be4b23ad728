# SPDX-License-Identifier: MIT
"""Diffusion scans of fibre bundles: series and answer against numpy, orientation against MRtrix and DIPY, and the way from k-space
back to tensors."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

try:
    import h5py
    import nibabel
    import numpy as np
except ImportError as missing:
    print("skipped:", missing)
    sys.exit(77)

FORNIX = os.environ["FORNIX"]
MRD = "{http://www.ismrm.org/ISMRMRD}"
# turned about all axes, voxels of 3 x 2.5 x 4 mm, off centre, odd and even sizes
OBLIQUE = ["--matrix", "35,32,5", "--fov-mm", "105,80,20", "--oblique", "20,-15,30", "--position-mm", "12,-7,4"]


def fornix(*arguments, code=0, cache=None):
    environment = dict(os.environ, XDG_CACHE_HOME=cache) if cache else None
    done = subprocess.run([FORNIX, *arguments], capture_output=True, text=True, env=environment)
    assert done.returncode == code, (arguments, done.returncode, done.stderr)
    return done.stdout + done.stderr


def load(folder, name):
    return nibabel.load(os.path.join(folder, name))


def data(folder, name):
    return np.asarray(load(folder, name).dataobj)


def table(stem, affine):
    """b and directions in RAS: the image's axes by FSL's rule, and those to the world."""
    b, g = np.loadtxt(stem + ".bval"), np.loadtxt(stem + ".bvec").T
    if np.linalg.det(affine[:3, :3]) > 0:
        g = g * [-1, 1, 1]
    return b, g @ (affine[:3, :3] / np.linalg.norm(affine[:3, :3], axis=0)).T


def full(six):
    """xx, xy, yy, xz, yz, zz to matrices."""
    return np.stack([six[..., i] for i in (0, 1, 3, 1, 2, 4, 3, 4, 5)], -1).reshape(six.shape[:-1] + (3, 3))


def angles(a, b):
    """Between principal directions, degrees."""
    u, v = np.linalg.eigh(a)[1][..., 2], np.linalg.eigh(b)[1][..., 2]
    return np.degrees(np.arccos(np.clip(np.abs((u * v).sum(-1)), 0, 1)))


def fa_of(tensors):
    w = np.linalg.eigvalsh(tensors)
    return np.sqrt(1.5 * ((w - w.mean(-1, keepdims=True)) ** 2).sum(-1) / (w ** 2).sum(-1))


def fit(signals, b, g):
    """ln S by least squares, weighted with the fitted signals squared, twice: tensors in um^2/ms."""
    x, y, z = g.T
    design = np.stack([-b * x * x, -2 * b * x * y, -b * y * y, -2 * b * x * z, -2 * b * y * z, -b * z * z, np.ones_like(b)], 1)
    logs = np.log(signals)
    beta = np.linalg.lstsq(design, logs.T, rcond=None)[0].T
    for _ in range(2):
        w = np.exp(2 * beta @ design.T)
        beta = np.linalg.solve(np.einsum("vi,nv,vj->nij", design, w, design), np.einsum("vi,nv,nv->ni", design, w, logs)[..., None])[..., 0]
    return full(beta[:, :6] * 1e3)


def world(affine, voxels):
    return np.asarray(voxels) @ affine[:3, :3].T + affine[:3, 3]


def ring_series(shape, affine, b, g, radius, width, head, detail=3):
    """A torus about the world's z axis through the middle of the volume, in a cylinder along its slices: the mean of what
    detail^3 points show, written down anew. The head's axis is the third column of the affine."""
    middle = world(affine, (np.array(shape[:3]) - 1) / 2)
    axis = affine[:3, 2] / np.linalg.norm(affine[:3, 2])
    out = np.zeros(tuple(shape[:3]) + (len(b),))
    grid = np.stack(np.meshgrid(*map(np.arange, shape[:3]), indexing="ij"), -1)
    steps = (np.arange(detail) + .5) / detail - .5
    for offset in np.stack(np.meshgrid(steps, steps, steps), -1).reshape(-1, 3):
        x = world(affine, grid + offset) - middle
        r = np.hypot(x[..., 0], x[..., 1])
        bundle = np.hypot(r - radius, x[..., 2]) <= width / 2
        tissue = (np.linalg.norm(x - (x @ axis)[..., None] * axis, axis=-1) <= head) & ~bundle
        tangent = np.stack([-x[..., 1], x[..., 0], 0 * r], -1) / np.maximum(r, 1e-9)[..., None]
        cosine = tangent @ g.T
        out += bundle[..., None] * np.exp(-1e-3 * b * (0.3 + 1.4 * cosine ** 2)) + 1.2 * tissue[..., None] * np.exp(-1e-3 * b * 0.8)
    return out / detail ** 3


def closed_form(folder):
    scan = os.path.join(folder, "oblique.h5")
    fornix("phantom", "ring", "-o", scan, *OBLIQUE, "--coils", "1", "--directions", "6", "--b0s", "2", "--bvalue", "1200", "--radius-mm", "21",
        "--width-mm", "11", "--head-mm", "33")
    image = load(folder, "oblique_truth.nii.gz")
    b, g = table(os.path.join(folder, "oblique_truth"), image.affine)
    assert list(b) == [0, 1200, 1200, 1200, 0, 1200, 1200, 1200], b
    assert np.linalg.det(image.affine[:3, :3]) > 0 and abs(image.affine[0, 1]) > 1  # oblique indeed
    series = np.asarray(image.dataobj)
    # points on a boundary may fall to either side by rounding: there are none in general position; the rest is single precision
    expected = ring_series(series.shape, image.affine, b, g, 21, 11, 33)
    assert np.abs(series - expected).max() < 2e-5, np.abs(series - expected).max()
    for name in ("tensors", "fa", "md", "s0", "bundle", "labels"):
        assert np.abs(load(folder, f"oblique_truth_{name}.nii.gz").affine - image.affine).max() < 1e-5, name
    tensors = load(folder, "oblique_truth_tensors.nii.gz")
    assert tensors.header["intent_code"] == 1005 and tensors.shape == series.shape[:3] + (1, 6), tensors.header
    bundle = data(folder, "oblique_truth_bundle.nii.gz") == 1
    d, fa = full(np.asarray(tensors.dataobj)[..., 0, :])[bundle], data(folder, "oblique_truth_fa.nii.gz")[bundle]
    assert bundle.sum() > 30, bundle.sum()
    assert np.abs(fa - fa_of(d)).max() < 1e-5
    # a voxel of 4 mm at radius 21 sees tensors turn by 0.1 rad either way: some per cent of their difference
    assert abs(fa.mean() - 0.799) < 0.01 and np.abs(data(folder, "oblique_truth_md.nii.gz")[bundle] - 2.3 / 3).max() < 1e-5
    # the fit of the noise-free series gives the tensor back, but for the mean of exponentials in a voxel
    assert angles(fit(series[bundle], b, g), d).max() < 0.5
    check_line(folder, image.affine, series.shape)
    check_header(scan, b, g)


def check_line(folder, affine, shape):
    line, = nibabel.streamlines.load(os.path.join(folder, "oblique_truth_centre.tck")).streamlines
    x = line - world(affine, (np.array(shape[:3]) - 1) / 2)
    assert np.abs(np.hypot(x[:, 0], x[:, 1]) - 21).max() < 1e-4 and np.abs(x[:, 2]).max() < 1e-4
    labels = data(folder, "oblique_truth_labels.nii.gz")
    middle = world(affine, (np.array(shape[:3]) - 1) / 2)
    for label, where in ((1, [21, 0, 0]), (2, [0, 21, 0]), (3, [-21, 0, 0])):
        at = world(affine, np.argwhere(labels == label)) - middle
        assert len(at) > 0 and np.linalg.norm(at - where, axis=1).max() < 6 + 5.5 + 1, (label, len(at))  # half a region, half a bundle


def check_header(scan, b, g):
    with h5py.File(scan) as file:
        text = file["dataset/xml"][0]
        rows = file["dataset/data"][:]
    root = xml.etree.ElementTree.fromstring(text)
    sequence = root.find(MRD + "sequenceParameters")
    assert sequence.find(MRD + "diffusionDimension").text == "repetition"
    listed = sequence.findall(MRD + "diffusion")
    value = [float(e.find(MRD + "bvalue").text) for e in listed]
    ways = np.array([[float(e.find(MRD + "gradientDirection").find(MRD + a).text) for a in ("rl", "ap", "fh")] for e in listed])
    # MRD's patient axes are LPS; .bvec holds nine digits
    assert np.allclose(value, b) and np.abs(ways * [-1, -1, 1] - g).max() < 1e-6
    repetitions = [int(r["head"]["idx"]["repetition"]) for r in rows]
    assert sorted(set(repetitions)) == list(range(len(b)))
    try:
        import ismrmrd
        parsed = ismrmrd.xsd.CreateFromDocument(text)
        assert len(parsed.sequenceParameters.diffusion) == len(b)
    except ImportError:
        print("skipped: ismrmrd's own parser is not installed")


def other_programs(folder):
    """Images, bvals and bvecs as MRtrix and DIPY understand them, on an oblique lattice of either handedness."""
    stem = os.path.join(folder, "dwi")
    fornix("phantom", "helix", "-o", os.path.join(folder, "helix.h5"), *OBLIQUE, "--coils", "1", "--images", stem + ".nii.gz", "--radius-mm", "22",
        "--width-mm", "12", "--pitch-mm", "25", "--directions", "12")
    image = nibabel.load(stem + ".nii.gz")
    assert np.array_equal(np.asarray(image.dataobj), data(folder, "helix_truth.nii.gz"))
    bundle = data(folder, "helix_truth_bundle.nii.gz") == 1
    assert bundle.sum() > 30
    truth = full(data(folder, "helix_truth_tensors.nii.gz")[..., 0, :])[bundle]
    if shutil.which("dwi2tensor"):
        out = os.path.join(folder, "mrtrix.nii")
        subprocess.run(["dwi2tensor", "-quiet", "-force", "-fslgrad", stem + ".bvec", stem + ".bval", stem + ".nii.gz", out], check=True,
            stderr=subprocess.DEVNULL)
        xx, yy, zz, xy, xz, yz = np.moveaxis(nibabel.load(out).get_fdata()[bundle], -1, 0)
        d = 1e3 * full(np.stack([xx, xy, yy, xz, yz, zz], -1))  # MRtrix's tensors are in RAS
        # exact signals; a voxel's mean of exponentials is not quite one tensor's
        assert angles(d, truth).max() < 0.5 and np.abs(d - truth).max() < 0.05, (angles(d, truth).max(), np.abs(d - truth).max())
    else:
        print("skipped: dwi2tensor is not installed")
    try:
        from dipy.core.gradients import gradient_table
        from dipy.reconst.dti import TensorModel
    except ImportError:
        print("skipped: DIPY is not installed")
        return
    b, g = np.loadtxt(stem + ".bval"), np.loadtxt(stem + ".bvec").T
    model = TensorModel(gradient_table(b, g), fit_method="WLS").fit(np.asarray(image.dataobj)[bundle])
    # DIPY's tensors are where its bvecs were: FSL's frame, the image's axes with x turned
    axes = image.affine[:3, :3] / np.linalg.norm(image.affine[:3, :3], axis=0) @ np.diag([-1, 1, 1])
    d = 1e3 * axes @ model.quadratic_form @ axes.T
    assert angles(d, truth).max() < 0.5 and np.abs(fa_of(d) - fa_of(truth)).max() < 0.02


def noise_of_images(folder):
    stem = os.path.join(folder, "rice")
    fornix("phantom", "crossing", "-o", stem + ".h5", "--coils", "1", "--snr", "20", "--matrix", "40,40,5", "--directions", "0", "--b0s", "12",
        "--images", stem + "_images.nii.gz", "--lake-mm", "8")
    clean, noisy = data(folder, "rice_truth.nii.gz"), data(folder, "rice_images.nii.gz")
    inside, air = clean[..., 0] > 0.9, clean[..., 0] == 0
    # at an SNR of 20 and more a magnitude's deviation is that of the real part to 1/800; 1/sqrt(2 n) of it is 0.4 % here
    deviation = (noisy - clean)[inside].std()
    assert inside.sum() > 2000 and abs(deviation * 20 - 1) < 0.02, deviation
    # Rayleigh's mean: sigma sqrt(pi/2)
    assert abs(noisy[air].mean() * 20 / np.sqrt(np.pi / 2) - 1) < 0.02
    assert abs(clean.max() - 2) < 1e-5 and (clean[..., 0] > 1.9999).sum() > 5  # the lake


def reconstruct(folder, scan, out, *settings):
    arguments = ["run", "iterative", os.path.join(folder, scan), "-o", os.path.join(folder, out), "--quiet"]
    for setting in settings:
        arguments += ["--set", setting]
    fornix(*arguments, cache=os.path.join(folder, "cache"))
    with open(os.path.join(folder, out, "run.json"), encoding="utf-8") as file:
        record = {g["name"]: g["record"] for g in json.load(file)["gadgets"]}
    return data(folder, os.path.join(out, "image.nii.gz")), record


def back_to_tensors(folder):
    """The demonstration: single-shot spirals, twice undersampled, SNR 30 in the b0 image, 30 directions."""
    fornix("phantom", "ring", "-o", os.path.join(folder, "ring.h5"), "--matrix", "48,48,6", "--snr", "30")
    series, record = reconstruct(folder, "ring.h5", "ring")
    truth = load(folder, "ring_truth.nii.gz")
    image = load(folder, "ring/image.nii.gz")
    assert image.shape == truth.shape == (48, 48, 6, 35) and np.abs(image.affine - truth.affine).max() < 1e-4
    # one trajectory: Q is made for the first frame alone, and only calibrations besides 35 x 6 frames
    made = [q for q in record["toeplitz"]["q"] if q != "cached"]
    assert len(record["toeplitz"]["q"]) == 210 and len(made) == 1, made
    bundle = data(folder, "ring_truth_bundle.nii.gz") == 1
    b, g = table(os.path.join(folder, "ring_truth"), truth.affine)
    signals = series[bundle]
    scale = signals[:, b == 0].mean() / data(folder, "ring_truth_s0.nii.gz")[bundle].mean()
    # between b0 volumes only noise differs: its share is 1/30; 16 % covers what 10 iterations of cg leave of the prediction
    deviation = (signals[:, b == 0].std(1, ddof=1) ** 2).mean() ** 0.5 / scale
    assert abs(deviation * 30 - 1) < 0.16, deviation
    d = fit(np.maximum(signals, 1e-3 * scale), b, g)
    error = fa_of(d) - data(folder, "ring_truth_fa.nii.gz")[bundle]
    angle = angles(d, full(data(folder, "ring_truth_tensors.nii.gz")[..., 0, :])[bundle])
    print(f"SNR {1 / deviation:.1f}; FA error: mean {error.mean():.4f}, mean magnitude {np.abs(error).mean():.4f}; direction {angle.mean():.2f} deg")
    assert np.abs(error).mean() < 0.02 and abs(error.mean()) < 0.005
    assert angle.mean() < 2


def phases_of_shots(folder):
    """One shot: magnitudes know nothing of its phase. Several: volumes with weighting are spoilt, those without are not."""
    common = ["--matrix", "32,32,2", "--directions", "4", "--b0s", "1"]
    error = {}
    for name, options in (("still", ["--no-shot-phase"]), ("moved", []), ("shots", ["--shots", "2"])):
        fornix("phantom", "ring", "-o", os.path.join(folder, name + ".h5"), *common, *options)
        series, _ = reconstruct(folder, name + ".h5", name, "cg.iterations=20", "cg.tolerance=1e-5")
        truth = data(folder, name + "_truth.nii.gz")

        error[name] = np.sqrt(((series - truth) ** 2).sum((0, 1, 2)) / (truth ** 2).sum((0, 1, 2)))
        # corners of k-space that a spiral leaves out are not phase: a few per cent
    print({name: np.round(e, 3) for name, e in error.items()})
    assert error["still"].max() < 0.08 and np.abs(error["moved"] - error["still"]).max() < 0.02
    assert abs(error["shots"][0] - error["still"][0]) < 0.02 and error["shots"][1:].min() > 0.2
    with h5py.File(os.path.join(folder, "still.h5")) as a, h5py.File(os.path.join(folder, "moved.h5")) as b:
        rows = [f["dataset/data"][:] for f in (a, b)]
    for still, moved in zip(*rows):
        same = np.array_equal(still["data"], moved["data"])
        assert same == (moved["head"]["idx"]["repetition"] == 0), moved["head"]["idx"]


def other_trajectories(folder):
    """A volume as a whole, and slices by lines: what a full Cartesian scan samples comes back exactly."""
    for trajectory in ("cartesian", "stack-of-stars"):
        name = trajectory.replace("-", "")
        fornix("phantom", "helix", "-o", os.path.join(folder, name + ".h5"), "-t", trajectory, "--matrix", "24,20,8", "--directions", "6", "--b0s", "1",
            "--no-shot-phase", "--coils", "2")
        truth = data(folder, name + "_truth.nii.gz")
        out = os.path.join(folder, name)
        pipeline = "cartesian" if trajectory == "cartesian" else "iterative"
        fornix("run", pipeline, out + ".h5", "-o", out, "--quiet", *(["--set", "combine.method=rss"] if trajectory == "cartesian" else []))
        image = load(folder, name + "/image.nii.gz")
        series = np.asarray(image.dataobj)
        assert series.shape == truth.shape == (24, 20, 8, 7), series.shape
        error = np.linalg.norm(series - truth) / np.linalg.norm(truth)
        # lines: single precision; spokes leave out corners, and lambda smooths
        assert error < (1e-5 if trajectory == "cartesian" else 0.12), (trajectory, error)


def wrong_calls(folder):
    scan = os.path.join(folder, "wrong.h5")
    for arguments, word in ((["ring", "--width-mm", "0"], "width"), (["ring", "--slices", "3"], "--matrix"), (["ring", "--b0s", "0", "--directions", "0"],
            "volumes"), (["helix", "--pitch-mm", "1"], "pitch"), (["crossing", "--angle-deg", "120"], "angle"), (["ring", "--noise", "1", "--snr", "5"],
            "--snr"), (["ellipse", "--snr", "5"], "--snr"), (["ring", "--acceleration", "2", "-t", "radial"], "--acceleration"),
            (["ring", "--detail", "0"], "--detail"), (["ring", "--readouts", "3", "--shots", "2"], "--shots")):
        text = fornix("phantom", *arguments, "-o", scan, code=2)
        assert word in text, (arguments, text)
        assert not os.path.exists(scan)


with tempfile.TemporaryDirectory() as folder:
    for test in (closed_form, other_programs, noise_of_images, back_to_tensors, phases_of_shots, other_trajectories, wrong_calls):
        print(test.__name__)
        test(folder)
