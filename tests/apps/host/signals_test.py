#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Signals and timers arrive in simulated time.

usage: signals_test.py path/to/rnicsim [--full]     (needs gcc)
"""
import concurrent.futures
import os
import pathlib
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402
from apps import LeavesNothing, built  # noqa: E402

SOURCE = apps.PROGRAMS / "calls" / "signals.c"
TIMES = """child heard 10 at 20
child ended by 15 at 40
nobody there 1 at 40
of the group 39 at 60
group 0 at 60
thread heard 12 at 65
awaited 3401 at 70
awaited 3402 at 70
awaited 1000 at 75
awaited in vain 1 at 82
waits 1 at 82
let through 2 at 82
ends 1 at 92
ends 1 at 96
ends 1 at 100
left 2003 at 104
posix 1 at 113
deleted 3 at 133
counter read 1 at 137""".splitlines()


SUBSTITUTES = """
for i in $(seq 150); do x=$(/bin/echo $i); y=$(true; echo $x | cat); done
date +%s.%N
"""


class Signals(LeavesNothing):
    def signals(self, how):
        return self.run_on(("h0", f"{built('signals', SOURCE.read_text())} {how}"))

    def sent(self, how, status):
        result = self.signals(how)
        self.assertEqual(result.status, status, result)
        self.assertNotIn("not reproducible", result.out, result)

    def test_times(self):
        """A Linux machine prints these lines, with times some milliseconds longer."""
        program = built("signal_times", (apps.PROGRAMS / "calls" / "signal_times.c").read_text(), "-lpthread")
        result = self.run_on(("h0", str(program)))
        self.assertEqual(result.lines("h0"), TIMES, result)
        self.assertNotIn("not reproducible", result.out, result)

    def check(self, name):
        """An idle Linux machine prints these lines, with times some milliseconds longer."""
        program = built(name, (apps.PROGRAMS / "calls" / f"{name}.c").read_text(), "-D_GNU_SOURCE", "-lpthread")
        expected = (apps.PROGRAMS / "calls" / f"{name}.txt").read_text().splitlines()
        for _ in range(2):
            result = self.run_on(("h0", str(program)))
            self.assertEqual(result.lines("h0"), expected, result)
            self.assertEqual(result.status, 0, result)
            self.assertNotIn("not reproducible", result.out, result)

    def test_descriptors(self):
        self.check("signal_descriptors")

    def test_timers_that_call_and_are_shared(self):
        self.check("timer_calls")

    def test_stops(self):
        self.check("stops")

    def test_stopped_jobs_of_shells(self):
        for shell in ("dash", "bash"):
            first, second = (self.run_on(("h0", f"{shell} {apps.PROGRAMS / 'stopped_jobs.sh'}")) for _ in range(2))
            self.assertEqual(first.status, 0, first)
            self.assertEqual(first.lines("h0"), second.lines("h0"))
            self.assertNotIn("not reproducible", first.out, first)
            self.assertIn("status 143", first.lines("h0"))

    def test_a_stopped_process_holds_nobody_up(self):
        result = self.run_on(("h0", "sh -c 'sleep 1 & kill -STOP $!; sleep 2; echo slept'"))
        self.assertEqual((result.lines("h0"), result.status), (["slept"], 0), result)

    def test_of_many_children(self):
        """Same output, whenever the real kernel reports a child's end: three runs at a time vary the real time
        (6 runs, with --full 12)."""
        with apps.folder() as folder:
            (folder / "substitutes.sh").write_text(SUBSTITUTES)
            with concurrent.futures.ThreadPoolExecutor(3) as lanes:
                runs = lanes.map(lambda _: self.run_on(("h0", f"bash {folder}/substitutes.sh")).out,
                                 range(12 if apps.full() else 6))
                self.assertEqual(len(set(runs)), 1)

    def test_from_outside(self):
        """Signals from outside the run reach a thread that waits and a thread that polls, while simulated time
        advances."""
        program = str(built("awaited_signals", (apps.PROGRAMS / "calls" / "awaited_signals.c").read_text()))
        process = self.start("run", "--on", "h0", program)
        self.assertIn("waits", process.stdout.readline())
        waiting = min(pid for pid in apps.processes_with(self.mark)
                      if pathlib.Path(f"/proc/{pid}/exe").resolve() == pathlib.Path(program))
        for number in (signal.SIGUSR1, signal.SIGTERM):
            time.sleep(0.3)
            os.kill(waiting, number)
        result = apps.finish(process)
        self.assertEqual([line for line in result.lines("h0") if line != "waits"],
                         ["heard 10", "polled 1 read 15", "nothing left 0"], result)
        self.assertIn("a signal came from outside the simulation", result.out, result)

    def test_killed_while_stopped(self):
        result = self.run_on(("h0", "sh -c 'sleep 1000 & kill -STOP $!; kill -KILL $!; wait $!'"))
        self.assertEqual(result.status, 128 + signal.SIGKILL, result)
        self.assertNotIn("not reproducible", result.out, result)

    def test_of_timeout(self):
        result = self.run_on(("h0", "timeout 0.01 sleep 1"))
        self.assertEqual(result.status, 124, result)
        self.assertRegex(result.summary(), r"^--- 1[01]\.\d+ ms simulated", result)
        self.assertNotIn("not reproducible", result.out, result)

    def test_kill(self):
        self.sent("kill", signal.SIGTERM)

    def test_group(self):
        self.sent("killpg", signal.SIGKILL)

    def test_queued(self):
        self.sent("sigqueue", signal.SIGINT)

    def test_two(self):
        self.sent("twice", signal.SIGTERM)

    def test_from_a_handler(self):
        self.sent("handler", signal.SIGTERM)

    def test_before_an_exec(self):
        self.sent("exec", 0)

    def test_of_a_shell(self):
        result = self.run_on(("h0", "sh -c 'sleep 1000 & kill $!; wait $!'"))
        self.assertEqual(result.status, 128 + signal.SIGTERM, result)
        self.assertNotIn("not reproducible", result.out, result)

    def test_to_itself(self):
        self.sent("self", 0)

    def test_that_nobody_gets(self):
        self.sent("nobody", 0)


if __name__ == "__main__":
    apps.main()
