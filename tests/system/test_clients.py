# SPDX-License-Identifier: MIT
"""Clients that nobody here wrote: the Python package `ismrmrd` from PyPI, on whose serialisation python-ismrmrd-server and its client are built, sends scans
that Debian's ismrmrd-tools made; what comes back is held against numpy's FFT of the same file."""
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np

from serve_tools import Serve

try:
    import h5py
except ModuleNotFoundError:
    print("skip: no h5py to read the scans with")
    sys.exit(77)

BUILD = os.environ["FORNIX_BUILD"]
GENERATE = "ismrmrd_generate_cartesian_shepp_logan"
HERE = os.path.dirname(os.path.abspath(__file__))

NOISE = 1 << 18   # the flag of noise readouts

READER = """<reader><slot>1008</slot><dll>gadgetron_mricore</dll><classname>GadgetIsmrmrdAcquisitionMessageReader</classname></reader>
  <writer><slot>1022</slot><dll>gadgetron_mricore</dll><classname>MRIImageWriter</classname></writer>"""


def gadget(name, **properties):
    inside = "".join(f"<property><name>{k}</name><value>{v}</value></property>" for k, v in properties.items())
    return f"<gadget><name>{name}</name><dll>gadgetron_mricore</dll><classname>{name}Gadget</classname>{inside}</gadget>"


RECON = (gadget("RemoveROOversampling") +
         gadget("AcquisitionAccumulateTrigger", trigger_dimension="repetition", sorting_dimension="slice") +
         gadget("BucketToBuffer", N_dimension="", S_dimension="", split_slices="true") + gadget("SimpleRecon") + gadget("ImageArraySplit"))
CONFIGS = {   # written here, in the form of Gadgetron's default.xml
    "short_float.xml": RECON + gadget("Extract") + gadget("ImageFinish"),
    "whole_float.xml": gadget("NoiseAdjust") + gadget("PCACoil") + gadget("CoilReduction") + RECON + gadget("Extract") + gadget("ImageFinish"),
    "default.xml": gadget("NoiseAdjust") + gadget("PCACoil") + gadget("CoilReduction") + RECON + gadget("Extract") + gadget("AutoScale") +
    gadget("FloatToUShort") + gadget("ImageFinish"),
}


def skip(why):
    print("skip:", why)
    sys.exit(77)


def package_python():
    """A python that has the package: FORNIX_MRD_PYTHON, or an environment made once beside the build."""
    folder = os.path.join(BUILD, "mrd-venv")
    own, marker = os.path.join(folder, "bin", "python"), os.path.join(folder, "failed")
    for python in (os.environ.get("FORNIX_MRD_PYTHON"), own):
        if python and os.path.exists(python) and subprocess.run([python, "-c", "import ismrmrd.serialization, numpy"], check=False,
                                                                capture_output=True).returncode == 0:
            return python
    if os.path.exists(marker):
        skip("the package ismrmrd could not be installed before; remove " + marker + " to try again")
    try:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True, capture_output=True, timeout=60)
        subprocess.run([own, "-m", "pip", "install", "-q", "--retries", "0", "--timeout", "10", "ismrmrd"], check=True, capture_output=True,
                       timeout=120)
        return own
    except (OSError, subprocess.SubprocessError) as error:
        os.makedirs(folder, exist_ok=True)
        open(marker, "w", encoding="utf-8").close()
        skip(f"the package ismrmrd cannot be installed here ({error})")


# ---- the other reconstruction -----------------------------------------------------------------------------------------

def readouts(path):
    """(heads, list of {coils, samples}) of a scan."""
    with h5py.File(path, "r") as file:
        table = file["dataset/data"][...]
    heads = table["head"]
    data = [np.asarray(d).view(np.complex64).reshape(h["active_channels"], h["number_of_samples"])
            for h, d in zip(heads, table["data"], strict=True)]
    return heads, data


def expected(path, matrix, whiten):
    """Coil images by numpy's FFT, the middle half of an oversampled readout, root of the sum of squares: {repetition: {y, x}}."""
    heads, data = readouts(path)
    noise = [d for h, d in zip(heads, data, strict=True) if int(h["flags"]) & NOISE]
    inverse = None
    if whiten and noise:
        samples = np.concatenate(noise, axis=1).astype(np.complex128)
        inverse = np.linalg.inv(samples @ samples.conj().T / samples.shape[1])
    found = {}
    for repetition in sorted({int(h["idx"]["repetition"]) for h in heads if not int(h["flags"]) & NOISE}):
        lines = [(h, d) for h, d in zip(heads, data, strict=True) if not int(h["flags"]) & NOISE and h["idx"]["repetition"] == repetition]
        coils, samples = lines[0][1].shape
        k = np.zeros((coils, matrix, samples), np.complex128)
        for h, d in lines:
            k[:, h["idx"]["kspace_encode_step_1"]] = d
        image = np.fft.fftshift(np.fft.ifft2(np.fft.ifftshift(k, axes=(1, 2)), axes=(1, 2), norm="ortho"), axes=(1, 2))
        start = (samples - matrix) // 2
        image = image[:, :, start:start + matrix]
        # |L^-1 x|^2 = x^H C^-1 x, whichever root L of the covariance is taken
        power = np.abs(image)**2 if inverse is None else np.real(image.conj() * np.einsum("ab,byx->ayx", inverse, image))
        found[repetition] = np.sqrt(power.sum(axis=0))
    return found


