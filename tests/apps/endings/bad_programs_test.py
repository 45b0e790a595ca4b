#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Bad input and programs that misbehave: a clear message, the correct exit status, and no effect on other programs.

usage: bad_programs_test.py path/to/rnicsim     (needs gcc and libibverbs' headers)
"""
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402
from apps import LeavesNothing, built  # noqa: E402

USAGE_ERROR = 2


def misbehave():
    return built("misbehave", (apps.PROGRAMS / "verbs" / "misbehave.c").read_text(), "-libverbs")


class CommandLine(LeavesNothing):
    def check(self, *arguments, says, status=USAGE_ERROR):
        result = self.call(*arguments)
        self.assertEqual(result.status, status, result)
        self.assertIn(says, result.err)
        self.assertTrue(result.err.startswith("rnicsim: "), result)
        self.assertEqual(len(result.err.splitlines()), 1, result)

    def test_unknown_profile(self):
        self.check("run", "--nic", "nope", "--", "true", says="no NIC profile is called 'nope'; there are: ")

    def test_unknown_topology(self):
        self.check("run", "--topology", "ring", "--", "true", says="no topology is called 'ring'")

    def test_unknown_key(self):
        self.check("run", "--set", "nic.pcie.raed_latency=1ns", "--", "true",
                   says="did you mean nic.pcie.read_latency?")

    def test_missing_unit(self):
        self.check("run", "--set", "nic.pcie.read_latency=400", "--", "true", says="'400' is not a time with its unit")

    def test_unknown_unit(self):
        self.check("run", "--set", "nic.pcie.read_latency=4 parsecs", "--", "true", says="nic.pcie.read_latency")

    def test_out_of_range(self):
        self.check("run", "--set", "nic.pcie.read_latency=5s", "--", "true", says="out of range")

    def test_contradiction(self):
        self.check("run", "--set", "nic.pcie.read_bytes=256B", "--", "true",
                   says="nic.pcie.read_bytes: 256 B is less than nic.pcie.max_read_request, 512 B")

    def test_unknown_key_of_a_file(self):
        with apps.folder() as path:
            (path / "mine.toml").write_text('base = "cx5-100g"\n[nic.pcie]\nspeed = "1 Gb/s"\n')
            self.check("run", "--nic", path / "mine.toml", "--", "true", says="nic.pcie.speed")

    def test_a_program_without_its_mark(self):
        for options in ((), ("--seed", "3")):
            self.check("run", *options, "ib_write_bw", "-n", "5",
                       says="'ib_write_bw' is not an option; write `--` before a program: "
                            "rnicsim run -- ib_write_bw -n 5")
        self.check("run", "-n", "5", "ib_write_bw", says="-n")
        self.check("serve", "ib_write_bw", says="ib_write_bw")

    def test_unknown_program(self):
        self.check("run", "--", "no-such-program", says="no-such-program: no such program on PATH")
        self.check("run", "--", "", says="h0: : a program's name is empty")
        self.check("run", "--on", "h0", "/no/such", says="no such program")

    def test_unknown_host(self):
        self.check("run", "--on", "h7", "true", says="no host is called 'h7'")
        self.check("run", "--on", "h[0-5]", "true", says="no host is called 'h2'")

    def test_no_program(self):
        self.check("run", says="no program")

    def test_unknown_command(self):
        self.check("rnu", says="unknown command 'rnu'; did you mean run?")

    def test_unknown_time_mode(self):
        self.check("run", "--time=fast", "--", "true", says="'fast' is none of")

    def test_capture_that_cannot_be_written(self):
        self.check("run", "--pcap", "/no/such/folder/x.pcapng", "--", "true", says="/no/such/folder/x.pcapng")

    def test_results_that_cannot_be_written(self):
        result = self.call("run", "--json", "/no/such/folder/x.json", "--on", "h0", "true")
        self.assertEqual(result.status, USAGE_ERROR, result)
        self.assertIn("rnicsim: /no/such/folder/x.json: cannot be written", result.err)


class AlienPrograms(LeavesNothing):
    """Programs that cannot be simulated are refused before any program runs."""

    def refused(self, path, says):
        result = self.call("run", "--on", "h0", str(path))
        self.assertEqual(result.status, USAGE_ERROR, result)
        self.assertIn(f"{path}: ", result.err)
        self.assertIn(says, result.err)

    def file(self, name, content):
        folder = tempfile.mkdtemp(prefix="rnicsim-test-")
        self.addCleanup(shutil.rmtree, folder)
        path = pathlib.Path(folder) / name
        path.write_bytes(content)
        path.chmod(0o755)
        return path

    def test_static_program(self):
        self.refused(built("static", "int main(void) { return 0; }", "-static"), "statically linked")

    def test_tracers(self):
        self.refused(pathlib.Path("/usr/bin/gdb"), "--gdb")
        result = apps.run_on([("h0", "sh -c 'gdb --version || echo refused'")])
        self.assertEqual(result.lines("h0"), ["refused"], result)

    def test_object_file(self):
        self.refused(built("object.o", "int main(void) { return 0; }", "-c"), "not a program")

    def test_setuid_program(self):
        path = self.file("setuid", pathlib.Path("/bin/true").read_bytes())
        path.chmod(0o4755)
        self.refused(path, "setuid")

    def test_other_architecture(self):
        elf = bytearray(pathlib.Path("/bin/true").read_bytes())
        elf[18:20] = struct.pack("<H", 8)  # MIPS
        self.refused(self.file("mips", elf), "another architecture")

    def test_truncated_elf(self):
        self.refused(self.file("short", b"\x7fELF\x02\x01"), "")

    def test_neither_program_nor_script(self):
        self.refused(self.file("text", b"hello\n"), "neither a program nor a script")

    def test_script_without_its_interpreter(self):
        self.refused(self.file("script", b"#!/no/such/interpreter\n"), "/no/such/interpreter cannot be executed")

    def test_not_executable(self):
        path = self.file("plain", b"#!/bin/sh\n")
        path.chmod(0o644)
        self.refused(path, "not executable")

    def test_program_that_cannot_be_loaded(self):
        """The program's library is missing: the program ends before it attaches."""
        library = built("libgone.so", "int gone(void) { return 0; }", "-shared", "-fPIC")
        program = built("needs-gone", "int gone(void); int main(void) { return gone(); }", str(library))
        moved = library.with_name("moved-away")
        library.rename(moved)
        self.addCleanup(moved.rename, library)
        result = self.run_on(("h0", str(program)), ("h1", "true"))
        self.assertEqual(result.status, 127, result)
        self.assertIn("error while loading shared libraries", result.errors("h0"))
        self.assertIn("ended before it attached", result.err)


class Deaths(LeavesNothing):
    """A program dies at some point; its peer sees errors and ends normally."""
    STATUS = {"segv": 128 + signal.SIGSEGV, "kill": 128 + signal.SIGKILL, "abort": 128 + signal.SIGABRT, "exit": 5}

    def dies(self, mode, how):
        result = self.call("run", "--", str(misbehave()), mode, how)
        self.assertEqual(result.status, self.STATUS[how], result)
        self.assertEqual(result.lines("h1"), ["dying"], result)
        self.assertIn(f"ended with status {self.STATUS[how]}", result.summary())
        if how != "exit":
            self.assertIn("was killed by signal", result.summary())
        self.assertNotIn("not reproducible", result.out, result)
        return result

    def survivor_says(self, mode, how, *lines):
        result = self.dies(mode, how)
        self.assertEqual(result.lines("h0"), list(lines), result)
        self.assertNotIn("h0: ", result.summary())

    def survivor_still_waits(self, mode, how):
        """No client will connect: the server's wait ends the run with a message."""
        result = self.dies(mode, how)
        self.assertIn("still waits for a connection", result.err, result)
        self.assertNotIn("h0: ", result.summary())

    def test_at_once(self):
        self.survivor_still_waits("die-first", "segv")

    def test_after_open(self):
        self.survivor_still_waits("die-after-open", "kill")

    def test_before_connect(self):
        self.survivor_still_waits("die-before-connect", "exit")

    def test_after_connect(self):
        for how in ("segv", "exit"):
            with self.subTest(how=how):
                self.survivor_says("die-after-connect", how, "peer left before the exchange")

    def test_while_the_peer_waits(self):
        for how in ("kill", "abort"):
            with self.subTest(how=how):
                self.survivor_says("die-while-peer-waits", how, "the stream ended",
                                   "completion: transport retry counter exceeded", "done")

    def test_mid_traffic(self):
        for how in ("segv", "kill", "exit"):
            with self.subTest(how=how):
                self.survivor_says("die-mid-traffic", how, "the stream ended",
                                   "completion: transport retry counter exceeded", "done")

    def test_while_the_peer_writes(self):
        for how in ("segv", "kill"):
            with self.subTest(how=how):
                lines = self.dies("die-while-peer-writes", how).lines("h0")
                # Writes are accepted until the kernel agent has destroyed the queue pair; later writes are not
                # answered.
                self.assertEqual(lines, ["completion: transport retry counter exceeded", "done"])

    def test_death_is_reproducible(self):
        first, second = (self.dies("die-while-peer-writes", "kill") for _ in range(2))
        self.assertEqual(first.out, second.out)

    def test_killed_from_outside(self):
        process = self.start("run", "--", "ib_write_bw", "-D", "1000")
        time.sleep(1.5)
        victims = [pid for pid in apps.processes_with(self.mark) if program_of(pid) == "ib_write_bw"]
        self.assertEqual(len(victims), 2)
        os.kill(max(victims), signal.SIGKILL)
        result = apps.finish(process)
        self.assertEqual(result.status, 137, result)
        self.assertIn("was killed by signal 9", result.summary())

    def test_interrupted_simulator(self):
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=signal_number):
                process = self.start("run", "--", "ib_write_bw", "-D", "1000")
                time.sleep(1)
                process.send_signal(signal_number)
                result = apps.finish(process)
                self.assertEqual(result.status, 128 + signal_number, result)
                self.assertEqual(apps.processes_with(self.mark), [])

    def test_killed_simulator(self):
        """The simulator's programs end when the simulator is killed."""
        process = self.start("run", "--", "ib_write_bw", "-D", "1000")
        time.sleep(1)
        process.kill()
        process.wait()
        wait_until(lambda: not apps.processes_with(self.mark))

    def test_other_pair_is_not_disturbed(self):
        result = self.run_on(("h0", f"{misbehave()} die-mid-traffic segv"),
                             ("h1", f"{misbehave()} die-mid-traffic segv 10.0.0.1"),
                             ("h0", "ib_write_lat -n 50"), ("h1", "ib_write_lat -n 50 h0"))
        self.assertEqual(result.status, 139, result)
        rows = apps.perftest_rows(result.lines("h1"))
        self.assertEqual([row[1] for row in rows], [50], result)


