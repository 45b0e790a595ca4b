# SPDX-License-Identifier: Apache-2.0
"""
Costs of the simulation, row by row, with the required values. Not a test.

    floors.py RNICSIM SOURCE_DIR [--instructions]

CPU seconds are the best of a few runs, because they vary on a shared machine. Instruction counts (valgrind, minutes)
are reproducible.
"""
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import wqe_cost

RUNS = 3
RING = """schema = 1
topology = "{topology}"
[measure]
warmup = "100 us"
duration = "{duration}"
[[flow]]
from = "h0..h{last}"
to = ["h1..h{last}", "h0"]
op = "write"
size = "4 KiB"
window = 16
mtu = 4096
"""
ONE_FLOW = """schema = 1
topology = "{topology}"
[measure]
operations = 1
[[flow]]
from = "h0"
to = "h1"
op = "write"
size = "8 B"
qps = {qps}
"""


class Bench:
    def __init__(self, program, source):
        self.program, self.source = program, source

    def simulator(self, workload, *settings):
        """Statistics of the simulator itself, of the fastest run."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "workload.toml"
            path.write_text(workload)
            runs = [self.run(path, Path(folder) / "results.json", settings) for _ in range(RUNS)]
        return max(runs, key=lambda run: run["wqes_per_cpu_s"] or 0)

    def run(self, workload, results, settings):
        options = [option for setting in settings for option in ("--set", setting)]
        subprocess.run([self.program, "bench", workload, "--json", results, *options], check=True,
                       stdout=subprocess.DEVNULL)
        return json.loads(results.read_text())["simulator"]

    def ring(self, topology, hosts, duration):
        """WQEs per CPU second, where every host writes to the next host."""
        workload = RING.format(topology=topology, last=hosts - 1, duration=duration)
        return self.simulator(workload)["wqes_per_cpu_s"]

    def two_processes(self):
        """Wall seconds of 32 hosts with one process, divided by those with two: the best of three alternating runs
        each."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "workload.toml"
            path.write_text(RING.format(topology="leaf-spine:4,4,8", last=31, duration="20ms"))
            seconds = {1: [], 2: []}
            for count in 3 * (1, 2):
                begin = time.monotonic()
                subprocess.run([self.program, "bench", path, "--processes", str(count)], check=True,
                               stdout=subprocess.DEVNULL)
                seconds[count].append(time.monotonic() - begin)
        return min(seconds[1]) / min(seconds[2])

    def shipped(self, name, *settings):
        return self.simulator((Path(self.source) / "sim/workloads" / f"{name}.toml").read_text(), *settings)

    def peak(self, topology, qps):
        """Peak memory in bytes, with one operation on each flow."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "workload.toml"
            path.write_text(ONE_FLOW.format(topology=topology, qps=qps))
            process = subprocess.Popen([self.program, "bench", path], stdout=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = status
        assert status == 0, path
        return usage.ru_maxrss * 1024


def code_lines(*folders):
    lines = 0
    for folder in folders:
        for path in Path(folder).rglob("*"):
            if path.suffix in (".h", ".cpp"):
                text = (line.strip() for line in path.read_text().splitlines())
                lines += sum(1 for line in text if line and not line.startswith("//"))
    return lines


def attached(program, messages):
    """Messages per CPU second of all processes of a stock program, without the time to start."""
    def seconds(count):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([program, "run", "--", "ib_write_bw", "-s", "4096", "-N", "-n", str(count)], check=True,
                       stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return max((messages - 100) / (seconds(messages) - seconds(100)) for _ in range(RUNS))


def row(name, value, floor, goal, unit="", least=True):
    met = "met" if (value >= floor if least else value <= floor) else "missed"
    print(f"{name:52} {value:12,.6g} {unit:7} floor {floor:>9,.6g} {met:7} goal {goal:>9,.6g}", flush=True)


def instructions(bench):
    workload = Path(bench.source) / "sim/workloads/write-4k.toml"
    for name, settings, wanted in (("full", (), (16_000, 10_000)),
                                   ("timing only", ("nic.timing_only=true",), (14_000, 8_000))):
        cost = wqe_cost.instructions(bench.program, workload, *settings)
        row(f"instructions a WQE, {name}", cost[0], *wanted, least=False)
    row("loads and stores a WQE, timing only", cost[1], 7_000, 2_500, least=False)
    row("L1I misses a WQE, timing only", cost[2], 700, 100, least=False)


def main(program, source, *options):
    bench = Bench(program, source)
    if "--instructions" in options:
        instructions(bench)
    long = "measure.duration=50ms"
    row("one CPU, full", bench.shipped("write-4k", long)["wqes_per_cpu_s"] / 1000, 500, 1000, "kWQE/s")
    row("one CPU, timing only", bench.shipped("write-4k", long, "nic.timing_only=true")["wqes_per_cpu_s"] / 1000, 800,
        1200, "kWQE/s")
    two, sixteen, many = (bench.ring(f"star:{hosts}", hosts, duration)
                          for hosts, duration in ((2, "10ms"), (16, "2ms"), (64, "500us")))
    row("cost of a WQE at 64 hosts, over that at 2", two / many, 1.3, 1.15, "x", least=False)
    few, crowd = (bench.shipped("write-4k", "measure.duration=20ms", f"flow[0].qps={qps}", f"flow[0].window={window}")
                  for qps, window in ((16, 64), (1024, 1)))
    row("cost of a WQE at 1,024 QPs, over that at 16", few["wqes_per_cpu_s"] / crowd["wqes_per_cpu_s"], 1.3, 1.15, "x",
        least=False)
    row("memory of an idle host", (bench.peak("star:1002", 1) - bench.peak("star:2", 1)) / 1000 / 2**20, 1, 0.5, "MiB",
        least=False)
    row("memory of a QP's end, with its library", (bench.peak("star:2", 20_000) - bench.peak("star:2", 1_000)) /
        38_000 / 1024, 3, 1, "KiB", least=False)
    row("16 hosts, star", sixteen / 1000, 310, 600, "kWQE/s")
    row("128 hosts, fat tree", bench.ring("fat-tree:8", 128, "200us") / 1000, 100, 250, "kWQE/s")
    row("1,024 hosts, fat tree", bench.ring("fat-tree:16", 1024, "50us") / 1000, 60, 200, "kWQE/s")
    row("32 hosts, two processes against one", bench.two_processes(), 1.6, 1.8, "x")
    row("ib_write_bw, of all processes", attached(program, 50_000) / 1000, 200, 400, "kmsg/s")
    row("lines of code, model/nic and rtl/cosim", code_lines(f"{source}/model/nic", f"{source}/rtl/cosim"), 10_000,
        10_000, least=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
