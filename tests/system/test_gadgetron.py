# SPDX-License-Identifier: MIT
"""Gadgetron's configurations, written here in both syntaxes, run on scans of ismrmrd-tools' generator: images against numpy's own
reconstruction, and what `fornix check` says of configurations that cannot run."""
import os
import shutil
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

FORNIX = os.path.abspath(os.environ.get("FORNIX", "build/bin/fornix"))
FLOAT, INTEGER = 1e-4, 2e-3   # relative l2: single-precision FFTs have some 1e-6, rounding to whole numbers up to 2048 some 3e-4
NOISE_FLAG = 1 << 18


def gadget(syntax, name, classname, **properties):
    if syntax == "flat":
        inner = "".join(f'<property name="{k}" value="{v}"/>' for k, v in properties.items())
    else:
        inner = "".join(f"<property><name>{k}</name><value>{v}</value></property>" for k, v in properties.items())
    return f"<gadget><name>{name}</name><dll>gadgetron_mricore</dll><classname>{classname}Gadget</classname>{inner}</gadget>\n"


def port(kind, classname, slot):
    return f"<{kind}><slot>{slot}</slot><dll>gadgetron_mricore</dll><classname>{classname}</classname></{kind}>\n"


READERS = port("reader", "GadgetIsmrmrdAcquisitionMessageReader", 1008) + port("reader", "GadgetIsmrmrdWaveformMessageReader", 1026)
WRITERS = port("writer", "MRIImageWriter", 1022)


def configuration(syntax, gadgets):
    body = "".join(gadget(syntax, name, classname, **properties) for name, classname, properties in gadgets)
    if syntax == "legacy":
        return ('<?xml version="1.0"?>\n<gadgetronStreamConfiguration xmlns="http://gadgetron.sf.net/gadgetron">\n'
                + READERS + WRITERS + body + "</gadgetronStreamConfiguration>\n")
    return (f"<configuration><version>2</version><readers>{READERS}</readers><writers>{WRITERS}</writers>\n"
            f'<stream key="main">\n{body}</stream></configuration>\n')


RECON = [("RO", "RemoveROOversampling", {}),
         ("Acc", "AcquisitionAccumulateTrigger", {"trigger_dimension": "repetition", "sorting_dimension": "slice"}),
         ("Buff", "BucketToBuffer", {"N_dimension": "", "S_dimension": "", "split_slices": "true"}),
         ("Recon", "SimpleRecon", {}), ("Split", "ImageArraySplit", {})]
FINISH = [("Extract", "Extract", {}), ("Finish", "ImageFinish", {})]
SHORT = [("Extract", "Extract", {}), ("Scale", "AutoScale", {}), ("Short", "FloatToUShort", {}), ("Finish", "ImageFinish", {})]
COILS = [("Noise", "NoiseAdjust", {}), ("PCA", "PCACoil", {})]


# ---- numpy's reconstruction -------------------------------------------------------------------------------------------

def inverse(k, axes):
    return np.fft.fftshift(np.fft.ifftn(np.fft.ifftshift(k, axes=axes), axes=axes, norm="ortho"), axes=axes)


def read_scan(path):
    with h5py.File(path) as file:
        return [(r["head"].copy(), r["data"].view(np.complex64).reshape(r["head"]["active_channels"], -1).astype(np.complex128))
                for r in file["dataset/data"]]


def whitening(scan):
    """Gadgetron's: inverse of the Cholesky factor, scaled so that real and imaginary part have variance 1, bandwidth 0.793."""
    noise = np.concatenate([d for h, d in scan if int(h["flags"]) & NOISE_FLAG], axis=1)
    lower = np.linalg.cholesky(noise @ noise.conj().T / noise.shape[1])
    dwell = [h["sample_time_us"] for h, _ in scan]
    return np.sqrt(2 * 0.793 * dwell[-1] / dwell[0]) * np.linalg.inv(lower)


def images_of(scan, n, white=None, keep=None, width=None):
    """An image of every (average, repetition): sum of squares of all coils, or of the `keep` strongest components."""
    frames = {}
    for head, data in scan:
        if int(head["flags"]) & NOISE_FLAG:
            continue
        line = inverse(data if white is None else white @ data, (1,))
        wide = width or n
        start = line.shape[1] // 2 - wide // 2
        idx = head["idx"]
        frame = frames.setdefault((int(idx["repetition"]), int(idx["average"])), np.zeros((data.shape[0], n, wide), complex))
        frame[:, int(idx["kspace_encode_step_1"]), :] = line[:, start:start + wide]
    result = {}
    for key, frame in frames.items():
        coils = inverse(frame, (1,))
        if keep:
            coils = components(scan, white, coils)[:keep]
        result[key] = np.sqrt((np.abs(coils) ** 2).sum(axis=0))
    return result


