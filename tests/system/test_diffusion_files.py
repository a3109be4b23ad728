# SPDX-License-Identifier: MIT
"""Tensor images and series in NIfTI through `fornix run`: kinds of files, affines, orders, frames, units; read by nibabel, MRtrix, DIPY."""
import gzip
import json
import os
import shutil
import struct
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
DATA = os.environ.get("FORNIX_DATA", "../shared/data")
# Tensors, maps and affines are float32 in the files: 6e-8 of a value, a few operations; 1e-6 of the largest value or of a mm.
SINGLE = 1e-6
ORDERS = {"nifti": [(0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2)], "mrtrix": [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)],
          "fsl": [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]}
ROTATION = np.array([[0.8, -0.6, 0], [0.48, 0.64, -0.6], [0.36, 0.48, 0.8]])
AFFINES = {"oblique": np.vstack([np.c_[ROTATION * [2, 2.5, 3], [-31.25, 12.5, 44.75]], [0, 0, 0, 1]]),
           "mirrored": np.vstack([np.c_[ROTATION * [-2, 2.5, 3], [61.25, 12.5, 44.75]], [0, 0, 0, 1]]),
           "sheared": np.array([[2, 0.3, 0.1, -7], [0, 2.2, 0.4, 8], [0.2, 0, 3, 9.5], [0, 0, 0, 1.0]])}

work = tempfile.mkdtemp()
has = set(subprocess.run([FORNIX, "list"], capture_output=True, text=True, check=True).stdout.split())


def pipeline(*gadgets):
    path = os.path.join(work, "chain.xml")
    with open(path, "w") as f:
        f.write('<pipeline xmlns="urn:fornix:pipeline:1" summary="test">' + "".join(f"<{g}/>" for g in gadgets) + "</pipeline>")
    return path


def run(chain, source, *options, fails=None):
    out = os.path.join(work, "out")
    shutil.rmtree(out, ignore_errors=True)
    done = subprocess.run([FORNIX, "run", chain, source, "-o", out, "--threads", "2", "--no-cache", "-v", *options],
                          capture_output=True, text=True)
    if fails is None:
        assert done.returncode == 0, done.stderr
        with open(os.path.join(out, "run.json")) as f:
            return out, json.load(f), done.stderr
    assert done.returncode == fails, (done.returncode, done.stderr)
    assert "Traceback" not in done.stderr and "ERROR" not in done.stderr, done.stderr
    return done.stderr


def field(shape=(4, 3, 5)):
    """Tensors with known axes, um^2/ms, RAS: (x, y, z, 3, 3)."""
    rng = np.random.default_rng(7)
    q, _ = np.linalg.qr(rng.normal(size=shape + (3, 3)))
    values = np.sort(rng.uniform(0.2, 2.2, size=shape + (3,)))[..., ::-1]
    return np.einsum("...ik,...k,...jk->...ij", q, values, q)


def components(d, order):
    return np.stack([d[..., i, j] for i, j in ORDERS[order]], -1)


def turn_to(d, affine, frame):
    """Components along the frame's axes. Of a sheared grid these are its columns made unit vectors."""
    if frame == "ras":
        return d
    axes = affine[:3, :3] / np.linalg.norm(affine[:3, :3], axis=0)
    if frame == "fsl" and np.linalg.det(axes) > 0:
        axes[:, 0] *= -1
    return np.einsum("ki,...kl,lj->...ij", axes, d, axes)


def fa_of(d):
    v = np.linalg.eigvalsh(d)
    m = v.mean(-1, keepdims=True)
    return np.sqrt(1.5 * ((v - m) ** 2).sum(-1) / (v ** 2).sum(-1))


def save(data, affine, name, kind=nibabel.Nifti1Image, dtype=np.float32, big=False, intent=None, scale=None):
    path = os.path.join(work, name)
    header = kind.header_class(endianness=">" if big else "<")
    image = kind(data.astype(dtype), affine, header)
    image.set_data_dtype(dtype)
    image.set_sform(affine, 1)
    if intent:
        image.header.set_intent(intent, (3,) if intent == 1005 else ())
    if scale:
        image.header.set_slope_inter(*scale)
    image.to_filename(path)
    return path


def close(a, b, bound=SINGLE):
    a, b = np.asarray(a, float), np.asarray(b, float)
    assert a.shape == b.shape, (a.shape, b.shape)
    worst = np.abs(a - b).max() / np.abs(b).max()
    assert worst < bound, worst


