# SPDX-License-Identifier: MIT
"""The MRD streaming protocol in Python's struct and numpy alone, written from its description: a client for tests."""
import json
import os
import select
import socket
import struct
import subprocess

import numpy as np

TYPES = {1: np.uint16, 2: np.int16, 3: np.uint32, 4: np.int32, 5: np.float32, 6: np.float64, 7: np.complex64, 8: np.complex128}


class Stream:
    """Messages out of bytes: a file's content, or what a socket gives."""

    def __init__(self, read):
        self.read = read

    def exactly(self, n):
        parts = []
        while n > 0:
            part = self.read(n)
            if not part:
                raise EOFError
            parts.append(part)
            n -= len(part)
        return b"".join(parts)

    def message(self):
        """(id, body as it came); None at the end of the stream."""
        try:
            first = self.exactly(2)
        except EOFError:
            return None
        number, = struct.unpack("<H", first)
        if number == 1:
            return number, self.exactly(1024)
        if number in (2, 3, 5):
            return number, self.prefixed(4)
        if number == 4:
            return number, b""
        if number == 6:
            return number, self.exactly(16) + self.prefixed(8)
        if number == 7:
            return number, self.exactly(8) + self.prefixed(8)
        if number == 1019:
            return number, self.prefixed(8)
        if number == 1008:
            head = self.exactly(340)
            samples, = struct.unpack_from("<H", head, 34)
            channels, = struct.unpack_from("<H", head, 38)
            dims, = struct.unpack_from("<H", head, 176)
            return number, head + self.exactly(samples * (4 * dims + 8 * channels))
        if number == 1022:
            head = self.exactly(198)
            meta = self.prefixed(8)
            kind, = struct.unpack_from("<H", head, 2)
            size = struct.unpack_from("<3H", head, 16) + struct.unpack_from("<H", head, 34)
            return number, head + meta + self.exactly(int(np.prod(size, dtype=np.int64)) * np.dtype(TYPES[kind]).itemsize)
        if number == 1026:
            head = self.exactly(40)
            samples, channels = struct.unpack_from("<HH", head, 28)
            return number, head + self.exactly(4 * samples * channels)
        raise AssertionError(f"message {number} came")

    def prefixed(self, n):
        length = self.exactly(n)
        return length + self.exactly(int.from_bytes(length, "little"))

    def all(self):
        found = []
        while (m := self.message()) is not None:
            found.append(m)
        return found


def messages_of(data):
    at = [0]

    def read(n):
        part = data[at[0]:at[0] + n]
        at[0] += len(part)
        return part
    return Stream(read).all()


def pack(m):
    return struct.pack("<H", m[0]) + m[1]


def text_of(m):
    skip = {1: 0, 2: 4, 3: 4, 5: 4, 6: 24, 7: 16, 1019: 8}[m[0]]
    return m[1][skip:].split(b"\0", 1)[0].decode()


def config_name(name):
    return 1, name.encode().ljust(1024, b"\0")


def text(number, content, nul=False):
    content = content.encode() + (b"\0" if nul else b"")
    return number, struct.pack("<I", len(content)) + content


def query(correlation, content, reserved=0):
    return 6, struct.pack("<QQQ", reserved, correlation, len(content)) + content.encode()


CLOSE = (4, b"")


class Image:
    def __init__(self, body):
        self.head = body[:198]
        length, = struct.unpack_from("<Q", body, 198)
        self.meta_length = length
        self.attribute_length, = struct.unpack_from("<I", body, 194)
        self.meta = body[206:206 + length]
        kind, = struct.unpack_from("<H", body, 2)
        size = struct.unpack_from("<3H", body, 16) + struct.unpack_from("<H", body, 34)
        self.data = np.frombuffer(body[206 + length:], TYPES[kind]).reshape(size[::-1])   # channel, z, y, x


class Client:
    def __init__(self, port, timeout=30):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.stream = Stream(self.socket.recv)

    def send(self, *messages):
        for m in messages:
            self.socket.sendall(pack(m))

    def next(self):
        return self.stream.message()

    def waits(self, seconds):
        """True where something can be read within that time."""
        return bool(select.select([self.socket], [], [], seconds)[0])

    def rest(self):
        """What comes until the server hangs up; its last message has to be CLOSE."""
        found = self.stream.all()
        assert found and found[-1][0] == 4, [m[0] for m in found]
        self.socket.close()
        return found[:-1]


class Server:
    """tests/tools/session_server with some options; sessions in order give their outcomes."""

    def __init__(self, folder, n, *options):
        tool = os.path.join(os.environ["FORNIX_BUILD"], "tests", "session_server")
        with open(os.path.join(folder, "server.log"), "ab") as log:
            self.process = subprocess.Popen([tool, folder, str(n), *options], stdout=subprocess.PIPE, stderr=log, text=True)
        self.port = int(self.process.stdout.readline())

    def outcome(self):
        return json.loads(self.process.stdout.readline())

    def end(self):
        assert self.process.wait(timeout=30) == 0, self.process.returncode
        self.process.stdout.close()


def phantom(path, *options):
    subprocess.run([os.environ["FORNIX"], "phantom", "ellipse", "--no-truth", "--stream", "-o", path, *options], check=True,
                   stdout=subprocess.DEVNULL)
    with open(path, "rb") as file:
        return messages_of(file.read())


def images(found):
    return [Image(m[1]) for m in found if m[0] == 1022]


def texts(found):
    return [text_of(m) for m in found if m[0] == 5]
