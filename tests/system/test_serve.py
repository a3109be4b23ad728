# SPDX-License-Identifier: MIT
"""`fornix serve` as a site runs it: names and what they stand for, sessions side by side, kept noise, drain, systemd's protocol, audit,
and that a hundred sessions leave nothing behind. Faults are in test_serve_faults.py, the protocol is in test_wire.py."""
import hashlib
import os
import signal
import socket
import struct
import sys
import tempfile
import threading
import time

try:
    import numpy as np
except ImportError:
    print("skip: no numpy for python3")
    sys.exit(77)

import mrd_wire as wire
from serve_tools import Serve, await_true, scan

GADGETS = os.path.join(os.environ["FORNIX_BUILD"], "tests", "plugins")


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def pipeline(*gadgets):
    return '<pipeline xmlns="urn:fornix:pipeline:1">' + "".join(f"<{g}/>" for g in gadgets) + "</pipeline>\n"


def first_image(found):
    got = wire.images(found)
    assert len(got) == 1, ([m[0] for m in found], wire.texts(found))
    return got[0]


def check_names(folder, messages):
    """The site's map, its folder and the shipped pipelines, in that order; then its default; and what no client may say."""
    site = os.path.join(folder, "site")
    os.makedirs(os.path.join(site, "inside"))
    write(site, "plain.xml", pipeline("cartesian", "combine"))
    write(os.path.join(site, "inside"), "hidden.xml", pipeline("cartesian", "combine"))
    map_file = write(folder, "names.conf", "[names]\ndefault.xml = plain\ninvertcontrast = plain.xml\nscaled = site/plain.xml\n"
                     "* = plain\n\n[site/plain.xml]\nset = combine.method=sum_of_squares\nmemory = 1G\n")
    with Serve(os.path.join(folder, "named"), "--map", map_file, "--pipelines", site) as s:
        expected = first_image(scan(s.client(), messages, "plain")).data
        for name in ("default.xml", "default", "invertcontrast", "plain.xml", "nobody_knows_this", "nobody.xml", ""):
            data = first_image(scan(s.client(), messages, name)).data
            assert np.array_equal(data, expected), name
        lines = sorted(s.audit(8), key=lambda line: line["session"])   # they end in any order
        assert [line["config"] for line in lines] == ["plain", "default.xml", "default", "invertcontrast", "plain.xml",
                                                      "nobody_knows_this", "nobody.xml", ""], lines
        assert all(line["pipeline"].endswith("site/plain.xml") and line["outcome"] == "done" for line in lines), lines
        for name in ("../plain.xml", "/etc/passwd", "inside/hidden", "..", ".plain", "a\\b", "plain\n", "\x01", "..\\plain",
                     "/" + "x" * 900):
            found = scan(s.client(), messages, name)
            assert not wire.images(found), name
            told = " ".join(wire.texts(found))
            assert "is refused" in told, (name, told)
        # after a name's NUL nothing counts
        client = s.client()
        client.send((1, b"plain\0/../../etc/passwd".ljust(1024, b"\0")), *messages, wire.CLOSE)
        assert np.array_equal(first_image(client.rest()).data, expected)
        # a folder's link out of it is the site's; a client's own word for it is not
        assert s.audit(19)[-1]["config"] == "plain"
    with Serve(os.path.join(folder, "strict"), "--pipelines", site) as s:
        told = " ".join(wire.texts(scan(s.client(), messages, "plainn")))
        assert "no configuration 'plainn'" in told and "'plain'" in told, told
        assert not wire.images(scan(s.client(), messages, ""))
        found = scan(s.client(), messages, "cartesian")  # a shipped one
        assert wire.images(found)
        # a client's own pipeline is not run
        client = s.client()
        client.send(wire.text(2, pipeline("cartesian", "combine")), *messages, wire.CLOSE)
        found = client.rest()
        assert not wire.images(found) and "allow-client-pipelines" in " ".join(wire.texts(found)), wire.texts(found)
    with Serve(os.path.join(folder, "open"), "--allow-client-pipelines") as s:
        client = s.client()
        client.send(wire.text(2, pipeline("cartesian", "combine")), *messages, wire.CLOSE)
        assert np.array_equal(first_image(client.rest()).data, expected)