def program_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def wait_until(condition, seconds=apps.RUN_SECONDS):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("it did not come to pass")
        time.sleep(0.02)


class BadWork(LeavesNothing):
    """Bad keys end in completion statuses, and the simulator goes on. Memory that the program has unmapped is still
    pinned."""

    def check(self, mode, client, server=()):
        result = self.call("run", "--", str(misbehave()), mode, "-")
        self.assertEqual(result.status, 0, result)
        self.assertEqual(result.lines("h1"), [f"completion: {client}", "done"], result)
        self.assertEqual(result.lines("h0"), [*server, "the stream ended", "done"], result)
        return result

    def test_bad_lkey(self):
        self.check("bad-lkey-send", "local protection error")
        self.check("bad-lkey-write", "local protection error")

    def test_bad_rkey(self):
        event = ["event: local access violation work queue error"]
        self.check("bad-rkey-write", "remote access error", event)
        self.check("bad-rkey-read", "remote access error", event)

    def test_remote_memory_unmapped_before_a_write(self):
        self.assertNotIn("unmapped", self.check("munmap-write", "success").err)

    def test_remote_memory_unmapped_before_a_read(self):
        self.assertNotIn("unmapped", self.check("munmap-read", "success").err)

    def test_local_memory_unmapped(self):
        self.assertNotIn("unmapped", self.check("munmap-local", "success").err)

    def test_an_ended_program_leaves_no_complaint(self):
        """Work that the device still holds for a normally ended program is not reported as an error."""
        result = self.check("bad-lkey-send", "local protection error")
        self.assertEqual(result.err, "")


