#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
rdma-core's own Python tests from Debian (python3-pyverbs), on a simulated host: a test for each module.

A test of rdma-core must pass, or be skipped as listed in rdma_core_tests.toml; every other outcome fails. A listed skip
also fails if the test passes, if the test no longer exists, or if the device now has the missing feature.

usage: rdma_core_test.py path/to/rnicsim [RdmaCore.test_MODULE ...]
"""
import collections
import functools
import gzip
import os
import pathlib
import re
import sys
import tomllib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402

THEIR_TESTS = pathlib.Path("/usr/share/doc/rdma-core/tests")
LIST = pathlib.Path(__file__).resolve().with_name("rdma_core_tests.toml")
GID_OF_IPV4 = 1

# iproute2's output for a device of h0.
IP = """#!/bin/sh
read -r mac < "/sys/class/net/$4/address" || exit 1
echo '[{"address": "'"$mac"'", "addr_info": [{"local": "10.0.0.1"}]}]'
"""

HEADER = re.compile(r"^(test_\w+) \(tests\.(\w+\.\w+\.\1)\)")
# Output of the test or of a library may precede the outcome.
OUTCOME = re.compile(r"(?:^|\s)(ok|ERROR|FAIL|skipped '(.*)'|skipped \"(.*)\"|expected failure|unexpected success)$")


@functools.cache
def listed():
    return tomllib.loads(LIST.read_text())


@functools.cache
def device():
    """Output of `ibv_devinfo -v` on h0."""
    return apps.run_on([("h0", "ibv_devinfo -v")]).text("h0")


def copy_tests(folder):
    """Copies rdma-core's tests; Debian compresses the larger files of a package's documentation."""
    (folder / "tests").mkdir()
    for path in THEIR_TESTS.iterdir():
        if path.suffix == ".gz":
            (folder / "tests" / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
        else:
            (folder / "tests" / path.name).write_bytes(path.read_bytes())


def make_ip(folder):
    folder.mkdir()
    (folder / "ip").write_text(IP)
    (folder / "ip").chmod(0o755)
    return dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}")


def read_outcomes(text):
    """Parses unittest's verbose output: name -> (outcome, reason of a skip)."""
    outcomes, name = {}, None
    for line in text.splitlines():
        if header := HEADER.match(line):
            name = header.group(2)
        outcome = OUTCOME.search(line)
        if name is None or outcome is None:
            continue
        skipped = outcome.group(1).startswith("skipped")
        outcomes[name] = ("skipped", outcome.group(2) or outcome.group(3) or "") if skipped else (outcome.group(1), "")
        name = None
    return outcomes


class RdmaCore(apps.TestCase):
    def setUp(self):
        # Debian's container images omit /usr/share/doc.
        self.assertTrue(THEIR_TESTS.is_dir(), f"{THEIR_TESTS} is not there: python3-pyverbs without its documentation?")

    def run_module(self, module):
        with apps.folder() as folder:
            copy_tests(folder)
            command = (f"/usr/bin/python3 -B tests/run_tests.py --dev rnic0 --port 1 --gid {GID_OF_IPV4} -v "
                       f"tests.{module}")
            return apps.run_on([("h0", command)], cwd=folder, env=make_ip(folder / "bin"))

    def check(self, module):
        result = self.run_module(module)
        outcomes = read_outcomes(result.errors("h0"))
        ran = re.search(r"(?m)^Ran (\d+) tests? in ", result.errors("h0"))
        self.assertTrue(ran, result)
        self.assertEqual(len(outcomes), int(ran.group(1)), result)
        self.assertGreater(len(outcomes), 0, result)

        count = collections.Counter(outcome for outcome, _ in outcomes.values())
        print(f"{module}: " + ", ".join(f"{number} {outcome}" for outcome, number in sorted(count.items())), flush=True)
        wrong = [*self.wrong_outcomes(outcomes), *self.wrong_entries(module, outcomes)]
        if wrong:
            self.fail("\n".join([*wrong, "", str(result)]))
        self.assertEqual(result.status, 0, result)

    def wrong_outcomes(self, outcomes):
        reasons = {name: absent for absent in listed()["absent"] for name in absent["tests"]}
        for name, (outcome, why) in outcomes.items():
            absent = reasons.get(name)
            if outcome == "skipped":
                if absent is None:
                    yield f"{name} is skipped, and is not listed: {why}"
                elif not re.search(absent["says"], why):
                    yield f"{name} is skipped for another reason than {absent['what']}: {why}"
            elif outcome != "ok":
                yield f"{name}: {outcome}"
            elif absent is not None and not absent.get("of_the_machine", False):
                yield f"{name} passes, and is listed as skipped for want of {absent['what']}"

    def wrong_entries(self, module, outcomes):
        for absent in listed()["absent"]:
            names = [name for name in absent["tests"] if name.partition(".")[0] == module]
            yield from (f"{name} is listed, and there is no such test" for name in names if name not in outcomes)
            if names and "advertised" in absent and (found := re.search(absent["advertised"], device())):
                yield f"the device advertises {absent['what']} ({found.group(0).strip()}), whose tests are skipped"

    def test_list(self):
        """Each entry names tests of an existing module, without repetition, and a feature that can be searched for."""
        modules = set(listed()["modules"])
        names = [name for absent in listed()["absent"] for name in absent["tests"]]
        self.assertEqual([name for name, times in collections.Counter(names).items() if times > 1], [])
        self.assertEqual({name.partition(".")[0] for name in names} - modules, set())
        for absent in listed()["absent"]:
            self.assertNotEqual("advertised" in absent, absent.get("of_the_machine", False), absent["what"])


def add_tests():
    for module in listed()["modules"]:
        setattr(RdmaCore, module, lambda self, module=module: self.check(module))


add_tests()

if __name__ == "__main__":
    apps.main()
