# SPDX-License-Identifier: Apache-2.0
"""CPU seconds of programs that spin or read clocks, all their processes and the simulator, beside what is wanted.

    programs.py RNICSIM [RNICSIM ...]

With several simulators each program runs under each simulator in turn. The result is the best of three runs, or one
long run; and one run while other processes keep all cores busy, which shows the effect of the load. Not a test.
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from busy_cores import busy_cores  # noqa: E402

RUNS = 3
LONG = 5  # CPU seconds
# Name, options of `rnicsim run`, required CPU seconds.
PROGRAMS = (
    ("ib_write_lat -n 1000", ("--", "ib_write_lat", "-n", "1000"), 0.5),
    ("ib_write_bw -D 1", ("--", "ib_write_bw", "-D", "1"), 1.5),
    ("ib_write_bw -n 24300: 0.13 s of that", ("--", "ib_write_bw", "-n", "24300"), 1.5),
    ("qperf -t 1 rc_lat", ("--set", "host.lid_paths=true", "--on", "h0", "qperf",
                           "--on", "h1", "qperf -t 1 10.0.0.1 rc_lat"), 5),
    ("fio, its calibration", ("--on", "h0", "fio --name=none --ioengine=null --size=4k"), 1),
    ("10^6 WRITEs of 32 B, one at a time", ("--", "ib_write_bw", "-s", "32", "-n", "1000000", "-t", "1"), 20),
)


def cpu_seconds(rnicsim, options):
    """CPU seconds of the simulator and of the children that it has reaped."""
    process = subprocess.Popen([rnicsim, "run", *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, process.args)
    return usage.ru_utime + usage.ru_stime


def best_of_some(rnicsim, options):
    first = cpu_seconds(rnicsim, options)
    more = 0 if first > LONG else RUNS - 1
    return min([first] + [cpu_seconds(rnicsim, options) for _ in range(more)])


def main():
    simulators = sys.argv[1:]
    if not simulators:
        sys.exit(__doc__)
    columns = "".join(f"{name:>12}" for _ in simulators for name in ("CPU s", "cores busy"))
    print(f"{'':38}{columns}{'wanted':>10}")
    for name, options, wanted in PROGRAMS:
        cells = ""
        for rnicsim in simulators:
            alone = best_of_some(rnicsim, options)
            with busy_cores(seconds=600):
                beside = cpu_seconds(rnicsim, options)
            cells += f"{alone:>12.2f}{beside:>12.2f}"
        print(f"{name:38}{cells}{wanted:>10}", flush=True)


if __name__ == "__main__":
    main()
