#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No modules include one another in a circle. A module is a header with its source: the files of one path, without
its suffix.

usage: circles_test.py ROOT | --self-test
"""

import pathlib
import re
import sys
import tempfile

TOP_FOLDERS = ("model", "rtl", "verbs", "sim", "tests")
SUFFIXES = {".h", ".c", ".cpp"}
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+\.(?:h|c|cpp))"')


def module_of(path):
    return path.rpartition(".")[0]


def read_includes(root):
    """The modules below `root`, and {module: {included module: [(file, line, include)]}}."""
    files = [file for top in TOP_FOLDERS for file in sorted((root / top).rglob("*"))
             if file.suffix in SUFFIXES and file.is_file()]
    modules = {module_of(file.relative_to(root).as_posix()) for file in files}
    includes = {module: {} for module in modules}
    for file in files:
        path = file.relative_to(root).as_posix()
        for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
            match = INCLUDE.match(line)
            target = module_of(match[1]) if match else None
            if target in modules and target != module_of(path):
                includes[module_of(path)].setdefault(target, []).append((path, number, match[1]))
    return includes


def reachable(includes, start):
    seen = set()
    ahead = [start]
    while ahead:
        for target in includes[ahead.pop()]:
            if target not in seen:
                seen.add(target)
                ahead.append(target)
    return seen


def find_circles(includes):
    """The strongly connected components with more than one module, each a sorted list."""
    # A module that includes no module which is left is in no circle.
    left = dict(includes)
    while ends := [module for module in left if not any(target in left for target in left[module])]:
        for module in ends:
            del left[module]
    left = {module: [target for target in targets if target in left] for module, targets in left.items()}
    behind = {module: reachable(left, module) for module in left}
    return sorted({tuple(sorted(other for other in behind[module] if module in behind[other]))
                   for module in left if module in behind[module]})


def report(includes, circle):
    """A line with the modules of a circle, then one for each include between two of them."""
    found = [each for module in circle for target in circle for each in includes[module].get(target, [])]
    return [f"a circle of {len(circle)} modules: {' '.join(circle)}",
            *(f"{path}:{number}: includes {name}" for path, number, name in found)]


def check(root):
    """The number of modules below `root`, and the lines to print."""
    includes = read_includes(root)
    return len(includes), [report(includes, circle) for circle in find_circles(includes)]


def write_tree(root, files):
    for path, included in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("// a comment\n" + "".join(f"{line}\n" for line in included))


def self_test():
    """Small trees: the files with the lines of each, and the lines that are to be printed."""
    alone = {"sim/a.h": [], "sim/a.cpp": ['#include "sim/a.h"', '#include "sim/b.h"'], "sim/b.h": []}
    chain = alone | {"sim/c.cpp": ['#include "sim/a.h"', '#include "sim/b.h"'], "sim/c.h": []}
    pair = alone | {"sim/b.cpp": ["#include <vector>", '  #  include "sim/a.h"']}
    three = {"verbs/a.h": ['#include "verbs/b.h"'], "verbs/b.h": ['#include "verbs/c.h"'], "verbs/c.h": [],
             "verbs/c.c": ['#include "verbs/a.h"'], "verbs/d.cpp": ['#include "verbs/a.h"'], "verbs/e.h": [],
             "verbs/b.cpp": ['#include "verbs/e.h"']}
    of_pair = ["a circle of 2 modules: sim/a sim/b", "sim/a.cpp:3: includes sim/b.h",
               "sim/b.cpp:3: includes sim/a.h"]
    of_three = ["a circle of 3 modules: verbs/a verbs/b verbs/c", "verbs/a.h:2: includes verbs/b.h",
                "verbs/b.h:2: includes verbs/c.h", "verbs/c.c:2: includes verbs/a.h"]
    cases = [
        (alone, 2, []),
        (chain, 3, []),
        (pair, 2, [of_pair]),
        (three, 5, [of_three]),
        (pair | three, 7, [of_pair, of_three]),
        # Files with another suffix, and missing files, are no modules.
        (alone | {"sim/b.h": ['#include "sim/a.inc"', '#include "sim/gone.h"'], "sim/a.inc": []}, 2, []),
    ]
    failures = 0
    for files, modules, expected in cases:
        with tempfile.TemporaryDirectory() as folder:
            write_tree(pathlib.Path(folder), files)
            got = check(pathlib.Path(folder))
            if got != (modules, expected):
                failures += 1
                print(f"self-test: {files}: expected {(modules, expected)}, got {got}")
    print(f"{len(cases)} cases, {failures} failed")
    return failures == 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return 0 if self_test() else 1
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    modules, circles = check(pathlib.Path(sys.argv[1]))
    for lines in circles:
        print("\n".join(lines))
    print(f"{modules} modules, {len(circles)} circles")
    # No modules: the path is wrong.
    return 0 if modules and not circles else 1


if __name__ == "__main__":
    sys.exit(main())
