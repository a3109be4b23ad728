# SPDX-License-Identifier: MIT
"""`fornix send` against sessions of Fornix and against servers that misbehave: images, texts, exit statuses, replay at the scanner's speed, latencies;
and `fornix run - -o -`, which speaks the same stream through pipes."""
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

from mrd_wire import CLOSE, Image, Server, Stream, images, messages_of, pack, phantom, text, text_of, texts

try:
    import h5py
except ModuleNotFoundError:
    print("skip: no h5py, so the files that fornix send writes cannot be read")
    sys.exit(77)

FORNIX = os.environ["FORNIX"]
NAMESPACE = 'xmlns="urn:fornix:pipeline:1"'
CHAIN = "<noise_adjust/><trajectory/><density/><mu/><fhd/><coil_maps/><toeplitz/><cg iterations=\"4\" tolerance=\"0\"/>"
PIPELINES = {"images": CHAIN, "written": CHAIN + "<write_mrd/>", "null": "<discard/>", "front": "<noise_adjust/><trajectory/>",
             "magnitude": "<extract part=\"magnitude\"/>", "failing": CHAIN.replace("<coil_maps/>", "<coil_maps file=\"none.nii\"/>")}


def send(port, *words, **options):
    return subprocess.run([FORNIX, "send", f"127.0.0.1:{port}", *words], capture_output=True, check=False, timeout=60, **options)


def read_images(path):
    with h5py.File(path, "r") as file:
        data = file["dataset/image_0/data"][...]
    return data["real"] + 1j * data["imag"] if data.dtype.names else data


