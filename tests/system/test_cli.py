# SPDX-License-Identifier: MIT
"""The command itself: verbs, options, exit codes, what is said where, and run.json."""
import filecmp
import glob
import json
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import time

FORNIX = os.environ["FORNIX"]
SOURCE = os.environ["FORNIX_SOURCE"]
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "FORNIX_GADGET_PATH"}
NAMESPACE = 'xmlns="urn:fornix:pipeline:1"'
failures = []


def check(name, holds, detail=""):
    print(f"{'ok  ' if holds else 'FAIL'} {name}")
    if not holds:
        failures.append(name)
        print("     ", detail)


def call(*arguments, **options):
    return subprocess.run([FORNIX, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300, check=False,
                          **{"env": ENVIRONMENT, **options})


def expect(name, arguments, code, err=(), out=(), **options):
    """The exit code; every text in `err` and `out` on its own stream."""
    done = call(*arguments, **options)
    said = f"exit {done.returncode}\nstdout: {done.stdout[-600:]}\nstderr: {done.stderr[-600:]}"
    check(name, done.returncode == code and all(t in done.stderr for t in err) and all(t in done.stdout for t in out), said)
    return done


def verbs():
    expect("no verb", [], 2, err=["usage: fornix"])
    expect("help", ["help"], 0, out=["usage: fornix", "run", "130"])
    version = expect("version", ["--version"], 0)
    check("version's form", re.fullmatch(r"fornix \d+\.\d+\.\d+\n", version.stdout), version.stdout)
    expect("unknown verb", ["lst"], 2, err=["fornix: ", "'lst'", "'list'"])
    for verb in re.findall(r"^  (\w+) ", call("help").stdout, re.M):
        expect(f"{verb} --help", [verb, "--help"], 0, out=["Usage:", f"fornix {verb}"])
        expect(f"{verb} --no-such-option", [verb, "--no-such-option"], 2, err=["no-such-option"])
    expect("too many arguments", ["check", "a", "b"], 2, err=["too many"])


def names():
    gadgets = sorted(os.path.basename(p)[:-2] for p in glob.glob(f"{SOURCE}/gadgets/*.c"))
    pipelines = sorted(os.path.basename(p)[:-4] for p in glob.glob(f"{SOURCE}/pipelines/*.xml"))
    listed = [line.split()[0] for line in call("list", "gadgets").stdout.splitlines()]
    check("list gadgets", listed == gadgets, f"{listed} {gadgets}")
    listed = [line.split()[0] for line in call("list", "pipelines").stdout.splitlines()]
    check("list pipelines", listed == pipelines, f"{listed} {pipelines}")
    for pipeline in pipelines:
        expect(f"check {pipeline}", ["check", pipeline], 0, out=["ok"])
        expect(f"describe {pipeline}", ["describe", pipeline], 0, out=[pipeline, "stages"])
        with open(f"{SOURCE}/pipelines/{pipeline}.xml", encoding="utf-8") as file:
            check(f"{pipeline} opens with a comment", re.match(r"\s*(<\?xml[^>]*\?>)?\s*<!--", file.read()))
    for gadget in gadgets:
        expect(f"describe {gadget}", ["describe", gadget], 0, out=[gadget, "takes", "gives"])
    expect("describe a misspelt gadget", ["describe", "denisty"], 2, err=["'denisty'", "'density'"])
    expect("describe a misspelt pipeline", ["describe", "iteratve"], 2, err=["'iterative'"])
    expect("a gadget folder that is not there", ["list"], 2, err=["FORNIX_GADGET_PATH", "/nowhere"],
           env={**ENVIRONMENT, "FORNIX_GADGET_PATH": "/nowhere"})


def pages(scratch):
    """The committed reference pages are what the tables say now."""
    fresh, kept = os.path.join(scratch, "pages"), f"{SOURCE}/docs/gadgets"
    expect("docs", ["docs", fresh], 0)
    differing = filecmp.cmpfiles(fresh, kept, os.listdir(fresh), shallow=False)
    stale = set(os.listdir(kept) if os.path.isdir(kept) else []) ^ set(os.listdir(fresh))
    check("docs/gadgets is what `fornix docs docs/gadgets` writes", not differing[1] and not stale, f"{differing[1:]} {stale}")


def bad_pipelines(scratch):
    def bad(name, text, words, code=2):
        path = os.path.join(scratch, name.replace(" ", "-") + ".xml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        expect(f"pipeline: {name}", ["check", path], code, err=["fornix: ", *[w.replace("FILE", path) for w in words]])

    bad("malformed", f"<pipeline {NAMESPACE}>\n<cg>\n</pipeline>", ["FILE:3"])
    bad("no namespace", "<pipeline><cg/></pipeline>", ["FILE:1", NAMESPACE])
    bad("gadgetron", "<configuration><version>2</version>\n<steam/></configuration>", ["FILE:2", "<stream>"], 1)
    bad("unknown gadget", f"<pipeline {NAMESPACE}>\n\n<densty/></pipeline>", ["FILE:3", "densty", "density"])
    bad("unknown property", f"<pipeline {NAMESPACE}>\n<trajectory/><density/><mu/>\n<fhd\n methd='nufft'/></pipeline>",
        ["FILE:4", "methd", "method"])
    bad("wrong value", f"<pipeline {NAMESPACE}>\n<trajectory/><density/><mu/>\n<fhd method='nuft'/></pipeline>",
        ["FILE:3", "nuft", "nufft"])
    bad("kinds that cannot meet", f"<pipeline {NAMESPACE}>\n<trajectory/>\n<fhd/></pipeline>", ["FILE:3", "fhd", "weighted"])
    expect("a file that is not there", ["check", "no/such.xml"], 2, err=["no/such.xml"])
    expect("a setting of no gadget", ["check", "iterative", "--set", "cgg.iterations=3"], 2, err=["cgg", "'cg'"])
    expect("a setting of no form", ["check", "iterative", "--set", "iterations"], 2, err=["GADGET.PROPERTY=VALUE"])


def records(scratch, scan):
    out = os.path.join(scratch, "deep", "out")
    done = expect("run", ["run", "gridding", scan, "-o", out, "--set", "write_nifti.complex=true", "--threads", "1"], 0)
    check("silent when piped", "[" not in done.stderr and "\r" not in done.stderr and done.stdout == "", done.stderr + done.stdout)
    with open(os.path.join(out, "run.json"), encoding="utf-8") as file:
        record = json.load(file)
    check("status", record["status"] == "done" and record["error"] is None, record)
    check("version", f"fornix {record['fornix']}\n" == call("--version").stdout, record["fornix"])
    check("pipeline", record["pipeline"]["file"].endswith("gridding.xml") and record["pipeline"]["description"], record["pipeline"])
    check("settings", record["settings"] == ["write_nifti.complex=true"], record["settings"])
    check("input", record["input"]["path"] == scan and record["input"]["format"] == "MRD HDF5" and record["input"]["digest"],
          record["input"])
    check("backend", record["backend"] == "host" and record["threads"] == 1, record)
    check("time", re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", record["started"]) and record["seconds"] > 0, record["started"])
    check("products are the files", sorted(record["products"] + ["run.json"]) == sorted(os.listdir(out)), record["products"])
    stages = {g["name"]: g for g in record["gadgets"]}
    check("defaults and settings are told", stages["write_nifti"]["properties"]["complex"] == "true"
          and stages["trajectory"]["properties"]["outside"] != "", stages)
    check("counts", stages["trajectory"]["messages_in"] > 0 and stages["write_nifti"]["messages_in"] == 1, stages)
    check("libraries", set(record["libraries"]) >= {"fftw", "hdf5", "openblas", "libxml2"}, record["libraries"])

    expect("--quiet", ["run", "gridding", scan, "-o", out, "-q"], 0)
    loud = expect("--verbose", ["run", "gridding", scan, "-o", out, "--verbose"], 0, err=["image.nii.gz", "seconds"])
    check("the unit of the trajectory is told", "cycles/voxel" in loud.stderr, loud.stderr)
    expect("wrong backend", ["run", "gridding", scan, "-o", out + "2", "--backend", "gpu"], 2, err=["gpu"])
    for kernel in ("scatter", "gather", "registers", "constant", "aos", "hardware", "tuned"):
        expect(f"kernel {kernel} on a host", ["run", "direct", scan, "-o", os.path.join(scratch, kernel), "--set", "fhd.method=direct",
                                              "--set", f"fhd.kernel={kernel}"], 1, err=["host", kernel])
    expect("a kernel of another method", ["run", "direct", scan, "-o", os.path.join(scratch, "other"), "--set", "fhd.method=nufft", "--set",
                                          "fhd.kernel=aos"], 1,
           err=["aos", "method=direct"])
    expect("wrong threads", ["run", "gridding", scan, "-o", out + "2", "--threads", "-1"], 2, err=["--threads"])
    expect("wrong group", ["run", "gridding", scan, "-o", out + "2", "--group", "datset"], 2, err=["datset", "dataset"])
    check("a wrong call makes no folder", not os.path.exists(out + "2"))

    # A run that fails leaves a record that says so.
    broken = os.path.join(scratch, "failed")
    refuses = os.path.join(scratch, "refuses.xml")
    with open(refuses, "w", encoding="utf-8") as file:
        file.write(f"<pipeline {NAMESPACE}><remove_oversampling/></pipeline>")
    failed = expect("a failing run", ["run", refuses, scan, "-o", broken], 1, err=["fornix: remove_oversampling: "])
    with open(os.path.join(broken, "run.json"), encoding="utf-8") as file:
        record = json.load(file)
    check("its record", record["status"] == "failed" and record["error"] in failed.stderr and record["products"] == [], record)
    check("its folder", os.listdir(broken) == ["run.json"], os.listdir(broken))


def terminal(scratch, scan):
    """On a terminal there is a bar and a summary."""
    master, slave = pty.openpty()
    with subprocess.Popen([FORNIX, "run", "iterative", scan, "-o", os.path.join(scratch, "seen")], stderr=slave,
                          env={**ENVIRONMENT, "TERM": "xterm"}) as process:
        os.close(slave)
        said = b""
        while True:
            try:
                piece = os.read(master, 4096)
            except OSError:  # Linux's end of a terminal
                break
            if not piece:
                break
            said += piece
        process.wait()
    os.close(master)
    text = said.decode()
    check("a bar on a terminal", process.returncode == 0 and re.search(r"\[#*-*\] .*\r\x1b\[K", text), repr(text))
    check("a summary on a terminal", "image.nii.gz" in text and "gadget" in text, repr(text))


def benches(scratch):
    """`bench fhd`: every rung gives the same image, up to what its arithmetic allows."""
    # single: phases of up to 30 cycles to 6e-8, and sums of 300 terms; nufft: its tolerance
    bounds = {"sequential": 2e-5, "fissioned": 2e-5, "interchanged": 2e-5, "registers": 2e-5, "direct": 2e-6, "separable": 2e-6,
              "nufft 1e-3": 1e-3, "nufft 1e-5": 1e-5}
    path = os.path.join(scratch, "bench.json")
    done = expect("bench fhd", ["bench", "fhd", "--matrix", "12,9,10", "--samples", "300", "--seconds", "0", "--json", path], 0,
                  out=list(bounds))
    if done.returncode == 0:
        with open(path, encoding="utf-8") as file:
            record = json.load(file)
        errors = {r["name"]: r["relative_error"] for r in record["rungs"]}
        check("bench fhd: errors", errors.keys() == bounds.keys() and all(0 < errors[n] <= bounds[n] for n in bounds), errors)
        check("bench fhd: record", record["matrix"] == [12, 9, 10] and record["samples"] == 300 and record["date"] and
              record["machine"]["processor"] and all(r["pairs_per_second"] > 0 for r in record["rungs"]), record)
    expect("bench names", ["bench"], 0, out=["fhd", "quality"])
    expect("bench of no such name", ["bench", "fdh"], 2, err=["'fdh'", "'fhd'"])
    expect("bench fhd of no backend", ["bench", "fhd", "--backend", "gpu"], 1, err=["gpu"])
    expect("nothing to tune on a host", ["tune", "--backend", "host"], 1, err=["host", "nothing to tune"])
    expect("tune of no matrix", ["tune", "--matrix", "128"], 2, err=["128"])
    expect("bench fhd of no matrix", ["bench", "fhd", "--matrix", "12,9"], 2, err=["12,9"])


def stop_while_waiting(scratch):
    """Ctrl-C before the first byte of a stream has come: nothing was written, and nothing is left."""
    out = os.path.join(scratch, "stopped")
    with subprocess.Popen([FORNIX, "run", "gridding", "-", "-o", out], stdin=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=ENVIRONMENT) as process:
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        try:
            _, said = process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            said = b"it did not stop"
        check("Ctrl-C on an empty pipe", process.returncode == 130 and b"stopped" in said and not os.path.exists(out), said)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        verbs()
        names()
        pages(scratch)
        bad_pipelines(scratch)
        benches(scratch)
        scan = os.path.join(scratch, "scan.h5")
        made = call("phantom", "shepp-logan", "--trajectory", "radial", "--matrix", "64,64,1", "--coils", "2", "-o", scan)
        check("a scan to work on", made.returncode == 0, made.stderr)
        if made.returncode == 0:
            records(scratch, scan)
            terminal(scratch, scan)
        stop_while_waiting(scratch)
    print(f"{len(failures)} failures")
    return 1 if failures else 0


sys.exit(main())
