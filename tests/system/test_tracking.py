# SPDX-License-Identifier: MIT
"""Fibres through the whole program: where seeds may come from, what does not depend on threads, millimetres of oblique data, and
streamlines of a real brain beside MRtrix's. Runs the shipped streamline.xml, geodesic.xml, tensors.xml, connectivity.xml and,
entered with tensors, kspace_to_fibres.xml."""
import json
import os
import subprocess
import sys
import tempfile

try:
    import nibabel
    import numpy as np
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

FORNIX = os.environ["FORNIX"]
DATA = os.environ["FORNIX_DATA"]
RADIUS, HALF = 16.0, 5.0  # of the ring's centre line and bundle, mm
CENTRE = np.array([20.0, -35.0, 12.0])


def lattice():
    """Oblique and anisotropic, x running to the left: 2 x 2.2 x 2.5 mm."""
    a, b = np.radians(25), np.radians(-15)
    turn = np.array([[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1]]) @ np.array(
        [[1, 0, 0], [0, np.cos(b), -np.sin(b)], [0, np.sin(b), np.cos(b)]])
    affine = np.eye(4)
    affine[:3, :3] = turn @ np.diag([-2, 2.2, 2.5])
    shape = (25, 23, 14)
    affine[:3, 3] = CENTRE - affine[:3, :3] @ ((np.array(shape) - 1) / 2)
    return shape, affine


def places(shape, affine):
    grid = np.stack(np.meshgrid(*(np.arange(n) for n in shape), indexing="ij"), -1)
    return nibabel.affines.apply_affine(affine, grid)


def ring(path):
    """Tensors of a bundle that runs in a circle about the scanner's z axis; 0 elsewhere. Returns the mask."""
    shape, affine = lattice()
    from_centre = places(shape, affine) - CENTRE
    radius = np.hypot(from_centre[..., 0], from_centre[..., 1])
    inside = np.hypot(radius - RADIUS, from_centre[..., 2]) < HALF
    tangent = np.stack([-from_centre[..., 1], from_centre[..., 0], 0 * radius], -1) / np.maximum(radius, 1e-9)[..., None]
    d = 0.3e-3 * np.eye(3) + 1.4e-3 * tangent[..., :, None] * tangent[..., None, :]
    d[~inside] = 0
    six = np.stack([d[..., i, j] for i, j in ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))], -1)
    image = nibabel.Nifti1Image(six[:, :, :, None, :].astype(np.float32), affine)
    image.header.set_intent("symmetric matrix", (3,))
    nibabel.save(image, path)
    return inside, affine


def run(folder, tensors, *settings, pipeline="streamline", options=(), fails=None):
    """The fibres (RAS mm), and what `track` recorded."""
    out = os.path.join(folder, "out")
    command = [FORNIX, "run", pipeline, tensors, "-o", out, "--quiet", *options]
    for setting in settings:
        command += ["--set", setting]
    done = subprocess.run(command, capture_output=True, text=True)
    if fails is not None:
        assert done.returncode != 0, (settings, "was to be refused")
        assert fails in done.stderr, (settings, done.stderr)
        return None, None
    assert done.returncode == 0, (command, done.stderr)
    with open(os.path.join(out, "run.json"), encoding="utf-8") as file:
        stage = next(s for s in json.load(file)["gadgets"] if s["name"] == "track")
    tracts = os.path.join(out, "tracts.tck")
    fibres = list(nibabel.streamlines.load(tracts).streamlines) if os.path.exists(tracts) else []
    assert len(fibres) == stage["record"]["n_fibres"], (len(fibres), stage["record"])
    return fibres, stage


def in_mask(fibres, inside, affine):
    """The part of all points whose nearest voxel is in the mask."""
    index = np.rint(nibabel.affines.apply_affine(np.linalg.inv(affine), np.concatenate(fibres))).astype(int)
    assert (index >= 0).all() and (index < inside.shape).all(), "points outside the volume"
    return inside[tuple(index.T)].mean()


def placement(folder, tensors, inside, affine):
    """Circles about CENTRE in millimetres: a fault in the frame of tensors, seeds or files would leave them at once."""
    fibres, _ = run(folder, tensors, "track.seed_fa=0", "track.max_length=0")
    assert len(fibres) > 200, len(fibres)
    part = in_mask(fibres, inside, affine)
    # points are written as 32-bit floats: one a rounding error beyond a voxel's face may count as outside
    assert part > 0.9999, part
    moved = []
    for fibre in fibres:
        from_centre = fibre - CENTRE
        moved += [np.ptp(np.hypot(from_centre[:, 0], from_centre[:, 1])), np.ptp(from_centre[:, 2])]
    print(f"ring: {len(fibres)} fibres; radius and height move by {np.median(moved):.3f} mm in the median, {max(moved):.3f} mm at most")
    # trilinear interpolation over voxels of 2.5 mm turns the tensors of a circle of 16 mm by up to (2.5/16)^2/8 = 3e-3 rad, to one side and
    # to the other within a voxel: (3e-3 x 2.5 mm) at a time; beside the border, where tensors are continued from inside, ten times that
    assert np.median(moved) < 0.01 and max(moved) < 0.1, (np.median(moved), max(moved))


