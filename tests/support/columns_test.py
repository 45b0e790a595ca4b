#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No line of the sources is longer than 120 columns.

usage: columns_test.py ROOT
"""

import pathlib
import subprocess
import sys

COLUMNS = 120
NAMES = ("CMakeLists.txt", "rnicsim", "packages")
ENDINGS = (".c", ".cmake", ".cpp", ".h", ".map", ".py", ".sh", ".sv", ".toml", ".vlt")


def is_source(path):
    return path.name in NAMES or path.suffix in ENDINGS


def long_lines(name, text):
    return [f"{name}:{number}: {len(line)} columns"
            for number, line in enumerate(text.split("\n"), 1) if len(line) > COLUMNS]


def sources(root):
    """Files that git tracks and new files; without git, all files outside build/ and hidden folders."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", "-z"], capture_output=True)
    if listed.returncode == 0:
        paths = [root / name for name in listed.stdout.decode().split("\0") if name]
    else:
        paths = [path for path in root.rglob("*")
                 if not any(part.startswith(".") or part == "build" for part in path.relative_to(root).parts)]
    return sorted(path for path in paths if is_source(path) and path.is_file() and not path.is_symlink())


def self_test():
    assert is_source(pathlib.Path("rtl/requester.sv")) and is_source(pathlib.Path("rnicsim"))
    assert not is_source(pathlib.Path("README.md")) and not is_source(pathlib.Path("traces/a.pcap"))
    assert long_lines("a", "x" * 120 + "\n" + "é" * 120) == []
    assert long_lines("a", "x\n" + "x" * 121) == ["a:2: 121 columns"]


def main(arguments):
    self_test()
    root = pathlib.Path(arguments[0]).resolve()
    files = sources(root)
    assert len(files) > 100, f"only {len(files)} sources in {root}"
    found = [line for path in files for line in long_lines(path.relative_to(root), path.read_text(errors="replace"))]
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
