#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Properties for all parameters: of every profile, and of every shipped workload.

usage: properties_test.py path/to/rnicsim [--full PROFILE] [TEST...]

Without --full some cases of each property are drawn, the same in every run.
"""
import collections
import functools
import itertools
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest

from parameter_directions import DIRECTIONS, LADDERS, MORE, NO_DIRECTION, direction_of, is_classified, is_named

RNICSIM = ""
FULL = False
SEED = 20
SHIPPED = pathlib.Path(__file__).parents[2] / "sim"
PROFILES = sorted(file.stem for file in SHIPPED.glob("nics/*.toml"))
WORKLOADS = sorted(file.stem for file in SHIPPED.glob("workloads/*.toml"))
WITH_PAYLOAD = ("cal-1",)  # its agents poll their memory, so payload is needed
OPERATIONS = [(op, size) for op in ("write", "read", "send") for size in ("8 B", "4 KiB")]
ATOMICS = [("fetch_add", "8 B"), ("cmp_swap", "8 B")]
MTUS = (256, 512, 1024, 2048, 4096)
SLACK = 0.01
SHARE_SLACK = 0.02
# Bottlenecks besides the profile's own: PCIe slower than the line, and a line slower than PCIe.
NARROW = ((), ("nic.port.rate=1 Tb/s",), ("nic.pcie.lanes=4",), ("nic.port.rate=10 Gb/s",))
FACTOR = 2
LONGER = 8  # times the duration that `rnicsim bench` chooses
# (times the chosen duration, seed), tried while each run finds a fault
LOOKS = [(1, seed) for seed in range(1, 8)] + [(LONGER, 8)]
REFUSED = 2  # exit status
UNITS = {
    "ps": 1, "ns": 1e3, "us": 1e6, "ms": 1e9, "s": 1e12,
    "b/s": 1, "kb/s": 1e3, "Mb/s": 1e6, "Gb/s": 1e9, "Tb/s": 1e12,
    "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "KB": 10**3, "MB": 10**6, "GB": 10**9,
}
DURATIONS = {"8 B": "1 ms", "4 KiB": "2 ms", "64 KiB": "1 ms"}  # hundreds of messages of each flow
MEASURE = """
schema = 1
[measure]
duration = "{duration}"
"""
FLOW = """
[[flow]]
from = "h0"
to = "h1"
op = "{op}"
size = "{size}"
window = {window}
qps = {qps}
mtu = {mtu}
uars = "per_thread"
max_rd_atomic = 16
"""

# `rates`: b/s of each flow; `grains`: b/s that a single message makes of them; `reach`: relative uncertainty of the
# rates; `duration`: ps.
Measured = collections.namedtuple("Measured", "rates grains reach duration parameters")


class Refused(Exception):
    """Values that are out of range, or that exclude each other."""


def rnicsim(*words):
    done = subprocess.run([RNICSIM, *words], check=False, capture_output=True, text=True)
    if done.returncode == REFUSED:
        raise Refused(done.stderr.strip())
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


def with_sets(settings):
    return [word for setting in settings for word in ("--set", setting)]


def described(*settings):
    """The value of each parameter, by `rnicsim describe`."""
    line = re.compile(r"(\S+)  +(?:time|bytes|rate|number|true or false|text)  +(.*?)  ")
    text = "".join(rnicsim("describe", topic, *with_sets(settings)) for topic in ("nic", "host", "topology"))
    return dict(match.groups() for match in map(line.match, text.splitlines()) if match)


@functools.lru_cache(maxsize=64)
def bench(text, *settings):
    """Runs a workload. Rates are the received payload in b/s, which is finer than the number of operations."""
    with tempfile.TemporaryDirectory() as folder:
        workload, out = pathlib.Path(folder, "workload.toml"), pathlib.Path(folder, "results.json")
        workload.write_text(text)
        rnicsim("bench", workload, *with_sets(settings), "--json", out)
        results = json.loads(out.read_text())
    check_carried(results, settings)
    of_flows = results["flows"]
    return Measured([flow["goodput_bits_per_s"] for flow in of_flows], [grain(flow) for flow in of_flows],
                    max(map(reach, of_flows)), amount(results["measure"]["duration"]), results["parameters"])


def grain(flow):
    return 8 * max(amount(operation["size"]) for operation in flow["parameters"]["mix"]) / flow["interval_ps"] * 1e12


def reach(flow):
    """Relative half width of the 95% interval."""
    interval = flow["rate_interval"]
    return (interval["high"] / flow["rate_per_s"] - 1) if interval else 0


def check_carried(results, settings):
    """Checks that no flow is faster than the links that carry it."""
    between = collections.Counter()
    for flow in results["flows"]:
        ends = flow["parameters"]["from"], flow["parameters"]["to"]
        between[min(map(len, ends)), *map(tuple, ends)] += flow["goodput_bits_per_s"] - grain(flow)
    for name, limit in limits(results["parameters"]).items():
        for (lines, *ends), rate in between.items():
            if rate > lines * limit:
                raise AssertionError(f"{settings}, {ends}: {rate:.5g} b/s, and the {name} carries {limit:.5g}")


def limits(parameters):
    """Rates of a line and of a PCIe link, each way, in b/s; see docs/timing.md, Steps."""
    transfers, encoding = ((2.5e9, 0.8), (5e9, 0.8), (8e9, 128 / 130), (16e9, 128 / 130), (32e9, 128 / 130))[
        int(parameters["nic.pcie.generation"]) - 1]
    lanes = int(parameters["nic.pcie.lanes"]) * (1 - float(parameters["nic.pcie.dllp_share"]))
    return {"line": amount(parameters["nic.port.rate"]), "PCIe": lanes * transfers * encoding}


def amount(text):
    number, unit = text.split()
    return float(number) * UNITS[unit]


def longer(times, text, *settings):
    """The workload's results, measured for `times` the duration that `rnicsim bench` chooses."""
    chosen = bench(text, *settings)
    return chosen if times == 1 else bench(text, *settings, f"measure.duration={times * chosen.duration:.0f} ps")


