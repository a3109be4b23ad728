# SPDX-License-Identifier: MIT
"""Files as scanners, simulators and converters write them: reconstructed right, or refused for a reason one can act on."""
import json
import os
import subprocess
import sys
import tempfile

import h5py
import nibabel
import numpy as np

import bart_tools

DATA = os.environ["FORNIX_DATA"]


def fornix(pipeline, name, out, *settings):
    command = [os.environ["FORNIX"], "run", pipeline, os.path.join(DATA, name), "-o", out]
    for setting in settings:
        command += ["--set", setting]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300, check=False)


def run(pipeline, name, out, *settings):
    """Returns nibabel's image, its squeezed array, run.json and what was said on stderr."""
    done = fornix(pipeline, name, out, *settings)
    assert done.returncode == 0, f"{name}: exit {done.returncode}: {done.stderr}"
    with open(os.path.join(out, "run.json"), encoding="utf-8") as file:
        record = json.load(file)
    image = nibabel.load(os.path.join(out, "image.nii.gz"))
    return image, np.squeeze(np.asarray(image.dataobj)), record, done.stderr


def correlation(a, b):
    return float(np.corrcoef(np.abs(a).ravel(), np.abs(b).ravel())[0, 1])


def pins(slice_, radius=6):
    """Bright points: maxima of their neighbourhood that stand three times above its median."""
    found = 0
    for x in range(30, 210):
        for y in range(30, 210):
            block = slice_[x - radius:x + radius + 1, y - radius:y + radius + 1]
            value = slice_[x, y]
            found += value == block.max() and value > 3 * np.median(block) and value > 0.1 * slice_.max()
    return found


def acr(out):
    """Five slices, 10 mm apart: three with pins, then two of the plain disc."""
    image, data, record, _ = run("iterative", "recon/spiral_acr_5slices.h5", out)
    assert data.shape == (240, 240, 5), data.shape
    assert np.allclose(image.header.get_zooms()[:3], (1, 1, 10)), image.header.get_zooms()
    # Position is the centre of voxel floor(N/2); LPS to RAS turns the in-plane axes; slices run from z = -20 to 20.
    assert np.allclose(image.affine @ (120, 120, 0, 1), (0, 0, -20, 1)), image.affine
    assert np.allclose(image.affine @ (120, 120, 4, 1), (0, 0, 20, 1)), image.affine
    counts = [pins(data[:, :, i]) for i in range(5)]
    print("ACR pins found in each slice:", counts)
    # 45 pins in a grid; those at the rim are blurred by off-resonance. BART's images (nufft -i) give the same pattern.
    assert min(counts[:3]) >= 25 and max(counts[3:]) <= 5, counts
    # 18 % of the samples lie beyond the matrix: dropped and counted, never wrapped.
    assert "outside" in json.dumps(record), "run.json does not count the samples beyond the matrix"


def bonn(out):
    for name in ("recon/bonn_spiralout_clean.h5", "recon/bonn_spiralout_susceptibility.h5"):
        _, data, _, _ = run("iterative", name, out)
        if name.endswith("clean.h5"):
            with h5py.File(os.path.join(DATA, "recon/bonn_spiralout_clean_reference.h5"), "r") as file:
                reference = file["images/image_1/data"][0, 0, 0].T
            value = correlation(data, reference)
            print(f"Bonn: correlation with its authors' image {value:.5f}")
            assert value > 0.99, value  # BART's nufft -i reaches 0.9996 by the same measure


def mrireco(out):
    """The header says Cartesian and has no field of view, but every readout carries its k in cycles/voxel."""
    path = os.path.join(DATA, "recon/mrireco_brain_sim.h5")
    _, samples, _ = bart_tools.read_mrd(path)
    lines = samples.reshape(256, 256).T
    truth = np.fft.fftshift(np.fft.ifft2(np.fft.ifftshift(lines), norm="ortho"))
    for pipeline, bound in (("cartesian", 1e-5), ("gridding", 0.02), ("iterative", 0.02)):
        image, data, _, said = run(pipeline, "recon/mrireco_brain_sim.h5", out)
        error = np.linalg.norm(data - np.abs(truth)) / np.linalg.norm(truth)
        print(f"MRIReco, {pipeline}: relative error {error:.2e}")
        assert error <= bound, (pipeline, error)
        assert image.header["qform_code"] == 0 and image.header["sform_code"] == 0, "codes claim a geometry that is not there"
        assert "field of view" in said.lower(), f"nothing is said of the missing field of view: {said}"


def koma(out):
    _, data, _, _ = run("iterative", "recon/koma_epi.mrd", out, "fhd.method=direct")
    k, samples, _ = bart_tools.read_mrd(os.path.join(DATA, "recon/koma_epi.mrd"))
    plain = bart_tools.adjoint(k, samples, (101, 101, 1))[:, :, 0, 0]
    side = (np.array(data.shape) - 101) // 2  # the header asks for 102 x 102 out of 101 x 101
    value = correlation(data[side[0]:side[0] + 101, side[1]:side[1] + 101], plain)
    print(f"Koma EPI: correlation with the plain sum {value:.4f}, shape {data.shape}")
    assert value > 0.9, value


def refused(out):
    """Each with a word that its reason must have."""
    for name, word in (("recon/koma_spiral.h5", "signal"), ("odd/gre_b0mapping_4e1a6.h5", "sample"),
                       ("odd/spiralout_gre_jemris.h5", ""), ("tracts/standard.tck", "standard.tck")):
        done = fornix("iterative", name, out)
        said = done.stderr.strip()
        print(f"{name}: exit {done.returncode}: {said.splitlines()[-1] if said else '(silence)'}")
        assert done.returncode == 1, f"{name}: exit {done.returncode}"
        assert word in said and "HDF5-DIAG" not in said and "CRITICAL" not in said, said


def main():
    if not os.path.isdir(os.path.join(DATA, "recon")):
        print(f"skip: no scans in {DATA}")
        return 77
    failed = 0
    for test in (acr, bonn, mrireco, koma, refused):
        with tempfile.TemporaryDirectory() as out:
            try:
                test(out)
            except AssertionError as error:
                print(f"FAIL {test.__name__}: {error}")
                failed += 1
    return 1 if failed else 0


sys.exit(main())
