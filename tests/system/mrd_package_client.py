# SPDX-License-Identifier: MIT
"""Run by test_clients.py in an environment that has the package `ismrmrd`: a client on that package's own serialisation, which is what
python-ismrmrd-server and its client are made of. usage: mrd_package_client.py STYLE PORT CONFIG SCAN OUT.npz"""
import socket
import struct
import sys
import threading

import ismrmrd
import ismrmrd.serialization
import ismrmrd.xsd
import numpy as np


class Received:
    def __init__(self):
        self.images = []
        self.texts = []
        self.closed = False

    def take(self, item):
        if isinstance(item, ismrmrd.Image):
            self.images.append(item)
        elif isinstance(item, str):
            self.texts.append(item)


def fire(sock, config, header, dataset, received):
    """FIRE's way: each part of a message its own send, NULs in the lengths of texts, another thread that receives meanwhile."""
    def read(n):
        return sock.recv(n, socket.MSG_WAITALL)

    def receive():
        while True:
            number, = struct.unpack("<H", read(2))
            if number == 4:
                received.closed = True
                return
            if number == 5:
                text = read(struct.unpack("<I", read(4))[0])
                assert text.endswith(b"\0"), text
                received.texts.append(text[:-1].decode())
            elif number == 1022:
                received.images.append(ismrmrd.Image.deserialize_from(read))
            else:
                raise AssertionError(f"message {number}")

    thread = threading.Thread(target=receive)
    thread.start()
    sock.sendall(struct.pack("<H", 1))
    sock.sendall(struct.pack("<1024s", config.encode()))
    sock.sendall(struct.pack("<H", 3))
    text = header + b"\0"
    sock.sendall(struct.pack("<I", len(text)))
    sock.sendall(text)
    for i in range(dataset.number_of_acquisitions()):
        sock.sendall(struct.pack("<H", 1008))
        dataset.read_acquisition(i).serialize_into(sock.sendall)
    sock.sendall(struct.pack("<H", 4))
    thread.join()


def package(sock, config, header, dataset, received):
    """The package's own protocol classes, one after the other in one thread: all is sent before anything is read."""
    with sock.makefile("wb") as out:
        sender = ismrmrd.serialization.ProtocolSerializer(out)
        sender.serialize(ismrmrd.serialization.ConfigFile(config))
        sender.serialize("a text in front of the header")
        sender.serialize(ismrmrd.xsd.CreateFromDocument(header))
        for i in range(dataset.number_of_acquisitions()):
            sender.serialize(dataset.read_acquisition(i))
        sender.close()
    with sock.makefile("rb") as file:
        for item in ismrmrd.serialization.ProtocolDeserializer(file).deserialize():
            received.take(item)
    received.closed = True


def main():
    style, port, config, scan, out = sys.argv[1:]
    dataset = ismrmrd.Dataset(scan, "dataset", create_if_needed=False)
    header = dataset.read_xml_header()
    received = Received()
    with socket.create_connection(("127.0.0.1", int(port)), 30) as sock:
        sock.settimeout(60)
        {"fire": fire, "package": package}[style](sock, config, header, dataset, received)
    assert received.closed
    fields = {"n": len(received.images), "texts": np.array(received.texts)}
    for i, image in enumerate(received.images):
        fields[f"data_{i}"] = image.data
        head = image.getHead()
        fields[f"head_{i}"] = np.array([head.repetition, head.image_index, head.image_series_index, head.image_type, head.data_type])
        fields[f"fov_{i}"] = np.array(head.field_of_view[:])
        fields[f"meta_{i}"] = image.attribute_string
    np.savez(out, **fields)


main()