def shipped(workload):
    """The workload without its warm-up and duration: `rnicsim bench` then chooses both."""
    text = SHIPPED.joinpath("workloads", f"{workload}.toml").read_text()
    return re.sub(r"^(warmup|duration|operations) = .*\n", "", text, flags=re.MULTILINE)


def settings_of(profile, workload=None):
    return [f"nic={profile}"] + ([] if workload in WITH_PAYLOAD else ["nic.timing_only=true"])


def flows(number, op, size, qps=1, mtu=4096, window=16):
    flow = FLOW.format(op=op, size=size, qps=qps, mtu=mtu, window=window)
    return MEASURE.format(duration=DURATIONS[size]) + number * flow


def scaled(value, factor):
    """The text of a value after scaling; a boolean becomes true for a factor above 1."""
    if value in ("true", "false"):
        return "true" if factor > 1 else "false"
    number, *unit = value.split()
    if unit and unit[0] in ("ps", "ns", "us", "ms", "s"):
        return f"{amount(value) * factor:.0f} ps"
    moved = float(number) * factor
    is_whole = not unit and "." not in number
    return " ".join([f"{int(moved)}" if is_whole else f"{moved:.12g}", *unit])


def step(path, value, is_beyond):
    """(worse, better): the profile's value, and a value beyond it or short of it."""
    is_up = (direction_of(path) == MORE) == is_beyond
    if path in LADDERS:
        other = beside(LADDERS[path], value, is_beyond)
    else:
        other = scaled(value, FACTOR if is_up else 1 / FACTOR)
    return (value, other) if is_beyond else (other, value)


def beside(ladder, value, is_beyond):
    """The neighbour of a value on the ladder; the value itself at the ladder's end."""
    place = ladder.index(value) + (1 if is_beyond else -1)
    return ladder[place] if 0 <= place < len(ladder) else value


def drawn(cases, count):
    """All cases with --full; otherwise `count` of them."""
    cases = list(cases)
    return cases if FULL else random.Random(SEED).sample(cases, count)


def falls(before, after, reach=0):
    return any(late + grain < early * (1 - SLACK - reach)
               for early, late, grain in zip(before.rates, after.rates, before.grains))


def differ(one, other, reach=0):
    return falls(one, other, reach) or falls(other, one, reach)


def shown(measured):
    return " + ".join(f"{rate:.5g}" for rate in measured.rates) + " b/s"


def better_cases():
    paths = [path for path in described() if direction_of(path)]
    return itertools.product(PROFILES, WORKLOADS, paths, (False, True))


def what_better_lowers(profile, workload, path, is_beyond):
    """None, or the fault as text. Where threads wait for one another, the seed alone changes rates by one or two
    percent."""
    text, settings = shipped(workload), settings_of(profile, workload)
    value = bench(text, *settings, "seed=1").parameters[path]
    values = step(path, value, is_beyond)
    sets = [[f"{path}={each}"] if each != value else [] for each in values]
    for times, seed in LOOKS:
        before, after = (longer(times, text, *settings, f"seed={seed}", *each) for each in sets)
        if not falls(before, after):
            return None
    return f"{profile}, {workload}: {path} from {values[0]} to {values[1]}: {shown(before)}, then {shown(after)}"