def check_wrong_options(folder):
    """A wrong map is found when the server starts, and not by the first client; the one that ships is right."""
    shipped = os.path.join(os.environ["FORNIX_SOURCE"], "packaging", "names.conf")
    with Serve(os.path.join(folder, "shipped"), "--map", shipped):
        pass
    cases = (("[names]\na = nothing_of_that_name\n", "nothing_of_that_name"), ("[names\n", "names.conf"),
             ("[names]\na = cartesian\n[cartesian]\nmemroy = 1G\n", "memroy"), ("[names]\na = cartesian\n[cartesian]\nmemory = 1 G\n", "1 G"))
    for number, (text, word) in enumerate(cases):
        path = write(folder, "names.conf", text)
        s = Serve(os.path.join(folder, f"wrong{number}"), "--map", path, ready=False)
        assert s.process.wait(timeout=20) in (1, 2)
        assert word in s.log(), s.log()
    for option, value in (("--sessions", "0"), ("--memory", "much"), ("--default", "no_such"), ("--bind", "no.such.host.invalid")):
        s = Serve(os.path.join(folder, "wrong"), option, value, ready=False)
        assert s.process.wait(timeout=20) in (1, 2), option


def check_plugins(folder, messages):
    """Plugins come from the install and from the folder that the site named when it started the server; not from the environment."""
    site = os.path.join(folder, "plugged")
    os.makedirs(site)
    write(site, "other.xml", pipeline("plugin_good", "cartesian", "combine"))
    for folders, runs in (((), False), (("--gadgets", GADGETS), True)):
        with Serve(os.path.join(folder, f"plugins{runs}"), "--pipelines", site, *folders, env={"FORNIX_GADGET_PATH": GADGETS}) as s:
            found = scan(s.client(), messages, "other")
            assert bool(wire.images(found)) == runs, wire.texts(found)
            assert runs or "plugin_good" in " ".join(wire.texts(found)), wire.texts(found)


def check_fire(folder, messages):
    """What the text behind a FIRE client's header wishes for replaces the name; it is no path either."""
    site = os.path.join(folder, "fire")
    os.makedirs(site)
    write(site, "one.xml", pipeline("cartesian", "combine"))
    write(site, "two.xml", pipeline("cartesian", "combine"))
    name = (1, b"one".ljust(1024, b"\0"))
    first = wire.text(3, wire.text_of(messages[0]), True)
    with Serve(os.path.join(folder, "fires"), "--pipelines", site) as s:
        for wish, expected in (('{"parameters": {"config": "two"}}', "two.xml"), ('{"parameters": {"config": "two", "customconfig": "one"}}', "one.xml"),
                               ('{"parameters": {"config": ""}}', "one.xml"), ('{"parameters": 7}', "one.xml"), ("[1, 2]", "one.xml"),
                               ('{"parameters": {"config": "../site/two"}}', None)):
            client = s.client()
            client.send(name, first, wire.text(5, wish, True), *messages[1:], wire.CLOSE)
            found = client.rest()
            assert bool(wire.images(found)) == bool(expected), (wish, wire.texts(found))
            line = s.audit(s.log().count(": begun by"))[-1]
            assert line["pipeline"].endswith(expected or ""), (wish, line)


