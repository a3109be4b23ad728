# SPDX-License-Identifier: MIT
"""What the products write, read by nibabel, h5py and libismrmrd: values, order and geometry by formulas of its own."""
import os
import subprocess
import sys
import tempfile

try:
    import h5py
    import nibabel
    import numpy as np
except ImportError as missing:
    print("skipped:", missing)
    sys.exit(77)

BUILD = os.environ.get("FORNIX_BUILD", "build")


def orient(a, b, hand):
    read = np.array([np.cos(a), np.sin(a), 0])
    phase = np.array([-np.sin(a) * np.cos(b), np.cos(a) * np.cos(b), np.sin(b)])
    return read, phase, hand * np.cross(read, phase)


def ras(point):
    return np.asarray(point) * [-1, -1, 1]


def value(x, y, z, c, image):
    return x + 100 * y + 10000 * z + 1e6 * c + 1e7 * image


# Coordinates of up to 100 mm in single precision: 1e-5 mm; a tenth of a micrometre is far below any voxel.
MM = 1e-4


def check_volume(folder, i):
    shape = [(5, 4, 3, 1), (4, 7, 2, 3), (3, 5, 5, 1)][i]
    dirs = orient(0.3 + i, 2.0 * i - 0.7, -1 if i == 1 else 1)
    fov, position = np.array([50, 44, 36]), np.array([10.5, -20.25, 30.125])
    for name, is_complex in ((f"volume_{i}.nii.gz", False), (f"volume_{i}_complex.nii", i < 2)):
        image = nibabel.load(os.path.join(folder, name))
        data = np.asarray(image.dataobj)
        assert data.dtype == (np.complex64 if is_complex else np.float32), (name, data.dtype)
        assert data.shape == shape[:3] + ((2,) if shape[3] == 1 else (2, shape[3])), data.shape
        if shape[3] == 1:
            data = data[..., None]
        for index in np.ndindex(*data.shape):
            x, y, z, v, c = index
            expected = value(x, y, z, c, 1 - v)       # sorted by repetition, which ran backwards
            if i == 2:
                expected %= 30000                     # 16-bit source
            if is_complex:
                expected *= 0.6 - 0.8j
            assert abs(data[index] - expected) <= 1e-6 * abs(expected), (name, index, data[index], expected)
            centre = position + sum((index[a] - shape[a] // 2) * fov[a] / shape[a] * dirs[a] for a in range(3))
            assert np.abs(image.affine @ [x, y, z, 1] - np.append(ras(centre), 1)).max() < MM
        head = image.header
        assert int(head["sform_code"]) == 1 and int(head["qform_code"]) == 1
        assert np.abs(head.get_qform() - head.get_sform()).max() < MM
        assert np.allclose(head.get_zooms()[:3], fov / shape[:3])
        assert head.get_xyzt_units()[0] == "mm"
    check_mrd_volume(folder, i, shape)


def check_mrd_volume(folder, i, shape):
    path = os.path.join(folder, f"volume_{i}.h5")
    with h5py.File(path) as f:
        series = f["dataset/image_7"]
        data, head = series["data"], series["header"]
        assert data.shape == (2,) + shape[::-1], data.shape
        assert head["repetition"].tolist() == [1, 0] and head["image_index"].tolist() == [0, 1]
        assert head["data_type"].tolist() == [2 if i == 2 else 7] * 2
        text = series["attributes"][0]
        assert "a &lt; b &amp; &quot;c&quot;" in (text.decode() if isinstance(text, bytes) else text), text
        x, y, z, c = shape[0] - 1, 2, 1, shape[3] - 1
        got = data[1, c, z, y, x]
        if i == 2:
            assert got == value(x, y, z, c, 1) % 30000
        else:
            expected = value(x, y, z, c, 1) * (0.6 - 0.8j)
            assert abs(got["real"] + 1j * got["imag"] - expected) <= 1e-6 * abs(expected)
        arrays = np.asarray(data["real"] if i < 2 else data).reshape(2, -1)
        headers = head[:]
    dump = os.path.join(BUILD, "tests", "libismrmrd_dump")
    if not os.path.exists(dump):
        print("not compared with libismrmrd: it is not installed")
        return
    lines = subprocess.run([dump, path, "dataset", "image_7"], check=True, stdout=subprocess.PIPE,
                           text=True).stdout.splitlines()
    assert len(lines) == 2
    for k, line in enumerate(lines):
        word = line.split()
        assert [int(w) for w in word[2:6]] == list(shape) and int(word[6]) == headers["repetition"][k]
        assert int(word[9]) > 0 and int(word[10]) == ord("<")
        total = float(np.sum(arrays[k].astype(float) * np.arange(1, arrays[k].size + 1)))
        assert abs(float(word[11]) - total) <= 1e-9 * abs(total)


def check_slices(folder):
    image = nibabel.load(os.path.join(folder, "slices.nii.gz"))
    data = np.asarray(image.dataobj)
    assert data.shape == (6, 5, 5), data.shape
    read, phase, normal = orient(0.4, 0.9, 1)
    for x, y, z in np.ndindex(6, 5, 5):
        expected = value(x, y, 0, 0, z)
        assert abs(data[x, y, z] - expected) <= 1e-6 * abs(expected)
        centre = np.array([1, 2, 3]) + (x - 3) * 10 * read + (y - 2) * 20 * phase + z * 7.5 * normal
        assert np.abs(image.affine[:3] @ [x, y, z, 1] - ras(centre)).max() < MM
    assert np.allclose(image.header.get_zooms(), (10, 20, 7.5), atol=1e-5)


def check_odd_ones(folder, printed):
    normals = []
    for i, name in enumerate(("localizer.nii.gz", "localizer_2.nii.gz", "localizer_3.nii.gz")):
        image = nibabel.load(os.path.join(folder, name))
        assert np.isclose(np.asarray(image.dataobj)[1, 1, 0], value(1, 1, 0, 0, i), rtol=1e-6)
        normals.append(np.argmax(np.abs(image.affine[:3, 2])))
    assert normals == [2, 0, 1]

    image = nibabel.load(os.path.join(folder, "uneven.nii.gz"))
    data = np.asarray(image.dataobj)
    assert data.shape == (4, 3, 3, 2)
    assert [data[0, 0, z, 0] / 1e7 for z in range(3)] == [0, 1, 2]
    assert [data[0, 0, z, 1] / 1e7 for z in range(3)] == [3, 4, 0]    # the hole is 0
    assert "unevenly spaced, 10 to 30 mm" in printed and "1 of 6 slices are missing" in printed

    image = nibabel.load(os.path.join(folder, "nowhere.nii.gz"))
    assert int(image.header["sform_code"]) == 0 and int(image.header["qform_code"]) == 0
    assert [v / 1e7 for v in np.asarray(image.dataobj)[0, 0]] == [2, 1, 0]    # by slice number
    assert "nowhere.nii.gz: the field of view is 0 x 0 x 0 mm" in printed

    image = nibabel.load(os.path.join(folder, "wide.nii.gz"))
    assert isinstance(image, nibabel.Nifti2Image) and image.shape == (40000, 2, 1)
    assert np.asarray(image.dataobj)[39999, 1, 0] == value(39999, 1, 0, 0, 0)
    assert np.abs(image.header.get_qform() - image.header.get_sform()).max() < MM


def main():
    tool = os.path.join(BUILD, "tests", "write_images")
    with tempfile.TemporaryDirectory() as folder:
        printed = subprocess.run([tool, folder], check=True, stdout=subprocess.PIPE, text=True).stdout
        assert not [name for name in os.listdir(folder) if name.startswith(".")], "hidden files left"
        for i in range(3):
            check_volume(folder, i)
        check_slices(folder)
        check_odd_ones(folder, printed)
    print("products agree with nibabel, h5py and libismrmrd")


main()
