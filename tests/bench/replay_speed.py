# SPDX-License-Identifier: Apache-2.0
"""
CPU time of runs of stock programs, and of their replays. Not a test.

    replay_speed.py RNICSIM [PROGRAM]

A run's time is that of the simulator and of all its programs. The recording of a run is a run of its own, so the run
that is measured records nothing. Without PROGRAM (a part of a row's name) all rows are measured. Each number is the
least of three. qperf waits for completion events, and polls with -cp 1.
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

RUNS = 3
WANTED = 3  # times as fast as the run
QPERF = ("--set", "host.lid_paths=true", "--on", "h0", "qperf", "--on", "h1")
ROWS = {
    "ib_write_bw -n 5000": ("--", "ib_write_bw", "-n", "5000"),
    "ib_write_lat -n 5000": ("--", "ib_write_lat", "-n", "5000"),
    "ib_send_lat -e -n 2000": ("--", "ib_send_lat", "-e", "-n", "2000"),
    "qperf -n 2000 rc_bw": (*QPERF, "qperf -n 2000 h0 rc_bw quit"),
    "qperf -n 2000 -cp 1 rc_bw": (*QPERF, "qperf -n 2000 -cp 1 h0 rc_bw quit"),
    "rping -C 500": ("--on", "h0", "rping -s -C 500", "--on", "h1", "rping -c -a h0 -C 500"),
}


def cpu_seconds(command):
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        raise SystemExit(f"{' '.join(map(str, command))}: status {status}")
    return usage.ru_utime + usage.ru_stime


def main(program, wanted=""):
    print(f"{'':26} {'run':>8} {'replay':>8} {'as possible':>12}  (CPU s; wanted: run/replay >= {WANTED})")
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "a.trace"
        for name, options in ROWS.items():
            if wanted not in name:
                continue
            cpu_seconds([program, "run", "--record", trace, "--record-software", *options])
            run, replay, possible = (min(cpu_seconds([program, *words]) for _ in range(RUNS)) for words in (
                ("run", *options), ("replay", trace), ("replay", trace, "--as-possible")))
            print(f"{name:26} {run:8.2f} {replay:8.2f} {possible:12.2f}  {run / replay:5.1f} x", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
