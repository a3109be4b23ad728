# SPDX-License-Identifier: MIT
"""A client that asks `fornix serve` for Gadgetron's configurations by name: images over the wire against numpy, streams of images in and
out, and configurations that cannot run, told to the client by their fault."""
import os
import shutil
import struct
import subprocess
import sys
import tempfile

try:
    import h5py
    import numpy as np
except ImportError as missing:
    print("skipped:", missing)
    sys.exit(77)
GENERATE = shutil.which("ismrmrd_generate_cartesian_shepp_logan")
if GENERATE is None:
    print("skipped: no ismrmrd_generate_cartesian_shepp_logan (Debian: ismrmrd-tools)")
    sys.exit(77)

import mrd_wire as wire
from serve_tools import Serve, scan

HEAD = '<gadgetronStreamConfiguration xmlns="http://gadgetron.sf.net/gadgetron">'
TAIL = "</gadgetronStreamConfiguration>"
CORE = "<dll>gadgetron_mricore</dll>"
NOISE = 1 << 18


def gadget(classname, **properties):
    inner = "".join(f"<property><name>{k}</name><value>{v}</value></property>" for k, v in properties.items())
    return f"<gadget><name>{classname}</name>{CORE}<classname>{classname}Gadget</classname>{inner}</gadget>"


RECON = (gadget("RemoveROOversampling") + gadget("AcquisitionAccumulateTrigger", trigger_dimension="repetition", sorting_dimension="slice")
         + gadget("BucketToBuffer", split_slices="true") + gadget("SimpleRecon") + gadget("ImageArraySplit") + gadget("Extract"))
SCALED = gadget("AutoScale") + gadget("FloatToUShort")
SITE = {
    "default.xml": HEAD + gadget("NoiseAdjust") + RECON + gadget("ImageFinish") + TAIL,
    "default_short.xml": HEAD + RECON + SCALED + gadget("ImageFinish") + TAIL,
    "default_measurement_dependencies.xml": HEAD + gadget("NoiseAdjust", noise_dependency_prefix="GadgetronNoiseCovarianceMatrix",
                                                          pass_nonconformant_data="true") + TAIL,
    "isalive.xml": HEAD + TAIL,
    "stream_float_to_short.xml": HEAD + gadget("FloatToUShort", max_intensity=32767, min_intensity=0, intensity_offset=0) + TAIL,
    "grappa.xml": HEAD + gadget("GenericReconCartesianGrappa") + TAIL,
    "bomb.xml": '<!DOCTYPE a [<!ENTITY b "c">]>' + HEAD + TAIL,
    "circle.xml": HEAD + gadget("AutoScale", max_value="max_value@AutoScale") + TAIL,
    "plugin.xml": HEAD + "<gadget><dll>/tmp/evil</dll><classname>AutoScaleGadget</classname></gadget>" + TAIL,
}


def stream_of(path):
    """The file as a client sends it: header first, close last."""
    with h5py.File(path) as file:
        xml = file["dataset/xml"][0]
        records = list(file["dataset/data"])
    messages = [(3, struct.pack("<I", len(xml)) + bytes(xml))]
    for r in records:
        assert r["head"].dtype.itemsize == 340, "the header is not packed as on the wire"
        messages.append((1008, r["head"].tobytes() + np.asarray(r["traj"], np.float32).tobytes() + np.asarray(r["data"], np.float32).tobytes()))
    return messages + [wire.CLOSE], records


def inverse(k, axis):
    return np.fft.fftshift(np.fft.ifft(np.fft.ifftshift(k, axes=axis), axis=axis, norm="ortho"), axes=axis)


