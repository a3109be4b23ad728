# SPDX-License-Identifier: MIT
"""A session as its client sees it: the order of messages, every state's refusals, queries, FIRE's ways, images the moment they exist, a slow
reader, a client that goes away, and what a failure looks like from outside."""
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np

from mrd_wire import CLOSE, Client, Server, config_name, images, pack, phantom, query, text, text_of, texts

NAMESPACE = 'xmlns="urn:fornix:pipeline:1"'
PIPELINES = {
    "fft": "<noise_adjust/><cartesian/><coil_maps/><combine/>",
    "written": "<noise_adjust/><cartesian/><coil_maps/><combine/><write_mrd/><write_nifti/>",
    "null": "<discard/>",
    "failing": "<noise_adjust/><cartesian partial=\"refuse\"/><coil_maps file=\"no-such-file.nii\"/><combine/>",
    "late": "<noise_adjust/><cartesian/><coil_maps file=\"small/coil_maps.nii.gz\"/><combine/>",
    "slow": "<trajectory/><density/><mu/><fhd/><coil_maps/><toeplitz/><cg iterations=\"5\"/>",
    "wrong": "<cartesian colour=\"red\"/>",
    "invertcontrast": "<noise_adjust/><cartesian/><coil_maps/><combine/>",
}


def write_pipelines(folder):
    for name, body in PIPELINES.items():
        with open(os.path.join(folder, name + ".xml"), "w", encoding="utf-8") as file:
            file.write(f"<!-- {name}, for a test -->\n<pipeline {NAMESPACE}>{body}</pipeline>\n")


def scan_of(found):
    """(header, data messages) of a phantom's stream."""
    return next(m for m in found if m[0] == 3), [m for m in found if m[0] in (1008, 1026)]


def whole_scan(folder, cartesian):
    """The same images whether the pipeline writes them or leaves them at its end, NULs counted or not."""
    header, data = scan_of(cartesian)
    nul = text(3, text_of(header), nul=True)
    # what nobody here wants, but whose length can be told, is passed over: an error (8), a DICOM file (1018)
    strange = [(8, struct.pack("<Q", 5) + b"hello"), (1018, struct.pack("<I", 3) + b"abc" + struct.pack("<Q", 2) + b"de" + struct.pack("<Q", 0))]
    server = Server(folder, 4)
    found = []
    for name, head, before in (("fft.xml", header, []), ("written.xml", header, [text(5, "hello")]), ("fft", nul, []),
                               ("fft.xml", header, [text(5, "")])):
        client = Client(server.port)
        client.send(*before, config_name(name), *strange, head, text(5, "and hello"), *data[:9], *strange, *data[9:], CLOSE)
        got = client.rest()
        outcome = server.outcome()
        assert outcome["end"] == "done" and outcome["closed"] == 1 and outcome["acquisitions"] == len(data), outcome
        assert outcome["images"] == len(images(got)) == 2, outcome
        assert outcome["texts"] == len(texts(got)), (outcome, texts(got))
        assert outcome["first_image_s"] >= 0
        found.append(got)
    server.end()
    first = images(found[0])
    for got in found[1:]:
        assert all(np.array_equal(a.data, b.data) for a, b in zip(first, images(got), strict=True))
    for image in first:
        assert image.meta_length == image.attribute_length
        assert image.meta_length == 0 or (image.meta[-1:] == b"\0" and b"\0" not in image.meta[:-1])
    # no noise readouts: said in a text, not a failure; FIRE's have eight characters of severity in front, and count their NUL
    assert any(t.startswith("WARNING: noise_adjust: ") for t in texts(found[0])), texts(found[0])
    fire = [m for m in found[2] if m[0] == 5]
    assert any(text_of(m).startswith("WARNING  noise_adjust: ") and m[1].endswith(b"\0") for m in fire), texts(found[2])
    return first