def tensor_files():
    d = field()
    chain = pipeline("write_tensors")
    flavours = {"plain.nii": {}, "packed.nii.gz": {}, "two.nii": {"kind": nibabel.Nifti2Image, "dtype": np.float64},
                "big.nii": {"big": True}, "bigtwo.nii.gz": {"kind": nibabel.Nifti2Image, "big": True}}
    for place, affine in AFFINES.items():
        for name, how in flavours.items():
            source = save(components(d, "nifti")[..., None, :] * 1e-3, affine, name, intent=1005, **how)
            out, record, _ = run(chain, source)
            assert record["input"]["format"] == "NIfTI tensors" and record["gadgets"][0]["idle"] is False
            image = nibabel.load(os.path.join(out, "tensor.nii.gz"))
            assert np.abs(image.affine - affine).max() < SINGLE * 64, place   # of numbers up to 64 mm
            assert image.shape == (4, 3, 5, 1, 6) and image.header.get_intent() == ("symmetric matrix", (3.0,), "")
            codes = int(image.header["sform_code"]), int(image.header["qform_code"])
            assert codes == ((1, 0) if place == "sheared" else (1, 1)), codes
            if place != "sheared":
                assert np.abs(image.header.get_qform() - affine).max() < 1e-4   # a quaternion in single precision
            close(image.get_fdata()[..., 0, :], components(d, "nifti") * 1e-3)
            close(nibabel.load(os.path.join(out, "fa.nii.gz")).get_fdata(), fa_of(d))
    text = image.header.extensions[0]
    assert text.get_code() == 6 and b"Not corrected for eddy currents" in text.get_content()
    colour = nibabel.load(os.path.join(out, "colour_fa.nii.gz"))
    e1 = np.linalg.eigh(d)[1][..., 2]
    rgb = np.asarray(colour.dataobj)
    for k, channel in enumerate("RGB"):   # rounded to whole steps
        assert np.abs(rgb[channel] - 255 * fa_of(d) * np.abs(e1[..., k])).max() < 0.51
    found = nibabel.load(os.path.join(out, "e1.nii.gz"))
    assert found.header.get_intent()[0] == "vector" and found.shape == (4, 3, 5, 1, 3)
    # directions where the two largest values are apart by a thousandth at least: that divides the error
    gap = np.diff(np.linalg.eigvalsh(d), axis=-1)[..., 1] > 0.01
    assert np.abs(np.abs((found.get_fdata()[..., 0, :] * e1).sum(-1)) - 1)[gap].max() < SINGLE
    flags = nibabel.load(os.path.join(out, "flags.nii.gz"))
    assert flags.get_data_dtype() == np.uint8 and not flags.get_fdata().any()
    md = nibabel.load(os.path.join(out, "md.nii.gz"))
    assert abs(float(md.header["cal_max"]) - np.trace(d, axis1=-2, axis2=-1).max() / 3e3) < 1e-9 and float(md.header["cal_min"]) == 0


def orders_and_frames():
    d = field()
    for place in ("oblique", "mirrored"):
        affine = AFFINES[place]
        for order in ORDERS:
            for frame in ("ras", "image", "fsl"):
                source = save(components(turn_to(d, affine, frame), order), affine, "six.nii")
                out, _, _ = run(pipeline("write_tensors unit='um2/ms'"), source, "--tensor-order", order, "--tensor-frame", frame)
                close(nibabel.load(os.path.join(out, "tensor.nii.gz")).get_fdata()[..., 0, :], components(d, "nifti"))
        for order, frame in (("mrtrix", "ras"), ("fsl", "fsl")):   # each program's own, both ways
            source = save(components(turn_to(d, affine, frame), order) * 1e-3, affine, "six.nii")
            out, _, _ = run(pipeline(f"write_tensors order='{order}'"), source, "--tensor-order", order)
            image = nibabel.load(os.path.join(out, "tensor.nii.gz"))
            assert image.shape == (4, 3, 5, 6)
            close(image.get_fdata(), nibabel.load(source).get_fdata())


def other_programs():
    d = field()
    out, _, _ = run(pipeline("write_tensors order='mrtrix'"), save(components(d, "nifti")[..., None, :], AFFINES["oblique"], "d.nii", intent=1005))
    fa = nibabel.load(os.path.join(out, "fa.nii.gz")).get_fdata()
    if shutil.which("tensor2metric"):
        theirs, vector = os.path.join(work, "theirs.nii"), os.path.join(work, "vector.nii")
        subprocess.run(["tensor2metric", "-quiet", "-fa", theirs, "-vector", vector, "-modulate", "none",
                        os.path.join(out, "tensor.nii.gz")], check=True)
        close(fa, nibabel.load(theirs).get_fdata(), 1e-5)   # MRtrix's eigenvalues are in single precision
        e1 = nibabel.load(os.path.join(out, "e1.nii.gz")).get_fdata()
        assert e1.shape == (4, 3, 5, 3)
        gap = np.diff(np.linalg.eigvalsh(d), axis=-1)[..., 1] > 0.1
        assert np.abs(np.abs((nibabel.load(vector).get_fdata() * e1).sum(-1)) - 1)[gap].max() < 1e-5
    else:
        print("not compared with MRtrix: tensor2metric is not installed")
    try:
        from dipy.reconst import dti
    except ImportError:
        print("not compared with DIPY: it is not installed")
        return
    out, _, _ = run(pipeline("write_tensors"), os.path.join(work, "d.nii"))
    lower = nibabel.load(os.path.join(out, "tensor.nii.gz")).get_fdata()[..., 0, :]
    close(fa, dti.fractional_anisotropy(np.linalg.eigvalsh(dti.from_lower_triangular(lower))))


