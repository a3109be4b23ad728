# SPDX-License-Identifier: MIT
"""How fast servers take acquisitions over loopback: those named as NAME=PORT=CONFIG, which are running already, and for comparison a process
that only receives bytes and looks at none, what loopback allows. Interleaved rounds, so that a busy machine is busy for all. With --whole the scan
itself is sent, as often as it takes, for configurations that make images. Prints JSON.
usage: serve_throughput.py SCAN.mrd (an MRD stream) [--coils N] [--samples N] [--gigabytes X] [--rounds N] [--whole] NAME=PORT=CONFIG ..."""
import argparse
import json
import multiprocessing
import os
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "system"))
from mrd_wire import CLOSE, Stream, config_name, messages_of, pack, text, text_of  # noqa: E402


def acquisitions(head, coils, samples, n):
    head = bytearray(head)
    struct.pack_into("<H", head, 34, samples)
    struct.pack_into("<HH", head, 36, coils, coils)
    struct.pack_into("<H", head, 176, 0)
    return (struct.pack("<H", 1008) + bytes(head) + bytes(8 * coils * samples)) * n


def sink(listener):
    """Takes each client's bytes until it has sent all."""
    buffer = bytearray(4 << 20)
    while True:
        client, _ = listener.accept()
        with client:
            while client.recv_into(buffer):
                pass
            client.sendall(pack(CLOSE))


def push(port, config, header, block, times):
    """Seconds from the first byte of data to the server's close message, which it sends when all was taken."""
    with socket.create_connection(("127.0.0.1", port), 60) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if config is not None:
            sock.sendall(pack(config_name(config)) + pack(header))
        start = time.monotonic()
        for _ in range(times):
            sock.sendall(block)
        sock.sendall(pack(CLOSE))
        if config is None:
            sock.shutdown(socket.SHUT_WR)
        found = Stream(sock.recv).all()
        seconds = time.monotonic() - start
    assert found and found[-1][0] == 4, found
    return seconds


def main():
    words = argparse.ArgumentParser()
    words.add_argument("scan")
    words.add_argument("servers", nargs="+")
    words.add_argument("--coils", type=int, default=32)
    words.add_argument("--samples", type=int, default=512)
    words.add_argument("--gigabytes", type=float, default=2)
    words.add_argument("--whole", action="store_true")
    words.add_argument("--rounds", type=int, default=3)
    words = words.parse_args()
    with open(words.scan, "rb") as file:
        scan = messages_of(file.read())
    header = text(3, text_of(next(m for m in scan if m[0] == 3)), nul=True)
    head = next(m for m in scan if m[0] == 1008)[1][:340]
    one = 342 + 8 * words.coils * words.samples
    n = max(1, (64 << 20) // one)
    block = acquisitions(head, words.coils, words.samples, n)
    times = max(1, round(words.gigabytes * 1e9 / len(block)))
    if words.whole:
        block = b"".join(pack(m) for m in scan if m[0] == 1008)
        n, times = sum(m[0] == 1008 for m in scan), 1
        one = len(block) // n
    listener = socket.create_server(("127.0.0.1", 0))
    receiver = multiprocessing.Process(target=sink, args=(listener,), daemon=True)
    receiver.start()
    rates = {}
    for _ in range(words.rounds):
        for server in [f"bytes={listener.getsockname()[1]}=", *words.servers]:
            name, port, config = server.split("=")
            seconds = push(int(port), config or None, header, block, times)
            rates.setdefault(name, []).append(len(block) * times / seconds / 1e9)
    print(json.dumps({"coils": words.coils, "samples": words.samples, "bytes_of_an_acquisition": one, "acquisitions": n * times,
                      "gigabytes_per_second": {k: {"best": round(max(v), 3), "all": [round(x, 3) for x in v]} for k, v in rates.items()},
                      "acquisitions_per_second": {k: round(max(v) * 1e9 / one) for k, v in rates.items()}}, indent=2))


main()
