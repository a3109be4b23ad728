# SPDX-License-Identifier: MIT
"""Tract files read: real and odd ones against nibabel, TRX against zipfile and numpy, damage refused; `fornix compare` against numpy."""
import io
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import warnings
import zipfile

try:
    import nibabel
    import numpy as np
except ImportError as missing:
    print("skipped:", missing)
    sys.exit(77)

BUILD = os.environ.get("FORNIX_BUILD", "build")
FORNIX = os.environ.get("FORNIX", os.path.join(BUILD, "bin", "fornix"))
TOOL = os.path.join(BUILD, "tests", "write_tract_files")
DATA = os.path.join(os.environ.get("FORNIX_DATA", "../shared/data"), "tracts")
warnings.simplefilter("ignore")       # nibabel's, of odd headers


def read(path):
    """(fibres, what the header says), or the refusal's text."""
    with tempfile.NamedTemporaryFile() as out:
        done = subprocess.run([TOOL, "read", path, out.name], capture_output=True, text=True)
        assert done.returncode in (0, 1), done.stderr
        if done.returncode:
            return done.stderr
        data, at, found = open(out.name, "rb").read(), 0, []
        while at < len(data):
            n, = struct.unpack_from("<q", data, at)
            found.append(np.frombuffer(data, "<f4", 3 * n, at + 8).reshape(n, 3))
            at += 8 + 12 * n
        words = done.stdout.split()
        return found, {words[i]: int(words[i + 1]) for i in range(0, len(words), 2)}


def same(found, expected, tolerance, what):
    assert len(found) == len(expected), (what, len(found), len(expected))
    for i, (a, b) in enumerate(zip(found, expected)):
        assert a.shape == b.shape, (what, i, a.shape, b.shape)
        assert a.size == 0 or np.abs(a - b).max() <= tolerance, (what, i, np.abs(a - b).max())


def trx_by_numpy(path):
    with zipfile.ZipFile(path) as z:
        head = json.loads(z.read("header.json"))
        arrays = {n.split(".")[0]: np.frombuffer(z.read(n), n.rsplit(".", 1)[1]) for n in z.namelist()
                  if n.startswith(("positions", "offsets"))}
    points = arrays["positions"].reshape(-1, 3).astype(np.float32)
    ends = list(arrays["offsets"]) + [head["NB_VERTICES"]]
    return [points[a:b] for a, b in zip(ends[:head["NB_STREAMLINES"]], ends[1:])]


def check_files():
    for name in sorted(os.listdir(DATA)):
        path = os.path.join(DATA, name)
        if name.endswith(".trx"):
            found, facts = read(path)
            same(found, trx_by_numpy(path), 0, name)
            assert facts["groups"] == (2 if name == "afq.trx" else 0) and facts["scalars"] == (1 if name == "dpsv.trx" else 0), facts
        elif name == "no_magic_number.tck":
            assert "does not begin with 'mrtrix tracks'" in read(path), read(path)
        elif name.endswith((".tck", ".trk")):
            found, facts = read(path)
            expected = nibabel.streamlines.load(path)
            if name.endswith("tck"):
                same(found, expected.streamlines, 0, name)
            else:
                lines = expected.streamlines
                if not facts["affine"]:
                    # Neither has an orientation: we say mm, nibabel counts voxels.
                    lines = [l * expected.header["voxel_sizes"] for l in lines]
                same(found, lines, 1e-4, name)     # two single-precision roundings of up to 200 mm
    with zipfile.ZipFile(os.path.join(DATA, "minimal_bundles.zip")) as z:
        for member in [m for m in z.namelist() if m.endswith(".trk")][:4]:
            with tempfile.NamedTemporaryFile(suffix=".trk") as f:
                f.write(z.read(member))
                f.flush()
                same(read(f.name)[0], nibabel.streamlines.load(f.name).streamlines, 1e-4, member)


# ---- made here ----

rng = np.random.default_rng(11)
LINES = [rng.normal(0, 40, (n, 3)).astype(np.float32) for n in (3, 1, 17, 2, 40)]


def tck(lines, kind="Float32LE", head="", tail=True):
    code = {"Float32LE": "<f4", "Float32BE": ">f4", "Float64LE": "<f8", "Float64BE": ">f8"}[kind]
    rows = [np.concatenate([l, np.full((1, 3), np.nan)]) for l in lines]
    data = np.concatenate(rows + [np.full((1, 3), np.inf)] * tail).astype(code).tobytes()
    text = f"mrtrix tracks\ncount: {len(lines)}\n{head}datatype: {kind}\nfile: . 300\nEND\n"
    return text.encode().ljust(300, b"\0") + data