def real_tensors():
    path = os.path.join(DATA, "diffusion", "mrtrix_crop_tensor_out.nii.gz")
    if not os.path.exists(path):
        print("not tested on MRtrix's own tensors:", path, "is missing")
        return
    theirs = nibabel.load(path)
    out, _, _ = run(pipeline("write_tensors order='mrtrix'"), path, "--tensor-order", "mrtrix")
    ours = nibabel.load(os.path.join(out, "tensor.nii.gz"))
    raised = nibabel.load(os.path.join(out, "flags.nii.gz")).get_fdata().astype(int) & 4 != 0
    assert np.abs(ours.affine - theirs.affine).max() < SINGLE
    close(ours.get_fdata()[~raised], theirs.get_fdata()[~raised])
    full = np.zeros(theirs.shape[:3] + (3, 3))
    for k, (i, j) in enumerate(ORDERS["mrtrix"]):
        full[..., i, j] = full[..., j, i] = theirs.get_fdata()[..., k]
    assert (raised == (np.linalg.eigvalsh(full).min(-1) < 0)).all()


def series():
    if "tensor_fit" not in has:
        print("not tested with series: there is no tensor_fit")
        return
    d, affine, rng = field(), AFFINES["mirrored"], np.random.default_rng(3)
    vectors = rng.normal(size=(12, 3))
    vectors /= np.linalg.norm(vectors, axis=1)[:, None]
    vectors[[0, 5]] = 0
    b = np.where(vectors.any(1), 1000, 0)
    signal = 1000 * np.exp(-1e-3 * np.einsum("...ij,vi,vj,v->...v", d, vectors, vectors, b))
    axes = affine[:3, :3] / np.linalg.norm(affine[:3, :3], axis=0)   # mirrored: x stays as it is
    in_image = vectors @ axes
    bval, bvec, columns, grad = (os.path.join(work, n) for n in ("t.bval", "t.bvec", "t3.bvec", "t.b"))
    np.savetxt(bval, b[None], "%d")
    np.savetxt(bvec, in_image.T)
    np.savetxt(columns, np.where(vectors.any(1)[:, None], in_image, np.nan))
    np.savetxt(grad, np.c_[vectors, b])
    chain = pipeline("noise_adjust", "trajectory", "tensor_fit", "write_tensors")
    flavours = {"s.nii": {}, "s.nii.gz": {"dtype": np.float64}, "s2.nii": {"kind": nibabel.Nifti2Image}, "big.nii.gz": {"big": True},
                "c.nii": {"dtype": np.complex64}}
    tables = [("--bval", bval, "--bvec", bvec), ("--bval", bval, "--bvec", columns), ("--grad", grad)]
    for i, (name, how) in enumerate(flavours.items()):
        data = signal * np.exp(0.7j) if name == "c.nii" else signal
        out, record, said = run(chain, save(data, affine, name, **how), *tables[i % 3])
        image = nibabel.load(os.path.join(out, "tensor.nii.gz"))
        assert np.abs(image.affine - affine).max() < SINGLE * 64
        # signals are single: their logarithms are off by 6e-8, which b |g|^2 of about 1 um^2/ms divides; 1e-5 leaves room
        close(image.get_fdata()[..., 0, :], components(d, "nifti") * 1e-3, 1e-5)
        assert [g["idle"] for g in record["gadgets"]] == [True, True, False, False]
        assert "the input is already a series: noise_adjust and trajectory stand idle" in said
        assert record["input"]["format"] == "NIfTI series" and record["input"]["digest"].startswith("sha256:")
    source = save(signal, AFFINES["sheared"], "t.nii.gz")
    out, record, said = run(chain, source, "--set", "trajectory.unit=per_m")
    assert "t.bval and t.bvec, found beside the image" in said and "found beside" in record["input"]["note"]
    assert "trajectory: stands idle with this input" in said and record["gadgets"][1]["warnings"]
    image = nibabel.load(os.path.join(out, "fa.nii.gz"))
    assert np.abs(image.affine - AFFINES["sheared"]).max() < SINGLE * 64
    odd = os.path.join(DATA, "odd", "shear.nii.gz")
    if os.path.exists(odd):
        affine = nibabel.load(odd).affine
        out, _, _ = run(chain, save(signal, affine, "odd.nii"), "--grad", grad)
        assert np.abs(nibabel.load(os.path.join(out, "fa.nii.gz")).affine - affine).max() <= SINGLE * np.abs(affine).max()
    else:
        print("not tested with a sheared file from the wild:", odd, "is missing")