def reconstructed(records, n, white):
    frames = {}
    for r in records:
        head = r["head"]
        if int(head["flags"]) & NOISE:
            continue
        data = white @ r["data"].view(np.complex64).reshape(int(head["active_channels"]), -1).astype(complex)
        line = inverse(data, 1)
        frame = frames.setdefault(int(head["idx"]["repetition"]), np.zeros((data.shape[0], n, n), complex))
        frame[:, int(head["idx"]["kspace_encode_step_1"])] = line[:, line.shape[1] // 2 - n // 2:][:, :n]
    return [np.sqrt((np.abs(inverse(frames[key], 1)) ** 2).sum(axis=0)) for key in sorted(frames)]


def snr_units(records):
    noise = [r for r in records if int(r["head"]["flags"]) & NOISE]
    x = np.concatenate([r["data"].view(np.complex64).reshape(int(r["head"]["active_channels"]), -1).astype(complex) for r in noise], axis=1)
    ratio = float(records[-1]["head"]["sample_time_us"]) / float(noise[0]["head"]["sample_time_us"])
    return np.sqrt(2 * 0.793 * ratio) * np.linalg.inv(np.linalg.cholesky(x @ x.conj().T / x.shape[1]))


def parts_of(messages, records):
    """The noise of a scan and its images as two scans, the second of which names the first."""
    def header(identity, more=""):
        xml = messages[0][1][4:].decode()
        at = xml.index("<acquisitionSystemInformation>")
        xml = (xml[:at] + f"<measurementInformation><measurementID>{identity}</measurementID><patientPosition>HFS</patientPosition>{more}"
               "</measurementInformation>" + xml[at:]).encode()
        return 3, struct.pack("<I", len(xml)) + xml

    noise = [m for m, r in zip(messages[1:], records) if int(r["head"]["flags"]) & NOISE]
    rest = [m for m, r in zip(messages[1:], records) if not int(r["head"]["flags"]) & NOISE]
    named = "<measurementDependency><dependencyType>Noise</dependencyType><measurementID>%s</measurementID></measurementDependency>"
    return ([header("noise_1")] + noise + [wire.CLOSE], [header("images_2", named % "noise_1")] + rest + [wire.CLOSE],
            [header("images_3", named % "noise_9")] + rest + [wire.CLOSE])


def distance(image, reference):
    return np.linalg.norm(image.astype(float) - reference) / np.linalg.norm(reference)


def check(folder):
    site = os.path.join(folder, "site")
    os.makedirs(site)
    for name, text in SITE.items():
        with open(os.path.join(site, name), "w", encoding="utf-8") as file:
            file.write(text)
    scan_file = os.path.join(folder, "scan.h5")
    subprocess.run([GENERATE, "-m", "48", "-c", "8", "-O", "2", "-r", "2", "-C", "-o", scan_file], stdout=subprocess.DEVNULL, check=True)
    messages, records = stream_of(scan_file)
    with Serve(os.path.join(folder, "serve"), "--pipelines", site) as s:
        # float, in SNR units; single-precision FFTs have some 1e-6
        floats = wire.images(scan(s.client(), messages, "default.xml"))
        expected = reconstructed(records, 48, snr_units(records))
        assert len(floats) == 2 and all(i.data.dtype == np.float32 for i in floats)
        for image, reference in zip(floats, expected):
            assert distance(image.data.reshape(48, 48), reference) < 1e-4
        # noise that was measured in another scan; and where none is kept, images without it and a warning
        noise, images, orphan = parts_of(messages, records)
        assert not wire.images(scan(s.client(), noise, "default_measurement_dependencies.xml"))
        for image, reference in zip(wire.images(scan(s.client(), images, "default.xml")), expected, strict=True):
            assert distance(image.data.reshape(48, 48), reference) < 1e-4
        found = scan(s.client(), orphan, "default.xml")
        for image, reference in zip(wire.images(found), reconstructed(records, 48, np.eye(8)), strict=True):
            assert distance(image.data.reshape(48, 48), reference) < 1e-4
        assert "noise_9" in " ".join(wire.texts(found)), wire.texts(found)
        # as uint16: one factor puts the 99th percentile near 2048, so shapes agree after it, to the rounding (some 3e-4)
        for image, reference in zip(wire.images(scan(s.client(), messages, "default_short.xml")), reconstructed(records, 48, np.eye(8))):
            data = image.data.reshape(48, 48).astype(float)
            assert image.data.dtype == np.uint16 and 0.9 * 2048 < np.percentile(data, 99) <= 2048
            factor = (data * reference).sum() / (reference ** 2).sum()
            assert distance(data / factor, reference) < 2e-3
        # images come in and leave
        stream = [messages[0]] + [m for m in scan(s.client(), messages, "default.xml") if m[0] == 1022] + [wire.CLOSE]
        short = wire.images(scan(s.client(), stream, "stream_float_to_short.xml"))
        assert len(short) == 2 and all(i.data.dtype == np.uint16 for i in short)
        for image, before in zip(short, floats):
            assert np.array_equal(image.data, np.rint(before.data))   # no value lies on a half
        assert not wire.images(scan(s.client(), messages, "isalive.xml"))
        for name, words in (("grappa.xml", "GenericReconCartesianGrappaGadget"), ("bomb.xml", "DOCTYPE"), ("circle.xml", "leads back to itself"),
                            ("plugin.xml", "is a path")):
            found = scan(s.client(), messages, name)
            assert not wire.images(found) and words in " ".join(wire.texts(found)), (name, wire.texts(found))
        outcomes = [(line["config"], line["outcome"]) for line in s.audit(12)]
        assert ("isalive.xml", "done") in outcomes and ("bomb.xml", "refused") in outcomes, outcomes
    with Serve(os.path.join(folder, "scripts"), "--allow-client-pipelines") as s:
        client = s.client()
        client.send(wire.text(2, SITE["default.xml"]), *messages)
        assert len(wire.images(client.rest())) == 2


with tempfile.TemporaryDirectory() as scratch:
    check(scratch)
print("ok")
