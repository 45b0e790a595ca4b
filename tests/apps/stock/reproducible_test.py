#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same run gives the same output and the same capture, to the bit, whatever else the machine does.

usage: reproducible_test.py path/to/rnicsim [--full]     (4 runs of each program; with --full 10)
"""
import contextlib
import hashlib
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402
from busy_cores import busy_cores  # noqa: E402


SEGMENTS = """no key yet: -1 ENOENT
private: 0
made by the child: 1
from the child
again: -1 EEXIST
too large: -1 EINVAL
found: 1
looked at: 0
attached by: 0
removed: 0
no key any more: -1 ENOENT
removed: 0
still attached: 1
detached: 0
nobody's: -1 EINVAL""".splitlines()


def environment_of_size(number):
    """Environments of a different size in each run, from small to larger than a page."""
    return dict(os.environ, RNICSIM_TEST_PADDING="x" * (number * 1237))


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Reproducible(apps.TestCase):
    def trace(self, program, number, *options):
        """All output of the programs, the summary, and the digests of capture and recording; each run starts in a
        different folder."""
        with apps.folder() as path:
            cwd = path / ("deeper/" * number)
            cwd.mkdir(parents=True, exist_ok=True)
            capture = path / "capture.pcapng"
            recording = path / "run.trace"
            result = apps.run(program, "--pcap", capture, "--record", recording, *options, cwd=cwd,
                              env=environment_of_size(number))
            self.assert_succeeded(result)
            return {host: result.lines(host) for host in ("h0", "h1")} | {
                "summary": result.summary().splitlines(), "errors": result.err.splitlines(), "capture": digest(capture),
                "recording": digest(recording)}

    def check(self, program, *options):
        runs = 10 if apps.full() else 4
        first = self.trace(program, 0, *options)
        for number in range(1, runs):
            with busy_cores() if number % 2 else contextlib.nullcontext():
                again = self.trace(program, number, *options)
            for part, expected in first.items():
                self.assertEqual(again[part], expected, f"{program}: run {number}: {part}")
        return first

    def test_ibv_rc_pingpong(self):
        self.check("ibv_rc_pingpong -d rnic0 -g 1")

    def test_ibv_rc_pingpong_with_events(self):
        self.check("ibv_rc_pingpong -d rnic0 -g 1 -e -n 200")

    def test_ib_write_lat(self):
        self.check("ib_write_lat -n 500")

    def test_ib_send_bw(self):
        self.check("ib_send_bw -n 1000")

    def test_mailboxes_that_are_scanned(self):
        source = (apps.PROGRAMS / "verbs" / "mailboxes.c").read_text()
        first = self.check(str(apps.built("mailboxes", source, "-lpthread")))
        self.assertEqual(set(first["h0"][0]), {"1", "5"})

    def test_one_loop_that_waits_and_scans(self):
        source = (apps.PROGRAMS / "waiting_loops.c").read_text()
        first = self.check(str(apps.built("waiting_loops", source, "-O1", "-lpthread")))
        self.assertEqual([line.split(" after")[0] for line in first["h0"]],
                         ["scanned 59980, breakpoints 6,", "left", "scanned 59980, breakpoints 12,", "child 7"])

    def test_a_loop_of_a_library_that_goes(self):
        source = apps.PROGRAMS / "unloaded_loops.c"
        program = apps.built("unloaded_loops", source.read_text(), "-O1", "-lpthread")
        with apps.folder() as path:
            libraries = [str(path / f"library{number}.so") for number in (1, 2)]
            for number, library in enumerate(libraries, 1):
                subprocess.run(["gcc", "-O1", "-shared", "-fPIC", f"-DLIBRARY={number}", "-o", library, source],
                               check=True)
            first = self.check(f"{program} {' '.join(libraries)}")
        self.assertEqual(first["h0"], ["waited"])

    def test_a_loop_of_a_library_that_waits_in_the_c_library(self):
        source = apps.PROGRAMS / "library_loop.c"
        with apps.folder() as path:
            library = path / "libloop.so"
            subprocess.run(["gcc", "-O1", "-fno-builtin", "-shared", "-fPIC", "-DLIBRARY", "-o", library, source],
                           check=True)
            program = apps.built("library_loop", source.read_text(), "-O1", "-lpthread", library, f"-Wl,-rpath,{path}")
            self.assertEqual(self.check(str(program))["h0"], ["waited"])

    def test_the_counter_read_a_thousand_times(self):
        source = (apps.PROGRAMS / "counter_reads.c").read_text()
        first = self.check(str(apps.built("counter_reads", source, "-O1", "-lpthread")))
        # Counter reads of 25 ns each would be 400 and 4000 in these times.
        self.assertEqual([line for line in first["h0"] if "apart" not in line],
                         ["wrong: 0", "84 thousand reads in 10 ms", "324 thousand reads in 100 ms"])
        self.assertIn("main: 25 to 25 cycles apart", first["h0"])
        self.assertIn("then: 25 to 25 cycles apart", first["h0"])
        self.assertIn("child: 25 to 25 cycles apart", first["h0"])

    def test_signals_and_timers(self):
        source = (apps.PROGRAMS / "calls" / "signal_times.c").read_text()
        self.check(str(apps.built("signal_times", source, "-lpthread")))

    def test_system_v_memory(self):
        source = (apps.PROGRAMS / "shared_segments.c").read_text()
        first = self.check(str(apps.built("shared_segments", source, "-D_GNU_SOURCE")))
        self.assertEqual(first["h0"], SEGMENTS)

    def test_a_shell_with_pipes_and_jobs(self):
        self.check(f"sh {apps.PROGRAMS / 'jobs.sh'}")

    def test_fio(self):
        with apps.folder() as path:  # a shell script ignores the server's address that a client gets
            script = path / "fio.sh"
            script.write_text("fio --name=a --ioengine=null --size=1m --bs=4k --rw=randrw --iodepth=4\n")
            self.check(f"sh {script}")

    def test_another_seed_reproduces_too(self):
        self.check("ibv_rc_pingpong -d rnic0 -g 1 -n 50", "--seed", "7")


if __name__ == "__main__":
    apps.main()
