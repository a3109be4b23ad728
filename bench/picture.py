# SPDX-License-Identifier: MIT
"""The picture in README.md, from what ./bootstrap demo left: the same slice of truth, gridding and iterative.
usage: /usr/bin/python3 bench/picture.py demo-out docs/images/demo.png"""
import struct
import sys
import zlib

import nibabel
import numpy as np

ENLARGE, GAP, WHITE = 4, 8, 0.6  # pixels a voxel, pixels between panels, amplitude that is white (the skull's 1 is beyond)


def png(path, grey):
    """An 8-bit greyscale PNG; every line begins with filter type 0."""
    height, width = grey.shape
    lines = b"".join(b"\0" + line.tobytes() for line in grey)

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
                   + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b""))


panels = []
for name in ("scan_truth.nii.gz", "gridding/image.nii.gz", "iterative/image.nii.gz"):
    volume = np.abs(np.asarray(nibabel.load(f"{sys.argv[1]}/{name}").dataobj))
    plane = np.clip(volume[:, :, volume.shape[2] // 2 - 4] / WHITE, 0, 1)
    panel = np.kron((255 * plane.T).astype(np.uint8), np.ones((ENLARGE, ENLARGE), np.uint8))
    panels += [panel, np.full((len(panel), GAP), 255, np.uint8)]
png(sys.argv[2], np.concatenate(panels[:-1], axis=1))
