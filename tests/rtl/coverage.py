#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Coverage of rtl/ by its tests. Builds each module with Verilator's coverage, runs the module's tests, and prints, for
each file and in total, the share of covered lines (blocks and branches) and of covered signal bits (to 1, and to 0).

usage: coverage.py path/to/project [path/to/annotated/sources]

Needs verilator, g++, GoogleTest and the libraries of the simulator.

Exit status 0: at least nine of ten lines were covered.
"""
import collections
import pathlib
import shutil
import subprocess
import sys
import tempfile

import verilated_modules

ENOUGH = 0.90
# Not split: a split block samples coverage at another time. Unsplit blocks can look like loops (UNOPTFLAT).
ARGUMENTS = ["--coverage-line", "--coverage-toggle", "--coverage-user", "-fno-split", "-Wno-UNOPTFLAT"]


def merge(to, files):
    subprocess.run(["verilator_coverage", "--write", str(to), *map(str, files)], check=True, stdout=subprocess.DEVNULL)
    return to


def collect(project, folder):
    """Runs the tests of all modules; returns the merged coverage file."""
    files = []
    for module in verilated_modules.MODULES:
        bench = verilated_modules.Bench(project, module, folder / module, ARGUMENTS, ["VM_COVERAGE=1"])
        data = folder / f"{module}_data"
        data.mkdir()
        passed, text = verilated_modules.passes(bench.build(project / "rtl", "build"), timeout=600,
                                                RNICSIM_COVERAGE=str(data))
        if not passed:
            sys.exit(f"{module}: its test fails:\n{text}")
        # Merges the many files of each module before those of all modules.
        merged = folder / f"{module}.dat"
        merge(merged, data.glob("*.dat"))
        shutil.rmtree(data)
        files.append(merged)
    return merge(folder / "total.dat", files)


def points(path):
    """(kind, file, line, column, description) of each point -> hits, summed over all instances."""
    counts = collections.Counter()
    for line in path.read_text().splitlines():
        if not line.startswith("C '"):
            continue
        body, count = line[3:].rsplit("' ", 1)
        fields = dict(part.split("\2", 1) for part in body.split("\1") if part)
        kind = fields["page"].split("/")[0].removeprefix("v_")
        file = pathlib.Path(fields["f"]).name
        counts[kind, file, int(fields["l"]), int(fields["n"]), fields.get("o", "")] += int(count)
    return counts


def share(counts):
    met = sum(count > 0 for count in counts)
    return f"{met:5} of {len(counts):5} {100 * met / max(len(counts), 1):6.1f} %"


def main():
    for tool in ("verilator", "verilator_coverage"):
        if shutil.which(tool) is None:
            print(f"{tool} is not installed")
            return verilated_modules.SKIP
    project = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as top:
        total = collect(project, pathlib.Path(top))
        counts = points(total)
        if len(sys.argv) > 2:
            subprocess.run(["verilator_coverage", "--annotate", sys.argv[2], "--annotate-min", "1", str(total)],
                           check=True)
    tables = {}
    for kinds in (("line", "branch"), ("toggle",)):
        of_file = collections.defaultdict(list)
        for (kind, file, *_), count in counts.items():
            if kind in kinds and not file.endswith("_sva.sv"):
                of_file[file].append(count)
        tables[kinds[0]] = of_file
    print(f"{'':20}{'lines':^24}   {'bits toggled':^24}")
    for file in sorted(tables["line"].keys() | tables["toggle"].keys()):
        print(f"{file:20}{share(tables['line'][file]):>24}   {share(tables['toggle'][file]):>24}")
    lines, toggles = ([count for of_file in tables[kind].values() for count in of_file] for kind in ("line", "toggle"))
    print(f"{'in all':20}{share(lines):>24}   {share(toggles):>24}")
    for (kind, file, line, _, what), count in sorted(counts.items(), key=lambda point: point[0][1:]):
        if count == 0 and (kind == "user" or (kind in ("line", "branch") and not file.endswith("_sva.sv"))):
            print(f"never met: {file}:{line} {what}")
    return 0 if sum(count > 0 for count in lines) >= ENOUGH * len(lines) else 1


if __name__ == "__main__":
    sys.exit(main())
