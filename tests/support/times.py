#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the times of a build tree: the seconds of the tests by rung, the slowest tests and sources. Then the
last lines of the tests that failed, because a CI system often shows only the end of a long log.

    times.py BUILD_FOLDER [--over SECONDS]

--over: every source that took longer, and nothing else. In build/dev (cmake --preset dev) each source is compiled
alone; in build/release several are one translation unit.

Reads tests.xml, which `./rnicsim test` has ctest write, and .ninja_log. Wall seconds: tests and compilers run beside
one another, so the sums are larger than what a run takes.
"""
import argparse
import collections
import pathlib
import xml.etree.ElementTree

SHOWN = 10
FAILURES_SHOWN = 5
LINES_OF_FAILURE = 20


def test_cases(file):
    """Empty: the file is missing, or ctest was stopped while it wrote the file."""
    try:
        return list(xml.etree.ElementTree.parse(file).getroot().iter("testcase"))
    except (OSError, xml.etree.ElementTree.ParseError):
        return []


def source_seconds(log):
    """Seconds by object file, in the build that made the object last."""
    seconds = {}
    try:
        lines = log.read_text().splitlines()
    except OSError:
        return seconds
    for line in lines:
        fields = line.split("\t")
        if len(fields) == 5 and fields[3].endswith((".o", ".gch")) and (log.parent / fields[3]).exists():
            seconds[fields[3]] = (int(fields[1]) - int(fields[0])) / 1000
    return seconds


def show(title, seconds, shorten, most=SHOWN):
    if not seconds:
        return
    print(f"\n{title}, {sum(seconds.values()):.0f} s in all:")
    for name, value in sorted(seconds.items(), key=lambda item: -item[1])[:most]:
        print(f"{value:8.1f} s  {shorten(name)}")


def show_failures(cases):
    failed = [case for case in cases if case.get("status") == "fail"]
    for case in failed[:FAILURES_SHOWN]:
        print(f"\n{case.get('name')} failed:")
        for line in (case.findtext("system-out") or "").rstrip().splitlines()[-LINES_OF_FAILURE:]:
            print(f"  {line}")
    if len(failed) > FAILURES_SHOWN:
        print(f"\n{len(failed) - FAILURES_SHOWN} more tests failed: see above")


def source_name(name):
    return name.replace("CMakeFiles/", "").replace(".dir/", ": ").removesuffix(".o")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=pathlib.Path, metavar="BUILD_FOLDER")
    parser.add_argument("--over", type=float, metavar="SECONDS")
    options = parser.parse_args()
    tree = options.tree
    if options.over is not None:
        sources = source_seconds(tree / ".ninja_log")
        over = {name: value for name, value in sources.items() if value > options.over}
        show(f"{len(over)} of {len(sources)} sources over {options.over:g} s", over, source_name, len(over))
        return
    cases = test_cases(tree / "tests.xml")
    tests = {case.get("name"): float(case.get("time")) for case in cases}
    rungs = collections.Counter()
    for name, value in tests.items():
        rungs[name.split(".")[0]] += value
    show("tests by rung", rungs, str)
    show("the dearest tests", tests, str)
    show("the dearest sources to compile", source_seconds(tree / ".ninja_log"), source_name)
    show_failures(cases)


main()
