# SPDX-License-Identifier: Apache-2.0
"""
Cost of a WQE on this machine: CPU time by `rnicsim bench`, instructions by callgrind. Not a test.

    wqe_cost.py RNICSIM WORKLOAD [--instructions]
"""
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# Fixed cache sizes: Valgrind's default is the machine's caches, and counts would differ between machines.
CACHES = ("--I1=32768,8,64", "--D1=32768,8,64", "--LL=33554432,16,64")
# WQEs in all, for any number of QPs: the wire is full, and the amount of memory in use is about equal
OUTSTANDING = 1024
QPS = (16, 64, 256, 1024, 4096, 10000)
FLOOR = {"with payload": 400_000, "timing only": 700_000}


def bench(program, workload, *settings):
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.json"
        options = [option for setting in settings for option in ("--set", setting)]
        subprocess.run([program, "bench", workload, "--json", results, *options], check=True, stdout=subprocess.DEVNULL)
        return json.loads(results.read_text())["simulator"]


def report(name, simulator, floor=None):
    speed = simulator["wqes_per_cpu_s"]
    wanted = f"  {speed / floor:6.0%} of the floor" if floor else ""
    print(f"{name:24} {speed / 1000:8.0f} kWQE/s {1e6 / speed:8.2f} us"
          f" {simulator['events_per_wqe']:6.1f} events{wanted}", flush=True)


def counted(program, workload, milliseconds, settings):
    """Instructions, loads and stores, and misses of a first-level instruction cache, for a whole run; and the run's
    WQEs."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.json"
        command = ["valgrind", "--tool=callgrind", "--cache-sim=yes", *CACHES,
                   f"--callgrind-out-file={folder}/profile", program, "bench", workload,
                   "--set", f"measure.duration={milliseconds}ms", "--json", results]
        for setting in settings:
            command += ["--set", setting]
        log = subprocess.run(command, check=True, capture_output=True, text=True).stderr

        def number(label):
            return int(re.search(label + r":? +([\d,]+)", log)[1].replace(",", ""))

        counts = [number("I +refs"), number("D +refs"), number("I1 +misses")]
        return counts, json.loads(results.read_text())["flows"][0]["operations"]


def instructions(program, workload, *settings):
    """Instructions, loads and stores, and L1I misses per WQE. The difference of a long and a short run excludes the
    setup."""
    (short, few), (long, many) = (counted(program, workload, duration, settings) for duration in (1, 3))
    return [(b - a) / (many - few) for a, b in zip(short, long)]


def report_instructions(program, workload, name, *settings):
    count, accesses, misses = instructions(program, workload, *settings)
    print(f"{name:24} {count:8.0f} instructions {accesses:8.0f} loads and stores {misses:6.0f} L1I misses a WQE",
          flush=True)


def main(program, workload, *options):
    report("with payload", bench(program, workload, "measure.duration=50ms"), FLOOR["with payload"])
    report("timing only", bench(program, workload, "measure.duration=50ms", "nic.timing_only=true"),
           FLOOR["timing only"])
    for qps in QPS:
        window = max(1, OUTSTANDING // qps)
        report(f"{qps} QPs, window {window}",
               bench(program, workload, "measure.duration=20ms", f"flow[0].qps={qps}", f"flow[0].window={window}"))
    if "--instructions" in options:
        report_instructions(program, workload, "payload and ICRC")
        report_instructions(program, workload, "timing only", "nic.timing_only=true")


if __name__ == "__main__":
    main(*sys.argv[1:])