class StandingStill(LeavesNothing):
    PAUSE = "#include <unistd.h>\nint main(void) { pause(); return 0; }"
    COUNT = "int main(void) { for (volatile unsigned long i = 0;; ++i) continue; }"

    def test_all_sleep_for_ever(self):
        result = self.run_on(("h[0-1]", str(built("pauses", self.PAUSE))))
        self.assertEqual(result.status, 1, result)
        self.assertIn("deadlock: every program waits, and no event is pending", result.out)
        for host in ("h0", "h1"):
            self.assertRegex(result.out, rf"{host} pauses \(pid \d+\) thread 0: sleeping")

    def test_one_sleeps_for_ever(self):
        result = self.run_on(("h0", str(built("pauses", self.PAUSE))), ("h1", "true"))
        self.assertNotEqual(result.status, 0, result)
        self.assertIn("deadlock", result.out)

    def test_a_server_that_nobody_calls(self):
        """The server counts as ended when the other programs have ended: no error, but a message."""
        result = self.run_on(("h0", "ib_write_lat"), ("h1", "true"))
        self.assertIn("ib_write_lat still waits for a connection", result.err, result)
        self.assertEqual(result.status, 0, result)

    def test_says_who_computes_without_end(self):
        process = self.start("run", "--on", "h0", str(built("counts", self.COUNT)))
        line = process.stderr.readline()
        self.assertRegex(line, r"rnicsim: simulated time stands at .* because counts \(pid \d+\) has run for \d+ s")
        process.send_signal(signal.SIGINT)
        self.assertEqual(apps.finish(process).status, 130)

    def test_one_is_stopped_for_ever(self):
        stops = built("stops", "#include <signal.h>\nint main(void) { return raise(SIGSTOP); }")
        result = self.run_on(("h0", str(stops)), ("h1", "true"))
        self.assertNotEqual(result.status, 0, result)
        self.assertRegex(result.out, r"h0 stops \(pid \d+\) thread 0: .*stopped until SIGCONT")

    def test_says_who_is_stopped_from_outside(self):
        process = self.start("run", "--on", "h0", str(built("counts", self.COUNT)))
        # A program that was stopped before it attached prints no such line.
        self.assertIn("has run for", process.stderr.readline())
        counts, = [pid for pid in apps.processes_with(self.mark) if program_of(pid) == "counts"]
        os.kill(counts, signal.SIGSTOP)
        line = process.stderr.readline()
        while line and "is stopped" not in line:
            line = process.stderr.readline()
        self.assertRegex(line, r"simulated time stands at .* because counts \(pid \d+\) is stopped, and continues at")
        process.send_signal(signal.SIGINT)
        self.assertEqual(apps.finish(process).status, 130)

    def test_signal_asks_who_holds_time(self):
        process = self.start("run", "--on", "h0", str(built("counts", self.COUNT)))
        time.sleep(1)
        process.send_signal(signal.SIGUSR1)
        self.assertRegex(process.stderr.readline(), r"^rnicsim: simulated time \d")
        self.assertRegex(process.stderr.readline(), r"h0 counts \(pid \d+\) thread 0: running")
        process.send_signal(signal.SIGINT)
        apps.finish(process)

    def test_signal_shows_queue_pairs(self):
        process = self.start("run", "--", "ib_write_bw", "-D", "1000")
        time.sleep(1.5)
        process.send_signal(signal.SIGUSR1)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        result = apps.finish(process)
        self.assertRegex(result.err, r"rnicsim: simulated time")
        self.assertRegex(result.err, r"(?i)qp 0x?[0-9a-f]+.*rts", result)


