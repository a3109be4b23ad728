# SPDX-License-Identifier: MIT
"""The demo's tables: how far each image is from the truth, what the fibres join, and where the time went.
usage: demo_table.py FOLDER"""
import json
import os
import re
import sys

folder = sys.argv[1]
pipelines = ["gridding", "iterative"]


def load(*parts):
    with open(os.path.join(folder, *parts), encoding="utf-8") as file:
        return json.load(file)


with open(os.path.join(folder, "phantom.txt"), encoding="utf-8") as said:
    ceiling = re.search(r"PSNR ([0-9.]+) dB", said.read())
print(f"{'':<12}{'PSNR':>8}{'NRMSE':>8}{'SSIM':>8}{'seconds':>9}")
for pipeline in pipelines:
    figures = load(pipeline, "compare.json")
    seconds = load(pipeline, "run.json")["seconds"]
    print(f"{pipeline:<12}{figures['psnr_db']:>5.1f} dB{figures['nrmse']:>8.3f}{figures['ssim']:>8.3f}{seconds:>9.2f}")
if ceiling:
    print(f"{'ceiling':<12}{float(ceiling[1]):>5.1f} dB  (the best image that these frequencies allow, without noise)")
print()
stages = []
for pipeline in pipelines:
    stages += [g["name"] for g in load(pipeline, "run.json")["gadgets"] if g["name"] not in stages]
print(f"{'seconds in':<16}" + "".join(f"{p:>12}" for p in pipelines))
for stage in sorted(stages, key=stages.index):
    row = [next((g["seconds"] + g["seconds_opening"] for g in load(p, "run.json")["gadgets"] if g["name"] == stage), None)
           for p in pipelines]
    print(f"{stage:<16}" + "".join(f"{'-' if s is None else format(s, '.2f'):>12}" for s in row))
print("(each gadget has a thread of its own, so the sum may exceed the whole)")
print()
run, found = load("fibres", "run.json"), load("fibres", "connectivity.json")
track = next(g for g in run["gadgets"] if g["name"] == "track")
print(f"k-space to fibres: {run['seconds']:.1f} s, {track['record']['n_fibres']} fibres; FA in the bundle is off by "
      f"{100 * load('fibres', 'compare.json')['nrmse']:.1f} % (NRMSE)")
print(f"{'from':>6}{'to':>4}{'fibres':>8}{'best measure':>14} {found['measure']['unit']}{'length':>10}")
for pair in found["pairs"]:
    if pair["source"] < pair["target"]:
        best = pair["fibres"][0]
        print(f"{pair['source']:>6}{pair['target']:>4}{pair['n_fibres']:>8}{best['measure']:>14.3f}"
              f"{best['length_mm']:>{len(found['measure']['unit']) + 8}.0f} mm")
print("(any two regions are joined by some geodesic: a measure is a rank, and no proof)")
print()
pipelines.append("fibres")
for pipeline in pipelines:
    print(f"{os.path.join(folder, pipeline)}/: " + ", ".join(sorted(load(pipeline, "run.json")["products"] + ["run.json"])))