def check_many(folder, messages):
    """Four at once and more than that many: the rest wait, all are served, and all get the same bytes."""
    results = []
    with Serve(os.path.join(folder, "many"), "--sessions", "3", "--warm", "1") as s:
        def one():
            results.append(hashlib.sha256(first_image(scan(s.client(60), messages)).data.tobytes()).hexdigest())
        threads = [threading.Thread(target=one) for _ in range(12)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert len(results) == 12 and len(set(results)) == 1, results
        assert sorted(line["session"] for line in s.audit(12)) == list(range(1, 13))


def check_leaves_nothing(folder, messages, n):
    """n sessions in a row. Figures of the server's process after the first ten against those at the end."""
    with Serve(os.path.join(folder, "long"), "--warm", "2") as s:
        def settled():
            s.audit(done)
            await_true("warm workers", lambda: len(s.children()) == 2 and s.log().count("session ended") == done)
            return s.descriptors(), s.threads(), len(s.children())
        done = 0
        start = settled()
        for done in range(1, n + 1):
            assert wire.images(scan(s.client(), messages)), done
            if done == 10:
                settled()
                time.sleep(0.3)
                begin = s.resident_kib()
        end = settled()
        grown = s.resident_kib()
        print(f"{n} sessions: {begin} KiB after ten, {grown} KiB at the end ({100 * (grown - begin) / begin:+.2f} %); "
              f"descriptors, threads, children {start} -> {end}")
        assert end == start, (start, end)
        assert grown <= 1.02 * begin, (begin, grown)


# ---- noise ------------------------------------------------------------------------------------------------------------

COILS, SAMPLES = 3, 256


def header(measurement, dependency=None):
    depends = (f"<measurementDependency><dependencyType>Noise</dependencyType><measurementID>{dependency}</measurementID>"
               "</measurementDependency>") if dependency else ""
    space = "<matrixSize><x>{0}</x><y>4</y><z>1</z></matrixSize><fieldOfView_mm><x>200</x><y>200</y><z>5</z></fieldOfView_mm>".format(SAMPLES)
    return wire.text(3, '<?xml version="1.0"?><ismrmrdHeader xmlns="http://www.ismrm.org/ISMRMRD"><measurementInformation>'
                     f"<measurementID>{measurement}</measurementID>{depends}</measurementInformation><experimentalConditions>"
                     "<H1resonanceFrequency_Hz>63500000</H1resonanceFrequency_Hz></experimentalConditions><encoding><encodedSpace>"
                     f"{space}</encodedSpace><reconSpace>{space}</reconSpace><encodingLimits><kspace_encoding_step_1><minimum>0</minimum>"
                     "<maximum>3</maximum><center>2</center></kspace_encoding_step_1></encodingLimits><trajectory>cartesian</trajectory>"
                     "</encoding></ismrmrdHeader>")


def acquisition(number, data, flags=0, step=0):
    head = bytearray(340)
    struct.pack_into("<H", head, 0, 1)
    struct.pack_into("<Q", head, 2, flags)
    struct.pack_into("<I", head, 14, number)
    struct.pack_into("<HHH", head, 34, data.shape[1], data.shape[0], data.shape[0])
    struct.pack_into("<HH", head, 172, data.shape[1] // 2, 0)
    struct.pack_into("<f", head, 178, 5.0)
    struct.pack_into("<H", head, 242, step)
    return 1008, bytes(head) + data.astype(np.complex64).tobytes()


INLINE = """<?xml version="1.0" encoding="utf-8"?><gadgetronStreamConfiguration xmlns="http://gadgetron.sf.net/gadgetron">
  <writer><slot>1019</slot><dll>gadgetron_mricore</dll><classname>DependencyQueryWriter</classname></writer>
  <gadget><name>NoiseSummary</name><dll>gadgetron_mricore</dll><classname>NoiseSummaryGadget</classname>
  <property><name>noise_file</name><value>GadgetronNoiseCovarianceMatrix_{}</value></property></gadget></gadgetronStreamConfiguration>"""


def wire_ask(s, name):
    client = s.client()
    client.send(wire.text(2, INLINE.format(name)), wire.CLOSE)
    return client.rest()[0]


def noise_scan(rng, mix, measurement):
    noise = rng.standard_normal((COILS, 16 * SAMPLES)) + 1j * rng.standard_normal((COILS, 16 * SAMPLES))
    data = mix @ noise
    flag = 1 << 18  # ISMRMRD_ACQ_IS_NOISE_MEASUREMENT is 19, counted from 1
    return ([header(measurement)] + [acquisition(i, part, flag) for i, part in enumerate(np.split(data, 16, axis=1))], data.astype(np.complex64))


def image_scan(rng, measurement, dependency):
    data = rng.standard_normal((4, COILS, SAMPLES)) + 1j * rng.standard_normal((4, COILS, SAMPLES))
    last = 1 << 7  # ISMRMRD_ACQ_LAST_IN_SLICE
    return ([header(measurement, dependency)] + [acquisition(i, data[i], last if i == 3 else 0, i) for i in range(4)], data.astype(np.complex64))


def check_noise(folder):
    """A scan of noise alone; a later one that names it is whitened with it, also by a server that was started anew; expiry."""
    rng = np.random.default_rng(1)
    mix = np.array([[3, 0, 0], [1 + 1j, 2, 0], [0.5, -1j, 1]])
    site = os.path.join(folder, "noisy")
    os.makedirs(site)
    write(site, "white.xml", pipeline('noise_adjust rescale="false"', "cartesian", "combine"))
    scans, noise = noise_scan(rng, mix, "N-1")
    images, data = image_scan(rng, "I-1", "N-1")
    root = np.linalg.inv(np.linalg.cholesky(noise.astype(complex) @ noise.conj().T.astype(complex) / noise.shape[1]))
    white = np.einsum("ab,ybx->yax", root, data.astype(complex))
    # the root sum of squares of the coils' images; the same scale for both, which the plain image gives
    def expected(k):
        image = np.fft.fftshift(np.fft.ifft2(np.fft.ifftshift(k.transpose(1, 0, 2), axes=(1, 2))), axes=(1, 2))
        return np.sqrt((np.abs(image) ** 2).sum(0))
    options = ("--pipelines", site)
    with Serve(os.path.join(folder, "noise"), *options) as s:
        found = scan(s.client(), images, "white")  # before there is any
        assert "no noise is kept of measurement 'N-1'" in " ".join(wire.texts(found)), wire.texts(found)
        plain = np.squeeze(first_image(found).data)
        scale = expected(data.astype(complex)).max() / np.abs(plain).max()
        assert np.abs(np.abs(plain) * scale - expected(data.astype(complex))).max() < 1e-4 * expected(data.astype(complex)).max()
        found = scan(s.client(), scans, "white")
        assert not wire.images(found) and not wire.texts(found), wire.texts(found)
        line = s.audit(2)[-1]
        assert line["outcome"] == "done" and line["acquisitions"] == 16 and line["images"] == 0, line
        # and the question that Gadgetron's client asks on a second connection, with a configuration of its own
        for name, word in (("N-1", "success"), ("N-2", "failed")):
            client = s.client()
            client.send(wire.text(2, INLINE.format(name)), wire.CLOSE)
            found = client.rest()
            assert [m[0] for m in found] == [1019] and f"<value>{word}</value>" in wire.text_of(found[0]), found
        assert "<name>channels</name><value>3</value>" in wire.text_of(wire_ask(s, "N-1"))
    for _ in range(2):  # each a new server on the same folder
        with Serve(os.path.join(folder, "noise"), *options) as s:
            found = scan(s.client(), images, "white")
            assert not any("WARNING" in t for t in wire.texts(found)), wire.texts(found)
            got = np.abs(np.squeeze(first_image(found).data)) * scale
            # single precision of the samples, and of the covariance's inverse
            assert np.abs(got - expected(white)).max() < 1e-4 * expected(white).max()
            found = scan(s.client(), image_scan(rng, "I-2", "N-2")[0], "white")
            assert "no noise is kept of measurement 'N-2'" in " ".join(wire.texts(found)), wire.texts(found)
    store = os.path.join(folder, "noise", "state", "noise")
    files = os.listdir(store)
    assert len(files) == 1 and "N-1" not in files[0], files
    # a damaged file is a warning, and gone
    with open(os.path.join(store, files[0]), "r+b") as file:
        file.seek(-1, 2)
        file.write(b"\xff")
    with Serve(os.path.join(folder, "noise"), *options) as s:
        found = scan(s.client(), images, "white")
        assert wire.images(found) and "no noise is kept" in " ".join(wire.texts(found)), wire.texts(found)
        assert "damaged" in s.log() and not os.listdir(store)
        scan(s.client(), scans, "white")
        await_true("noise", lambda: len(os.listdir(store)) == 1)
    old = time.time() - 3 * 3600
    os.utime(os.path.join(store, os.listdir(store)[0]), (old, old))
    with Serve(os.path.join(folder, "noise"), "--noise-hours", "2", *options) as s:
        assert not os.listdir(store)
        # bounded in number
        for i in range(4):
            scan(s.client(), noise_scan(rng, mix, f"M-{i}")[0], "white")
    with Serve(os.path.join(folder, "noise"), "--noise-count", "2", *options) as s:
        assert len(os.listdir(store)) == 2
        scan(s.client(), noise_scan(rng, mix, "M-9")[0], "white")
        await_true("noise", lambda: len(os.listdir(store)) == 2)


# ---- systemd ----------------------------------------------------------------------------------------------------------

def check_notify(folder, messages):
    """READY once a worker is warm, signs of life, STOPPING; and no child inherits the socket."""
    path = os.path.join(folder, "notify")
    heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    heard.bind(path)
    heard.settimeout(20)
    with Serve(os.path.join(folder, "manager"), env={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "600000"}) as s:
        lines = []
        while lines.count("WATCHDOG=1") < 4 or "READY=1" not in lines:
            lines += heard.recv(4096).decode().split("\n")
        for pid in s.children():
            with open(f"/proc/{pid}/environ", "rb") as file:
                assert b"NOTIFY_SOCKET" not in file.read()
        assert wire.images(scan(s.client(), messages))
        s.process.send_signal(signal.SIGTERM)
        while "STOPPING=1" not in lines:
            lines += heard.recv(4096).decode().split("\n")
    assert lines.index("READY=1") < lines.index("STOPPING=1")
    assert any(line.startswith("STATUS=") for line in lines)
    heard.close()


def check_products(folder, messages):
    """Files that a pipeline writes: none where the site names no folder, else one folder a session, and none for a session without any."""
    products = os.path.join(folder, "products")
    with Serve(os.path.join(folder, "producing"), "--products", products, "--pipelines", os.path.join(folder, "site")) as s:
        scan(s.client(), messages)
        scan(s.client(), messages, "plain")
        s.audit(2)
        found = os.listdir(products)
        assert len(found) == 1 and found[0].endswith("-session-1"), found
        assert any(n.endswith(".nii.gz") for n in os.listdir(os.path.join(products, found[0])))


def check_reload(folder, messages):
    """SIGHUP: those that wait are replaced, a session goes on."""
    with Serve(os.path.join(folder, "reload")) as s:
        client = s.client()
        client.send(wire.config_name("cartesian"), *messages[:5])
        s.await_log("session 1: begun")
        await_true("warm workers", lambda: len(s.children()) == 3)
        before = set(s.children())
        s.process.send_signal(signal.SIGHUP)
        await_true("new ones", lambda: len(s.children()) == 3 and len(before & set(s.children())) == 1)
        client.send(*messages[5:], wire.CLOSE)
        assert wire.images(client.rest())
        assert wire.images(scan(s.client(), messages))


def check_drain(folder, messages):
    """SIGTERM: who is being served is served to the end, nobody new is; beyond the limit a session is stopped and told."""
    with Serve(os.path.join(folder, "drain")) as s:
        client = s.client()
        client.send(wire.config_name("cartesian"), *messages[:5])
        s.await_log("session 1: begun")
        s.process.send_signal(signal.SIGTERM)
        s.await_log("no new sessions")
        try:
            s.client(2).next()
            raise AssertionError("a connection was taken while the server was draining")
        except OSError:
            pass
        client.send(*messages[5:], wire.CLOSE)
        assert wire.images(client.rest())
        assert s.process.wait(timeout=20) == 0
        assert s.audit(1)[0]["outcome"] == "done"
    with Serve(os.path.join(folder, "drain2"), "--drain", "0.5") as s:
        client = s.client()
        client.send(wire.config_name("cartesian"), *messages[:5])
        s.await_log("session 1: begun")
        s.process.send_signal(signal.SIGTERM)
        told = " ".join(wire.texts(client.rest()))
        assert "the server is being stopped" in told, told
        assert s.process.wait(timeout=30) == 0
        assert s.audit(1)[0]["outcome"] == "stopped", s.audit(1)


def main():
    with tempfile.TemporaryDirectory() as folder:
        messages = wire.phantom(os.path.join(folder, "scan.mrd"), "--trajectory", "cartesian", "--matrix", "32,32,1", "--coils", "2")
        for check in (check_names, check_plugins, check_fire, check_many, check_products, check_reload, check_notify, check_drain):
            start = time.monotonic()
            check(folder, messages)
            print(f"{check.__name__}: {time.monotonic() - start:.1f} s", flush=True)
        check_wrong_options(folder)
        check_noise(folder)
        check_leaves_nothing(folder, messages, int(os.environ.get("FORNIX_TEST_SESSIONS", "100")))


main()