def unequal_shares(profile, operation, number):
    """Limits the outstanding WQEs to the cache's size: with more, slower flows lose their WQEs first (docs/timing.md,
    CAL-7)."""
    settings = settings_of(profile)
    fit = int(bench(flows(1, "write", "8 B"), *settings).parameters["nic.send_wqes.entries"]) // (4 * number)
    measured = bench(flows(number, *operation, window=min(fit, 16)), *settings)
    least, most = min(measured.rates), max(measured.rates)
    if least + measured.grains[0] >= most * (1 - SHARE_SLACK):
        return None
    return f"{profile}, {number} flows of {' '.join(operation)}: {least:.5g} to {most:.5g} b/s, {least / most:.3f}"


def what_time_changes(profile, workload):
    """Compares rates with those of twice the time: for the chosen duration within the rates' uncertainty, then for
    longer durations, whose rates are precise."""
    text, settings = shipped(workload), settings_of(profile, workload)
    chosen, twice = (longer(times, text, *settings) for times in (1, 2))
    if differ(chosen, twice, chosen.reach):
        return f"{profile}, {workload}: {shown(chosen)}, of twice the time {shown(twice)}"
    for times in (LONGER, 4 * LONGER):
        short, long = (longer(each, text, *settings) for each in (times, 2 * times))
        if not differ(short, long):
            return None
    return f"{profile}, {workload}: {shown(short)}, of twice the time {shown(long)}"


def too_fast(profile, workload, narrow):
    bench(shipped(workload), *settings_of(profile, workload), *narrow)


def what_a_larger_mtu_lowers(profile, op, qps):
    curve = [bench(flows(1, op, "64 KiB", qps, mtu), *settings_of(profile)) for mtu in MTUS]
    if not any(falls(*pair) for pair in itertools.pairwise(curve)):
        return None
    return f"{profile}, {op}, {qps} QPs, MTU 256 and on: {', '.join(map(shown, curve))}"


class Table(unittest.TestCase):
    """parameter_directions.py is complete."""

    @classmethod
    def setUpClass(cls):
        cls.parameters = described()

    def test_each_parameter_has_a_direction_or_a_reason(self):
        self.assertGreater(len(self.parameters), 100)
        for path in self.parameters:
            with self.subTest(parameter=path):
                self.assertTrue(is_classified(path), "neither in DIRECTIONS nor in NO_DIRECTION")

    def test_each_entry_is_of_a_parameter(self):
        for pattern in (*DIRECTIONS, *NO_DIRECTION):
            with self.subTest(entry=pattern):
                self.assertTrue(any(is_named(path, pattern) for path in self.parameters))

    def test_each_direction_has_a_step(self):
        """At least one of the steps from and to the profile's value is possible."""
        for path, value in self.parameters.items():
            if direction_of(path):
                with self.subTest(parameter=path):
                    others = {other for is_beyond in (False, True) for other in step(path, value, is_beyond)} - {value}
                    self.assertTrue(any(is_possible(path, other) for other in others))


def is_possible(path, value):
    try:
        described(f"{path}={value}")
    except Refused:
        return False
    return True


class Properties(unittest.TestCase):
    def assert_none(self, fault, cases):
        """`fault` must return None for all cases; refused combinations of values are not counted."""
        compared = 0
        for case in cases:
            with self.subTest(case=case):
                try:
                    said = fault(*case)
                except Refused:
                    continue
                compared += 1
                if said:
                    self.fail(said)
        self.assertGreater(compared, 0)

    def test_better_is_never_slower(self):
        """A faster or larger resource lowers no rate by more than one percent."""
        self.assert_none(what_better_lowers, drawn(better_cases(), 50))

    def test_equal_flows_have_equal_shares(self):
        cases = itertools.product(PROFILES, OPERATIONS + ATOMICS, range(2, 18))
        self.assert_none(unequal_shares, drawn(cases, 12))

    def test_rates_are_steady(self):
        """The rates of twice the measured time are the same."""
        self.assert_none(what_time_changes, drawn(itertools.product(PROFILES, WORKLOADS), 6))

    def test_nothing_is_faster_than_what_carries_it(self):
        """Flows are limited by the line or by PCIe, whichever is slower."""
        cases = itertools.product(PROFILES, WORKLOADS, NARROW)
        self.assert_none(too_fast, drawn(cases, 20))

    def test_a_larger_mtu_is_never_slower(self):
        self.assert_none(what_a_larger_mtu_lowers, drawn(itertools.product(PROFILES, ("read", "write"), (1, 2, 8)), 5))


if __name__ == "__main__":
    RNICSIM = sys.argv.pop(1)
    if "--full" in sys.argv:
        FULL = True
        place = sys.argv.index("--full")
        PROFILES = [sys.argv[place + 1]]
        del sys.argv[place:place + 2]
    unittest.main()