worst = [0.0, 0.0]   # of what was compared: float, scaled


def closeness(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


# ---- the tests --------------------------------------------------------------------------------------------------------

def converse(python, port, style, config, scan, out):
    done = subprocess.run([python, os.path.join(HERE, "mrd_package_client.py"), style, str(port), config, scan, out], check=False,
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    got = np.load(out)
    assert not any(t.startswith("ERROR") for t in got["texts"]), got["texts"]
    return got


def check(got, reference, scaled, tolerance, absolute):
    assert int(got["n"]) == len(reference), (int(got["n"]), got["texts"])
    for i in range(len(reference)):
        image = got[f"data_{i}"]
        assert image.shape[:2] == (1, 1) and np.abs(got[f"fov_{i}"]).min() > 0, image.shape
        image = image[0, 0].astype(np.float64)
        truth = reference[int(got[f"head_{i}"][0])]
        if scaled:
            assert got[f"head_{i}"][4] == 1 and image.max() <= 65535, got[f"head_{i}"]
            assert 500 < image.max() < 8192, image.max()
        if not absolute:   # a scale of its own: AutoScale's, or of noise of one
            image = image * (np.vdot(image, truth) / np.vdot(image, image))
        error = closeness(image, truth)
        assert error < tolerance, (i, error, tolerance)
        worst[bool(scaled)] = max(worst[bool(scaled)], error)


def main():
    if not shutil.which(GENERATE):
        skip(f"no {GENERATE} (Debian: ismrmrd-tools) to make scans with")
    python = package_python()
    with tempfile.TemporaryDirectory() as folder:
        pipelines = os.path.join(folder, "pipelines")
        os.makedirs(pipelines)
        for name, inside in CONFIGS.items():
            with open(os.path.join(pipelines, name), "w", encoding="utf-8") as file:
                file.write(f'<?xml version="1.0"?>\n<gadgetronStreamConfiguration xmlns="http://gadgetron.sf.net/gadgetron">\n  {READER}\n  '
                           f"{inside}\n</gadgetronStreamConfiguration>\n")
        scans = {
            "one": (64, ["-c", "1", "-O", "2"]),
            "coils": (64, ["-c", "8", "-O", "2", "-r", "2"]),
            "noise": (96, ["-c", "8", "-O", "2", "-r", "3", "-C"]),
        }
        with Serve(os.path.join(folder, "serve"), "--pipelines", pipelines, "--default", "cartesian", "--no-noise") as server:
            for name, (matrix, words) in scans.items():
                scan = os.path.join(folder, name + ".h5")
                subprocess.run([GENERATE, "-m", str(matrix), *words, "-o", scan], check=True, capture_output=True)
                plain, white = expected(scan, matrix, False), expected(scan, matrix, True)
                for style in ("fire", "package"):
                    out = os.path.join(folder, f"{name}-{style}.npz")
                    # single precision through two FFTs: 1e-6; the bound is 1e-4
                    check(converse(python, server.port, style, "short_float.xml", scan, out), plain, False, 1e-4, True)
                    check(converse(python, server.port, style, "whole_float.xml", scan, out), white, False, 1e-4, name != "noise")
                    # whole numbers up to 2048 or a little more: half a step of the brightest is 2.4e-4
                    check(converse(python, server.port, style, "default.xml", scan, out), white, True, 2e-3, False)
            # What FIRE's clients ask for, and nobody here knows, is the site's default: complex, combined with coil maps.
            got = converse(python, server.port, "fire", "someones_module", os.path.join(folder, "one.h5"), os.path.join(folder, "d.npz"))
            image = np.abs(got["data_0"][0, 0])
            assert closeness(image, expected(os.path.join(folder, "one.h5"), 64, False)[0]) < 1e-4
    print(f"largest differences from numpy: {worst[0]:.2e} in float, {worst[1]:.2e} as scaled whole numbers")
    return 0


sys.exit(main())
