# SPDX-License-Identifier: MIT
"""`fornix check` of raw scans: test scans with a known fault, real files, and what is no scan."""
import os
import subprocess
import sys
import tempfile

FORNIX = os.environ["FORNIX"]
DATA = os.environ["FORNIX_DATA"]


def check(*arguments):
    done = subprocess.run([FORNIX, "check", *arguments], capture_output=True, text=True)
    verdicts = {}
    for line in done.stdout.splitlines():
        for word in ("ok", "warning", "refusal", "cannot be told"):
            if line.startswith(word.ljust(14) + " "):
                verdicts.setdefault(line[15:27].strip(), []).append(word)
    return done.returncode, verdicts, done.stdout + done.stderr


def phantoms(folder):
    scan = os.path.join(folder, "scan.mrd")
    cases = [
        ([], {"density": "ok", "centre": "ok", "trajectory": "ok"}),
        (["-t", "radial"], {"units": "ok", "sign": "cannot be told", "density": "ok", "edge": "ok", "blur": "ok"}),
        (["-t", "radial", "--readouts", "12"], {"density": "warning"}),
        (["--partial-fourier", "0.6"], {"density": "warning"}),
        (["-t", "spiral", "--readouts", "2", "--dwell-us", "20"], {"blur": "warning"}),
        (["-t", "radial", "--no-trajectory", "--no-flags", "--no-limits", "--fov-mm", "0,0,0"],
         {"trajectory": "warning", "frames": "warning", "geometry": "warning"}),
        (["--coils", "2"], {"noise": "warning"}),
        (["--coils", "2", "--noise-readouts", "1", "--noise", "0.1"], {"noise": "ok"}),
        (["--stream", "-t", "radial"], {"units": "ok"}),
        (["-t", "radial3d", "--matrix", "16,16,16"], {"third column": "ok", "density": "ok"}),
    ]
    for options, expected in cases:
        options = options if "--matrix" in options else options + ["--matrix", "32,32,1"]
        subprocess.run([FORNIX, "phantom", "shepp-logan", "--no-truth", "-o", scan, *options], check=True,
                       stdout=subprocess.DEVNULL)
        code, verdicts, text = check(scan)
        assert code == 0, text
        for aspect, word in expected.items():
            assert verdicts.get(aspect) == [word], (options, aspect, text)
    code, _, text = check(scan, "--set", "cg.iterations=3")
    assert code == 2 and "--set" in text, text
    code, _, text = check("iterative", "--group", "x")
    assert code == 2 and "--group" in text, text
    code, _, text = check("iterative")
    assert code == 0, text
    note = os.path.join(folder, "note.h5")
    with open(note, "w", encoding="utf-8") as file:
        file.write("no scan\n")
    code, _, text = check(note)
    assert code == 1 and "looks like text" in text, text


REAL = {
    "recon/spiral_phantom_8ch.h5": (0, {"units": "ok", "density": "ok", "noise": "warning"}),
    "recon/spiral_acr_5slices.h5": (0, {"edge": "warning", "density": "ok"}),
    "recon/mriq_32.h5": (0, {"density": "warning", "third column": "ok"}),
    "recon/mriq_64.h5": (0, {"density": "warning"}),
    "recon/bonn_spiralout_clean.h5": (0, {"blur": "cannot be told", "geometry": "warning"}),
    "recon/bonn_spiralout_susceptibility.h5": (0, {"units": "ok"}),
    "recon/mrireco_brain_sim.h5": (0, {"trajectory": "warning", "geometry": "warning", "frames": "warning", "blur": "warning"}),
    "recon/koma_epi.mrd": (0, {"geometry": "warning"}),  # a field of view in metres
    "recon/koma_spiral.h5": (1, {}),                     # JEMRIS's own format
    "recon/bonn_spiralout_clean_reference.h5": (1, {}),  # images
    "odd/spiralout_gre_jemris.h5": (0, {"numbers": "warning"}),
    "odd/gre_b0mapping_4e1a6.h5": (1, {}),               # readouts without samples
}


def real_files():
    seen = 0
    for name, (code, expected) in REAL.items():
        path = os.path.join(DATA, name)
        if not os.path.exists(path):
            print(f"skip: no {path}")
            continue
        seen += 1
        got, verdicts, text = check(path)
        assert got == code, (name, got, text)
        for aspect, word in expected.items():
            assert verdicts.get(aspect) == [word], (name, aspect, text)
    for folder in ("recon", "odd"):
        for name in sorted(os.listdir(os.path.join(DATA, folder))) if os.path.isdir(os.path.join(DATA, folder)) else []:
            if name.endswith((".h5", ".mrd")) and f"{folder}/{name}" not in REAL:
                print(f"note: {folder}/{name} is not among the files this test knows")
    return seen


def main():
    with tempfile.TemporaryDirectory() as folder:
        phantoms(folder)
    print(f"{real_files()} real files looked at")
    return 0


if __name__ == "__main__":
    sys.exit(main())