class Results(LeavesNothing):
    def test_results_of_a_failed_run(self):
        with apps.folder() as path:
            result = self.run_on_with_json(path / "results.json")
            results = apps.read_json(path / "results.json")
        self.assertEqual(result.status, 7, result)
        self.assertEqual(results["programs"], [{"host": "h0", "argv": ["sh", "-c", "exit 7"], "exit_status": 7}])
        self.assertEqual(results["seed"], 1)
        self.assertEqual(results["parameters"]["nic.pcie.read_latency"], "500 ns")
        self.assertEqual(set(results["hosts"]), {"h0", "h1"})
        self.assertGreater(results["end_ps"], 0)

    def test_results_of_caches_and_switches(self):
        with apps.folder() as path:
            result = self.call("run", "--json", path / "r.json", "--topology", "star:2", "--", "ib_write_lat", "-n",
                               "20")
            results = apps.read_json(path / "r.json")
        self.assertEqual(result.status, 0, result)
        for host in ("h0", "h1"):
            for cache in ("qpc", "cqc", "mpt", "mtt"):
                self.assertGreater(results["hosts"][host]["derived"][f"nic.contexts.{cache}.hit_rate"], 0.5, cache)
        sent = sum(host["counters"]["nic.port.tx_frames"] for host in results["hosts"].values())
        self.assertEqual(results["switches"]["s0"]["counters"]["frames"], sent)
        self.assertRegex(result.out, r"(?m)^ +nic\.contexts\.qpc\.l0_hit_rate +0\.\d{4} +0\.\d{4}  of 1$")
        self.assertRegex(result.out, rf"(?m)^    s0: frames {sent} frames$")

    def run_on_with_json(self, path):
        return self.call("run", "--json", path, "--set", "nic.pcie.read_latency=500ns", "--on", "h0", "sh -c 'exit 7'")


