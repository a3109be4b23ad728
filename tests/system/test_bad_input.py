# SPDX-License-Identifier: MIT
"""What bad input gets: the documented exit code, a sentence that names what is wrong, and no product under a final name."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import h5py
import numpy as np

FORNIX = os.environ["FORNIX"]
PRODUCTS = {"images.h5", "image.nii.gz", "preview.png", "coil_maps.nii.gz"}
failures = []


def edit(source, target, change_records=None, change_header=None):
    """A copy of an MRD file whose records (a numpy array, changed in place or returned) or XML text are changed."""
    shutil.copy(source, target)
    with h5py.File(target, "r+") as file:
        group = file["dataset"]
        if change_records:
            kind, records = group["data"].dtype, group["data"][:]
            changed = change_records(records)
            records = records if changed is None else changed
            del group["data"]
            data = group.create_dataset("data", (len(records),), dtype=kind, maxshape=(None,), chunks=(max(len(records), 1),))
            if len(records):
                data[:] = records
        if change_header:
            kind, text = group["xml"].dtype, group["xml"][0]
            text = change_header(text.decode() if isinstance(text, bytes) else text)
            del group["xml"]
            group.create_dataset("xml", data=np.array([text], dtype=object), dtype=kind)


def expect(name, arguments, code, words, out=None, **options):
    """Runs fornix; it must exit with `code`, say every word, and leave no product in `out`."""
    done = subprocess.run([FORNIX, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300,
                          check=False, **options)
    said = done.stderr.strip()
    problems = []
    if done.returncode != code:
        problems.append(f"exit {done.returncode}, not {code}")
    problems += [f"does not say '{word}'" for word in words if word.lower() not in said.lower()]
    if any(noise in said for noise in ("CRITICAL", "GLib", "HDF5-DIAG", "Sanitizer", "core dumped", "(null)")):
        problems.append("a library speaks instead of Fornix")
    if out and os.path.isdir(out):
        left = sorted(n for n in os.listdir(out) if n in PRODUCTS or "image" in n or "preview" in n)
        if left:
            problems.append(f"left {left}")
    print(f"{'FAIL' if problems else 'ok  '} {name}: {said.splitlines()[-1] if said else '(silence)'}")
    failures.extend(f"{name}: {problem}" for problem in problems)
    for problem in problems:
        print("     ", problem)


def nan_sample(records):
    records["data"][len(records) // 2][7] = np.nan


def zero_trajectory(records):
    for record in records:
        record["traj"][:] = 0


def nan_trajectory(records):
    records["traj"][3][5] = np.nan


def other_coils(records):
    head = records["head"][len(records) // 2]
    n = int(head["number_of_samples"])
    coils = int(head["active_channels"]) - 1
    records["head"]["active_channels"][len(records) // 2] = coils
    records["data"][len(records) // 2] = records["data"][len(records) // 2][:2 * n * coils]


def short_record(records):
    records["data"][2] = records["data"][2][:-4]


def in_metres(records):
    """Trajectory in 1/m, which needs a field of view."""
    for record in records:
        record["traj"][:] *= 64 / 0.24


def no_field_of_view(text):
    for axis in "xyz":
        text = text.replace(f"<{axis}>240</{axis}>", f"<{axis}>0</{axis}>").replace(f"<{axis}>240.0</{axis}>", f"<{axis}>0</{axis}>")
    return text


def enormous(text):
    return text.replace("<x>64</x>", "<x>16000</x>").replace("<y>64</y>", "<y>16000</y>").replace("<z>1</z>", "<z>16000</z>")


def main():
    scratch = tempfile.mkdtemp()
    try:
        check(scratch)
    finally:
        shutil.rmtree(scratch)
    print(f"{len(failures)} failures")
    return 1 if failures else 0


def check(scratch):
    def path(name):
        return os.path.join(scratch, name)

    scan = path("scan.h5")
    subprocess.run([FORNIX, "phantom", "shepp-logan", "--trajectory", "radial", "--matrix", "64,64,1", "--fov-mm", "240,240,5",
                    "--coils", "4", "-o", scan], check=True, stdout=subprocess.DEVNULL)
    out = path("out")

    def bad(name, words, file=None, code=1, settings=(), **options):
        arguments = ["run", "iterative", file or path(name + ".h5"), "-o", out]
        for setting in settings:
            arguments += ["--set", setting]
        expect(name, arguments, code, words, out, **options)

    bad("no such file", ["nowhere.h5"], path("nowhere.h5"))
    bad("a folder", [os.path.basename(scratch)], scratch)
    with open(path("text.h5"), "w", encoding="utf-8") as file:
        file.write("this is no scan\n" * 100)
    bad("text", ["text.h5"])
    open(path("empty.h5"), "w", encoding="utf-8").close()
    bad("empty", ["empty.h5"])
    with open(scan, "rb") as file:
        whole = file.read()
    for name, share in (("truncated", 0.5), ("beheaded", 0.01)):
        with open(path(name + ".h5"), "wb") as file:
            file.write(whole[:int(len(whole) * share)])
        bad(name, [name + ".h5"])
    with h5py.File(path("stranger.h5"), "w") as file:
        file.create_group("something").create_dataset("values", data=np.arange(10))
    bad("stranger", ["stranger.h5"])
    edit(scan, path("none.h5"), lambda records: records[:0])
    bad("none", ["acquisition"])
    for name, change, words in (("nan", nan_sample, ["finite"]), ("zeros", zero_trajectory, ["trajectory"]),
                                ("nan_k", nan_trajectory, ["trajectory"]), ("coils", other_coils, ["coil"]),
                                ("short", short_record, ["sample"])):
        edit(scan, path(name + ".h5"), change)
        bad(name, words)
    edit(scan, path("fov.h5"), in_metres, no_field_of_view)
    bad("fov", ["field of view"], settings=["trajectory.unit=per_m"])
    edit(scan, path("huge.h5"), None, enormous)
    bad("huge", ["MB are available"], settings=["trajectory.unit=cycles_per_voxel"])
    edit(scan, path("xml.h5"), None, lambda text: text[:len(text) // 2])
    bad("xml", ["xml.h5"])

    # The call itself.
    expect("unknown verb", ["rnu"], 2, ["rnu", "run"])
    expect("unknown pipeline", ["run", "iterativ", scan, "-o", out], 2, ["iterativ", "iterative"], out)
    expect("unknown property", ["run", "iterative", scan, "-o", out, "--set", "cg.iteration=3"], 2, ["iterations"], out)
    expect("out of range", ["run", "iterative", scan, "-o", out, "--set", "cg.iterations=-3"], 2, ["iterations"], out)
    expect("no number", ["run", "iterative", scan, "-o", out, "--set", "cg.iterations=many"], 2, ["many"], out)
    expect("no input", ["run", "iterative"], 2, ["input"])

    # Where the products should go.
    expect("output under a file", ["run", "iterative", scan, "-o", os.path.join(scan, "out")], 1, ["scan.h5"])
    # A disk that is full midway, as a limit on the size of files: writes fail with EFBIG.
    expect("full disk", ["run", "iterative", scan, "-o", out], 1, [out], out,
           preexec_fn=lambda: (signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
                               __import__("resource").setrlimit(__import__("resource").RLIMIT_FSIZE, (4096, 4096))))

    # Ctrl-C in the middle of the work: an exact sum that would take minutes.
    slow = path("slow.h5")
    subprocess.run([FORNIX, "phantom", "shepp-logan", "--trajectory", "radial3d", "--matrix", "64,64,64", "--coils", "8", "-o", slow],
                   check=True, stdout=subprocess.DEVNULL)
    running = subprocess.Popen([FORNIX, "run", "direct", slow, "-o", out], stderr=subprocess.PIPE, text=True)
    time.sleep(1.5)
    running.send_signal(signal.SIGINT)
    started = time.monotonic()
    _, said = running.communicate(timeout=120)
    waited = time.monotonic() - started
    print(f"Ctrl-C: exit {running.returncode} after {waited:.1f} s: {said.strip().splitlines()[-1:]}")
    if running.returncode != 130:
        failures.append(f"Ctrl-C: exit {running.returncode}, not 130")
    if waited > 10:
        failures.append(f"Ctrl-C: {waited:.0f} s until it stopped")
    left = [n for n in os.listdir(out) if n in PRODUCTS or n.startswith(".")] if os.path.isdir(out) else []
    if left:
        failures.append(f"Ctrl-C left {left}")


sys.exit(main())
