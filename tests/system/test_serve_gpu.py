# SPDX-License-Identifier: MIT
"""`fornix serve` with a GPU: what a client hears of it, memory that is admitted in bytes, the same images as the host's, and a kernel that writes
where nothing is, which ends one session."""
import ctypes
import os
import sys
import tempfile
import time

try:
    import numpy as np
except ImportError:
    print("skip: no numpy for python3")
    sys.exit(77)

import mrd_wire as wire
from serve_tools import Serve, scan

GADGETS = os.path.join(os.environ["FORNIX_BUILD"], "tests", "plugins")


def has_gpu():
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
        n = ctypes.c_int()
        return cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(n)) == 0 and n.value > 0
    except OSError:
        return False


def ask(server, *names):
    client = server.client()
    client.send(*[wire.query(i, name) for i, name in enumerate(names)], wire.CLOSE)
    return [wire.text_of(m) for m in client.rest()]


def main():
    if not has_gpu() or not os.path.exists(os.path.join(os.environ["FORNIX_BUILD"], "lib", "libfornix-cuda.so")):
        print("skip: no GPU, or a build without CUDA")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        site = os.path.join(folder, "site")
        os.makedirs(site)
        chain = "<trajectory/><density/><mu/><fhd/><coil_maps/><toeplitz/><cg iterations=\"8\"/>"
        for name, first in (("plain", ""), ("spoilt", '<plugin_trouble how="gpu" at="5"/>')):
            with open(os.path.join(site, name + ".xml"), "w", encoding="utf-8") as file:
                file.write(f'<pipeline xmlns="urn:fornix:pipeline:1">{first}{chain}</pipeline>\n')
        with open(os.path.join(folder, "map"), "w", encoding="utf-8") as file:
            file.write("[names]\nlarge = site/plain.xml\n[site/plain.xml]\ngpu-memory = 9T\n")
        messages = wire.phantom(os.path.join(folder, "scan.mrd"), "--trajectory", "spiral", "--matrix", "128,128,1", "--coils", "8")
        images = {}
        for backend in ("host", "cuda"):
            start = time.monotonic()
            with Serve(os.path.join(folder, backend), "--pipelines", site, "--gadgets", GADGETS, "--backend", backend, "--map",
                       os.path.join(folder, "map"), "--no-cache") as s:
                ready = time.monotonic() - start
                seconds = []
                for _ in range(3):
                    start = time.monotonic()
                    images[backend] = wire.images(scan(s.client(60), messages, "plain"))[0].data
                    seconds.append(time.monotonic() - start)
                    time.sleep(2)  # the next worker warms up
                print(f"{backend}: ready after {ready:.2f} s, sessions of {len(messages) - 2} readouts took "
                      + ", ".join(f"{t:.3f}" for t in seconds) + " s")
                if backend == "host":
                    continue
                told = ask(s, "gadgetron::info::cuda", "gadgetron::cuda::devices", "gadgetron::cuda::memory", "gadgetron::cuda::capabilities")
                print("queries:", told)
                assert told[0] == "1" and int(told[1]) >= 1, told
                refused = " ".join(wire.texts(scan(s.client(60), messages, "large")))
                assert "9216.0 GiB of a GPU's" in refused, refused
                told = " ".join(wire.texts(scan(s.client(60), messages, "spoilt")))
                print("a kernel that writes nowhere:", told.strip())
                assert "ERROR" in told and "illegal" in told.lower(), told
                again = wire.images(scan(s.client(60), messages, "plain"))[0].data
                # spreading has no order on a GPU, and is made in integers: the same bits
                assert np.array_equal(again, images["cuda"])
                print([(line["outcome"], line.get("first_image_s")) for line in s.audit(6)])
        a, b = np.abs(images["host"]), np.abs(images["cuda"])
        # both within the gridding's tolerance of 1e-3 of the same least-squares solution
        assert np.linalg.norm(a - b) < 2e-3 * np.linalg.norm(a), np.linalg.norm(a - b) / np.linalg.norm(a)


main()