def against_sessions(folder, scan):
    def path(name):
        return os.path.join(folder, name)

    server = Server(folder, 7, "client=1")
    done = send(server.port, "images.xml", scan, "-o", path("a.h5"), "--stats", path("a.json"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == b"" and b"WARNING: noise_adjust" in done.stderr, done
    subprocess.run([FORNIX, "run", path("written.xml"), scan, "-o", path("local"), "-q", "--no-cache"], check=True)
    expected = read_images(path("local/images.h5"))
    assert expected.shape[0] == 3 and np.array_equal(read_images(path("a.h5")), expected)
    with open(path("a.json"), encoding="utf-8") as file:
        stats = json.load(file)
    outcome = server.outcome()
    assert stats["images_received"] == 3 and stats["errors"] == 0 and stats["readouts_sent"] == outcome["acquisitions"], stats
    assert stats["bytes_sent"] == outcome["bytes_in"] and stats["bytes_received"] == outcome["bytes_out"], (stats, outcome)
    latencies = stats["latency_s"]["images"]
    assert len(latencies) == 3 and stats["latency_s"]["min"] == min(latencies) and stats["latency_s"]["max"] == max(latencies)
    assert stats["latency_s"]["median"] == sorted(latencies)[1] and min(latencies) > 0

    # The pipeline as text; FIRE's lengths; parameters that name another configuration.
    done = send(server.port, path("written.xml"), scan, "--local", "-o", path("b.h5"), "-q")
    assert done.returncode == 0 and done.stderr == b"", done.stderr
    assert np.array_equal(read_images(path("b.h5")), expected) and server.outcome()["images"] == 3
    done = send(server.port, "nothing", scan, "--fire", "--parameters", '{"parameters": {"config": "images"}}', "-o", path("c.h5"))
    assert done.returncode == 0 and np.array_equal(read_images(path("c.h5")), expected), done.stderr
    assert server.outcome()["fire"] == 1

    # Failures: the server's words, and no file where no image came.
    done = send(server.port, "failing.xml", scan, "-o", path("d.h5"), "-q")
    assert done.returncode == 1 and b"none.nii" in done.stderr and b"coil_maps" in done.stderr, done.stderr
    assert not os.path.exists(path("d.h5")) and server.outcome()["end"] == "failed"
    done = send(server.port, "null.xml", scan, "-q")
    assert done.returncode == 1 and b"without one image" in done.stderr, done.stderr
    server.outcome()
    done = send(server.port, "null.xml", scan, "-q", "--expect", "0")
    assert done.returncode == 0, done.stderr
    server.outcome()
    done = send(server.port, "--query", "ismrmrd::version", "--query", "gadgetron::info")
    assert done.returncode == 0 and done.stdout.startswith(b"1.") and b"Fornix" in done.stdout, done
    server.outcome()
    server.end()


def at_speed(folder, scan, n_readouts):
    """The phantom's readouts are 5 ms apart: by their stamps ten times as fast, or one a millisecond."""
    server = Server(folder, 2)
    for words, seconds in ((("--rate", "10"), (n_readouts - 1) * 5e-4), (("--interval", "1"), (n_readouts - 1) * 1e-3)):
        start = time.monotonic()
        done = send(server.port, "images.xml", scan, "--stats", "-", "-q", *words)
        assert done.returncode == 0 and time.monotonic() - start >= seconds, (done, time.monotonic() - start, seconds)
        stats = json.loads(done.stdout)
        assert stats["sending_s"] >= seconds and stats["late_s"] < 2, stats
    server.end()


def with_waveforms(folder, header, data):
    """Waveforms go out where their time stamps say, between the readouts."""
    def waveform(stamp):
        return 1026, struct.pack("<HxxxxxxQIIIHHfHxx", 1, 0, 0, 0, stamp, 4, 1, 5.0, 0) + struct.pack("<4I", 1, 2, 3, 4)

    stamps = [struct.unpack_from("<I", m[1], 18)[0] for m in data]
    mixed = [waveform(0)]
    for m, stamp in zip(data[:20], stamps, strict=False):
        mixed += [m, waveform(stamp + 1)]
    path = os.path.join(folder, "waves.mrd")
    with open(path, "wb") as file:
        file.write(b"".join(pack(m) for m in [header, *mixed, CLOSE]))
    got = []

    def serve(connection):
        got.extend(read_to_close(connection))
        connection.sendall(pack(CLOSE))
    done = against(serve, path, "--expect", "0")
    assert done.returncode == 0, done.stderr
    assert [m[0] for m in got] == [1, 3] + [m[0] for m in mixed] + [4]
    assert [m for m in got if m[0] in (1008, 1026)] == mixed


def against(serve, scan, *words):
    """fornix send against one connection that `serve` answers."""
    listener = socket.create_server(("127.0.0.1", 0))

    def body():
        connection, _ = listener.accept()
        with connection:
            try:
                serve(connection)
            except OSError:
                pass
    thread = threading.Thread(target=body)
    thread.start()
    done = send(listener.getsockname()[1], "x.xml", scan, "-q", *words)
    thread.join()
    listener.close()
    return done


def read_to_close(connection):
    stream = Stream(connection.recv)
    found = []
    while (m := stream.message()) is not None:
        found.append(m)
        if m[0] == 4:
            break
    return found


def misbehaving(folder, scan):
    head = bytearray(198)
    struct.pack_into("<HH", head, 0, 1, 5)
    struct.pack_into("<3H", head, 16, 2, 2, 1)
    struct.pack_into("<H", head, 34, 1)
    image = 1022, bytes(head) + struct.pack("<Q", 0) + np.arange(4, dtype=np.float32).tobytes()
    out = os.path.join(folder, "m.h5")

    def answer(*messages):
        def serve(connection):
            read_to_close(connection)
            connection.sendall(b"".join(m if isinstance(m, bytes) else pack(m) for m in messages))
        return serve

    cases = [
        (answer(image, CLOSE), 0, b""),
        (answer(image), 1, b"broke off before its close message, after 1 images"),
        (answer(), 1, b"broke off"),
        (answer(pack(image)[:150]), 1, b"broke off"),
        (answer(CLOSE), 1, b"without one image"),
        (answer(text(5, "[Connection Main Thread/main/Recon] ERROR: it is broken\n"), CLOSE), 1, b"it is broken"),
        (answer(text(5, "ERROR    mod: it broke", nul=True), image, CLOSE), 1, b"it broke"),
        (answer(text(5, "ERRORS were few"), image, CLOSE), 0, b""),
        (answer(struct.pack("<H", 4242)), 1, b"4242"),
        (lambda connection: connection.recv(10), 1, b"broke off"),
        (lambda connection: time.sleep(1.5), 1, b"sent nothing for"),
    ]
    for serve, status, words in cases:
        done = against(serve, scan, "-o", out, "--timeout", "1")
        assert done.returncode == status and words in done.stderr, (status, words, done)
    done = against(answer(image, image, CLOSE), scan, "--expect", "3")
    assert done.returncode == 1 and b"2 images came, 3 were expected" in done.stderr
    assert np.array_equal(read_images(out).ravel(), np.arange(4))
    done = send(1, "x.xml", scan)
    assert done.returncode == 1 and b"port 1" in done.stderr, done.stderr
    for words in ((), ("x.xml",), ("x.xml", scan, "--rate", "-1"), ("x.xml", scan, "--query", "y")):
        assert send(1, *words).returncode == 2, words
    cut = os.path.join(folder, "cut.mrd")
    with open(scan, "rb") as file, open(cut, "wb") as other:
        other.write(file.read()[:-700])
    done = against(answer(image, CLOSE), cut)
    assert done.returncode == 1 and b"cut" in done.stderr, done.stderr


def pipes(folder, scan):
    """Parts of a chain as programs of a pipe give what one run gives; what fails in front is a cut stream behind."""
    def run(name, data, *words):
        return subprocess.run([FORNIX, "run", os.path.join(folder, name + ".xml"), "-", "-o", "-", "--no-cache", *words], input=data,
                              capture_output=True, check=False, timeout=60)

    with open(scan, "rb") as file:
        data = file.read()
    whole = run("images", data)
    assert whole.returncode == 0, whole.stderr
    found = messages_of(whole.stdout)
    header = next(m for m in messages_of(data) if m[0] == 3)
    assert found[0] == header and found[-1] == CLOSE and len(images(found)) == 3, [m[0] for m in found]
    assert run("written", data).stdout == whole.stdout, "an image that is written is sent once"
    front = run("front", data)
    assert front.returncode == 0 and sum(m[0] == 1008 for m in messages_of(front.stdout)) == sum(m[0] == 1008 for m in messages_of(data))
    joined = run("images", front.stdout)
    for a, b in zip(images(messages_of(joined.stdout)), images(found), strict=True):
        assert np.array_equal(a.data, b.data)
    magnitude = run("magnitude", text_in_front(whole.stdout), "-v")
    assert magnitude.returncode == 0, magnitude.stderr
    for a, b in zip(images(messages_of(magnitude.stdout)), images(found), strict=True):
        assert np.allclose(a.data, np.abs(b.data), rtol=1e-6)   # single precision
    assert texts(messages_of(magnitude.stdout)) == ["from the front"]
    wrong = run("magnitude", data)
    assert wrong.returncode == 1 and b"holds readouts" in wrong.stderr, wrong.stderr
    failed = run("failing", data)
    left = messages_of(failed.stdout)
    assert failed.returncode == 1 and left[-1][0] == 5 and "none.nii" in text_of(left[-1]), left[-1]
    behind = run("magnitude", failed.stdout)
    assert b"without a close message" in behind.stderr, behind.stderr
    torn = run("images", data[:len(data) * 3 // 5])
    assert torn.returncode == 0 and b"cut short" in torn.stderr and len(images(messages_of(torn.stdout))) == 2


def text_in_front(data):
    found = messages_of(data)
    return b"".join(pack(m) for m in [found[0], text(5, "from the front"), *found[1:]])


def live_pipe(folder, scan):
    """Through a pipe too, an image is there before the next frame is sent, and a run that fails ends without waiting for its input."""
    found = messages_of(open(scan, "rb").read())
    data = [m for m in found if m[0] == 1008]
    third = len(data) // 3
    for name in ("images", "failing"):
        run = subprocess.Popen([FORNIX, "run", os.path.join(folder, name + ".xml"), "-", "-o", "-", "-q", "--no-cache"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        run.stdin.write(b"".join(pack(m) for m in [found[0], *data[:third]]))
        run.stdin.flush()
        stream = Stream(run.stdout.read1)
        assert stream.message()[0] == 3
        if name == "images":
            assert Image(stream.message()[1]).data.size > 0
            run.stdin.write(b"".join(pack(m) for m in [*data[third:], CLOSE]))
            run.stdin.flush()
            assert [m[0] for m in stream.all()] == [1022, 1022, 4] and run.wait(20) == 0
        else:
            assert run.wait(20) == 1   # standard input is still open
        for pipe in (run.stdin, run.stdout, run.stderr):
            pipe.close()


def main():
    with tempfile.TemporaryDirectory() as folder:
        for name, body in PIPELINES.items():
            with open(os.path.join(folder, name + ".xml"), "w", encoding="utf-8") as file:
                file.write(f"<!-- {name}, for a test -->\n<pipeline {NAMESPACE}>{body}</pipeline>\n")
        scan = os.path.join(folder, "scan.mrd")
        found = phantom(scan, "--trajectory", "radial", "--matrix", "32,32,1", "--coils", "2", "--repetitions", "3")
        data = [m for m in found if m[0] == 1008]
        against_sessions(folder, scan)
        at_speed(folder, scan, len(data))
        with_waveforms(folder, next(m for m in found if m[0] == 3), data)
        misbehaving(folder, scan)
        pipes(folder, scan)
        live_pipe(folder, scan)
    return 0


sys.exit(main())
