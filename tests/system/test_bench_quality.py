# SPDX-License-Identifier: MIT
"""The chapter's validation: iterative well above gridding, single precision as good as double."""
import json
import os
import subprocess
import sys
import tempfile


def main():
    with tempfile.TemporaryDirectory() as scratch:
        record = os.path.join(scratch, "quality.json")
        done = subprocess.run([os.environ["FORNIX"], "bench", "quality", "--json", record, "-o", scratch],
                              capture_output=True, text=True, check=False)
        print(done.stdout)
        assert done.returncode == 0, done.stderr
        with open(record, encoding="utf-8") as file:
            figures = json.load(file)
        psnr = {name: way["psnr_db"] for name, way in figures["ways"].items()}
        # What the chapter calls indistinguishable: 0.1 dB.
        assert abs(psnr["iterative, single"] - psnr["iterative, double"]) < 0.1, psnr
        # 7.2 dB here, 10.8 dB in the chapter; 5 dB is more than twice the rms error either way.
        assert psnr["iterative, single"] - psnr["bilinear gridding"] > 5, psnr
        # Convolution gridding is the direct sum to its kernel's 1e-3: 0.01 dB at an NRMSE of 0.3.
        assert abs(psnr["convolution gridding"] - psnr["weighted direct sum"]) < 0.05, psnr
        assert max(psnr.values()) < figures["ceiling_db"], psnr
        for name in ("truth", "bilinear", "convolution", "direct", "iterative", "iterative-double"):
            assert os.path.getsize(os.path.join(scratch, name + ".png")) > 1000, name
    return 0


sys.exit(main())
