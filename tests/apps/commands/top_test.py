#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
`rnicsim top`: its display of a run, on a terminal and as text; and the run itself is not disturbed by observers.

usage: top_test.py path/to/rnicsim     (needs pyte)
"""
import fcntl
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import sys
import termios
import time

import pyte

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402

LONG_RUN = ("run", "--limit", "100s", "--", "ib_write_bw", "-n", "50000000")


class Screen:
    """top at a pseudo-terminal, and the contents of its screen."""

    def __init__(self, arguments, environment, rows=24, columns=80):
        begin, told = os.pipe()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.close(told)
            os.read(begin, 1)
            os.execve(apps.rnicsim(), [apps.rnicsim(), "top", *map(str, arguments)], environment)
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.resize(rows, columns)
        self.attributes = termios.tcgetattr(self.fd)  # before the program changes them
        os.close(begin)
        os.close(told)

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.screen.resize(rows, columns)

    def send(self, keys):
        os.write(self.fd, keys.encode())

    def lines(self):
        return [line.rstrip() for line in self.screen.display]

    def text(self):
        return "\n".join(self.lines())

    def read(self, seconds):
        """Reads once. False: the output has ended."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            got = os.read(self.fd, 65536)
        except OSError:
            return False
        self.raw += got
        self.stream.feed(got)
        return bool(got)

    def wait_for(self, condition, what):
        end = time.monotonic() + apps.RUN_SECONDS
        while not condition():
            if time.monotonic() > end or not self.read(0.2):
                raise AssertionError(f"{what}: not on the screen\n{self.text()}")

    def wait_for_text(self, pattern):
        self.wait_for(lambda: re.search(pattern, self.text()), pattern)

    def status(self):
        end = time.monotonic() + apps.RUN_SECONDS
        while time.monotonic() < end and self.read(0.2):
            pass
        return apps.shell_status(os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]))


def simulated(screen):
    """The simulated time in the second line, as text."""
    found = re.match(r"[\d.e+]+ \S+ simulated", screen.lines()[1])
    return found and found[0]


class TopCase(apps.LeavesNothing):
    def setUp(self):
        super().setUp()
        self.environment["TERM"] = "xterm"
        self.environment["RNICSIM_SOCKET"] = f"rnicsim-test-{os.getpid()}-{time.monotonic_ns()}"

    def long_run(self, *arguments):
        run = self.start(*(arguments or LONG_RUN))
        end = time.monotonic() + apps.RUN_SECONDS
        while f"@{self.socket_of(run)}" not in apps.sockets_of_runs() and time.monotonic() < end:
            time.sleep(0.02)
        return run

    @staticmethod
    def socket_of(run):
        return f"rnicsim-top-{os.geteuid()}-{run.pid}"

    def top(self, *arguments):
        return self.call("top", *arguments)

    def snapshot(self, run):
        result = self.top(run.pid, "--json", "--delay", "100ms")
        self.assertEqual(result.status, 0, result)
        return json.loads(result.out)

    def snapshot_with_traffic(self, run):
        """Waits for full traffic. Rates are per simulated second: the cable's rate, however slow the run is."""
        end = time.monotonic() + apps.RUN_SECONDS
        while (seen := self.snapshot(run))["adapters"]["h1"]["tx_bits_per_second"] < 50e9:
            self.assertLess(time.monotonic(), end, seen)
        return seen

    def assert_nothing_left(self):
        # A simulator's programs end shortly after the simulator.
        end = time.monotonic() + apps.RUN_SECONDS
        while apps.processes_with(self.mark) and time.monotonic() < end:
            time.sleep(0.05)
        super().assert_nothing_left()


