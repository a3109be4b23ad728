# SPDX-License-Identifier: MIT
"""Tract files as others read them: nibabel, MRtrix' tckinfo, trx-python; pictures by their pixels; memory by its peak."""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib

try:
    import nibabel
    import numpy as np
except ImportError as missing:
    print("skipped:", missing)
    sys.exit(77)

BUILD = os.environ.get("FORNIX_BUILD", "build")
TOOL = os.path.join(BUILD, "tests", "write_tract_files")
NAMES = ["v0", "v1", "v2"]


def turn(axis, angle):
    i, j = [(1, 2), (2, 0), (0, 1)][axis]
    m = np.eye(3)
    m[i, i] = m[j, j] = np.cos(angle)
    m[i, j], m[j, i] = -np.sin(angle), np.sin(angle)
    return m


def affine(rotation, size, origin, signs=(1, 1, 1), order=(0, 1, 2)):
    m = np.eye(4)
    m[:3, :3] = (rotation @ np.diag(size) @ np.diag(signs))[:, order]
    m[:3, 3] = origin
    return m


OBLIQUE = turn(0, 0.4) @ turn(1, -0.3) @ turn(2, 0.2)
SHEAR = np.array([[1, 0.2, 0], [0, 1, -0.15], [0.1, 0, 1]])
LATTICES = {
    "plain": affine(np.eye(3), (2, 2, 2), (0, 0, 0)),
    "anisotropic": affine(np.eye(3), (1.25, 2.5, 3.75), (-90, 30, 12.5)),
    "oblique": affine(OBLIQUE, (1.7, 1.7, 3.1), (-60, -81, 40)),
    "flipped": affine(OBLIQUE, (2, 1.5, 3), (70, -81, 40), (-1, 1, 1)),
    "LPS": affine(OBLIQUE, (2, 1.5, 3), (70, 60, -40), (-1, -1, 1)),
    "permuted": affine(OBLIQUE, (2, 1.5, 3), (5, 6, 7), (1, -1, -1), (2, 0, 1)),
    "sheared": affine(OBLIQUE @ SHEAR, (2, 2, 2.5), (-50, 0, 20)),
}
DIMS = (31, 24, 17)


def make_set(matrix, rng, n=37):
    lengths = rng.integers(1, 60, n)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint32)
    voxels = rng.uniform(-0.5, np.array(DIMS) - 0.5, (offsets[-1], 3))
    points = (voxels @ matrix[:3, :3].T + matrix[:3, 3]).astype(np.float32)
    return {"dims": DIMS, "affine": matrix, "offsets": offsets, "points": points,
            "riemann": rng.uniform(0, 9, offsets[-1]).astype(np.float32),
            "seeds": rng.permutation(1000)[:n].astype(np.uint32),
            "values": rng.normal(size=(n, 3)).astype(np.float32)}