def refusals(folder, cartesian):
    header, data = scan_of(cartesian)
    config = config_name("fft.xml")
    scan = text(2, "<pipeline/>")
    cases = [
        ([header], "before a configuration"),
        ([config, config], "second configuration"),
        ([config, header, header], "second MRD header"),
        ([config, header, config], "behind the MRD header"),
        ([config, header, *data[:3], header], "second MRD header"),
        ([config, *data[:1]], "before the MRD header"),
        ([data[0]], "before the MRD header"),
        ([config_name("nothing-here.xml"), header, *data], "nothing-here.xml"),
        ([config_name("wrong.xml"), header, *data], "colour"),
        ([config_name("../fft.xml"), header, *data], "'../fft.xml' is no configuration's name"),
        ([scan, header, *data], "--allow-client-pipelines"),
        ([config, text(3, "<nothing"), *data], "MRD header"),
        ([config, header, (1023, b"")], "reconstruction data"),
        ([config, header, (4711, b"")], "id 4711"),
        ([config, header, *data[:2], (1008, struct.pack("<H", 1) + b"\0" * 36 + struct.pack("<H", 1025) + b"\0" * 300)], "active_channels"),
        ([(3, struct.pack("<I", 0xffffffff))], "4294967295 bytes of text"),
        ([config, header, *data[:20], CLOSE], None),
    ]
    server = Server(folder, len(cases), "drain=1")
    for sent, words in cases:
        client = Client(server.port)
        client.send(*sent)
        if sent[-1] != CLOSE:
            client.send(CLOSE)
        got = client.rest()
        outcome = server.outcome()
        if words is None:   # closed early: the frame that was open is given, marked
            assert outcome["end"] == "done" and len(images(got)) == 1, outcome
            continue
        said = texts(got)
        assert outcome["end"] in ("refused", "failed"), (words, outcome)
        assert any(words in t and t.startswith("ERROR: ") for t in said), (words, said)
        assert outcome["error"] and not images(got), outcome
    server.end()