class Several(LeavesNothing):
    def test_two_simulators_at_once(self):
        alone = self.call("run", "--", "ib_write_lat", "-n", "50")
        both = [self.start("run", "--", "ib_write_lat", "-n", "50") for _ in range(2)]
        for process in both:
            result = apps.finish(process)
            self.assert_succeeded(result)
            self.assertEqual(result.lines("h1"), alone.lines("h1"))
            self.assertEqual(result.summary(), alone.summary())


HELLO = struct.Struct("<IHHIIII64s64s")
WELCOME = struct.Struct("<IHHiIQQ232s")
MAGIC = 0x524e4f53
ATTACH = (pathlib.Path(__file__).resolve().parents[3] / "model/abi/attach.h").read_text()
MAJOR, MINOR = (int(re.search(rf"kAttach{half} = (\d+);", ATTACH)[1]) for half in ("Major", "Minor"))


def hello(**changes):
    """The hello message of this process, with changes."""
    fields = {"magic": MAGIC, "major": MAJOR, "minor": MINOR, "pid": os.getpid(), "tid": os.getpid(), "parent": 0,
              "flags": 0, "host": b"h0", "program": b"stranger"} | changes
    return HELLO.pack(*fields.values())


def visitor_to(name):
    visitor = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    visitor.connect("\0" + name)  # waits while the listener's queue is full
    visitor.settimeout(apps.RUN_SECONDS)
    return visitor


class Strangers(LeavesNothing):
    """Connections of other processes to a run's socket, whose name every process can read, do not change the run."""
    PROGRAM = ("ib_write_lat", "-n", "1000")

    @staticmethod
    def socket_of(process):
        """The name of the socket at which the process listens. Simulators of other tests have similar sockets."""
        wait_until(lambda: apps.simulator_sockets(process.pid))
        return min(apps.simulator_sockets(process.pid)).lstrip("@")

    def test_do_not_disturb_a_run(self):
        alone = self.call("run", "--", *self.PROGRAM)
        process = self.start("run", "--", *self.PROGRAM)
        name = self.socket_of(process)
        strangers = []
        for message in (b"", b"x", os.urandom(152), os.urandom(100_000), hello(magic=0), hello(pid=1), hello(),
                        hello(flags=1, parent=process.pid), hello(flags=2)) * 3:
            strangers.append(visitor_to(name))
            strangers[-1].send(message)
        result = apps.finish(process)
        for stranger in strangers:
            stranger.close()
        self.assertEqual(result.status, 0, result)
        self.assertEqual(result.out, alone.out)


