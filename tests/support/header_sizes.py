#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many lines a compiler reads for the headers that many sources include: keeps the build fast.

    header_sizes.py [--compiler g++] [--root FOLDER] [--all]

Fails when a header of the table below has grown beyond its limit. --all prints every header of the tree instead, the
largest first, in lines after the preprocessor. A limit is raised only when what makes the header grow cannot be
declared in advance or moved into a source (CONTRIBUTING.md, Build time).
"""
import argparse
import pathlib
import re
import subprocess
import sys

FLAGS = ["-std=c++20", "-x", "c++", "-E", "-P", "-DSC_CPLUSPLUS=201703L", "-DSC_INCLUDE_DYNAMIC_PROCESSES",
         "-DFMT_SHARED", "-DSPDLOG_COMPILED_LIB", "-DSPDLOG_FMT_EXTERNAL", "-DSPDLOG_SHARED_LIB"]
# <systemc> has 67,000 lines, <tlm> 72,000, <gtest/gtest.h> 73,000.
LIMITS = {
    "model/nic/nic.h": 92_000,
    "model/nic/nic_params.h": 46_000,
    "model/nic/nic_counters.h": 46_000,
    "sim/config/config.h": 75_000,
    "sim/system.h": 94_000,
    "sim/adapter.h": 87_000,
    "sim/observers.h": 76_000,
    "sim/results/json.h": 28_000,
    "sim/recording/recorder.h": 107_000,
    "tests/support/two_hosts.h": 77_000,
}


def lines(compiler, root, header):
    result = subprocess.run([compiler, *FLAGS, f"-I{root}", str(root / header)], capture_output=True, text=True,
                            check=False)
    if result.returncode != 0:
        sys.exit(f"{header}: the preprocessor failed\n{result.stderr}")
    return result.stdout.count("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    if options.all:
        headers = [p.relative_to(options.root) for room in ("model", "rtl", "verbs", "sim", "tests")
                   for p in (options.root / room).rglob("*.h") if not re.search(r"/abi/c/|tests/library/", str(p))]
        counts = [(lines(options.compiler, options.root, header), str(header)) for header in headers]
        for count, header in sorted(counts, reverse=True):
            print(f"{count:8} {header}")
        return 0
    wrong = 0
    for header, limit in LIMITS.items():
        count = lines(options.compiler, options.root, header)
        if count > limit:
            wrong += 1
        print(f"{count:8} of {limit:8} lines {header}{'  TOO MANY' if count > limit else ''}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
