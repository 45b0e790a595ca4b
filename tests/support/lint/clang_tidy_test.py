#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy with the checks of .clang-tidy over the C++ sources of some folders, with the compiler's flags of a
build tree. Sources that the build joins into one unit are checked as one unit, too: headers take most of the time.

usage: clang_tidy_test.py ROOT BUILD FOLDER...
"""

import collections
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

TOOL = "clang-tidy"
FAULTY = "int f(bool b) { if (b) return 1; else if (b) return 1; return 0; }\n"
# Flags of GCC that clang does not know, and headers that the build precompiles.
LEFT_OUT = re.compile(r"-Winvalid-pch|--param=.*|-fno-semantic-interposition|-fmacro-prefix-map=.*|-f(no-)?lto.*")
# Clang 14 cannot parse some ranges of libstdc++ 12 and some of C++20: aggregates from parentheses, structured bindings
# in lambdas. GCC compiles the tree, so these errors are only counted. A missing header is a fault.
UNPARSED = re.compile(r"(?!.*file not found).*\[clang-diagnostic-error\]$")


def flags_of(entry):
    """The preprocessor's and the language's flags of a compile command."""
    words = iter(shlex.split(entry["command"])[1:])
    flags = []
    for word in words:
        if word in ("-o", "-c", "-include"):
            next(words)
        elif not LEFT_OUT.fullmatch(word):
            flags.append(word)
    return flags


def sources_of(entry):
    """The sources of a compile command: those that a joined source includes, or its single source."""
    file = pathlib.Path(entry["directory"], entry["file"])
    if "/Unity/" not in str(file):
        return [file]
    return [pathlib.Path(path) for path in re.findall(r'^#include "(/.*)"$', file.read_text(), re.MULTILINE)]


def units(root, build, folders):
    """Pairs of flags and sources: each source of the folders once."""
    known = set()
    for entry in json.loads((build / "compile_commands.json").read_text()):
        chosen = []
        for source in sources_of(entry):
            try:
                path = source.relative_to(root)
            except ValueError:
                continue
            if (path.suffix == ".cpp" and str(path) not in known and not source.is_relative_to(build)
                    and any(path.is_relative_to(folder) for folder in folders)):
                known.add(str(path))
                chosen.append(source)
        if chosen:
            yield flags_of(entry), chosen


def check(root, flags, sources):
    """The diagnostics of one unit: a set, because a header is read by several units."""
    with tempfile.TemporaryDirectory() as folder:
        joined = pathlib.Path(folder, "joined.cpp")
        joined.write_text("".join(f'#include "{source}"\n' for source in sources))
        done = subprocess.run(
            [TOOL, "--quiet", f"--config-file={root}/.clang-tidy", "--warnings-as-errors=*",
             f"--header-filter=^{re.escape(str(root))}/(model|verbs|sim|rtl|tests)/", str(joined), "--", *flags],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    found = {line for line in done.stdout.splitlines() if re.search(r": (warning|error): .*\]$", line)}
    if done.returncode != 0 and not found:
        found = {f"{sources[0]}: {TOOL} ended with status {done.returncode}"}
    return found


def finds_a_fault(root):
    with tempfile.TemporaryDirectory() as folder:
        faulty = pathlib.Path(folder, "faulty.cpp")
        faulty.write_text(FAULTY)
        command = [TOOL, "--quiet", f"--config-file={root}/.clang-tidy", "--warnings-as-errors=*", str(faulty), "--"]
        return subprocess.run(command, capture_output=True, check=False).returncode != 0


def main(arguments):
    if len(arguments) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    root, build = (pathlib.Path(path).resolve() for path in arguments[:2])
    if not shutil.which(TOOL):
        print(f"{TOOL} is not installed: cmake/packages, section [test]")
        return 1
    if not finds_a_fault(root):
        print(f"{TOOL} finds no fault in {FAULTY!r}")
        return 1
    found, count = set(), 0
    for flags, sources in units(root, build, arguments[2:]):
        new = check(root, flags, sources) - found
        for line in sorted(line for line in new if not UNPARSED.match(line)):
            print(line.replace(f"{root}/", ""), flush=True)
        found |= new
        count += len(sources)
    faults = [line for line in found if not UNPARSED.match(line)]
    checks = collections.Counter(re.search(r"\[([^\],]*)", line)[1] for line in faults if line.endswith("]"))
    for name, number in checks.most_common():
        print(f"{number:6} {name}")
    print(f"{count} sources, {len(found) - len(faults)} errors of clang's parser")
    return 1 if faults or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