def put(folder, name, data):
    path = os.path.join(folder, name)
    with open(path, "wb") as f:
        f.write(data)
    return path


def check_tck(folder):
    for kind in ("Float32LE", "Float32BE", "Float64LE", "Float64BE"):
        same(read(put(folder, "a.tck", tck(LINES, kind)))[0], LINES, 0, kind)
    long = tck(LINES, head="roi: a\nroi: b: c\n")
    same(read(put(folder, "a.tck", long))[0], LINES, 0, "fields that come twice")
    empty = LINES[:2] + [np.zeros((0, 3), np.float32)] + LINES[2:]
    same(read(put(folder, "a.tck", tck(empty)))[0], empty, 0, "a fibre without points")
    whole = tck(LINES)
    told = read(put(folder, "cut.tck", whole[:300 + 12 * 9 + 5]))
    assert "cut.tck is cut short" in told and "fibre 2, after 3 points" in told and "12 bytes were expected and 5 are there" in told, told
    assert "cut short" in read(put(folder, "a.tck", tck(LINES, tail=False)))
    assert "Int16LE" in read(put(folder, "a.tck", whole.replace(b"Float32LE", b"Int16LE  ")))
    assert "datatype '?Float32LE'" in read(put(folder, "a.tck", whole.replace(b"datatype: ", b"datatype:\xff")))
    assert "no END" in read(put(folder, "a.tck", whole[:43]))
    assert "where the points are" in read(put(folder, "a.tck", whole.replace(b"file: . 300", b"fill: . 300")))
    assert "only points in the file itself" in read(put(folder, "a.tck", whole.replace(b"file: . 300", b"file: x 300")))
    assert "within the header" in read(put(folder, "a.tck", whole.replace(b"file: . 300", b"file: . 030")))
    nan = [LINES[0].copy()]
    nan[0][1, 1] = np.nan
    assert "point 1 of fibre 0" in read(put(folder, "a.tck", tck(nan)))


def swap_trk(data):
    """The same file in the other byte order, by nibabel's own table of the header."""
    from nibabel.streamlines import trk
    head = np.frombuffer(data[:1000], trk.header_2_dtype.newbyteorder("<"))
    body = np.frombuffer(data[1000:], "<u4").byteswap().tobytes()
    return head.astype(trk.header_2_dtype.newbyteorder(">")).tobytes() + body


def check_trk(folder):
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    dims, size = np.array((20, 30, 40)), np.array((1.5, 2, 3))
    matrix = np.eye(4)
    matrix[:3, :3] = turn @ np.diag(size)
    matrix[:3, 3] = (-30, 12, 7)
    own = nibabel.aff2axcodes(matrix)
    other = dict(zip("RLAPSI", "LRPAIS"))
    tractogram = nibabel.streamlines.Tractogram(LINES, affine_to_rasmm=np.eye(4), data_per_streamline={"a": np.arange(5.)[:, None]},
                                                data_per_point={"b": [l[:, :1] for l in LINES]})

    def save(order):
        head = {"voxel_to_rasmm": matrix, "dimensions": dims, "voxel_sizes": size, "voxel_order": order}
        out = io.BytesIO()
        nibabel.streamlines.TrkFile(tractogram, header=head).save(out)
        return out.getvalue()

    # The image's own axes, each of them turned round, and two swapped.
    for order in [own] + [tuple(other[c] if bits >> i & 1 else c for i, c in enumerate(own)) for bits in (1, 2, 4, 7)] + [own[1::-1] + own[2:]]:
        order = "".join(order)
        path = put(folder, "a.trk", save(order))
        expected = nibabel.streamlines.load(path).streamlines
        same(expected, LINES, 1e-3, "nibabel itself")
        found, facts = read(path)
        same(found, expected, 1e-4, order)
        assert (facts["stated"], facts["values"], facts["scalars"]) == (5, 1, 1), facts
    # All three in a circle: by the definition, since nibabel turns them the wrong way round. File axis k is image axis k + 1, the
    # first against it.
    whole = save("".join(own))
    data, at = bytearray(whole), 1000
    data[948:951] = (other[own[1]] + own[2] + own[0]).encode()
    data[6:12] = struct.pack("<3h", *dims[[1, 2, 0]])
    data[12:24] = struct.pack("<3f", *size[[1, 2, 0]])
    for line in LINES:
        voxels = (line - matrix[:3, 3]) @ np.linalg.inv(matrix[:3, :3]).T
        turned = voxels[:, [1, 2, 0]]
        turned[:, 0] = dims[1] - 1 - turned[:, 0]
        for k, p in enumerate((turned + 0.5) * size[[1, 2, 0]]):
            struct.pack_into("<3f", data, at + 4 + 16 * k, *p)
        at += 8 + 16 * len(line)
    same(read(put(folder, "a.trk", data))[0], LINES, 1e-4, "axes in a circle")
    expected = LINES
    path = put(folder, "big.trk", swap_trk(whole))
    same(read(path)[0], expected, 1e-4, "big-endian")
    data = bytearray(whole)
    data[988:992] = bytes(4)
    same(read(put(folder, "a.trk", data))[0], expected, 1e-4, "count 0")
    told = read(put(folder, "cut.trk", whole[:-10]))
    assert "cut.trk is cut short: fibre 4 needs 644 bytes (40 points), 634 are left" in told, told
    assert "cut short: 0 of the header's" in read(put(folder, "a.trk", b"")) and "cut short" in read(put(folder, "a.trk", data[:700]))
    data[1000:1004] = struct.pack("<i", -4)
    assert "-4 points" in read(put(folder, "a.trk", data))