def components(scan, white, coils):
    """Coil images turned as PCACoil does: 16 samples about the centre of up to 100 readouts up to the first end of the slice."""
    first = []
    for head, data in scan:
        if int(head["flags"]) & NOISE_FLAG:
            continue
        centre = int(head["center_sample"])
        first.append((white @ data)[:, centre - 8:centre + 8])
        if len(first) == 100 or int(head["flags"]) & (1 << 7):
            break
    samples = np.concatenate(first, axis=1)
    samples -= samples.mean(axis=1, keepdims=True)
    _, vectors = np.linalg.eigh(samples @ samples.conj().T)
    return np.tensordot(vectors[:, ::-1].conj().T, coils, axes=1)


def auto_scaled(image):
    """Gadgetron's AutoScale and FloatToUShort, from their description: 100 bins, 99 %, rounded up."""
    image = image.astype(np.float32)
    counts, _ = np.histogram(np.minimum(np.floor(image / image.max() * np.float32(100)), 99), bins=100, range=(0, 100))
    bins = int(np.searchsorted(np.cumsum(counts), 0.99 * image.size)) + 1
    return np.rint(np.clip(image * (2048 / ((bins + 1) * (image.max() / 100))), 0, 4095))


# ---- the runs ---------------------------------------------------------------------------------------------------------

