#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""SigPy's SenseRecon on CuPy at the size of bench/sense.c: samples and trajectory on the host, maps on the GPU, image on the host.
usage: sense_sigpy.py [N [COILS [SAMPLES [ITERATIONS]]]]"""
import json
import sys
import time

import cupy
import numpy
import sigpy
import sigpy.mri.app

n, coils, samples, iterations = [int(a) for a in sys.argv[1:]] + [128, 8, 524288, 10][len(sys.argv) - 1:]
spokes = samples // (2 * n)
s = numpy.arange(spokes)
z = 1 - (2 * s + 1) / spokes
r, angle = numpy.sqrt(1 - z * z), 2.399963229728653 * s
t = (numpy.arange(2 * n) - n) / 2.0
k = numpy.stack([t * v[:, None] for v in (r * numpy.cos(angle), r * numpy.sin(angle), z)], axis=-1).reshape(-1, 3).astype(numpy.float32)
random = numpy.random.default_rng(1)
y = (random.standard_normal((coils, k.shape[0])) + 1j * random.standard_normal((coils, k.shape[0]))).astype(numpy.complex64)
maps = cupy.ones((coils, n, n, n), numpy.complex64) / numpy.sqrt(coils)
device = sigpy.Device(0)


def once():
	start = time.perf_counter()
	app = sigpy.mri.app.SenseRecon(sigpy.to_device(y, device), maps, coord=sigpy.to_device(k, device), max_iter=iterations,
		device=device, show_pbar=False)
	image = sigpy.to_device(app.run(), sigpy.cpu_device)
	cupy.cuda.Device(0).synchronize()
	return 1e3 * (time.perf_counter() - start), image


times = sorted(once()[0] for _ in range(8))[:7]
print(json.dumps({"peer": "sigpy " + sigpy.__version__ + ", cupy " + cupy.__version__, "n": n, "coils": coils, "samples": samples,
	"iterations": iterations, "whole_ms": round(times[len(times) // 2], 2), "best_ms": round(times[0], 2)}))
