# SPDX-License-Identifier: MIT
"""docs/images/shortcut.png: connections of crossing bundles beside a lake of free water by three metrics.
Usage: FORNIX=build/bin/fornix python3 bench/shortcut_picture.py docs/images/shortcut.png. Needs nibabel and numpy."""
import json
import os
import struct
import subprocess
import sys
import tempfile
import zlib

import nibabel
import numpy as np

ZOOM = 7  # pixels a voxel
METRICS = (("inverse, CSF kept", ["metric.csf=keep"]), ("inverse, CSF masked", ["metric.csf=mask"]),
           ("adjugate, CSF kept", ["metric.kind=adjugate", "metric.csf=keep"]))
COLOURS = {2: (255, 170, 40), 3: (90, 200, 90), 4: (70, 190, 255)}  # by the region that region 1 is joined with


def write_png(path, rgb):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    lines = b"".join(b"\0" + row.tobytes() for row in rgb)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", rgb.shape[1], rgb.shape[0], 8, 2, 0, 0, 0))
                   + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b""))


def panel(stem, out):
    """Mean diffusivity of the middle slice in grey, regions lighter, and over it the fibres, seen along z, the dearest first."""
    image = nibabel.load(stem + "_truth_md.nii.gz")
    middle = image.shape[2] // 2
    grey = 25 + 45 * np.asarray(image.dataobj)[:, :, middle].T
    grey += 60 * (np.asarray(nibabel.load(stem + "_truth_labels.nii.gz").dataobj)[:, :, middle].T > 0)
    rgb = np.repeat(np.kron(grey, np.ones((ZOOM, ZOOM)))[:, :, None], 3, axis=2)
    fibres = nibabel.streamlines.load(os.path.join(out, "tracts.tck")).streamlines
    with open(os.path.join(out, "connectivity.json"), encoding="utf-8") as file:
        pairs = json.load(file)["pairs"]
    owners = [(f["measure"], p["target"]) for p in pairs for f in p["fibres"]]
    for (_, target), fibre in sorted(zip(owners, fibres), key=lambda pair: pair[0]):
        at = (nibabel.affines.apply_affine(np.linalg.inv(image.affine), fibre)[:, :2] + 0.5) * ZOOM
        steps = np.linspace(0, len(at) - 1, 20 * len(at))
        x, y = (np.interp(steps, np.arange(len(at)), at[:, i]).astype(int) for i in (0, 1))
        rgb[y, x] = COLOURS[target]
    for p in pairs:
        print(f"{os.path.basename(out)}: 1 to {p['target']}: best measure {p['best_measure']:.3f}, {p['fibres'][0]['length_mm']:.1f} mm, {p['n_fibres']} fibres")
    return rgb


def main():
    panels = []
    with tempfile.TemporaryDirectory() as folder:
        stem = os.path.join(folder, "cross")
        labels = stem + "_truth_labels.nii.gz"
        subprocess.run([os.environ["FORNIX"], "phantom", "crossing", "--matrix", "48,48,16", "--angle-deg", "90", "--lake-mm", "18", "--width-mm", "11",
                        "--coils", "1", "--snr", "30", "--images", stem + "_images.nii.gz", "-o", stem + ".h5"], check=True)
        for name, metric in METRICS:
            out = os.path.join(folder, name)
            command = [os.environ["FORNIX"], "run", "connectivity", stem + "_images.nii.gz", "--bval", stem + "_images.bval", "--bvec",
                       stem + "_images.bvec", "-o", out, "--quiet"]
            for setting in metric + [f"track.seeds={labels}", "track.seed_label=1", "track.seeds_per_voxel=16", f"connect.source={labels}",
                                     "connect.source_labels=1", f"connect.targets={labels}", "connect.target_labels=2,3,4", "connect.families=1"]:
                command += ["--set", setting]
            subprocess.run(command, check=True)
            panels += [panel(stem, out), np.full((48 * ZOOM, 6, 3), 255)]
    write_png(sys.argv[1], np.clip(np.concatenate(panels[:-1], axis=1), 0, 255).astype(np.uint8))


if __name__ == "__main__":
    main()
