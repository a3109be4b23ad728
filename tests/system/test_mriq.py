# SPDX-License-Identifier: MIT
"""The chapter's own input (3-D, cycles per field of view, box voxel) against its sums in double precision."""
import os
import subprocess
import sys
import tempfile

import nibabel
import numpy as np

import bart_tools

SCAN = os.path.join(os.environ["FORNIX_DATA"], "recon", "mriq_64.h5")
MATRIX = (64, 64, 64)


def phi(k):
    """The transform of a box voxel, 1 at k = 0; np.sinc is sin(pi x)/(pi x)."""
    return np.prod(np.sinc(k), axis=1)
