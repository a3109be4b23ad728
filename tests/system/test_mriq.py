# SPDX-License-Identifier: MIT
"""The chapter's own input (3-D, cycles per field of view, box voxel): F^H D and Q against double-precision sums.

From a zero start, the first iterate of conjugate gradients is F^H D times a number, and each further one brings in one more
product with F^H F, which Fornix takes through Q. So iterates that agree with a numpy solver built on the sums themselves
show F^H D and Q to be right, in the form in which they are used.
"""
import os
import subprocess
import sys
import tempfile

import nibabel
import numpy as np

import bart_tools

SCAN = os.path.join(os.environ["FORNIX_DATA"], "recon", "mriq_64.h5")
MATRIX = (64, 64, 64)
PIPELINE = """<pipeline xmlns="urn:fornix:pipeline:1" summary="The chapter's solver, nothing else">
  <trajectory/>
  <mu voxel="box"/>
  <fhd method="{method}"/>
  <toeplitz/>
  <cg start="zero" iterations="{iterations}" tolerance="0"/>
  <write_nifti complex="true"/>
</pipeline>
"""


def reference(k, data, iterations):
    """Iterates of CG on (F^H F) x = F^H D from zero, in double; yields one a time."""
    phi = np.prod(np.sinc(k), axis=1)[:, None]  # of a box voxel, 1 at k = 0; np.sinc is sin(pi x)/(pi x)
    scale = 1 / np.sqrt(np.prod(MATRIX))

    def forward(x):
        return scale * phi * bart_tools.predict(k, x[..., None])

    def backward(s):
        return scale * bart_tools.adjoint(k, np.conj(phi) * s, MATRIX)[..., 0]

    x = np.zeros(MATRIX, dtype=np.complex128)
    r = backward(data.astype(np.complex128))
    p, rr = r.copy(), np.vdot(r, r).real
    for _ in range(iterations):
        ap = backward(forward(p))
        step = rr / np.vdot(p, ap).real
        x = x + step * p
        r = r - step * ap
        rr, before = np.vdot(r, r).real, rr
        p = r + rr / before * p
        yield x


def main():
    if not os.path.exists(SCAN):
        print(f"skip: no {SCAN}")
        return 77
    k, data, _ = bart_tools.read_mrd(SCAN)
    k = k / np.array(MATRIX)  # the file is in cycles per field of view
    truths = list(reference(k, data, 3))
    # F^H D is as exact as the method. Later iterates carry the errors of Q as well, which ill-conditioned
    # equations (few samples, many voxels) magnify by a small factor a step.
    bounds = {"direct": (5e-6, 5e-5), "nufft": (1e-4, 1e-3)}
    with tempfile.TemporaryDirectory() as scratch:
        for method, (first, last) in bounds.items():
            for iterations, bound in ((1, first), (3, last)):
                pipeline = os.path.join(scratch, "mriq.xml")
                with open(pipeline, "w", encoding="utf-8") as file:
                    file.write(PIPELINE.format(method=method, iterations=iterations))
                subprocess.run([os.environ["FORNIX"], "run", pipeline, SCAN, "-o", scratch], check=True)
                image = np.squeeze(np.asarray(nibabel.load(os.path.join(scratch, "image.nii.gz")).dataobj))
                truth = truths[iterations - 1]
                error = np.linalg.norm(image - truth) / np.linalg.norm(truth)
                print(f"{method}, iterate {iterations}: relative error {error:.2e} (at most {bound:.0e})")
                assert error <= bound, error
    return 0


sys.exit(main())