def trx(lines, real="float32", integer="uint32", last=True, method=zipfile.ZIP_STORED, more=()):
    points = np.concatenate(lines).astype(real)
    offsets = np.concatenate([[0], np.cumsum([len(l) for l in lines])]).astype(integer)
    head = {"NB_STREAMLINES": len(lines), "NB_VERTICES": len(points), "DIMENSIONS": [9, 8, 7], "VOXEL_TO_RASMM": np.eye(4).tolist()}
    files = {"header.json": json.dumps(head).encode(), f"positions.3.{real}": points.tobytes(),
             f"offsets.{integer}": (offsets if last else offsets[:-1]).tobytes(), **dict(more)}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as z:
        for name, data in files.items():
            z.writestr(name, data)
    return out.getvalue(), files


def check_trx(folder):
    for real in ("float16", "float32", "float64"):
        for integer in ("uint32", "uint64"):
            for last in (True, False):
                for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    data, files = trx(LINES, real, integer, last, method, [("dps/a.float32", b"1234"), ("groups/b.uint32", b"")])
                    found, facts = read(put(folder, "a.trx", data))
                    same(found, [l.astype(real).astype(np.float32) for l in LINES], 0, (real, integer, last, method))
                    assert facts == {"stated": 5, "values": 1, "scalars": 0, "groups": 1, "affine": 1}, facts
    own = os.path.join(folder, "folder.trx")
    os.makedirs(os.path.join(own, "dps"))
    for name, body in files.items():
        if "/" not in name:
            put(own, name, body)
    same(read(own)[0], LINES, 0, "a folder")
    data, _ = trx(LINES)
    halves = np.array([[0, -0.0, 2 ** -24], [65504, -1e-5, 1], [0.1, 2 ** -14, 3e-5]])
    same(read(put(folder, "a.trx", trx([halves], "float16")[0]))[0], [halves.astype("f2").astype("f4")], 0, "half precision's odd corners")
    assert "cut short" in read(put(folder, "cut.trx", data[:-40]))
    at = data.index(LINES[2].tobytes())
    assert "checksum" in read(put(folder, "bad.trx", data[:at] + b"x" + data[at + 1:]))
    assert "no header.json" in read(put(folder, "a.trx", trx(LINES)[0].replace(b"header.json", b"heater.json")))
    short = trx(LINES, more=[("positions.3.float32", np.concatenate(LINES)[:-1].tobytes())])[0]
    told = read(put(folder, "a.trx", short))
    assert "has 744 bytes, the header's 63 points need 756" in told, told
    bad = trx(LINES, more=[("offsets.uint32", np.array([0, 3, 4, 90, 23, 63], "u4").tobytes())])[0]
    assert "its offsets are damaged" in read(put(folder, "a.trx", bad))
    nothing, _ = trx([np.zeros((0, 3))], more=[("header.json", b'{"NB_STREAMLINES": 0, "NB_VERTICES": 0}')])
    assert read(put(folder, "a.trx", nothing))[0] == []


