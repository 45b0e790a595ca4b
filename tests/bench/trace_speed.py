# SPDX-License-Identifier: Apache-2.0
"""
Speed of the trace tools on this machine: unpacked MB per second of user CPU time. Not a test.

    trace_speed.py RNICSIM [MEGABYTES]

Records RDMA WRITEs of 4 KiB on 256 queue pairs until the unpacked trace has about MEGABYTES (default 100; 1000 takes a
minute or two and 200 MB in the folder for temporary files). `diff` reads two files; its rate counts one of them.
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

WORKLOAD = "write-4k"
MEGABYTES_A_MS = 0.49  # unpacked MB of the workload's trace per simulated millisecond
RUNS = 3
WANTED = 100  # MB/s


def record(program, file, megabytes):
    duration = f"measure.duration={round(megabytes / MEGABYTES_A_MS)}ms"
    subprocess.run([program, "bench", WORKLOAD, "--set", duration, "--record", file], check=True,
                   stdout=subprocess.DEVNULL)


def unpacked_megabytes(file):
    with subprocess.Popen(["zstd", "-dc", file], stdout=subprocess.PIPE) as unpack:
        size = sum(len(piece) for piece in iter(lambda: unpack.stdout.read(1 << 20), b""))
    if unpack.returncode != 0:
        raise SystemExit(f"{file}: zstd cannot unpack it")
    return size / 1e6


def user_seconds(command):
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        raise SystemExit(f"{' '.join(map(str, command))}: status {status}")
    return usage.ru_utime, usage.ru_maxrss / 1024


def report(name, megabytes, command):
    """The best of a few runs, because times vary on a shared machine."""
    seconds, peak = min(user_seconds(command) for _ in range(RUNS))
    print(f"{name:34} {megabytes / seconds:7.0f} MB/s {seconds:8.2f} s {peak:6.0f} MiB", flush=True)


def main(program, megabytes="100"):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "a.trace"
        record(program, file, float(megabytes))
        size = unpacked_megabytes(file)
        print(f"{size:.0f} MB unpacked, {file.stat().st_size / 1e6:.0f} MB in the file; wanted of the first three: "
              f"{WANTED} MB/s")
        trace = [program, "trace"]
        report("show --qp 0x41", size, [*trace, "show", file, "--qp", "0x41"])
        report("stat", size, [*trace, "stat", file])
        report("diff of two equal ones", size, [program, "diff", file, file])
        report("show --kind cqe", size, [*trace, "show", file, "--kind", "cqe"])
        report("cut --host h0", size, [*trace, "cut", file, "--host", "h0", "-o", Path(folder) / "b.trace"])
        report("show", size, [*trace, "show", file])
        report("export --format jsonl", size, [*trace, "export", file])
        report("export --format csv", size, [*trace, "export", file, "--format", "csv"])


if __name__ == "__main__":
    main(*sys.argv[1:])
