# SPDX-License-Identifier: MIT
"""`fornix phantom` seen from outside: its files read by h5py and nibabel, its k-space turned back by numpy."""
import os
import re
import struct
import subprocess
import sys
import tempfile

import h5py
import nibabel
import numpy as np

FORNIX = os.environ["FORNIX"]


def phantom(*arguments, code=0):
    done = subprocess.run([FORNIX, "phantom", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == code, (arguments, done.returncode, done.stderr)
    return done.stdout if code == 0 else done.stderr


def read(path):
    """Header XML, record heads, data {coils, samples} and trajectories {samples, dims} of every readout."""
    with h5py.File(path) as file:
        xml = file["dataset/xml"][0]
        records = file["dataset/data"][:]
    heads = records["head"]
    data = [np.asarray(d).view(np.complex64).reshape(h["active_channels"], h["number_of_samples"])
            for h, d in zip(heads, records["data"])]
    traj = [np.asarray(t).reshape(-1, h["trajectory_dimensions"]) if h["trajectory_dimensions"] else None
            for h, t in zip(heads, records["traj"])]
    return xml.decode() if isinstance(xml, bytes) else xml, heads, data, traj


def flags(heads, number):
    return np.array([(int(h["flags"]) >> (number - 1)) & 1 for h in heads], bool)


def inverse(k):
    """Orthonormal inverse FFT, index floor(N/2) the origin on both sides."""
    return np.fft.fftshift(np.fft.ifftn(np.fft.ifftshift(k), norm="ortho"))


def cartesian_image(scan, coils):
    _, heads, data, _ = read(scan)
    k = np.zeros((coils, 20, 24, 66), complex)
    for head, d in zip(heads, data):
        k[:, head["idx"]["kspace_encode_step_2"], head["idx"]["kspace_encode_step_1"]] = d
    return np.stack([inverse(c) for c in k])[..., 33 - 16:33 - 16 + 33]


def cartesian_is_the_object(folder):
    """One coil's inverse FFT has the object's amplitude; so has the root of several coils' sum of squares, as sum |S|^2 = 1."""
    scan = os.path.join(folder, "cartesian.h5")
    common = ["shepp-logan", "--matrix", "33,24,20", "--oversampling", 2, "-o", scan]
    ceiling = float(re.search(r"PSNR ([\d.]+) dB", phantom(*common))[1])
    xml = read(scan)[0]
    assert "<x>66</x>" in xml and "<x>33</x>" in xml
    image = cartesian_image(scan, 1)[0]
    truth = np.asarray(nibabel.load(os.path.join(folder, "cartesian_truth.nii.gz")).dataobj).T
    assert truth.shape == image.shape == (20, 24, 33)
    # In the middle of k-space averaging over voxels is a known factor, sinc(k), and little aliases.
    k = np.stack(np.meshgrid(*[np.fft.fftfreq(n) for n in truth.shape], indexing="ij"))
    middle = np.abs(k).max(0) < 0.125
    got, wanted = np.fft.fftn(image)[middle], (np.fft.fftn(truth) / np.sinc(k).prod(0))[middle]
    factor = np.vdot(wanted, got) / np.vdot(wanted, wanted)
    phantom(*common, "--coils", 8)
    several = np.sqrt((np.abs(cartesian_image(scan, 8)) ** 2).sum(0))
    psnr = [20 * np.log10(truth.max() / np.sqrt(np.mean((x - truth) ** 2))) for x in (np.abs(image), several)]
    print(f"Cartesian: factor {factor:.5f}, PSNR {psnr[0]:.2f} and {psnr[1]:.2f} dB, ceiling {ceiling:.2f} dB")
    # What aliases into the middle, and the truth's own accuracy of 1e-3 on boundaries.
    assert abs(factor - 1) < 3e-3, factor
    # The same band but for the readout's double density, and for the coils' slow waves: within 1 dB of the ceiling.
    assert max(abs(x - ceiling) for x in psnr) < 1, (psnr, ceiling)


def flags_and_counters(folder):
    scan = os.path.join(folder, "slices.h5")
    phantom("shepp-logan", "-t", "radial", "--matrix", "32,32,1", "--slices", 3, "--interleaved-slices", "--readouts", 10,
            "--repetitions", 2, "--averages", 2, "--no-truth", "-o", scan)
    _, heads, _, traj = read(scan)
    assert len(heads) == 120 and all(t.shape == (64, 2) for t in traj)
    assert [int(h["idx"]["slice"]) for h in heads[:6]] == [0, 1, 2, 0, 1, 2]
    last_in_slice = np.flatnonzero(flags(heads, 8))
    assert list(last_in_slice) == [57, 58, 59, 117, 118, 119]
    assert list(np.flatnonzero(flags(heads, 7))) == [0, 1, 2, 60, 61, 62]
    assert list(np.flatnonzero(flags(heads, 14))) == [59, 119]
    assert list(np.flatnonzero(flags(heads, 25))) == [119]
    assert set(int(h["idx"]["repetition"]) for h in heads[60:]) == {1}
    z = [float(h["position"][2]) for h in heads[:3]]
    assert z == [-5, 0, 5], z
    phantom("shepp-logan", "-t", "radial", "--matrix", "32,32,1", "--no-flags", "--no-truth", "-o", scan)
    assert not any(int(h["flags"]) for h in read(scan)[1])


def partial_fourier_counts_from_the_first_line(folder):
    scan, full = os.path.join(folder, "partial.h5"), os.path.join(folder, "full.h5")
    phantom("ellipse", "--matrix", "32,32,1", "--no-truth", "-o", full)
    phantom("ellipse", "--matrix", "32,32,1", "--partial-fourier", "0.625", "--echo", "0.75", "--no-truth", "-o", scan)
    xml, heads, data, _ = read(scan)
    limit = re.search(r"<kspace_encoding_step_1>\s*<minimum>(\d+)</minimum>\s*<maximum>(\d+)</maximum>\s*<center>(\d+)<", xml)
    assert limit.groups() == ("0", "19", "4"), limit.groups()
    assert all(h["number_of_samples"] == 24 and h["center_sample"] == 8 for h in heads)
    whole = np.stack([d[0] for d in read(full)[2]])
    np.testing.assert_array_equal(np.stack([d[0] for d in data]), whole[12:, 8:])


def units(folder):
    scan, per_voxel = os.path.join(folder, "units.h5"), None
    voxel_m = 0.2 / 32
    for unit, factor in (("cycles_per_voxel", 1), ("cycles_per_fov", 32), ("rad_per_voxel", 2 * np.pi), ("per_m", 1 / voxel_m)):
        phantom("ellipse", "-t", "spiral", "--matrix", "32,32,1", "--fov-mm", "200,200,5", "--units", unit, "--columns", 3,
                "--no-truth", "-o", scan)
        traj = np.concatenate(read(scan)[3])
        per_voxel = traj if per_voxel is None else per_voxel
        # one rounding to single precision each
        np.testing.assert_allclose(traj, per_voxel * factor, rtol=3e-7, atol=1e-12)
        assert traj.shape[1] == 3 and not traj[:, 2].any()


def geometry(folder):
    """Voxel floor(N/2) lies at the position, axes along the directions: RAS is LPS with two signs turned."""
    scan = os.path.join(folder, "oblique.h5")
    for matrix, trajectory, more in (((25, 18, 12), "cartesian", []), ((24, 31, 1), "radial", ["--slices", 5])):
        position, fov, spacing = np.array([12.5, -30, 7.25]), np.array([200, 180, 60.0]), 60 / matrix[2]
        phantom("ellipse", "-t", trajectory, "--matrix", ",".join(map(str, matrix)), "--fov-mm", "200,180,60", "--oblique",
                "20,-35,110", "--position-mm", "12.5,-30,7.25", *more, "-o", scan)
        head = read(scan)[1][0]
        turns = np.radians([20, -35, 110])
        (cx, cy, cz), (sx, sy, sz) = np.cos(turns), np.sin(turns)
        rotation = (np.array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]]) @ np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
                    @ np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]]))
        for axis, name in enumerate(("read_dir", "phase_dir", "slice_dir")):
            np.testing.assert_allclose(head[name], rotation[:, axis], atol=1e-6)
        image = nibabel.load(os.path.join(folder, "oblique_truth.nii.gz"))
        n = np.array(image.shape)
        assert tuple(n) == (matrix[0], matrix[1], max(matrix[2], 5 if more else 1)), image.shape
        size = np.array([fov[0] / matrix[0], fov[1] / matrix[1], spacing])
        affine = np.eye(4)
        affine[:3, :3] = rotation * size
        affine[:3, 3] = position - affine[:3, :3] @ (n // 2)
        affine[:2] *= -1
        # positions and directions are single precision, up to 200 mm
        np.testing.assert_allclose(image.affine, affine, atol=1e-4)


def noise(folder):
    scan, sigma = os.path.join(folder, "noise.h5"), 0.25
    phantom("ellipse", "-t", "radial", "--matrix", "64,64,1", "--coils", 4, "--noise", sigma, "--noise-correlation", "0.5",
            "--noise-readouts", 64, "--noise-dwell-us", 16, "--dwell-us", 4, "--noise-bandwidth", "0.8", "--no-truth", "-o", scan)
    xml, heads, data, _ = read(scan)
    assert "<relativeReceiverNoiseBandwidth>0.8<" in xml
    is_noise = flags(heads, 19)
    assert is_noise.sum() == 64 and is_noise[:64].all()
    assert heads[0]["sample_time_us"] == 16 and heads[64]["sample_time_us"] == 4
    x = np.concatenate(data[:64], axis=1)
    covariance = x @ x.conj().T / x.shape[1]
    apart = np.subtract.outer(np.arange(4), np.arange(4))
    # four times the dwell time, 0.8 of the bandwidth: 0.2 of the scan's variance
    expected = 2 * sigma ** 2 * 0.5 ** np.abs(apart) * np.exp(0.7j * apart) * 0.2
    assert np.abs(covariance - expected).max() < 5 * expected[0, 0].real / np.sqrt(x.shape[1])
    quiet = os.path.join(folder, "quiet.h5")
    phantom("ellipse", "-t", "radial", "--matrix", "64,64,1", "--coils", 4, "--no-truth", "-o", quiet)
    difference = np.concatenate(data[64:], axis=1) - np.concatenate(read(quiet)[2], axis=1)
    spread = np.std(difference.real)
    # a standard deviation's own scatter is sigma / sqrt(2 n)
    assert abs(spread - sigma) < 5 * sigma / np.sqrt(2 * difference.size), spread


def streams_and_threads(folder):
    common = ["shepp-logan", "-t", "radial3d", "--matrix", "16,16,16", "--readouts", "300", "--golden", "--coils", "3",
              "--noise", "0.01", "--seed", "9"]
    one, two = os.path.join(folder, "one.h5"), os.path.join(folder, "two.h5")
    phantom(*common, "--threads", 1, "-o", one)
    phantom(*common, "--threads", 2, "--no-truth", "-o", two)
    _, heads, data, traj = read(one)
    _, heads2, data2, traj2 = read(two)
    assert np.array_equal(heads, heads2) and np.array_equal(data, data2) and np.array_equal(traj, traj2)
    stream = subprocess.run([FORNIX, "phantom", *common, "--stream", "-o", "-"], check=True, capture_output=True).stdout
    assert struct.unpack_from("<H", stream)[0] == 3
    at = 6 + struct.unpack_from("<I", stream, 2)[0]
    assert stream[6:at].decode() == read(one)[0]
    for d, t in zip(data, traj):
        assert struct.unpack_from("<H", stream, at)[0] == 1008
        at += 2 + 340
        np.testing.assert_array_equal(np.frombuffer(stream, np.float32, t.size, at).reshape(t.shape), t)
        at += 4 * t.size
        np.testing.assert_array_equal(np.frombuffer(stream, np.complex64, d.size, at).reshape(d.shape), d)
        at += 8 * d.size
    assert stream[at:] == struct.pack("<H", 4)


def wrong_calls(folder):
    scan = os.path.join(folder, "wrong.h5")
    for arguments, words in ((["shep-logan", "-o", scan], "shepp-logan"), (["ellipse"], "-o"),
                             (["ellipse", "-t", "radial", "--matrix", "8,8,8", "-o", scan], "stack-of-stars"),
                             (["ellipse", "--matrix", "8,8", "-o", scan], "--matrix"),
                             (["ellipse", "--matrix", "8,x,1", "-o", scan], "'x'"),
                             (["shapes", "-o", scan], "--shape"), (["ellipse", "-o", "-"], "--stream"),
                             (["shapes", "--shape", "1,0,0,0,1,0,1", "-o", scan], "shape 1"),
                             (["ellipse", "--noise", "-1", "-o", scan], "--noise"), (["ellipse", "--coils", "0", "-o", scan], "--coils"),
                             (["ellipse", "--echo", "0.2", "-o", scan], "0.5")):
        said = phantom(*arguments, code=2)
        assert words in said, (arguments, said)
    assert not os.path.exists(scan)
    said = phantom("ellipse", "-o", os.path.join(folder, "missing", "scan.h5"), code=1)
    assert "missing" in said, said
    assert not [name for name in os.listdir(folder) if name.startswith(".")], "something was left behind"


def main():
    with tempfile.TemporaryDirectory() as folder:
        for test in (cartesian_is_the_object, flags_and_counters, partial_fourier_counts_from_the_first_line, units, geometry,
                     noise, streams_and_threads, wrong_calls):
            print(test.__name__, flush=True)
            test(folder)
    return 0


sys.exit(main())
