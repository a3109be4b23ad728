# SPDX-License-Identifier: MIT
"""What can go wrong between a client and `fornix serve`, each while another session runs, which must not notice: clients that
die anywhere, lie, wait, or send nonsense; gadgets that crash; workers and servers that are killed; pipelines that are none."""
import os
import signal
import socket
import struct
import sys
import tempfile
import time

try:
    import numpy as np
except ImportError:
    print("skip: no numpy for python3")
    sys.exit(77)

import mrd_wire as wire
from serve_tools import Serve, await_true, reset, scan

GADGETS = os.path.join(os.environ["FORNIX_BUILD"], "tests", "plugins")
TROUBLES = {"fail": "how=\"fail\" at=\"3\"", "segv": "how=\"segv\" at=\"3\"", "late": "how=\"segv\"", "abort": "how=\"abort\" at=\"3\"",
            "hang": "how=\"hang\" at=\"3\"", "memory": "how=\"memory\"", "slow": "how=\"slow\" at=\"1000000\""}


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def site_folder(folder):
    site = os.path.join(folder, "site")
    os.makedirs(site)
    write(os.path.join(site, "plain.xml"), '<pipeline xmlns="urn:fornix:pipeline:1"><cartesian/><combine/></pipeline>\n')
    for name, how in TROUBLES.items():
        write(os.path.join(site, name + ".xml"),
              f'<pipeline xmlns="urn:fornix:pipeline:1"><plugin_trouble {how}/><cartesian/><combine/></pipeline>\n')
    return site


class Other:
    """A session that goes on while others fail, a readout at a time."""

    def __init__(self, server, messages, expected):
        self.client, self.messages, self.expected, self.at = server.client(), messages, expected, 3
        self.client.send(wire.config_name("plain"), *messages[:3])

    def go_on(self):
        if self.at < len(self.messages) - 2:
            self.client.send(self.messages[self.at])
            self.at += 1

    def end(self):
        self.client.send(*self.messages[self.at:], *([] if self.messages[-1][0] == 4 else [wire.CLOSE]))
        got = wire.images(self.client.rest())
        assert len(got) == 1 and np.array_equal(got[0].data, self.expected)


def texts(client, *messages):
    client.send(*messages)
    return " ".join(wire.texts(client.rest()))


def check_died_anywhere(s, messages, other):
    """Gone at each boundary of a short scan, and in the middle of each message: by closing, and by a reset."""
    short = [wire.config_name("plain"), *messages[:3], messages[-2], wire.CLOSE]
    await_true("warm workers", lambda: len(s.children()) == 3)
    base, n = s.connections(), 0
    assert base == 1
    for leave in (lambda c: c.socket.close(), reset):
        for at in range(len(short)):
            for part in (0, 1, 3, 200):
                data = b"".join(wire.pack(m) for m in short[:at]) + wire.pack(short[at])[:part]
                if not data:
                    continue
                client = s.client()
                client.socket.sendall(data)
                leave(client)
                n += 1
                if n % 8 == 0:
                    other.go_on()
                    await_true("they are gone", lambda: s.connections() == base and len(s.children()) == 3)
    await_true("they are gone", lambda: s.connections() == base and len(s.children()) == 3)
    outcomes = {line["outcome"] for line in s.audit(2)}
    # a close message with data behind the header is a whole session; all others were cut, or had begun with nothing that can be run
    assert outcomes <= {"cut", "asked", "refused", "failed", "done"} and "cut" in outcomes, outcomes


def check_died_receiving(s, messages):
    """Gone while images are on their way to it."""
    for leave in (lambda c: c.socket.close(), reset):
        client = s.client()
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.send(wire.config_name("plain"), *messages[:-1])
        client.waits(5)
        client.socket.recv(100)
        leave(client)


