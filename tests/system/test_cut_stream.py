# SPDX-License-Identifier: MIT
"""A stream that breaks off, as a lost connection does: the frame that was open is emitted with a warning, or refused."""
import json
import os
import subprocess
import sys
import tempfile

import nibabel
import numpy as np

FORNIX = os.environ["FORNIX"]


def run(stream, out, *settings):
    words = [word for s in settings for word in ("--set", s)]
    return subprocess.run([FORNIX, "run", "iterative", "-", "-o", out, "--no-cache", *words], input=stream,
                          capture_output=True, check=False)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        def path(*names):
            return os.path.join(scratch, *names)

        subprocess.run([FORNIX, "phantom", "ellipse", "--trajectory", "radial", "--matrix", "32,32,1", "--coils", "2",
                        "--repetitions", "2", "--no-truth", "--stream", "-o", path("whole.mrd")], check=True,
                       stdout=subprocess.DEVNULL)
        with open(path("whole.mrd"), "rb") as file:
            whole = file.read()
        done = run(whole, path("whole"))
        assert done.returncode == 0 and b"cut short" not in done.stderr, done.stderr
        full = np.asarray(nibabel.load(path("whole", "image.nii.gz")).dataobj)
        assert full.shape[3] == 2, full.shape
        # In the second frame: inside a message, and (nothing after the last readout's data but CLOSE) between two.
        for name, size in (("inside", len(whole) * 4 // 5), ("close", len(whole) - 2)):
            done = run(whole[:size], path(name))
            assert done.returncode == 0 and b"cut short" in done.stderr, done.stderr
            found = np.asarray(nibabel.load(path(name, "image.nii.gz")).dataobj)
            assert np.array_equal(found[..., 0], full[..., 0]), "the frame that was whole changed"
            with open(path(name, "run.json"), encoding="utf-8") as file:
                record = next(g for g in json.load(file)["gadgets"] if g["name"] == "fhd")
            partial = record["record"]["partial_frames"]
            if name == "inside":
                assert partial == 1 and found.shape[3] == 2, (partial, found.shape)
                assert not np.array_equal(found[..., 1], full[..., 1])
                assert any("cut short" in w for w in record["warnings"]), record["warnings"]
            else:
                assert partial == 0 and np.array_equal(found, full), partial
        done = run(whole[:len(whole) * 4 // 5], path("refused"), "fhd.partial=refuse")
        assert done.returncode == 1 and b"partial=emit" in done.stderr, done.stderr
        assert not os.path.exists(path("refused", "image.nii.gz"))
    return 0


sys.exit(main())