class Text(TopCase):
    def test_rates_of_a_run(self):
        run = self.long_run("run", "--fault", "drop=1e-3", *LONG_RUN[1:])
        seen = self.snapshot_with_traffic(run)
        h0, h1 = seen["adapters"]["h0"], seen["adapters"]["h1"]
        self.assertEqual(seen["pid"], run.pid)
        self.assertIn("rnicsim run --fault drop=1e-3", seen["command_line"])
        self.assertLess(h1["tx_bits_per_second"], 100.5e9)
        self.assertGreater(h1["shares"]["port.tx"], 0.5)
        self.assertAlmostEqual(h0["rx_packets_per_second"] / h1["tx_packets_per_second"], 1, delta=0.1)
        self.assertEqual(h1["counters"]["nic.port.tx_bytes"],
                         round(h1["tx_bits_per_second"] / 8 * seen["interval_ps"] / 1e12))
        self.assertGreater(h1["qpc_hit_rate"], 0.9)
        self.assertGreater(seen["simulated_seconds_per_second"], 0)
        programs = {(program["host"], program["program"]) for program in seen["programs"]}
        self.assertEqual(programs, {("h0", "ib_write_bw (pid 1000)"), ("h1", "ib_write_bw (pid 2000)")})
        later = self.snapshot(run)
        self.assertGreater(later["simulated_ps"], seen["simulated_ps"])
        text = self.top(run.pid, "--once", "--delay", "100ms")
        self.assertRegex(text.out, r"(?m)^host +tx Gb/s +rx Gb/s", text)
        self.assertRegex(text.out, r"(?m)^h1 +\d+\.\d\d ", text)
        self.assertRegex(text.out, r"h1: engine\.packet_seq_err \d+", text)

    def test_bench_switches_and_serve(self):
        bench = self.long_run("bench", "write-4k", "--set", "measure.duration=1000s")
        seen = self.snapshot(bench)
        self.assertIn("operations done", seen["work"])
        bench.kill()
        bench.wait()
        serve = self.long_run("serve", "--topology", "star:4")
        end = time.monotonic() + apps.RUN_SECONDS
        while (seen := self.snapshot(serve))["interval_ps"] != 0:  # an interval of 0 shows the devices' bring-up
            self.assertLess(time.monotonic(), end, seen)
        self.assertEqual((len(seen["adapters"]), len(seen["switches"]), seen["programs"]), (4, 1, []))
        self.assertEqual(seen["adapters"]["h3"]["tx_bits_per_second"], 0)

    def test_no_run_several_and_a_wrong_one(self):
        first, second = self.long_run(), self.long_run()
        result = self.top("--once")
        self.assertEqual((result.status, result.out), (2, ""), result)
        self.assertIn("several simulations are running", result.err)
        for run in (first, second):
            self.assertRegex(result.err, rf"(?m)^ +{run.pid}  .*ib_write_bw")
        result = self.top(os.getpid())
        self.assertEqual((result.status, result.out), (2, ""), result)
        self.assertIn(f"no simulation of yours has process ID {os.getpid()}", result.err)
        result = self.top(first.pid)
        self.assertEqual(result.status, 2, result)
        self.assertIn("--once prints the state as text", result.err)