class Serve(LeavesNothing):
    """`rnicsim serve`, and connections to its socket. Each test has a socket name of its own."""

    def setUp(self):
        super().setUp()
        self.name = f"rnicsim-test-{os.getpid()}-{time.monotonic_ns()}"
        self.server = self.start("serve", RNICSIM_SOCKET=self.name)
        self.assertIn(f"serving at {self.name}", self.server.stdout.readline())

    def assert_nothing_left(self):
        super().assert_nothing_left()
        self.assertNotIn(f"@{self.name}", apps.simulator_sockets())

    def end(self):
        self.server.send_signal(signal.SIGTERM)
        result = apps.finish(self.server)
        self.assertEqual(result.status, 0, result)
        return result

    def environment_lines(self, host):
        result = apps.call("env", host, env=dict(self.environment, RNICSIM_SOCKET=self.name))
        self.assertEqual(result.status, 0, result)
        return result.out

    def script(self, host, command, says=None):
        """Runs a command like a user's script: eval, then exec. `says` replaces the host's name in the
        environment lines."""
        lines = self.environment_lines(host).replace(host, says or host)
        return subprocess.Popen(["sh", "-c", f'eval "$LINES_OF_RNICSIM"; exec {command}'],
                                env=dict(self.environment, LINES_OF_RNICSIM=lines),
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def visit(self, *messages):
        """Sends the messages and returns the answer; b'' when the connection was closed."""
        with visitor_to(self.name) as visitor:
            for message in messages:
                visitor.send(message)
            try:
                return visitor.recv(4096)
            except ConnectionResetError:
                return b""

    def refusal(self, message):
        answer = self.visit(message)
        self.assertEqual(len(answer), WELCOME.size)
        magic, _, _, error, _, _, _, text = WELCOME.unpack(answer)
        self.assertEqual(magic, MAGIC)
        self.assertNotEqual(error, 0)
        return text.rstrip(b"\0").decode(errors="replace")

    def assert_still_serves(self):
        script = self.script("h0", "ibv_devices")
        out, err = script.communicate(timeout=apps.RUN_SECONDS)
        self.assertEqual(script.returncode, 0, err)
        self.assertIn("rnic0", out)

    def test_programs_of_a_script(self):
        script = self.script("h1", "ibv_devinfo -v")
        out, err = script.communicate(timeout=apps.RUN_SECONDS)
        self.assertEqual(script.returncode, 0, err)
        self.assertIn("::ffff:10.0.1.1, RoCE v2", out)
        server = self.script("h0", "ib_write_lat -n 50")
        client = self.script("h1", "sh -c 'sleep 1; ib_write_lat -n 50 h0'")
        for program in (client, server):
            out, err = program.communicate(timeout=apps.RUN_SECONDS)
            self.assertEqual(program.returncode, 0, out + err)
        self.assertIn("simulated", self.end().out)

    # The parent learns of its child late in real time, after the child's hello.
    SLOW_FORK = """
        #include <pthread.h>
        #include <sys/syscall.h>
        #include <sys/wait.h>
        #include <time.h>
        #include <unistd.h>
        static void sleep_really(void) {
          const struct timespec time = {0, 200000000};
          syscall(SYS_nanosleep, &time, NULL);
        }
        int main(void) {
          pthread_atfork(NULL, sleep_really, NULL);
          const pid_t child = fork();
          if (child == 0) _exit(7);
          int status;
          return waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7 ? 0 : 1;
        }
    """

    def test_child_is_no_stranger(self):
        script = self.script("h0", str(built("slow-fork", self.SLOW_FORK)))
        out, err = script.communicate(timeout=apps.RUN_SECONDS)
        self.assertEqual(script.returncode, 0, out + err)
        self.assertNotIn("did not attach", self.end().err)

    def test_unknown_host(self):
        refused = apps.call("env", "h9", env=dict(self.environment, RNICSIM_SOCKET=self.name))
        self.assertEqual(refused.status, 2, refused)
        self.assertIn("has no host h9", refused.err)
        script = self.script("h0", "ibv_devices", says="h9")
        out, err = script.communicate(timeout=apps.RUN_SECONDS)
        self.assertNotEqual(script.returncode, 0, out)
        self.assertIn("there is no host h9", err)
        self.assert_still_serves()
        self.end()

    def test_corrupt_hellos(self):
        self.assertIn("malformed", self.refusal(b"x"))
        self.assertIn("malformed", self.refusal(os.urandom(4000)))
        self.assertIn("malformed", self.refusal(hello(magic=1)))
        self.assertIn("malformed", self.refusal(hello()[:-1]))
        self.assertIn("malformed", self.refusal(hello() + b"x"))
        self.assertIn(f"version {MAJOR + 1}", self.refusal(hello(major=MAJOR + 1)))
        self.assertIn("names another process", self.refusal(hello(pid=1)))
        self.assertIn("no host h9", self.refusal(hello(host=b"h9")))
        self.assertIn("no host", self.refusal(hello(host=b"\xff" * 64)))
        self.assert_still_serves()
        warned = self.end().err
        self.assertIn("malformed hello", warned)
        self.assertIn(f"version {MAJOR + 1}", warned)

    def test_visitors_who_say_nothing(self):
        silent = [visitor_to(self.name) for _ in range(20)]
        self.assert_still_serves()
        for visitor in silent:
            visitor.close()
        self.assert_still_serves()
        self.end()

    def test_visitors_without_end(self):
        """More connections than the server may open: the server closes them."""
        many = 1200
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        resource.prlimit(self.server.pid, resource.RLIMIT_NOFILE, (1024, 1024))
        visitors = [visitor_to(self.name) for _ in range(many)]
        self.assert_still_serves()
        for visitor in visitors:
            visitor.close()
        self.end()

    @unittest.skipUnless(os.geteuid() == 0, "only root can be somebody else")
    def test_visitor_of_another_user(self):
        child = os.fork()
        if child == 0:
            os.setuid(65534)
            with visitor_to(self.name) as visitor:
                os._exit(0 if b"refuses programs of user" in visitor.recv(4096) else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assert_still_serves()
        self.assertIn("the process belongs to user 65534", self.end().err)

    def test_visitor_who_attaches_and_leaves(self):
        """A complete hello, and then the process ends without a turn."""
        child = os.fork()
        if child == 0:
            os._exit(0 if self.visit(hello(pid=os.getpid(), tid=os.getpid())) else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assert_still_serves()
        self.end()

    def test_dead_program_of_a_script(self):
        victim = self.script("h0", f"{misbehave()} die-after-open kill 10.0.0.1")
        victim.communicate(timeout=apps.RUN_SECONDS)
        self.assertEqual(victim.returncode, -signal.SIGKILL)
        self.assert_still_serves()
        self.end()

    def test_name_that_is_taken(self):
        result = apps.call("serve", env=dict(self.environment, RNICSIM_SOCKET=self.name))
        self.assertEqual(result.status, 2, result)
        self.assertIn("cannot listen", result.err)
        self.assert_still_serves()
        self.end()

    def test_program_without_a_simulator(self):
        script = self.script("h0", "ibv_devices")
        script.communicate(timeout=apps.RUN_SECONDS)
        lines = self.environment_lines("h0")
        self.end()
        orphan = subprocess.run(["sh", "-c", 'eval "$L"; exec ibv_devices'], capture_output=True, text=True,
                                check=False, env=dict(self.environment, L=lines))
        self.assertNotEqual(orphan.returncode, 0, orphan.stdout)
        self.assertIn("rnicsim", orphan.stderr)


if __name__ == "__main__":
    apps.main()
