#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Each test in skipped.txt skips itself on the RTL, with the listed reason, and passes on the C++ engine.

usage: skipped_test.py path/to/skipped.txt BUILD
"""
import json
import os
import pathlib
import subprocess
import sys


def programs_of(build):
    """Programs by rung and name, as in skipped.txt; ctest knows the tests of each program."""
    listed = json.loads(subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True,
                                       capture_output=True, text=True).stdout)
    return {"_".join(test["name"].split(".", 2)[:2]): test["command"][0] for test in listed["tests"]
            if any(argument.startswith("--gtest_filter=") for argument in test.get("command", []))}


def output_of(program, test, engine):
    environment = {**os.environ, "RNICSIM_TEST_ENGINE": engine, "SYSTEMC_DISABLE_COPYRIGHT_MESSAGE": "1"}
    run = subprocess.run([program, f"--gtest_filter={test}"], env=environment, capture_output=True, text=True,
                         timeout=600, check=False)
    return run.stdout + run.stderr


def main():
    programs = programs_of(sys.argv[2])
    wrong = 0
    for line in pathlib.Path(sys.argv[1]).read_text().splitlines():
        if line.startswith("#"):
            continue
        name, test, reason = line.split()
        program = programs[name]
        text = output_of(program, test, "rtl")
        if "[  SKIPPED ] 1 test" not in text or reason not in text:
            print(f"{name} {test} does not skip itself on the RTL for {reason}:\n{text}")
            wrong = 1
        text = output_of(program, test, "model")
        if "[  PASSED  ] 1 test" not in text:
            print(f"{name} {test} does not pass on the model:\n{text}")
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())