def check_and_graph():
    """A pipeline may begin with a series or tensors; what is wrong with one that may not is said of a scan."""
    for gadgets, says in ((("write_tensors",), "from a tensor image"), (("tensor_fit", "write_tensors"), "from a diffusion series")):
        if not has.issuperset(gadgets):
            continue
        chain = pipeline(*gadgets)
        said = subprocess.run([FORNIX, "check", chain], capture_output=True, text=True, check=True).stdout
        assert says in said, said
        dot = subprocess.run([FORNIX, "graph", chain], capture_output=True, text=True, check=True).stdout
        assert 'input -> g0 [label="' + ("tensors" if len(gadgets) == 1 else "series") in dot, dot
    done = subprocess.run([FORNIX, "check", pipeline("trajectory", "write_tensors")], capture_output=True, text=True)
    assert done.returncode == 2 and "<write_tensors> needs tensors" in done.stderr, done.stderr


def bad_input():
    chain = pipeline("write_tensors")
    good = save(components(field(), "nifti")[..., None, :], AFFINES["oblique"], "good.nii.gz", intent=1005)
    with open(good, "rb") as f:
        packed = f.read()
    cut = os.path.join(work, "cut.nii.gz")
    for n in (len(packed) // 2, len(packed) - 3, 40):
        with open(cut, "wb") as f:
            f.write(packed[:n])
        said = run(chain, cut, fails=1)
        assert "cut.nii.gz" in said and "cut short" in said, said
    assert "has six volumes" in run(chain, save(components(field(), "fsl"), np.eye(4), "six.nii"), fails=2)
    assert "one volume of 4 x 3 x 1" in run(chain, save(np.ones((4, 3)), np.eye(4), "flat.nii"), fails=1)
    assert "one volume of 4 x 3 x 5" in run(chain, save(np.ones((4, 3, 5)), np.eye(4), "three.nii"), fails=1)
    assert "without the intent SYMMATRIX" in run(chain, save(np.ones((4, 3, 5, 1, 6)), np.eye(4), "five.nii"), fails=2)
    assert "5 dimensions" in run(chain, save(np.ones((4, 3, 5, 2, 6)), np.eye(4), "many.nii"), fails=1)
    assert "--tensor-unit" in run(chain, save(np.ones((2, 2, 2, 6)) * 55, np.eye(4), "u.nii"), "--tensor-order", "fsl", fails=1)
    assert "complex" in run(chain, save(np.ones((2, 2, 2, 6)), np.eye(4), "c.nii", dtype=np.complex64), "--tensor-order", "fsl", fails=1)
    assert "no groups" in run(chain, good, "--group", "dataset", fails=2)
    assert "cannot be inverted" in run(chain, save(np.ones((2, 2, 2, 6)), np.array([[2, 0, 0, 0], [0, 2, 2, 0], [0, 1, 1, 0], [0, 0, 0, 1.0]]), "s.nii"), "--tensor-order", "fsl", fails=1)
    with open(os.path.join(work, "half.hdr"), "wb") as f:
        f.write(struct.pack("<i", 348) + bytes(340) + b"ni1\0")
    assert ".hdr/.img pair" in run(chain, os.path.join(work, "half.hdr"), fails=1)
    with gzip.open(os.path.join(work, "text.gz"), "wb") as f:
        f.write(b"no image at all" * 100)
    assert "gzip-compressed" in run(pipeline("noise_adjust"), os.path.join(work, "text.gz"), fails=1)
    assert "not" in run(pipeline("noise_adjust"), os.path.join(work, "text.gz"), "--tensor-order", "fsl", fails=2)
    # a table for raw data needs somebody who reads it
    assert "dwi_collect" in run(pipeline("noise_adjust"), os.path.join(work, "text.gz"), "--bval", "x", "--bvec", "y", fails=2)


try:
    tensor_files()
    orders_and_frames()
    other_programs()
    real_tensors()
    series()
    check_and_graph()
    bad_input()
finally:
    shutil.rmtree(work)
print("ok")