def check_nonsense(s, messages):
    """What is no protocol is refused by name, the client is told, and hears CLOSE."""
    config, head, readout = wire.config_name("plain"), messages[0], messages[1]
    huge = struct.pack("<HI", 3, 0xfffffff0)
    before = s.resident_kib()
    cases = (
        ("an unknown id", [config, head], struct.pack("<H", 777) + b"x" * 100, "777"),
        ("a header of 4 GB", [config], huge + b"<ismrmrd", ""),
        ("a configuration of 4 GB", [], struct.pack("<HI", 2, 0xffffffff), ""),
        ("a text of 4 GB", [config], struct.pack("<HI", 5, 0xffffffff), ""),
        ("a query of 2^63 bytes", [], struct.pack("<HQQQ", 6, 0, 1, 1 << 63), ""),
        ("two headers", [config, head, head], b"", "header"),
        ("two configurations", [config, config], b"", "onfiguration"),
        ("data before the header", [config, readout], b"", "header"),
        ("a header before the configuration", [head], b"", "onfiguration"),
        ("a header that is no XML", [config, wire.text(3, "this is no header")], b"", "header"),
        ("a readout of 65535 x 65535", [config, head], struct.pack("<H", 1008) + readout[1][:34] +
         struct.pack("<HHH", 65535, 65535, 65535) + readout[1][40:340], ""),
        ("an HTTP client", [], b"GET / HTTP/1.1\r\nHost: scanner\r\n\r\n", ""),
        ("a TLS client", [], bytes.fromhex("16030100c8010000c40303") + b"\0" * 200, ""),
    )
    for name, start, rest, word in cases:
        client = s.client()
        client.send(*start)
        if rest:
            client.socket.sendall(rest)
        client.socket.shutdown(socket.SHUT_WR)
        try:
            told = " ".join(wire.texts(client.rest()))
        except AssertionError as e:
            raise AssertionError(f"{name}: {e}") from None
        assert "ERROR" in told and word in told, (name, told)
    assert s.resident_kib() < before + 1024, "a client's claim cost the server memory"


def check_half_open(folder, messages):
    """Connections that say nothing take no session, go after a while, and make room where they are too many."""
    with Serve(os.path.join(folder, "half"), "--pipelines", os.path.join(folder, "site"), "--sessions", "1", "--waiting", "8", "--greet",
               "1.5", "--idle", "1.5", "--client-drain", "1") as s:
        silent = [s.client() for _ in range(30)]
        assert wire.images(scan(s.client(), messages, "plain"))
        await_true("silent ones went", lambda: s.descriptors() < 16)
        for client in silent:
            client.socket.settimeout(10)
            try:
                assert client.socket.recv(1) == b""
            except ConnectionResetError:
                pass
            client.socket.close()
        # and one that falls silent within its session is told
        client = s.client()
        client.send(wire.config_name("plain"), messages[0])
        told = " ".join(wire.texts(client.rest()))
        assert "ERROR" in told, told
        assert wire.images(scan(s.client(), messages, "plain"))


def check_slow(s, messages):
    """A slow writer, byte by byte at the start, and a slow reader: both are served."""
    client = s.client()
    data = b"".join(wire.pack(m) for m in [wire.config_name("plain"), *messages, wire.CLOSE][:-1 if messages[-1][0] == 4 else None])
    for i in range(40):
        client.socket.sendall(data[i:i + 1])
        time.sleep(0.002)
    client.socket.sendall(data[40:2000])
    time.sleep(0.2)
    client.socket.sendall(data[2000:])
    assert wire.images(client.rest())
    client = s.client()
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    client.socket.sendall(data)
    time.sleep(1)
    assert wire.images(client.rest())


def check_crashes(s, messages):
    """A gadget that fails, crashes, aborts: the client sends all that it has, is told why and where, hears CLOSE."""
    last = messages if messages[-1][0] == 4 else [*messages, wire.CLOSE]
    for name, words in (("fail", ("plugin_trouble", "readout 3", "scan_counter")), ("segv", ("plugin_trouble", "signal 11")),
                        ("late", ("plugin_trouble", "signal 11")), ("abort", ("plugin_trouble", "signal 6")),
                        ("memory", ("plugin_trouble", "no memory"))):
        client = s.client()
        told = texts(client, wire.config_name(name), *last)
        assert all(w in told for w in words), (name, told)
    # one that reads nothing until it has sent everything, 40 MB of it
    client = s.client(60)
    client.send(wire.config_name("segv"), *messages[:4])
    for _ in range(40):
        client.socket.sendall(wire.pack(messages[4]) * 900)
    told = texts(client, wire.CLOSE)
    assert "signal 11" in told, told
    # one that waits without sending more is not left waiting
    client = s.client()
    client.send(wire.config_name("segv"), *messages[:6])
    start = time.monotonic()
    assert "signal 11" in " ".join(wire.texts(client.rest()))
    assert time.monotonic() - start < 10


def check_killed_worker(s, messages):
    client = s.client()
    client.send(wire.config_name("plain"), *messages[:6])
    mine = client.socket.getsockname()[1]
    await_true("a worker has it", lambda: s.worker_of(mine))
    os.kill(s.worker_of(mine), signal.SIGKILL)
    client.send(*messages[6:])
    told = texts(client, *([] if messages[-1][0] == 4 else [wire.CLOSE]))
    assert "signal 9" in told, told
    # idle ones: others take their place
    await_true("warm workers", lambda: len(s.children()) == 3)
    idle = [pid for pid in s.children() if not holds_connection(s, pid)]
    assert len(idle) == 2
    for pid in idle:
        os.kill(pid, signal.SIGKILL)
    await_true("both were missed", lambda: s.log().count("an idle worker ended") + s.log().count("a worker did not start") == 2)
    assert wire.images(scan(s.client(), messages, "plain"))


