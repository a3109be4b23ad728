#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""cuFINUFFT's times at the sizes of bench/nufft.c: sorting, type 1 and type 2, medians of device events; one JSON object a line.

Needs the Python packages cufinufft, cupy and numpy, and a GPU. The batch of eight is one plan with n_trans = 8.
"""
import json
import sys

import cupy as cp
import numpy as np

try:
    import cufinufft
except ImportError as e:
    sys.exit(f"nufft_peer: {e}")


def radial(n, spokes):
    s = np.arange(spokes)
    z = 1 - (2 * s + 1) / spokes
    r, a = np.sqrt(1 - z * z), 2.399963229728653 * s
    t = (np.arange(2 * n) - n) / (2 * n)
    d = np.stack([r * np.cos(a), r * np.sin(a), z])
    k = (d[:, :, None] * t[None, None, :]).reshape(3, -1)
    return [cp.asarray((2 * np.pi * x).astype(np.float32)) for x in k]


def ms(body, rounds=9, in_a_row=4):
    times = []
    for i in range(-2, rounds):
        a, b = cp.cuda.Event(), cp.cuda.Event()
        cp.cuda.Device().synchronize()
        a.record()
        for _ in range(in_a_row):
            body()
        b.record()
        b.synchronize()
        if i >= 0:
            times.append(cp.cuda.get_elapsed_time(a, b) / in_a_row)
    return float(np.median(times))


def bench(n, k, tolerance, coils):
    m, shape = k[0].size, (n, n, n)
    rng = np.random.default_rng(7)
    lead = (coils,) if coils > 1 else ()
    samples = cp.asarray((rng.standard_normal(lead + (m,)) + 1j * rng.standard_normal(lead + (m,))).astype(np.complex64))
    image = cp.zeros(lead + shape, np.complex64)
    out = {"peer": "cufinufft", "version": cufinufft.__version__, "n": n, "samples": m, "tolerance": tolerance, "coils": coils}
    for kind in (1, 2):
        if kind == 2 and n != 128:
            continue
        plan = cufinufft.Plan(kind, shape, coils, eps=tolerance, isign=1 if kind == 1 else -1, dtype="complex64")
        out[f"set_points{kind}_ms"] = round(ms(lambda: plan.setpts(*k)), 4)
        if kind == 1:
            body = lambda: plan.execute(samples, out=image)
        else:
            body = lambda: plan.execute(image, out=samples)
        out[f"type{kind}_ms_per_coil"] = round(ms(body) / coils, 4)
    print(json.dumps(out), flush=True)


for spokes in (2048, 16384):
    k = radial(128, spokes)
    for tolerance in (1e-3, 1e-5):
        for coils in (1, 8):
            bench(128, k, tolerance, coils)
    if spokes == 2048:
        for tolerance in (1e-3, 1e-5):
            bench(256, k, tolerance, 1)
