# SPDX-License-Identifier: MIT
"""The demo's table: how far each image is from the truth, and where the time went. usage: demo_table.py FOLDER"""
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
for pipeline in pipelines:
    print(f"{os.path.join(folder, pipeline)}/: " + ", ".join(sorted(load(pipeline, "run.json")["products"] + ["run.json"])))