# ---- fornix compare ----

def to_line(p, line):
    """From every point of p to the closest of a polyline, straight from the definition."""
    if len(line) == 1:
        return np.linalg.norm(p - line[0], axis=1)
    a, u = line[:-1].astype(float), np.diff(line.astype(float), axis=0)
    length = np.maximum((u * u).sum(1), 1e-300)
    t = np.clip(((p[:, None] - a) * u).sum(2) / length, 0, 1)
    return np.linalg.norm(p[:, None] - a - t[..., None] * u, axis=2).min(1)


def distance(a, b):
    a, b = a.astype(float), b.astype(float)
    return (to_line(a, b).mean() + to_line(b, a).mean()) / 2


def compare(*arguments, status=0):
    done = subprocess.run([FORNIX, "compare", "--json", *arguments], capture_output=True, text=True)
    assert done.returncode == status, (arguments, done.returncode, done.stderr)
    return json.loads(done.stdout) if done.stdout.strip() else done.stderr


def walks(n, seed):
    r = np.random.default_rng(seed)
    return [np.cumsum(np.concatenate([r.uniform(-30, 30, (1, 3)), r.normal(0, 2, (r.integers(0, 30), 3))]), axis=0).astype(np.float32)
            for _ in range(n)]


def check_compare(folder):
    a, b = walks(60, 1), walks(45, 2)
    pa, pb = put(folder, "a.tck", tck(a)), put(folder, "b.trx", trx(b)[0])
    table = np.array([[distance(x, y) for y in b] for x in a])
    told = compare(pa, pb)
    for key, d in (("to_reference", table.min(1)), ("from_reference", table.min(0))):
        expected = {"mean_mm": d.mean(), "median_mm": np.median(d), "max_mm": d.max(), "p95_mm": np.sort(d)[int(np.ceil(0.95 * len(d))) - 1]}
        for name, value in expected.items():
            assert abs(told[key][name] - value) < 1e-9 * (1 + value), (key, name, told[key], expected)
        assert told[key]["fibres"] == len(d)
    worst = max(table.min(1).mean(), table.min(0).mean())
    assert abs(told["distance_mm"] - worst) < 1e-9 * worst
    lengths = [np.linalg.norm(np.diff(x.astype(float), axis=0), axis=1).sum() for x in a]
    assert abs(told["tracts"]["mean_length_mm"] - np.mean(lengths)) < 1e-9 * np.mean(lengths)
    assert told["tracts"]["points"] == sum(map(len, a)) and told["reference"]["fibres"] == 45
    compare(pa, pb, "--max-distance", repr(worst * 1.001))
    compare(pa, pb, "--max-distance", repr(worst * 0.999), status=1)
    drawn = [i for i in range(60) if int((i + 1) * 7 / 60) > int(i * 7 / 60)]
    few = compare(pa, pb, "--max-fibres", "7")["to_reference"]
    assert few["fibres"] == 7 and abs(few["mean_mm"] - table.min(1)[drawn].mean()) < 1e-9 * worst, few
    assert compare(pa, pa)["distance_mm"] == 0
    shifted = [x + np.float32(0.25) for x in a]
    ps = put(folder, "s.tck", tck(shifted))
    pairs = compare(pa, ps, "--paired")["pairs"]
    expected = [distance(x, y) for x, y in zip(a, shifted)]
    assert pairs["fibres"] == 60 and abs(pairs["mean_mm"] - np.mean(expected)) < 1e-9, pairs
    assert "do not pair" in compare(pa, pb, "--paired", status=1)
    empty = put(folder, "e.tck", tck([]))
    assert compare(empty, empty, "--max-distance", "0")["within"] is True
    assert compare(pa, empty, "--max-distance", "1e9", status=1)["within"] is False
    assert "for images" in compare(pa, pb, "--fit-scale", status=2)
    image = put(folder, "x.nii", b"no")
    assert "holds tracts" in compare(pa, image, status=2)


def main():
    if os.path.isdir(DATA):
        check_files()
    else:
        print("no", DATA, "here: the real files are not read")
    for check in (check_tck, check_trk, check_trx, check_compare):
        folder = tempfile.mkdtemp()
        try:
            check(folder)
        finally:
            shutil.rmtree(folder)


main()