class AtTheTerminal(TopCase):
    def show(self, *arguments, rows=24, **environment):
        screen = Screen(arguments, dict(self.environment, **environment), rows)
        self.addCleanup(os.close, screen.fd)
        return screen

    def test_numbers_that_move_keys_and_the_end(self):
        run = self.long_run()
        self.snapshot_with_traffic(run)
        screen = self.show(run.pid, "--delay", "100ms")
        screen.wait_for_text(r"(?m)^host +tx Gb/s.*busiest$")
        screen.wait_for_text(r"(?m)^h1 +[1-9]\d+\.\d\d ")
        first = simulated(screen)
        screen.wait_for(lambda: simulated(screen) not in (None, first), "another time")
        self.assertIn("2 programs, 2 threads", screen.lines()[1])
        self.assertRegex(screen.text(), r"h1: ib_write_bw \(pid 2000\): ")
        self.assertTrue(screen.lines()[-1].startswith("q quit  h help  s order: host"), screen.text())
        screen.send("h")
        screen.wait_for_text("Rates are over simulated time")
        screen.send("hs")
        screen.wait_for_text("s order: tx")
        # h1 sends, h0 receives.
        screen.wait_for(lambda: [line[:2] for line in screen.lines()[3:5]] == ["h1", "h0"], "h1 first")
        screen.resize(8, 60)
        screen.wait_for_text(r"\d+ more lines$")
        top = screen.lines()[:4]
        screen.send("\x1bOB" * 3)
        screen.wait_for(lambda: screen.lines()[3:4] != top[3:4] and screen.lines()[2] == top[2], "scrolled")
        screen.resize(40, 150)
        screen.wait_for_text(r"cqe M/s +cqc +mpt")
        screen.send("q")
        self.assertEqual(screen.status(), 0)
        self.assertIn(b"\x1b[?1049l", screen.raw)  # the previous screen is restored
        # The cursor is visible again.
        self.assertGreater(screen.raw.rfind(b"\x1b[?25h"), screen.raw.rfind(b"\x1b[?25l"))
        self.assertEqual(termios.tcgetattr(screen.fd)[:4], screen.attributes[:4])
        self.assertIsNone(run.poll())  # the run goes on

    def test_the_runs_end_is_said(self):
        run = self.long_run()
        screen = self.show("--delay", "100ms", run.pid, TERM="vt100")  # without colours
        screen.wait_for_text(r"(?m)^h1 ")
        run.send_signal(signal.SIGINT)
        apps.finish(run)
        self.assertEqual(screen.status(), 0)
        # top continues a long line in the next line, also after a space.
        text = re.sub(" +", " ", "".join(screen.screen.display))
        self.assertRegex(text, rf"the simulation \(pid {run.pid}\) has ended, last seen at [\d.]+ \S+ of simulated")

    def test_interrupt_restores_the_terminal(self):
        run = self.long_run()
        screen = self.show(run.pid)
        screen.wait_for_text(r"(?m)^h1 ")
        screen.send("\x03")
        self.assertEqual(screen.status(), 0)
        self.assertIn(b"\x1b[?1049l", screen.raw)
        self.assertIsNone(run.poll())

    def test_a_terminal_that_is_not_known(self):
        run = self.long_run()
        screen = self.show(run.pid, TERM="no-such-terminal")
        self.assertEqual(screen.status(), 2)
        self.assertIn("the terminal 'no-such-terminal' (TERM) is unknown", screen.text())


class Watched(TopCase):
    """Observers do not disturb a run."""

    def visitor(self, run):
        visitor = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.addCleanup(visitor.close)
        visitor.connect(f"\0{self.socket_of(run)}")
        visitor.settimeout(apps.RUN_SECONDS)
        return visitor

    def test_the_trace_is_the_same(self):
        with apps.folder() as folder:
            program = ("--", "ib_write_bw", "-n", "30000", "-s", "4096")
            for name in ("alone", "watched"):
                run = self.long_run("run", "--record", folder / name, *program)
                looks = 0
                while name == "watched" and run.poll() is None:
                    looks += self.top(run.pid, "--json", "--delay", "1ms").status == 0
                result = apps.finish(run)
                self.assertEqual(result.status, 0, result)
            self.assertGreater(looks, 0)
            diff = apps.call("diff", folder / "alone", folder / "watched")
            self.assertEqual(diff.status, 0, diff)

    def test_bytes_that_make_no_sense_and_viewers_that_hang(self):
        run = self.long_run()
        for nonsense in (b"\0", b"snapshot\nsnapshot\n", b"snapshoot\n", b"\xff" * 100_000, b"GET / HTTP/1.0\r\n\r\n"):
            visitor = self.visitor(run)
            try:
                visitor.sendall(nonsense)
                self.assertEqual(visitor.recv(10), b"", nonsense)
            except ConnectionError:
                pass
        # More clients than top's socket accepts: some ask and never read, some send nothing, some send half a request.
        for i in range(24):
            self.visitor(run).sendall((b"snapshot\n", b"", b"snap")[i % 3])
        before = self.snapshot(run)["simulated_ps"]
        self.assertGreater(self.snapshot(run)["simulated_ps"], before)
        self.assertLess(len(os.listdir(f"/proc/{run.pid}/fd")), 60)
        # A request in pieces.
        visitor = self.visitor(run)
        for piece in (b"snap", b"shot", b"\n"):
            visitor.sendall(piece)
            time.sleep(0.2)
        self.assertTrue(visitor.recv(9).startswith(b"{"))


if __name__ == "__main__":
    apps.main()