def write(folder, s, batch=7):
    path = os.path.join(folder, "set.bin")
    with open(path, "wb") as f:
        f.write(struct.pack("<3q", *s["dims"]))
        f.write(np.asarray(s["affine"], "<f8")[:3].tobytes())
        n = len(s["offsets"]) - 1
        f.write(struct.pack("<5q", s["values"].shape[1], "riemann" in s, "seeds" in s, n, len(s["points"])))
        for key in ("offsets", "points", "riemann", "seeds", "values"):
            if key in s:
                f.write(s[key].tobytes())
    done = subprocess.run([TOOL, "set", path, str(batch), folder], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    os.remove(path)
    return done.stdout


def fibres(s):
    return [s["points"][a:b] for a, b in zip(s["offsets"][:-1], s["offsets"][1:])]


def same(found, expected, tolerance, what):
    assert len(found) == len(expected), (what, len(found), len(expected))
    for i, (a, b) in enumerate(zip(found, expected)):
        assert a.shape == b.shape, (what, i, a.shape, b.shape)
        assert np.abs(a - b).max() <= tolerance, (what, i, np.abs(a - b).max())


def check_nibabel(folder, s, name):
    tck = nibabel.streamlines.load(os.path.join(folder, "x.tck"))
    same(tck.streamlines, fibres(s), 0, (name, "tck"))
    assert int(tck.header["count"]) == len(s["offsets"]) - 1
    trk = nibabel.streamlines.load(os.path.join(folder, "x.trk"))
    # Two single-precision roundings of numbers up to 200 mm, there and back.
    same(trk.streamlines, fibres(s), 1e-4, (name, "trk"))
    assert trk.header["nb_streamlines"] == len(s["offsets"]) - 1
    assert tuple(trk.header["dimensions"]) == s["dims"]
    assert np.abs(trk.affine - s["affine"]).max() < 1e-5
    order = "".join(nibabel.aff2axcodes(s["affine"]))
    assert trk.header["voxel_order"].decode() == order, (name, trk.header["voxel_order"], order)
    for v, key in enumerate(NAMES[:s["values"].shape[1]]):
        assert np.array_equal(np.ravel(trk.tractogram.data_per_streamline[key]), s["values"][:, v]), (name, key)
    assert np.array_equal(np.ravel(trk.tractogram.data_per_streamline["seed"]), s["seeds"]), name
    riemann = trk.tractogram.data_per_point["riemann"]
    assert np.array_equal(np.concatenate([np.ravel(r) for r in riemann]), s["riemann"]), name


def check_zip(folder, s, name):
    """The archive by the standard library: every entry's checksum and array."""
    with zipfile.ZipFile(os.path.join(folder, "x.trx")) as z:
        assert z.testzip() is None
        assert all(i.compress_type == zipfile.ZIP_STORED for i in z.infolist())
        head = json.loads(z.read("header.json"))
        n = len(s["offsets"]) - 1
        assert head["NB_STREAMLINES"] == n and head["NB_VERTICES"] == len(s["points"])
        assert tuple(head["DIMENSIONS"]) == s["dims"]
        assert np.abs(np.array(head["VOXEL_TO_RASMM"]) - s["affine"]).max() < 1e-6
        assert 'a "test" \\ with two lines' in head["FORNIX"]
        assert np.array_equal(np.frombuffer(z.read("positions.3.float32"), "<f4").reshape(-1, 3), s["points"])
        assert np.array_equal(np.frombuffer(z.read("offsets.uint64"), "<u8"), s["offsets"])
        for v in range(s["values"].shape[1]):
            assert np.array_equal(np.frombuffer(z.read(f"dps/v{v}.float32"), "<f4"), s["values"][:, v])
        assert np.array_equal(np.frombuffer(z.read("dps/seed.uint32"), "<u4"), s["seeds"])
        assert np.array_equal(np.frombuffer(z.read("dpv/riemann.float32"), "<f4"), s["riemann"])


def trx_python():
    """A python that has trx-python: FORNIX_TRX_PYTHON, this one, or an environment made once beside the build."""
    own = os.path.join(BUILD, "trx-venv", "bin", "python")
    tries = [p for p in (os.environ.get("FORNIX_TRX_PYTHON"), sys.executable, own) if p and os.path.exists(p)]
    for python in tries:
        if subprocess.run([python, "-c", "import trx.trx_file_memmap"], capture_output=True).returncode == 0:
            return python
    marker = os.path.join(BUILD, "trx-venv", "failed")
    if os.path.exists(marker):
        return None
    try:
        subprocess.run([sys.executable, "-m", "venv", os.path.join(BUILD, "trx-venv")], check=True, capture_output=True,
                       timeout=60)
        subprocess.run([own, "-m", "pip", "install", "-q", "--retries", "0", "--timeout", "5", "trx-python"], check=True,
                       capture_output=True, timeout=90)
        return own
    except (OSError, subprocess.SubprocessError):
        os.makedirs(os.path.dirname(marker), exist_ok=True)
        open(marker, "w").close()
        return None


READ_TRX = """
import sys, numpy as np
from trx.trx_file_memmap import load
t = load(sys.argv[1])
np.savez(sys.argv[2], points=np.asarray(t.streamlines._data), offsets=np.asarray(t.streamlines._offsets),
    lengths=np.asarray(t.streamlines._lengths), n=t.header["NB_STREAMLINES"],
    riemann=np.ravel(np.asarray(t.data_per_vertex["riemann"]._data)) if "riemann" in t.data_per_vertex else [],
    **{"s_" + k: np.ravel(np.asarray(v)) for k, v in t.data_per_streamline.items()})
t.close()
"""


def check_trx_python(python, folder, s, name):
    out = os.path.join(folder, "trx.npz")
    done = subprocess.run([python, "-c", READ_TRX, os.path.join(folder, "x.trx"), out], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with np.load(out) as r:
        assert int(r["n"]) == len(s["offsets"]) - 1, name
        assert np.array_equal(r["points"], s["points"]), name
        assert np.array_equal(r["lengths"], np.diff(s["offsets"])), name
        assert np.array_equal(r["riemann"], s["riemann"]), name
        assert np.array_equal(r["s_seed"], s["seeds"]), name
        for v in range(s["values"].shape[1]):
            assert np.array_equal(r[f"s_v{v}"], s["values"][:, v]), (name, v)


def check_empty(folder, python):
    s = make_set(LATTICES["oblique"], np.random.default_rng(3), 6)
    s = {"dims": DIMS, "affine": s["affine"], "offsets": np.zeros(1, np.uint32), "points": np.zeros((0, 3), np.float32),
         "values": np.zeros((0, 3), np.float32)}
    write(folder, s)
    assert len(nibabel.streamlines.load(os.path.join(folder, "x.tck")).streamlines) == 0
    assert len(nibabel.streamlines.load(os.path.join(folder, "x.trk")).streamlines) == 0
    with zipfile.ZipFile(os.path.join(folder, "x.trx")) as z:
        assert z.testzip() is None and json.loads(z.read("header.json"))["NB_STREAMLINES"] == 0
        assert z.read("offsets.uint64") == bytes(8)
    if python:
        code = "import sys; from trx.trx_file_memmap import load; assert load(sys.argv[1]).header['NB_STREAMLINES'] == 0"
        done = subprocess.run([python, "-c", code, os.path.join(folder, "x.trx")], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def check_many_values(folder):
    """12 values per fibre: a .trk has room for 10, and what is left out is told."""
    s = make_set(LATTICES["plain"], np.random.default_rng(4), 5)
    s["values"] = np.arange(60, dtype=np.float32).reshape(5, 12)
    told = write(folder, s)
    assert "room for 10" in told and "v10 v11 seed" in told, told
    trk = nibabel.streamlines.load(os.path.join(folder, "x.trk"))
    assert np.array_equal(np.ravel(trk.tractogram.data_per_streamline["v9"]), s["values"][:, 9])
    check_zip(folder, s, "12 values")


def check_tckinfo(folder, s):
    told = subprocess.run(["tckinfo", "-count", os.path.join(folder, "x.tck")], capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    n = len(s["offsets"]) - 1
    assert f"actual count in file: {n}" in told.stdout, told.stdout
    line = [l for l in told.stdout.splitlines() if l.strip().startswith("count:")]
    assert line and int(line[0].split()[1]) == n, told.stdout
    lines = os.path.join(folder, "ascii-[].txt")
    subprocess.run(["tckconvert", "-quiet", os.path.join(folder, "x.tck"), lines], check=True, capture_output=True)
    first = np.loadtxt(os.path.join(folder, "ascii-0000000.txt"), ndmin=2)
    assert np.abs(first - fibres(s)[0]).max() < 1e-3      # the text has 6 digits


# ---- pictures ----

def pixels(path):
    """RGB of an 8-bit PNG without interlace, by its own chunks: no imaging library is needed."""
    data = open(path, "rb").read()
    at, body = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", data[at + 8:at + 18])
            assert depth == 8 and colour == 2
        if kind == b"IDAT":
            body += data[at + 8:at + 8 + size]
        at += 12 + size
    raw, size, rows = zlib.decompress(body), 3 * width, []
    above = bytearray(size)
    for at in range(0, len(raw), size + 1):
        kind, row = raw[at], bytearray(raw[at + 1:at + 1 + size])
        for i in range(size) if kind else ():
            left, upper_left = (row[i - 3], above[i - 3]) if i >= 3 else (0, 0)
            up = above[i]
            if kind == 4:
                p = left + up - upper_left
                pa, pb, pc = abs(p - left), abs(p - up), abs(p - upper_left)
                guess = left if pa <= pb and pa <= pc else up if pb <= pc else upper_left
            else:
                guess = (left, up, (left + up) // 2)[kind - 1]
            row[i] = (row[i] + guess) & 255
        rows.append(row)
        above = row
    return np.array(rows, np.uint8).reshape(height, width, 3).astype(int)


def picture_set(lines, dims=(64, 48, 32)):
    points = np.concatenate(lines).astype(np.float32)
    offsets = np.concatenate([[0], np.cumsum([len(l) for l in lines])]).astype(np.uint32)
    return {"dims": dims, "affine": affine(np.eye(3), (2, 2, 2), (1, 1, 1)), "offsets": offsets, "points": points,
            "values": np.zeros((len(lines), 0), np.float32)}


def check_picture(folder):
    """One line along each axis through (a, b, c): where it must be, and in its colour; black elsewhere."""
    a, b, c = 30.0, 70.0, 20.0                     # of 128 x 96 x 64 mm, so left, front and foot are unlike
    lines = [np.array([[10, b, c], [50, b, c]]), np.array([[a, 50, c], [a, 90, c]]), np.array([[a, b, 8], [a, b, 30]])]
    s = picture_set(lines)
    write(folder, s, 1)
    first = open(os.path.join(folder, "x.png"), "rb").read()
    p = pixels(os.path.join(folder, "x.png"))
    write(folder, s, 3)
    assert open(os.path.join(folder, "x.png"), "rb").read() == first, "the picture depends on the batches"
    scale = 1024 / (2 * 128 + 96)
    wide, tall = int(np.ceil(128 * scale)), [int(np.ceil(n * scale)) for n in (96, 64, 64)]
    assert p.shape[0] == tall[0] and abs(p.shape[1] - 1024 - 8) <= 3, p.shape
    top = [(tall[0] - t) // 2 for t in tall]
    left = [0, wide + 4, 2 * wide + 8]
    extent = {0: 128, 1: 96, 2: 64}

    def at(view, across, down, x, y):
        return p[int(top[view] + (extent[down] - y) * scale), int(left[view] + (extent[across] - x) * scale)]

    red, green, blue = np.array([1, 0, 0]), np.array([0, 1, 0]), np.array([0, 0, 1])
    # halfway along each line, away from the crossing; lines are one pixel wide but may lie between two
    for view, across, down, spots in ((0, 0, 1, [((18, b), red), ((a, 56), green)]), (1, 0, 2, [((18, c), red), ((a, 26), blue)]),
                                      (2, 1, 2, [((56, c), green), ((b, 26), blue)])):
        for (x, y), colour in spots:
            found = at(view, across, down, x, y)
            assert (found[colour == 1] > 60).all() and (found[colour == 0] < 3).all(), (view, x, y, found, colour)
    lit = p.max(axis=2) > 0
    # Three lines of 40, 40 and 22 mm, two of them in each view, never more than two pixels wide; one seen end-on.
    most = 2 * (2 * (80 + 62 + 62) * scale / 2 + 12) + 40
    assert lit.sum() < most, (lit.sum(), most)
    assert not lit[:, :int((128 - 52) * scale)].any(), "the patient's right belongs on the picture's left"


def check_dense(folder):
    """A thousand fibres on top of each other keep their colour, and one alone still shows."""
    lines = [np.array([[20, 40, 20], [60, 40, 20]])] * 1000 + [np.array([[100, 20, 20], [100, 60, 20]])]
    write(folder, picture_set(lines), 100)
    p = pixels(os.path.join(folder, "x.png"))
    scale = 1024 / (2 * 128 + 96)
    dense = p[int((96 - 40) * scale), int((128 - 40) * scale)]
    alone = p[int((96 - 40) * scale), int((128 - 100) * scale)]
    assert dense[0] >= 200 and dense[1] == 0 and dense[2] == 0, dense
    assert alone[1] >= 8 and alone[0] == 0, alone


def check_memory(folder):
    """Ten times the fibres, no more memory: 4 MB is the allocator's noise, 900 000 fibres more would be 60 MB and up."""
    peak = {}
    for n in (100000, 1000000):
        done = subprocess.run([TOOL, "many", str(n), folder], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        peak[n] = int(done.stdout.split("peak")[1].split()[0])
    print("peak memory:", peak)
    assert peak[1000000] < peak[100000] + 4096, peak
    with zipfile.ZipFile(os.path.join(folder, "x.trx")) as z:
        assert json.loads(z.read("header.json"))["NB_STREAMLINES"] == 1000000
        assert z.getinfo("offsets.uint64").file_size == 8 * 1000001
    assert not [f for f in os.listdir(folder) if f.startswith(".")], os.listdir(folder)


def main():
    python = trx_python()
    if not python:
        print("trx-python cannot be had here: .trx is checked by zipfile and numpy alone")
    if not shutil.which("tckinfo"):
        print("mrtrix3 is not installed: tckinfo is not asked")
    for name, matrix in LATTICES.items():
        with tempfile.TemporaryDirectory() as folder:
            s = make_set(matrix, np.random.default_rng(len(name)))
            write(folder, s)
            check_nibabel(folder, s, name)
            check_zip(folder, s, name)
            if python and name in ("oblique", "LPS"):
                check_trx_python(python, folder, s, name)
            if shutil.which("tckinfo") and name == "oblique":
                check_tckinfo(folder, s)
            assert not [f for f in os.listdir(folder) if f.startswith(".")], os.listdir(folder)
    for check in (lambda f: check_empty(f, python), check_many_values, check_picture, check_dense, check_memory):
        with tempfile.TemporaryDirectory() as folder:
            check(folder)


main()
