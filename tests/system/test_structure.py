# SPDX-License-Identifier: MIT
"""What the tree promises of itself: who includes whom, headers that stand alone, plugins that export one symbol,
files of a readable length, documents that name what exists, pipelines that are tested."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = os.environ["FORNIX_SOURCE"]
BUILD = os.environ["FORNIX_BUILD"]
FILE_LINES = 500
FUNCTION_LINES = 80  # the aim is 60; a switch over kinds may need a little more
failures = []


def fail(text):
    failures.append(text)
    print("FAIL:", text)


def files(*endings):
    for folder, subfolders, names in os.walk(SOURCE):
        subfolders[:] = sorted(s for s in subfolders if not s.startswith((".git", "build", "demo-out", "__pycache__")))
        for name in sorted(names):
            if name.endswith(endings):
                yield os.path.relpath(os.path.join(folder, name), SOURCE)


def read(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
        return file.read()


# ---- who may include whom -------------------------------------------------------------------------------------------

LIBC = re.compile(r"^(sys/|arpa/|netinet/)?[a-z0-9_]+\.h$")
GLIB = re.compile(r"^(glib|gmodule|gio/|glib/)")
# folder: (folders of this tree, other libraries' headers); libc and <fornix/...> are open to all
RULES = {
    "include/fornix": ([], [re.compile("^ismrmrd/")]),
    "stream": (["stream"], [GLIB]),
    "xml": (["xml", "stream"], [GLIB, re.compile("^libxml/")]),
    "io": (["io", "stream"], [GLIB, re.compile(r"^(ismrmrd/|hdf5|H5|nifti/|cairo|zlib\.h|json-glib/)")]),
    "serve": (["serve", "io", "xml", "stream"], [GLIB, re.compile(r"^(json-glib/|systemd/|ismrmrd/)")]),
    # small dense problems (coils by coils) and digests need no backend
    "recon": (["recon"], [re.compile(r"^(cblas\.h|lapacke\.h|glib\.h)$")]),
    # gradients, fits, metrics, fibres: the same
    "diffusion": (["diffusion"], [re.compile(r"^(lapacke\.h|glib\.h)$")]),
    "host": (["host"], [re.compile(r"^(fftw3\.h|cblas\.h|lapacke\.h|immintrin\.h)$")]),
    "cuda": (["cuda"], [re.compile(r"^(cuda_runtime\.h|cufft\.h|cub/.*|cmath|mutex|new|vector)$")]),
    "gadgets": ([], [re.compile("^ismrmrd/")]),
    "docs/example-gadget": ([], []),
}
LIBRARIES = re.compile(r"^(zlib|hdf5|fftw3|cblas|lapacke|glib|gmodule|cairo|cairo-.*|png|immintrin|znzlib)\.h$")


def home(path):
    """The rule's folder that a file belongs to, longest first: host/kernels is host's."""
    return next((rule for rule in sorted(RULES, key=len, reverse=True) if path.startswith(rule + "/")), None)


def check_includes():
    seen = 0
    for path in files(".c", ".h", ".cu", ".cuh"):
        rule = home(path)
        if rule is None:
            continue
        folders, libraries = RULES[rule]
        for quote, name in re.findall(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', read(path), re.M):
            seen += 1
            if quote == '"':
                beside = os.path.normpath(os.path.join(os.path.dirname(path), name))
                target = beside if os.path.exists(os.path.join(SOURCE, beside)) else name
                if rule == "gadgets" or not any(target.startswith(f + "/") for f in folders):
                    fail(f"{path} includes \"{name}\": {rule}/ may include of this tree only: "
                         + ", ".join(["<fornix/...>"] + [f + "/" for f in folders]))
            elif not (name.startswith("fornix/") or any(p.match(name) for p in libraries)
                      or (LIBC.match(name) and not LIBRARIES.match(name))):
                fail(f"{path} includes <{name}>, which {rule}/ may not")
    if seen < 50:
        fail(f"only {seen} includes were looked at: the check itself is broken")


def check_headers_alone():
    compilers = [(c, "c", "-std=c11") for c in ("gcc", "clang")] + [(c, "c++", "-std=c++17") for c in ("g++", "clang++")]
    headers = [p for p in files(".h") if p.startswith("include/")]
    with tempfile.TemporaryDirectory() as scratch:
        for compiler, language, standard in compilers:
            if shutil.which(compiler) is None:
                print(f"skip: no {compiler}, so the public headers were not tried with it")
                continue
            for header in headers:
                unit = os.path.join(scratch, "unit")
                with open(unit, "w", encoding="utf-8") as file:
                    name = header[len("include/"):]
                    file.write(f"#include <{name}>\n#include <{name}>\nint fornix_header_alone;\n")
                done = subprocess.run([compiler, "-x", language, standard, "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic",
                                       "-Werror", "-I" + os.path.join(SOURCE, "include"), unit],
                                      stderr=subprocess.PIPE, text=True, check=False)
                if done.returncode:
                    fail(f"{header} does not compile alone with {compiler} {standard}:\n{done.stderr}")


# ---- what was built -------------------------------------------------------------------------------------------------

def check_exports():
    folder = os.path.join(BUILD, "lib", "fornix")
    if not os.path.isdir(folder):
        fail(f"no plugins in {folder}")
        return
    plugins = sorted(n for n in os.listdir(folder) if n.endswith(".so"))
    sources = sorted(os.path.basename(p)[:-2] + ".so" for p in files(".c") if p.startswith("gadgets/"))
    if plugins != sources:
        fail(f"plugins built ({plugins}) are not the gadgets' sources ({sources})")
    for plugin in plugins:
        table = subprocess.run(["nm", "-D", "--defined-only", os.path.join(folder, plugin)], stdout=subprocess.PIPE,
                               text=True, check=True).stdout
        symbols = [line.split()[-1] for line in table.splitlines()]
        if symbols != ["fx_plugin"]:
            fail(f"{plugin} exports {symbols}, not fx_plugin alone")


# ---- text -----------------------------------------------------------------------------------------------------------

def check_lengths():
    for path in files(".c", ".h", ".py", ".sh", "bootstrap", ".cmake", "CMakeLists.txt"):
        lines = read(path).splitlines()
        if len(lines) > FILE_LINES:
            fail(f"{path} has {len(lines)} lines; {FILE_LINES} is the most: split it")
        start = None
        for number, line in enumerate(lines, 1):
            if not path.endswith(".c"):
                break
            if line == "{":
                start = number
            elif line == "}" and start:
                if number - start > FUNCTION_LINES:
                    fail(f"{path}:{start}: a function of {number - start} lines; {FUNCTION_LINES} is the most")
                start = None


def check_marks():
    word = "TO" + "DO"
    for path in files(".c", ".h", ".py", ".sh", ".md", ".xml", ".cmake", "bootstrap", "CMakeLists.txt"):
        text = read(path)
        if re.search(rf"\b({word}|FIX" + r"ME|X" + r"XX)\b", text):
            fail(f"{path} has a {word}: do it, or leave it out")
        if path.endswith((".c", ".h", ".py", ".sh")) and "SPDX-License-Identifier: MIT" not in text[:200]:
            fail(f"{path} does not open with its SPDX line")


def check_documents():
    """Links, and names in backticks that begin with a folder or file of this tree, must exist."""
    top = {n for n in os.listdir(SOURCE) if not n.startswith(("build", "demo-out"))} - {".git"}
    seen = 0
    for path in files(".md"):
        text = re.sub(r"```.*?```", "", read(path), flags=re.S)
        for link in re.findall(r"\]\(([^)#\s]+)", text):
            if re.match(r"[a-z]+:", link):
                continue
            seen += 1
            if not os.path.exists(os.path.join(SOURCE, os.path.dirname(path), link)):
                fail(f"{path} links to {link}, which is not there")
        for name in re.findall(r"`([A-Za-z0-9_.][A-Za-z0-9_./-]*)`", text):
            if name.split("/")[0] in top and "/" in name and "NAME" not in name:
                seen += 1
                if not os.path.exists(os.path.join(SOURCE, name)):
                    fail(f"{path} names {name}, which is not there")
    if seen == 0:
        fail("no path was found in any document: the check itself is broken")


def check_pipelines():
    tests = {p: read(p) for p in files(".c", ".py", ".sh") if p.startswith("tests/")}
    names = [os.path.basename(p) for p in files(".xml") if p.startswith("pipelines/")]
    if not names:
        fail("pipelines/ is empty")
    for name in names:
        word = re.compile(rf'["\' /]{re.escape(name[:-4])}(\.xml)?["\' \n]')
        if not any(word.search(text) for path, text in tests.items() if not path.endswith("test_structure.py")):
            fail(f"pipelines/{name} is named in no test")
        if not re.match(r"\s*(<\?xml[^>]*>\s*)?<!--", read("pipelines/" + name)):
            fail(f"pipelines/{name} does not open with a comment that says what it is for")


def check_example():
    """The tutorial's listing is the file that the install test builds."""
    listing = read("docs/example-gadget/apodise.c")
    if "```c\n" + listing + "```" not in read("docs/writing-a-gadget.md"):
        fail("docs/writing-a-gadget.md does not show docs/example-gadget/apodise.c as it is")


for check in (check_includes, check_headers_alone, check_exports, check_lengths, check_marks, check_documents,
              check_pipelines, check_example):
    check()
print(f"{len(failures)} broken promises" if failures else "the tree keeps its promises")
sys.exit(1 if failures else 0)