def holds_connection(s, pid):
    """A warm worker has its link and what a process is born with; a busy one the client's connection too."""
    inodes = set()
    with open("/proc/net/tcp", encoding="ascii") as file:
        inodes = {line.split()[9] for line in list(file)[1:] if int(line.split()[1].split(":")[1], 16) == s.port}
    try:
        links = [os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")]
    except OSError:
        return False
    return any(link[8:-1] in inodes for link in links if link.startswith("socket:["))


def check_hang(folder, messages):
    """A gadget that never comes back: the supervisor ends it, some time after the session's own limit."""
    with Serve(os.path.join(folder, "hang"), "--pipelines", os.path.join(folder, "site"), "--gadgets", GADGETS, "--total", "1",
               "--client-drain", "1") as s:
        client = s.client(90)
        client.send(wire.config_name("hang"), *messages[:-1], wire.CLOSE)
        start = time.monotonic()
        told = " ".join(wire.texts(client.rest()))
        assert "longer" in told, told
        print(f"  a gadget that hangs was ended after {time.monotonic() - start:.1f} s with a limit of 1 s")
        assert wire.images(scan(s.client(), messages, "plain"))


def check_killed_server(folder, messages):
    """kill -9 in the middle of a session: the client is not left waiting, no worker stays, a new server takes the same port at once."""
    site = os.path.join(folder, "site")
    s = Serve(os.path.join(folder, "killed"), "--pipelines", site)
    client = s.client()
    client.send(wire.config_name("plain"), *messages[:6])
    s.await_log("session 1: begun")
    children = s.children()
    s.process.kill()
    s.process.wait()
    s.log_file.close()
    start = time.monotonic()
    told = " ".join(wire.texts(client.rest()))
    assert "ERROR" in told and time.monotonic() - start < 10, told
    await_true("no worker is left", lambda: not any(os.path.exists(f"/proc/{pid}") and alive(pid) for pid in children), 20)
    with Serve(os.path.join(folder, "killed"), "--pipelines", site, "--port", str(s.port)) as again:
        assert again.port == s.port
        assert wire.images(scan(again.client(), messages, "plain"))


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def check_memory(folder, messages):
    """What a session may take is asked for, waited for, refused where it can never be had, and kept to."""
    map_file = os.path.join(folder, "memory.conf")
    write(map_file, "[names]\nlarge = plain.xml\nhuge = site/plain.xml\nsmall = memory.xml\n[plain.xml]\nmemory = 600M\n[site/plain.xml]\n"
          "memory = 2G\n[memory.xml]\nmemory = 400M\n")
    with Serve(os.path.join(folder, "memory"), "--pipelines", os.path.join(folder, "site"), "--gadgets", GADGETS, "--map", map_file,
               "--memory", "1G", "--wait", "3") as s:
        told = texts(s.client(), wire.config_name("huge"), *messages)
        assert "2.0 GiB" in told and "1.0" in told, told
        first = s.client()
        first.send(wire.config_name("large"), *messages[:4])
        s.await_log("session 2: begun")
        time.sleep(0.3)
        second = s.client()
        second.send(wire.config_name("large"), *messages)
        s.await_log("session 3: waits for")
        assert not second.waits(0.5)
        first.send(*messages[4:])
        assert wire.images(first.rest())
        assert wire.images(second.rest())
        # 16 MiB pieces until there are no more: the bound is 400 MiB, whatever the machine has
        told = texts(s.client(), wire.config_name("small"), *messages)
        pieces = int(told.split("no memory after ")[1].split()[0])
        assert 8 <= pieces <= 25, told
        first = s.client()
        first.send(wire.config_name("large"), *messages[:4])
        s.await_log("session 5: begun")
        time.sleep(0.3)
        told = texts(s.client(), wire.config_name("large"), *messages)
        assert "busy" in told, told
        first.send(*messages[4:])
        assert wire.images(first.rest())


def check_busy(folder, messages):
    with Serve(os.path.join(folder, "busy"), "--pipelines", os.path.join(folder, "site"), "--sessions", "1", "--wait", "0.5") as s:
        first = s.client()
        first.send(wire.config_name("plain"), *messages[:4])
        s.await_log("session 1: begun")
        told = texts(s.client(), wire.config_name("plain"), *messages)
        assert "busy" in told, told
        first.send(*messages[4:])
        assert wire.images(first.rest())


PCA = ("<name>{0}</name><dll>gadgetron_mricore</dll><classname>PCACoilGadget</classname><property><name>uncombined_channels_by_name</name>"
       "<value>uncombined_channels_by_name@{1}</value></property>")


def gadgetron(*gadgets):
    return ('<gadgetronStreamConfiguration xmlns="http://gadgetron.sf.net/gadgetron"><reader><slot>1008</slot><dll>gadgetron_mricore</dll>'
            "<classname>GadgetIsmrmrdAcquisitionMessageReader</classname></reader><writer><slot>1022</slot><dll>gadgetron_mricore</dll>"
            "<classname>MRIImageWriter</classname></writer>" + "".join(f"<gadget>{g}</gadget>" for g in gadgets) +
            "</gadgetronStreamConfiguration>")


def check_bad_pipelines(folder, messages):
    """Pipelines that a client sends, where the site lets it: each is refused by name, none costs anything."""
    bomb = "<!DOCTYPE a [<!ENTITY a \"aaaaaaaaaa\">" + "".join(f'<!ENTITY {chr(98 + i)} "{f"&{chr(97 + i)};" * 10}">' for i in range(9)) + \
        "]><pipeline xmlns=\"urn:fornix:pipeline:1\"><cartesian/>&j;</pipeline>"
    outside = "<!DOCTYPE a [<!ENTITY a SYSTEM \"file:///etc/passwd\">]><pipeline xmlns=\"urn:fornix:pipeline:1\"><cartesian/>&a;</pipeline>"
    cases = (("<pipeline xmlns=\"urn:fornix:pipeline:1\"><no_such_gadget/></pipeline>", "no_such_gadget"),
             ("<pipeline xmlns=\"urn:fornix:pipeline:1\"><cartesian nothing=\"1\"/></pipeline>", "nothing"),
             ("<pipeline xmlns=\"urn:fornix:pipeline:1\"><plugin_good/></pipeline>", "plugin_good"),
             (gadgetron("<name>A</name><dll>/tmp/evil</dll><classname>EvilGadget</classname>"), "dll, '/tmp/evil', is a path"),
             (gadgetron("<name>A</name><dll>../../evil</dll><classname>../evil</classname>"), "is a path"),
             (gadgetron(PCA.format("A", "B"), PCA.format("B", "A")), "leads back to itself"),
             (bomb, ""), (outside, ""), ("<pipeline", ""), ("", ""), ("<a>" * 100000, ""), ("no XML at all", ""))
    with Serve(os.path.join(folder, "bad"), "--allow-client-pipelines", env={"FORNIX_GADGET_PATH": GADGETS}) as s:
        for text, word in cases:
            start = time.monotonic()
            told = texts(s.client(), wire.text(2, text), *messages)
            assert "ERROR" in told and word in told and "root:" not in told, (text[:80], told)
            assert time.monotonic() - start < 5, text[:80]
        assert all(line["outcome"] == "refused" for line in s.audit(len(cases))), s.audit(len(cases))


def main():
    with tempfile.TemporaryDirectory() as folder:
        site = site_folder(folder)
        messages = wire.phantom(os.path.join(folder, "scan.mrd"), "--trajectory", "cartesian", "--matrix", "32,32,1", "--coils", "2")
        with Serve(os.path.join(folder, "main"), "--pipelines", site, "--gadgets", GADGETS, "--sessions", "3", "--memory", "2G",
                   "--client-drain", "3") as s:
            expected = wire.images(scan(s.client(), messages, "plain"))[0].data
            other = Other(s, messages, expected)
            for check in (check_died_anywhere, check_died_receiving, check_nonsense, check_slow, check_crashes, check_killed_worker):
                start = time.monotonic()
                if check is check_died_anywhere:
                    check(s, messages, other)
                else:
                    check(s, messages)
                got = wire.images(scan(s.client(), messages, "plain"))  # the next session works
                assert len(got) == 1 and np.array_equal(got[0].data, expected), check
                other.go_on()
                print(f"{check.__name__}: {time.monotonic() - start:.1f} s", flush=True)
            other.end()
        for check in (check_half_open, check_memory, check_busy, check_bad_pipelines, check_killed_server, check_hang):
            start = time.monotonic()
            check(folder, messages)
            print(f"{check.__name__}: {time.monotonic() - start:.1f} s", flush=True)


main()
