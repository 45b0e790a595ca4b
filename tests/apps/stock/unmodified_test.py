#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Unmodified programs of many kinds with default settings: each run prints the same, and leaves the same capture and
recording, to the bit. All cores are busy in every second run, and the environment variables differ.

usage: unmodified_test.py path/to/rnicsim     (needs g++, rustc, go, pyverbs, fio, qperf, Open MPI, MPICH, UCX)

RNICSIM_RUNS (default 20) is the number of runs of each program.
"""
import contextlib
import hashlib
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402
from busy_cores import busy_cores  # noqa: E402

SOURCES = pathlib.Path(__file__).resolve().with_name("unmodified")
SHELL = f"python3 {apps.REMOTE_SHELL}"
RUNS = int(os.environ.get("RNICSIM_RUNS", "20"))
SECONDS = 280


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Unmodified(apps.TestCase):
    def run_once(self, commands, variables):
        with apps.folder() as path:
            capture, recording = path / "run.pcapng", path / "run.trace"
            result = apps.run_on(commands, "--pcap", capture, "--record", recording, timeout=SECONDS,
                                 env=dict(os.environ, PADDING="x" * variables))
            self.assert_succeeded(result)
            self.assertNotIn("not reproducible", result.summary())
            return {"output": result.out.splitlines(), "errors": result.err.splitlines(), "capture": digest(capture),
                    "recording": digest(recording)}

    def check(self, *commands, variables=1237):
        first = self.run_once(commands, 0)
        for number in range(1, RUNS):
            with busy_cores(SECONDS) if number % 2 else contextlib.nullcontext():
                again = self.run_once(commands, number * variables)
            for part, expected in first.items():
                self.assertEqual(again[part], expected, f"run {number}: {part}")

    def on_both(self, command):
        self.check(("h0", command), ("h1", command))

    def compiled(self, *compiler):
        folder = apps.folder()
        program = self.enterContext(folder) / "program"
        subprocess.run([*compiler, "-o", program], check=True)
        return str(program)

    def test_cpp(self):
        self.on_both(self.compiled("g++", "-std=c++20", "-O1", SOURCES / "futures.cc", "-lpthread"))

    def test_rust(self):
        self.on_both(self.compiled("/usr/bin/rustc", "-O", SOURCES / "channels.rs"))

    def test_python(self):
        self.on_both(f"/usr/bin/python3 {SOURCES / 'traffic.py'}")

    def test_go(self):
        """Go's allocator depends on values on the stack, hence on the environment."""
        with apps.folder() as folder:
            program = folder / "goroutines"
            subprocess.run(["go", "build", "-o", program, apps.PROGRAMS / "goroutines.go"], check=True,
                           env=dict(os.environ, GOCACHE=str(folder / "cache"), GOFLAGS="-mod=mod", GO111MODULE="off"))
            self.check(("h0", str(program)), ("h1", str(program)), variables=0)

    def test_shells(self):
        self.check(("h0", f"sh {apps.PROGRAMS / 'jobs.sh'}"), ("h1", f"bash {apps.PROGRAMS / 'jobs.sh'}"))

    def test_fio(self):
        self.on_both("fio --name=a --ioengine=null --size=1m --bs=4k --rw=randrw --iodepth=4 --numjobs=2")

    def test_qperf(self):
        self.check(("h0", "qperf"), ("h1", "qperf -t 1 10.0.0.1 tcp_lat udp_lat quit"))

    def test_ucx(self):
        self.check(("h0", "ucx_perftest -t tag_lat -n 200"), ("h1", "ucx_perftest 10.0.0.1 -t tag_lat -n 200"))

    def test_open_mpi(self):
        program = self.compiled("mpicc", "-O1", apps.PROGRAMS / "verbs" / "mpi_ring.c")
        mpirun = f"mpirun --allow-run-as-root --mca plm_rsh_agent '{SHELL}' --host h0:2,h1:2 -np 4 {program}"
        self.check(("h1", SHELL), ("h0", mpirun))

    def test_mpich(self):
        program = self.compiled("mpicc.mpich", "-O1", apps.PROGRAMS / "verbs" / "mpi_ring.c")
        with apps.folder() as folder:
            ssh = folder / "ssh"
            ssh.write_text(f'#!/bin/sh\n[ "$1" = -x ] && shift\nexec {SHELL} "$@"\n')
            ssh.chmod(0o755)
            launcher = f"-launcher ssh -launcher-exec {ssh} -hosts h0,h1"
            # mpiexec sends the environment to the launcher: a larger environment takes longer.
            self.check(("h1", SHELL), ("h0", f"mpiexec.mpich {launcher} -n 4 {program}"), variables=0)


if __name__ == "__main__":
    apps.main()