def fornix(*arguments, expect=0):
    done = subprocess.run([FORNIX, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == expect, (arguments, done.returncode, done.stdout, done.stderr)
    return done.stdout, done.stderr


def write(name, text):
    with open(name, "w", encoding="utf-8") as file:
        file.write(text)
    return name


def run(config, scan, out):
    fornix("run", config, scan, "-o", out, "-q", "--no-cache")
    images = {}
    with h5py.File(os.path.join(out, "images.h5")) as file:
        for name, group in file["dataset"].items():
            for head, data in zip(group["header"], group["data"]):
                images[(int(head["repetition"]), int(head["average"]), int(name.split("_")[1]))] = (head, data[0, 0])
    return images


def generate(name, *options):
    subprocess.run([GENERATE, "-o", name, *options], stdout=subprocess.DEVNULL, check=True)
    return read_scan(name)


def distance(image, reference):
    return np.linalg.norm(image.astype(float) - reference) / np.linalg.norm(reference)


def compare(images, reference, bound, what):
    assert set(images) == {key + (0,) for key in reference}, (what, set(images), set(reference))
    worst = max(distance(images[key + (0,)][1], reference[key]) for key in reference)
    assert worst < bound, (what, worst)
    print(f"{what}: {len(reference)} images, {worst:.1e}")


def plain_scans():
    for syntax in ("legacy", "nested", "flat"):
        write(f"default_{syntax}.xml", configuration(syntax, RECON + FINISH))
        write(f"short_{syntax}.xml", configuration(syntax, RECON + SHORT))
    for n, (name, options) in enumerate([
            ("one coil", ("-m", "64", "-c", "1", "-O", "2")), ("8 coils, oversampled", ("-m", "64", "-c", "8", "-O", "2")),
            ("odd matrix, three repetitions", ("-m", "47", "-c", "3", "-O", "2", "-r", "3")),
            ("a noise scan in front", ("-m", "32", "-c", "8", "-O", "2", "-C", "-r", "2"))]):
        size = int(options[1])
        scan = generate(f"scan{n}.h5", *options)
        reference = images_of(scan, size)
        for syntax in ("legacy", "nested", "flat") if n == 1 else ("flat",):
            images = run(f"default_{syntax}.xml", f"scan{n}.h5", f"float{n}{syntax}")
            assert all(i.dtype == np.float32 for _, i in images.values())
            compare(images, reference, FLOAT, f"{name}, {syntax}, float")
            images = run(f"short_{syntax}.xml", f"scan{n}.h5", f"short{n}{syntax}")
            assert all(i.dtype == np.uint16 for _, i in images.values())
            assert all(h["data_type"] == 1 and h["image_type"] == 1 for h, _ in images.values())
            scaled = {key: auto_scaled(image) for key, image in reference.items()}
            compare(images, scaled, INTEGER, f"{name}, {syntax}, uint16")
            for key, image in scaled.items():
                assert np.abs(images[key + (0,)][1].astype(float) - image).max() <= 1, "more than a rounding"


def whitened_scans():
    scan = generate("noisy.h5", "-m", "48", "-c", "6", "-O", "2", "-C", "-r", "2", "-n", "0.02")
    white = whitening(scan)
    write("snr.xml", configuration("legacy", COILS + RECON + FINISH))
    compare(run("snr.xml", "noisy.h5", "snr"), images_of(scan, 48, white), FLOAT, "SNR units, all components")
    write("fewer.xml", configuration("flat", COILS + [("Fewer", "CoilReduction", {"coils_out": 3})] + RECON + FINISH))
    compare(run("fewer.xml", "noisy.h5", "fewer"), images_of(scan, 48, white, 3), FLOAT, "the three strongest of six components")


def averages_are_images():
    """Repetitions called averages: Gadgetron makes an image of each."""
    generate("averages.h5", "-m", "32", "-c", "2", "-O", "2", "-r", "2")

    def to_average(head, i, n):
        head["idx"]["average"] = head["idx"]["repetition"]
        head["idx"]["repetition"] = 0

    rewrite("averages.h5", to_average)
    scan = read_scan("averages.h5")
    reference = images_of(scan, 32)
    assert len(reference) == 2
    compare(run("default_flat.xml", "averages.h5", "averages"), reference, FLOAT, "an image of each average")


def rewrite(name, change, xml=lambda text: text):
    """Changes every readout's header in place, and the scan's."""
    with h5py.File(name, "r+") as file:
        data = file["dataset/data"]
        for i in range(len(data)):
            record = data[i]
            change(record["head"], i, len(data))
            data[i] = record
        file["dataset/xml"][0] = xml(file["dataset/xml"][0].decode())


def volumes_and_slices():
    """The repetitions of a plane called partitions of a volume, whose FFT goes along z too; and called slices, interleaved."""
    def partition(head, i, n):
        head["idx"]["kspace_encode_step_2"] = head["idx"]["repetition"]
        head["idx"]["repetition"] = 0
        head["flags"] = 1 << 7 if i == n - 1 else 0

    def deep(text):
        step = "</kspace_encoding_step_1>"
        return (text.replace("<z>1</z>", "<z>5</z>").replace(
            step, step + "<kspace_encoding_step_2><minimum>0</minimum><maximum>4</maximum><center>2</center></kspace_encoding_step_2>"))

    generate("volume.h5", "-m", "24", "-c", "2", "-O", "2", "-r", "5")
    rewrite("volume.h5", partition, deep)
    k = np.zeros((2, 5, 24, 24), complex)
    for head, data in read_scan("volume.h5"):
        line = inverse(data, (1,))[:, 12:36]
        k[:, int(head["idx"]["kspace_encode_step_2"]), int(head["idx"]["kspace_encode_step_1"])] = line
    reference = np.sqrt((np.abs(inverse(k, (1, 2))) ** 2).sum(axis=0))
    fornix("run", "default_flat.xml", "volume.h5", "-o", "volume", "-q")
    with h5py.File("volume/images.h5") as file:
        data = file["dataset/image_0/data"][0, 0]
    assert data.shape == reference.shape, data.shape
    assert distance(data, reference) < FLOAT, distance(data, reference)

    def to_slice(head, i, n):
        head["idx"]["slice"] = head["idx"]["repetition"]
        head["idx"]["repetition"] = 0

    scan = generate("slices.h5", "-m", "24", "-c", "2", "-O", "2", "-r", "3")
    expected = images_of(scan, 24)
    rewrite("slices.h5", to_slice)
    with h5py.File("slices.h5", "r+") as file:
        records = file["dataset/data"][...]
        file["dataset/data"][...] = records[np.arange(len(records)).reshape(3, -1).T.ravel()]   # line by line through the slices
    fornix("run", "default_flat.xml", "slices.h5", "-o", "slices", "-q")
    with h5py.File("slices/images.h5") as file:
        got = {int(h["slice"]): d[0, 0] for h, d in zip(file["dataset/image_0/header"], file["dataset/image_0/data"])}
    assert sorted(got) == [0, 1, 2]
    assert max(distance(got[s], expected[(s, 0)]) for s in got) < FLOAT


def oversampled_stays():
    """Without RemoveROOversampling the whole encoded field of view is given."""
    scan = generate("wide.h5", "-m", "32", "-c", "4", "-O", "2")
    write("wide.xml", configuration("flat", RECON[1:] + FINISH))
    images = run("wide.xml", "wide.h5", "wide")
    compare(images, images_of(scan, 32, width=64), FLOAT, "oversampled")
    assert np.allclose(images[(0, 0, 0)][0]["field_of_view"], (600, 300, 6))


def parts_and_scaling():
    scan = generate("parts.h5", "-m", "32", "-c", "4", "-O", "2")
    reference = images_of(scan, 32)[(0, 0)]
    write("parts.xml", configuration("legacy", RECON + [
        ("Array", "GenericReconImageArrayScaling", {"scalingFactor": "10.0", "use_constant_scalingFactor": "true"}),
        ("Extract", "Extract", {"extract_mask": "9", "extract_real": "true", "real_imag_offset": "1"}), ("End", "ImageFinish", {})]))
    images = run("parts.xml", "parts.h5", "parts")
    assert set(images) == {(0, 0, 0), (0, 0, 1000), (0, 0, 3000)}, set(images)
    assert distance(images[(0, 0, 0)][1], 10 * reference) < FLOAT
    assert distance(images[(0, 0, 1000)][1], 10 * reference + 1) < FLOAT
    assert np.abs(images[(0, 0, 3000)][1] - np.pi).max() < 1e-6     # Gadgetron adds pi to phases, and a sum of squares has none
    assert [images[key][0]["image_type"] for key in sorted(images)] == [1, 3, 2]


def dump_and_others():
    scan = generate("dump.h5", "-m", "16", "-c", "2", "-O", "2", "-C")
    write("dump.xml", configuration("legacy", [("Dump", "IsmrmrdDump", {"file_prefix": "kept"})] + COILS[:1]))
    fornix("run", "dump.xml", "dump.h5", "-o", "dump", "-q")
    names = [n for n in os.listdir("dump") if n.startswith("kept_")]
    assert len(names) == 1, os.listdir("dump")
    for (head, data), (kept_head, kept) in zip(scan, read_scan(os.path.join("dump", names[0]))):
        assert head == kept_head and np.array_equal(data, kept)
    write("alive.xml", configuration("legacy", []))
    fornix("run", "alive.xml", "dump.h5", "-o", "alive", "-q")
    assert os.listdir("alive") == ["run.json"]
    generate("accelerated.h5", "-m", "32", "-c", "4", "-a", "2", "-w", "8")
    _, said = fornix("run", "default_flat.xml", "accelerated.h5", "-o", "accelerated", expect=1)
    assert "accelerated" in said, said


def pipes():
    """Images go from run to run as streams: the integers are those of one configuration with everything in it."""
    write("alone.xml", configuration("legacy", SHORT[1:]))
    write("all.xml", configuration("flat", RECON + SHORT))
    whole = run("all.xml", "parts.h5", "whole")
    first = subprocess.Popen([FORNIX, "run", "default_flat.xml", "parts.h5", "-o", "-", "-q"], stdout=subprocess.PIPE)
    subprocess.run([FORNIX, "run", "alone.xml", "-", "-o", "piped", "-q"], stdin=first.stdout, check=True)
    assert first.wait() == 0
    with h5py.File("piped/images.h5") as file:
        piped = file["dataset/image_0/data"][0, 0, 0]
    assert piped.dtype == np.uint16 and np.array_equal(piped, whole[(0, 0, 0)][1])


def checks():
    said, _ = fornix("check", "short_legacy.xml")
    assert "legacy form" in said and "12 run, 0 approximated, 0 missing" in said and "ok: short_legacy.xml" in said, said
    write("grappa.xml", configuration("flat", COILS + RECON[:3] + [("Grappa", "GenericReconCartesianGrappa", {}),
                                                                  ("Dump", "IsmrmrdDump", {"folder": "/tmp/x"}),
                                                                  ("Wrong", "AutoScale", {"max_value": "bright"})]))
    said, _ = fornix("check", "grappa.xml", expect=1)
    lines = said.splitlines()
    for verdict, words in (("missing", ("GenericReconCartesianGrappaGadget", "no counterpart")), ("approximated", ("IsmrmrdDump", "output")),
                           ("missing", ("AutoScale", "bright")), ("runs", ("AccumulateTrigger", "GenericReconCartesianGrappaGadget")),
                           ("8 run", ("1 approximated", "2 missing"))):
        assert any(line.startswith(verdict) and all(w in line for w in words) for line in lines), (verdict, words, said)
    _, said = fornix("run", "grappa.xml", "dump.h5", "-o", "never", expect=2)
    assert "grappa.xml:" in said and "GenericReconCartesianGrappaGadget" in said and not os.path.exists("never"), said
    for number, (text, words) in enumerate((
            (configuration("flat", [("A", "AutoScale", {"max_value": "max_value@B"}), ("B", "AutoScale", {"max_value": "max_value@A"})]),
             "leads back to itself"),
            (configuration("flat", [("A", "Autoscale", {})]), "AutoScaleGadget"),
            (configuration("flat", []).replace("</stream>", "<external/></stream>"), "external"),
            ('<!DOCTYPE a [<!ENTITY b "c">]>' + configuration("flat", []), "DOCTYPE"))):
        name = write(f"bad{number}.xml", text)
        out, err = fornix("check", name, expect=2 if "DOCTYPE" in text else 1)
        assert words in out + err, (words, out, err)
        _, err = fornix("run", name, "dump.h5", "-o", "never", expect=2)
        assert words in err and not os.path.exists("never"), err


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    plain_scans()
    whitened_scans()
    averages_are_images()
    volumes_and_slices()
    oversampled_stays()
    parts_and_scaling()
    pipes()
    dump_and_others()
    checks()
print("ok")
