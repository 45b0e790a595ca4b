# SPDX-License-Identifier: Apache-2.0
"""
rdma-core's own Python tests from Debian (python3-pyverbs): their files, their outcomes, and the list of those that a
device must skip.

A test of rdma-core must pass, or be skipped as listed; every other outcome is wrong. A listed skip is also wrong if the
test passes, if the test no longer exists, or if the device now has the missing feature.
"""
import collections
import gzip
import pathlib
import re
import tomllib

THEIR_TESTS = pathlib.Path("/usr/share/doc/rdma-core/tests")

HEADER = re.compile(r"^(test_\w+) \(tests\.(\w+\.\w+\.\1)\)")
# Output of the test or of a library may precede the outcome.
OUTCOME = re.compile(r"(?:^|\s)(ok|ERROR|FAIL|skipped '(.*)'|skipped \"(.*)\"|expected failure|unexpected success)$")


def copy_tests(folder):
    """Copies rdma-core's tests; Debian compresses the larger files of a package's documentation."""
    (folder / "tests").mkdir()
    for path in THEIR_TESTS.iterdir():
        if path.suffix == ".gz":
            (folder / "tests" / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
        else:
            (folder / "tests" / path.name).write_bytes(path.read_bytes())


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


def module_of(name):
    return name.partition(".")[0]


class SkipList:
    """A file of modules and of missing features. A feature has

      what            its name
      says            regular expression for the reason that the skipped test prints
      tests           the tests that must be skipped
      advertised      regular expression for `ibv_devinfo -v` of a device with the feature; the tests must then run
      of_the_machine  true: the feature depends on the machine that runs the simulator; the tests may also run
      of_the_driver   true: a driver lacks the feature of the device
    """

    def __init__(self, path):
        content = tomllib.loads(path.read_text())
        self.modules, self.absent = content["modules"], content["absent"]

    def check(self, modules, text, device):
        """`text`: unittest's output for the modules. `device()`: `ibv_devinfo -v`. Returns a line for each error."""
        outcomes = read_outcomes(text)
        ran = re.search(r"(?m)^Ran (\d+) tests? in ", text)
        if not ran or not outcomes or len(outcomes) != int(ran.group(1)):
            return [f"{len(outcomes)} outcomes, but {ran.group(0) if ran else 'no end'}"]
        for module in modules:
            count = collections.Counter(outcome for name, (outcome, _) in outcomes.items() if module_of(name) == module)
            counts = [f"{number} {outcome}" for outcome, number in sorted(count.items())]
            print(f"{module}: {', '.join(counts) or 'no test'}", flush=True)
        return [*self._wrong_outcomes(outcomes), *self._wrong_entries(modules, outcomes, device)]

    def _wrong_outcomes(self, outcomes):
        reasons = {name: absent for absent in self.absent for name in absent["tests"]}
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

    def _wrong_entries(self, modules, outcomes, device):
        for absent in self.absent:
            names = [name for name in absent["tests"] if module_of(name) in modules]
            yield from (f"{name} is listed, and there is no such test" for name in names if name not in outcomes)
            if names and "advertised" in absent and (found := re.search(absent["advertised"], device())):
                yield f"the device advertises {absent['what']} ({found.group(0).strip()}), whose tests are skipped"

    def wrong_in_itself(self):
        """Each entry names tests of an existing module, without repetition, and a feature that can be searched for."""
        names = [name for absent in self.absent for name in absent["tests"]]
        yield from (f"{name} is listed twice" for name, times in collections.Counter(names).items() if times > 1)
        yield from (f"{name} is of no listed module" for name in names if module_of(name) not in self.modules)
        for absent in self.absent:
            if ["advertised" in absent, "of_the_machine" in absent, "of_the_driver" in absent].count(True) != 1:
                yield f"{absent['what']}: one of advertised, of_the_machine and of_the_driver is needed"
