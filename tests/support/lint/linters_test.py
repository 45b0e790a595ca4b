#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a linter over all sources of its language: shellcheck over shell scripts, pyflakes over Python, clang-format
over C++. The linter is required; first it must find a fault in a small file.

usage: linters_test.py shellcheck|pyflakes|clang-format ROOT
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import typing

from sources import read_sources

class Linter(typing.NamedTuple):
    command: list
    kind: str  # of the sources: sources.py
    suffixes: tuple  # of the sources' names; empty: any
    faulty: str  # a source with a fault


LINTERS = {
    "shellcheck": Linter(["shellcheck"], "shell", (), "#!/bin/sh\necho $1\n"),
    "pyflakes": Linter(["pyflakes3"], "python", (), "import os\n"),
    # C sources have the style of Linux.
    "clang-format": Linter(["clang-format", "--dry-run", "-Werror"], "c", (".cpp", ".h"), "int  a;\n"),
}


def main(arguments):
    if len(arguments) != 2 or arguments[0] not in LINTERS:
        print(__doc__, file=sys.stderr)
        return 2
    linter = LINTERS[arguments[0]]
    if not shutil.which(linter.command[0]):
        print(f"{linter.command[0]} is not installed: cmake/packages, section [test]")
        return 1
    suffix = linter.suffixes[0] if linter.suffixes else ""
    with tempfile.NamedTemporaryFile("w", prefix="faulty_", suffix=suffix) as file:
        file.write(linter.faulty)
        file.flush()
        if subprocess.run([*linter.command, file.name], capture_output=True).returncode == 0:
            print(f"{linter.command[0]} finds no fault in {linter.faulty!r}")
            return 1
    root = pathlib.Path(arguments[1])
    files = [path for path, kind, _ in read_sources(root)
             if kind == linter.kind and path.endswith(linter.suffixes or "")]
    status = subprocess.run([*linter.command, *files], cwd=root).returncode
    print(f"{len(files)} files")
    # Few files: the path is wrong.
    return 0 if status == 0 and len(files) > 5 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