def threads(folder, tensors):
    for pipeline, settings in (("streamline", []), ("geodesic", ["track.directions=random", "track.n_directions=3"])):
        results = []
        for n in ("1", "2"):
            run(folder, tensors, *settings, pipeline=pipeline, options=("--threads", n))
            with open(os.path.join(folder, "out", "tracts.tck"), "rb") as file:
                results.append(file.read())
        assert len(results[0]) > 10000 and results[0] == results[1], (pipeline, "depends on threads")


def sources(folder, tensors, inside, affine):
    on_ring = CENTRE + [RADIUS, 0, 0]
    few = ["track.max_steps=3", "track.min_length=0"]

    fibres, _ = run(folder, tensors, *few, "track.seed_fa=0")
    assert len(fibres) == inside.sum(), (len(fibres), inside.sum())
    fibres, _ = run(folder, tensors, *few, "track.seed_fa=0", "track.placement=centre")
    voxels = nibabel.affines.apply_affine(affine, np.argwhere(inside.transpose(2, 1, 0))[:, ::-1])  # x fastest, as the seeds are
    middles = np.array([f[len(f) // 2] for f in fibres])
    # three steps each way and the seed in the middle, within single precision
    assert np.abs(middles - voxels).max() < 1e-4, np.abs(middles - voxels).max()

    x, y, z = on_ring
    fibres, _ = run(folder, tensors, *few, "track.seed_fa=0", f"track.seeds=sphere:{x},{y},{z},1.5", "track.seed_count=300")
    middles = np.array([f[len(f) // 2] for f in fibres])
    assert len(fibres) == 300 and np.linalg.norm(middles - on_ring, axis=1).max() < 1.5 + 1e-4

    fibres, _ = run(folder, tensors, *few, "track.seed_fa=0", "track.seeds=grid:1.5")
    volume = inside.sum() * abs(np.linalg.det(affine[:3, :3])) / 1.5 ** 3
    # the number of grid points in a bundle: its volume, and its surface's roughness
    assert abs(len(fibres) / volume - 1) < 0.1, (len(fibres), volume)

    text = os.path.join(folder, "seeds.txt")
    with open(text, "w", encoding="utf-8") as file:
        file.write(f"# a comment\n{x} {y} {z}\n\n{x},{y},{z + 1}\n{x + 300} {y} {z}\n")
    fibres, stage = run(folder, tensors, *few, "track.seed_fa=0", f"track.seeds={text}")
    assert len(fibres) == 2 and stage["record"]["n_outside"] == 1, stage
    assert any("1 of 3 seeds are outside" in w for w in stage["warnings"]), stage["warnings"]
    with open(text, "w", encoding="utf-8") as file:
        file.write(f"{x} {y} {z} 0 0 5\n")
    fibres, _ = run(folder, tensors, f"track.seeds={text}", "track.seed_fa=0", "track.max_steps=5", "track.both_ways=false",
                    pipeline="geodesic")
    # up as given, along an axis of symmetry of the field: no pull aside but that of the sampled, oblique lattice
    assert len(fibres) == 1 and fibres[0][-1][2] - fibres[0][0][2] > 1.5, fibres

    roi = os.path.join(folder, "roi.nii.gz")
    own = np.diag([1, 1, 1, 1.0])
    own[:3, 3] = on_ring - 1
    labels = np.zeros((3, 3, 3), np.int16)
    labels[1, 1, 1] = 4
    labels[0, 0, 2] = 9
    nibabel.save(nibabel.Nifti1Image(labels, own), roi)
    fibres, stage = run(folder, tensors, *few, f"track.seeds={roi}", "track.seed_fa=0", "track.seed_label=4", "track.seeds_per_voxel=40")
    middles = np.array([f[len(f) // 2] for f in fibres])
    assert len(fibres) == 40 and np.abs(middles - on_ring).max() < 0.5001, np.abs(middles - on_ring).max()
    assert stage["record"]["seeds_space"] == "other", stage["record"]


def refusals(folder, tensors):
    text = os.path.join(folder, "bad.txt")
    cases = [("500 0 0\n500 9 0\n", "all 2 seeds are outside"), ("1 2 3 4\n", "4 columns"), ("1 2 3\n4 5 nan\n", "seed 2"), ("1 2 3\n4 5 x\n", "line 2"), ("", "bad.txt")]
    for content, why in cases:
        with open(text, "w", encoding="utf-8") as file:
            file.write(content)
        run(folder, tensors, f"track.seeds={text}", fails=why)
    run(folder, tensors, "track.seeds=sphere:1,2,3", fails="sphere:X,Y,Z,RADIUS")
    roi = os.path.join(folder, "empty.nii.gz")
    nibabel.save(nibabel.Nifti1Image(np.zeros((3, 3, 3), np.uint8), np.eye(4)), roi)
    run(folder, tensors, f"track.seeds={roi}", fails="empty")


def closest(a, b):
    """Distance of each point of a to the nearest point of b."""
    return np.sqrt(((a[:, None] - b[None]) ** 2).sum(-1)).min(1)


def beside_mrtrix(folder):
    """The same seeds in the same signals. MRtrix refits the tensor (OLS) from interpolated signals at each point; here the tensors
    are fitted and then interpolated. Its 60 degrees are for each step of a tenth of a voxel, which is no limit."""
    tracts = os.path.join(DATA, "tracts", "mrtrix_crop_tensor_det.tck")
    series = os.path.join(DATA, "diffusion", "mrtrix_crop.nii.gz")
    if not os.path.exists(tracts) or not os.path.exists(series):
        print("skipped: streamlines beside MRtrix's and geodesics of real data, none in", DATA)
        return
    theirs = list(nibabel.streamlines.load(tracts).streamlines)
    image = nibabel.load(series)
    everywhere, text = os.path.join(folder, "everywhere.nii.gz"), os.path.join(folder, "mrtrix.txt")
    nibabel.save(nibabel.Nifti1Image(np.ones(image.shape[:3], np.uint8), image.affine), everywhere)
    np.savetxt(text, [t[len(t) // 2] for t in theirs], fmt="%.7g")
    table = ("--bval", series.replace(".nii.gz", ".bval"), "--bvec", series.replace(".nii.gz", ".bvec"))
    same = [f"dwi_mask.image={everywhere}", "tensor_fit.method=ols", "metric.csf=keep", f"track.seeds={text}", "track.min_length=0"]
    ours, _ = run(folder, series, *same, "track.angle_stop=0", options=table)
    assert len(ours) == len(theirs), len(ours)
    distances = [closest(track, fibre).mean() for track, fibre in zip(theirs, ours)]
    print(f"beside MRtrix: mean distance of its {len(theirs)} tracks {np.median(distances):.3f} mm in the median, "
          f"{np.percentile(distances, 90):.3f} mm at the 90th percentile, of voxels of 2.5 mm")
    # a tenth of a voxel: what the two orders of fitting and interpolating differ by over 7 mm each way in noisy signals (b 3000);
    # x of the wrong sign, or tensors in the image's axes, give more than half a voxel
    assert np.median(distances) < 0.2 and np.percentile(distances, 90) < 0.25, np.percentile(distances, (50, 90))

    fibres, stage = run(folder, series, *same, pipeline="geodesic", options=table)
    assert len(fibres) > 250, stage["record"]
    in_mask(fibres, np.ones(image.shape[:3], bool), image.affine)
    print("geodesics of it:", stage["record"])
    out = os.path.join(folder, "tensors")
    subprocess.run([FORNIX, "run", "tensors", series, *table, "-o", out, "--quiet"], check=True)
    assert os.path.exists(os.path.join(out, "fa.nii.gz"))


def shipped(folder, tensors, affine):
    """Two regions on the ring joined by connectivity.xml; kspace_to_fibres.xml entered with tensors, without targets."""
    labels = np.zeros(lattice()[0], np.uint8)
    for value, angle in ((1, 0.0), (2, 1.2)):
        at = CENTRE + RADIUS * np.array([np.cos(angle), np.sin(angle), 0])
        labels[np.linalg.norm(places(labels.shape, affine) - at, axis=-1) < 4.5] = value
    regions = os.path.join(folder, "regions.nii.gz")
    nibabel.save(nibabel.Nifti1Image(labels, affine), regions)
    out = os.path.join(folder, "connections")
    subprocess.run([FORNIX, "run", "connectivity", tensors, "-o", out, "--quiet", "--set", f"track.seeds={regions}", "--set",
                    "track.seed_label=1", "--set", f"connect.targets={regions}", "--set", "connect.target_labels=2", "--set",
                    f"connect.source={regions}", "--set", "connect.source_labels=1", "--set", "metric.kind=sharpened", "--set",
                    "metric.power=4"], check=True)
    fibres = nibabel.streamlines.load(os.path.join(out, "tracts.tck")).streamlines
    assert len(fibres) > 0 and os.path.exists(os.path.join(out, "connectivity.json"))
    best = fibres[0] - CENTRE
    # the short way round: 1.2 rad of 16 mm less the regions' radii, and a voxel for where fibres start and are cut
    assert abs(np.linalg.norm(np.diff(best, axis=0), axis=1).sum() - 1.2 * RADIUS) < 2 * 4.5 + 2.5
    fibres, _ = run(folder, tensors, "track.seeds_per_voxel=2", pipeline="kspace_to_fibres")
    assert len(fibres) > 100


def main():
    with tempfile.TemporaryDirectory() as folder:
        tensors = os.path.join(folder, "ring.nii.gz")
        inside, affine = ring(tensors)
        placement(folder, tensors, inside, affine)
        threads(folder, tensors)
        sources(folder, tensors, inside, affine)
        refusals(folder, tensors)
        shipped(folder, tensors, affine)
        beside_mrtrix(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
