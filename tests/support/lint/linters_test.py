#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a linter over all sources of its language: shellcheck over shell scripts, pyflakes over Python. The linter is
required; first it must find a fault in a small file.

usage: linters_test.py shellcheck|pyflakes ROOT
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

from sources import read_sources

# For each linter: the command, the language of its files, and a source with a fault.
LINTERS = {
    "shellcheck": (["shellcheck"], "shell", "#!/bin/sh\necho $1\n"),
    "pyflakes": (["pyflakes3"], "python", "import os\n"),
}


def main(arguments):
    if len(arguments) != 2 or arguments[0] not in LINTERS:
        print(__doc__, file=sys.stderr)
        return 2
    command, language, faulty = LINTERS[arguments[0]]
    if not shutil.which(command[0]):
        print(f"{command[0]} is not installed: cmake/packages, section [test]")
        return 1
    with tempfile.NamedTemporaryFile("w", prefix="faulty_") as file:
        file.write(faulty)
        file.flush()
        if subprocess.run([*command, file.name], stdout=subprocess.DEVNULL).returncode == 0:
            print(f"{command[0]} finds no fault in {faulty!r}")
            return 1
    root = pathlib.Path(arguments[1])
    files = [path for path, kind, _ in read_sources(root) if kind == language]
    status = subprocess.run([*command, *files], cwd=root).returncode
    print(f"{len(files)} files")
    # Few files: the path is wrong.
    return 0 if status == 0 and len(files) > 5 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