def failing(folder, cartesian):
    """A gadget that fails while a client sends much: nobody is reset, the reason comes with gadget and readout."""
    header, data = scan_of(cartesian)
    server = Server(folder, 1)
    many = data * 40   # more than sockets and queues hold
    client = Client(server.port)
    client.send(config_name("failing.xml"), header, *many, CLOSE)
    said = texts(client.rest())
    assert any("no-such-file.nii" in t and "coil_maps" in t for t in said), said
    outcome = server.outcome()
    assert outcome["end"] == "failed" and outcome["closed"] == 1, outcome
    server.end()
    # A gadget that fails in the middle of a scan, while its client waits between two messages or inside one.
    phantom(os.path.join(folder, "small.mrd"), "--trajectory", "cartesian", "--matrix", "16,16,1", "--coils", "3")
    subprocess.run([os.environ["FORNIX"], "run", os.path.join(folder, "written.xml"), os.path.join(folder, "small.mrd"), "-q", "-o",
                    os.path.join(folder, "small"), "--set", "coil_maps.save=true"], check=True)
    server = Server(folder, 3)
    for more in (b"", pack(data[0])[:600]):
        client = Client(server.port)
        client.send(config_name("late.xml"), header, *data[:len(data) // 2])
        client.socket.sendall(more)
        client.socket.settimeout(10)
        m = client.next()
        while m[0] == 5 and "maps are not resampled" not in text_of(m):
            m = client.next()
        assert m[0] == 5 and text_of(m).startswith("ERROR: coil_maps: ") and "scan_counter 31" in text_of(m), m
        if more:
            client.socket.sendall(pack(data[0])[600:])
        client.send(CLOSE)
        client.rest()
        assert server.outcome()["end"] == "failed"
    # And a live client that has nothing to send when the gadget fails is told at once.
    client = Client(server.port)
    client.send(config_name("failing.xml"), header, data[0])
    assert client.waits(5), "the failure is not told before the client's next message"
    m = client.next()
    while m[0] == 5 and "no-such-file.nii" not in text_of(m):
        m = client.next()
    assert m[0] == 5, m[0]
    client.send(CLOSE)
    client.rest()
    assert server.outcome()["end"] == "failed"
    server.end()


def queries(folder, cartesian):
    header, data = scan_of(cartesian)
    server = Server(folder, 2)
    client = Client(server.port)
    asked = ["gadgetron::info", "gadgetron::version", "gadgetron::build", "gadgetron::info::memory", "gadgetron::info::cuda",
             "gadgetron::cuda::devices", "gadgetron::cuda::memory", "gadgetron::cuda::driver", "ismrmrd::version", "what::else"]
    for i, name in enumerate(asked):
        client.send(query(100 + i, name))
        m = client.next()
        assert m[0] == 7 and struct.unpack_from("<Q", m[1])[0] == 100 + i, m
        answer = text_of(m)
        assert answer or name == "gadgetron::cuda::memory", name
        if name == "gadgetron::info::memory":
            assert int(answer) > 1 << 28
        if name == "ismrmrd::version":
            assert answer.split(".")[0] == "1"
        if name == "what::else":
            assert "what::else" in answer
    client.send(CLOSE)
    assert client.rest() == []
    assert server.outcome()["end"] == "asked"
    client = Client(server.port)   # in every state
    client.send(query(1, "ismrmrd::version"), config_name("fft.xml"), query(2, "ismrmrd::version"), header,
                query(3, "ismrmrd::version"), data[0], query(4, "ismrmrd::version"), *data[1:], CLOSE)
    got = client.rest()
    assert [struct.unpack_from("<Q", m[1])[0] for m in got if m[0] == 7] == [1, 2, 3, 4]
    assert len(images(got)) == 2 and server.outcome()["queries"] == 4
    server.end()


def fire(folder, cartesian, expected):
    """FIRE's parameters behind the header name another configuration; an unknown name is for whoever keeps the configurations."""
    header, data = scan_of(cartesian)
    header = text(3, text_of(header), nul=True)
    parameters = [('{"parameters": {"config": "invertcontrast"}}', True), ('{"parameters": {"config": "null", "customconfig": "fft"}}', True),
                  ('{"parameters": {"config": "fft", "customconfig": ""}}', True), ('{"version": "1"}', False), ("{no JSON", False)]
    server = Server(folder, len(parameters))
    for content, changes in parameters:
        client = Client(server.port)
        client.send(config_name("no-such-module" if changes else "fft"), header, text(5, content, nul=True), *data, CLOSE)
        got = client.rest()
        outcome = server.outcome()
        assert outcome["end"] == "done" and outcome["fire"] == 1, outcome
        assert all(np.array_equal(a.data, b.data) for a, b in zip(expected, images(got), strict=True))
    server.end()


def noise_and_void(folder, cartesian):
    """Gadgetron's client's second connection; a configuration and no header; a client's own pipeline where that is allowed."""
    header, data = scan_of(cartesian)
    inline = """<?xml version="1.0" encoding="utf-8"?><gadgetronStreamConfiguration xmlns="http://gadgetron.sf.net/gadgetron">
      <writer><slot>1019</slot><dll>gadgetron_mricore</dll><classname>DependencyQueryWriter</classname></writer>
      <gadget><name>NoiseSummary</name><dll>gadgetron_mricore</dll><classname>NoiseSummaryGadget</classname>
        <property><name>noise_file</name><value>GadgetronNoiseCovarianceMatrix_{}</value></property></gadget></gadgetronStreamConfiguration>"""
    server = Server(folder, 5, "client=1")
    for name, words in (("kept-1", ["<value>success</value>", "<name>channels</name><value>3</value>",
                                    "<name>min_sigma</name><value>2</value>", "<name>max_sigma</name><value>4</value>",
                                    "<name>noise_dwell_time_us</name><value>2.5</value>"]),
                        ("kept-2", ["<value>failed</value>"])):
        client = Client(server.port)
        client.send(text(2, inline.format(name)), CLOSE)
        got = client.rest()
        assert [m[0] for m in got] == [1019], got
        assert all(w in text_of(got[0]) for w in words), text_of(got[0])
        assert server.outcome()["end"] == "asked"
    client = Client(server.port)
    client.send(config_name("fft.xml"), CLOSE)
    assert client.rest() == [] and server.outcome()["end"] == "asked"
    client = Client(server.port)
    client.send(config_name("wrong.xml"), CLOSE)
    assert "colour" in texts(client.rest())[0] and server.outcome()["end"] == "refused"
    client = Client(server.port)
    client.send(text(2, f"<!-- mine --><pipeline {NAMESPACE}>{PIPELINES['fft']}</pipeline>"), header, *data, CLOSE)
    assert len(images(client.rest())) == 2 and server.outcome()["end"] == "done"
    server.end()


def moment(folder, cartesian):
    """The first repetition's image is there before the second's readouts are sent."""
    header, data = scan_of(cartesian)
    server = Server(folder, 1)
    client = Client(server.port)
    half = len(data) // 2
    client.send(config_name("written.xml"), header, *data[:half])
    m = client.next()
    while m[0] == 5:
        m = client.next()
    assert m[0] == 1022
    client.send(*data[half:], CLOSE)
    assert len(images(client.rest())) == 1 and server.outcome()["images"] == 2
    server.end()


def slow_reader(folder, cartesian):
    """A client that reads nothing until it has sent all still gets every image in order; one that never reads does not hold the session."""
    header, data = scan_of(cartesian)
    many = 60
    server = Server(folder, 2, "idle=3", "held=20000", "queue=100000")
    client = Client(server.port)
    client.send(config_name("fft.xml"), header)
    for i in range(many):
        client.send(*[(m[0], m[1][:254] + struct.pack("<H", i) + m[1][256:]) for m in data[:len(data) // 2]])
        if i == 10:
            time.sleep(0.5)
    client.send(CLOSE)
    found = [struct.unpack_from("<H", im.head, 104)[0] for im in images(client.rest())]
    assert found == list(range(many)), found
    assert server.outcome()["end"] == "done"
    client = Client(server.port)
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    start = time.monotonic()
    try:
        client.send(config_name("fft.xml"), header)
        for i in range(20000):
            client.send(*data[:len(data) // 2])
            if time.monotonic() - start > 25:
                break
    except OSError:
        pass
    outcome = server.outcome()
    assert outcome["end"] != "done" and time.monotonic() - start < 25, outcome
    client.socket.close()
    server.end()


def gone(folder, cartesian):
    """Clients that go away at any place, with and without a reset: the session ends, and the next one works."""
    header, data = scan_of(cartesian)
    messages = [config_name("fft.xml"), header, *data]
    packed = [pack(m) for m in messages]
    whole = b"".join(packed)
    ends = [0, 1, 2, 600, 1026, 1027, 1032, len(packed[0]) + len(packed[1]), len(packed[0]) + len(packed[1]) + 1,
            len(packed[0]) + len(packed[1]) + 200, len(whole) // 3, len(whole) * 2 // 3, len(whole)]
    server = Server(folder, 2 * len(ends) + 3, "drain=1", "idle=2")
    for size in ends:
        for reset in (False, True):
            client = Client(server.port)
            client.socket.sendall(whole[:size])
            if reset:
                client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.socket.close()
            outcome = server.outcome()
            assert outcome["end"] in (("asked",) if size == 0 else ("cut", "failed")), (size, reset, outcome)
    # Half closed: nothing more comes from it, but it still reads.
    client = Client(server.port)
    client.socket.sendall(whole[:len(whole) * 2 // 3])
    client.socket.shutdown(socket.SHUT_WR)
    got = client.rest()
    assert len(images(got)) == 2 and any("cut short" in t for t in texts(got)), texts(got)
    assert server.outcome()["end"] == "cut"
    # Silent in the middle of a message: told, and let go.
    client = Client(server.port)
    client.socket.sendall(whole[:len(whole) * 2 // 3])
    got = client.rest()
    assert any("sent nothing for" in t for t in texts(got)), texts(got)
    assert server.outcome()["end"] == "cut"
    client = Client(server.port)
    client.send(*messages, CLOSE)
    assert len(images(client.rest())) == 2 and server.outcome()["end"] == "done"
    server.end()


def limits(folder, cartesian):
    header, data = scan_of(cartesian)
    server = Server(folder, 2, "message=3000", "total=3", "drain=1")
    client = Client(server.port)
    client.send(config_name("fft.xml"), text(5, "x" * 5000), header, *data, CLOSE)
    assert any("5006 bytes; 3000 at most are accepted" in t for t in texts(client.rest()))
    assert server.outcome()["end"] == "refused"
    client = Client(server.port)
    start = time.monotonic()
    client.send(config_name("null.xml"))
    said = texts(client.rest())
    assert any("longer than it may" in t for t in said) and 2 < time.monotonic() - start < 8, said
    assert server.outcome()["end"] == "stopped"
    server.end()
    fifo = os.path.join(folder, "stop")
    os.mkfifo(fifo)
    server = Server(folder, 1, f"stop={fifo}")
    client = Client(server.port)
    client.send(config_name("fft.xml"), header, *data[:5])
    time.sleep(0.3)
    with open(fifo, "wb") as file:
        file.write(b"1")
        file.flush()
        said = texts(client.rest())
    assert any("server is being stopped" in t for t in said), said
    assert server.outcome()["end"] == "stopped"
    server.end()


def main():
    with tempfile.TemporaryDirectory() as folder:
        write_pipelines(folder)
        cartesian = phantom(os.path.join(folder, "scan.mrd"), "--trajectory", "cartesian", "--matrix", "32,32,1", "--coils", "3",
                            "--repetitions", "2")
        expected = whole_scan(folder, cartesian)
        for part in (refusals, failing, queries, noise_and_void, moment, slow_reader, gone, limits):
            start = time.monotonic()
            try:
                part(folder, cartesian)
            except BaseException:
                with open(os.path.join(folder, "server.log"), encoding="utf-8", errors="replace") as log:
                    print("in", part.__name__, "after:\n" + "".join(log.readlines()[-12:]))
                raise
            print(f"{part.__name__}: {time.monotonic() - start:.1f} s")
        fire(folder, cartesian, expected)
    return 0


sys.exit(main())
