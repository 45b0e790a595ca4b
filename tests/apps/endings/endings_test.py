#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Every run ends, by itself or on a signal, and prints the reason.

usage: endings_test.py path/to/rnicsim     (needs gcc and libibverbs' headers)
"""
import os
import pathlib
import pty
import re
import resource
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402
from apps import LeavesNothing, built  # noqa: E402

USAGE_ERROR, LIMIT = 2, 124
SECOND = 10**12
COUNT = "int main(void) { for (volatile unsigned long i = 0;; ++i) continue; }"


def misbehave():
    return built("misbehave", (apps.PROGRAMS / "verbs" / "misbehave.c").read_text(), "-libverbs")


def endings():
    return built("endings", (apps.PROGRAMS / "verbs" / "endings.c").read_text(), "-libverbs")


def counts():
    return built("counts", COUNT)


class Endings(LeavesNothing):
    def results(self, *arguments, **options):
        """The result of a run and the JSON that it wrote with --json."""
        with apps.folder() as path:
            result = self.call("run", "--json", path / "results.json", *arguments, **options)
            return result, apps.read_json(path / "results.json")

    def assert_shows_state(self, result, *threads):
        for thread in threads:
            self.assertRegex(result.out, rf"{thread}", result)


class Crash(Endings):
    """The client dies; the server polls a queue that gets no more completions."""
    def dies(self, how, *options):
        return self.results(*options, "--", str(misbehave()), "die-while-peer-polls", how)

    def test_is_told_at_once(self):
        process = self.start("run", "--grace=never", "--", str(misbehave()), "die-while-peer-polls", "segv")
        self.assertRegex(process.stderr.readline(), r"^rnicsim: h1: .*misbehave was killed by signal 11 \(Seg")
        process.send_signal(signal.SIGTERM)
        result = apps.finish(process)
        self.assertEqual(result.status, 128 + signal.SIGTERM, result)
        self.assert_shows_state(result, r"ended by signal 15 \(Terminated\)", r"h0 misbehave \(pid \d+\) thread 0: ",
                                r"qp 0x[0-9a-f]+ of PASID \d+ RC RTS -> 0x[0-9a-f]+: 0 sends outstanding")

    def test_ends_the_run(self):
        """No event is pending that the server's loop of empty polls could wait for."""
        for how, status in (("segv", 128 + signal.SIGSEGV), ("exit", 5)):
            with self.subTest(how=how):
                result, written = self.dies(how)
                self.assertEqual(result.status, status, result)
                self.assertIn("deadlock: every program waits, and no event is pending", result.out)
                self.assertTrue(any("deadlock" in warning for warning in written["warnings"]))
                self.assert_shows_state(result, r"h0 misbehave \(pid \d+\) thread 0: .*polling a queue", "RC RTS")
                self.assertLess(written["end_ps"], SECOND)

    def test_grace_can_be_chosen(self):
        _, written = self.dies("segv", "--grace", "20ms")
        self.assertLess(written["end_ps"], 0.2 * SECOND)

    def test_is_reproducible(self):
        first, second = (self.dies("segv")[0].out for _ in range(2))
        self.assertEqual(first, second)

    def test_work_in_hand_is_waited_for(self):
        """The survivor's retries take longer than the grace period."""
        result = self.call("run", "--grace", "100us", "--", str(misbehave()), "die-mid-traffic", "kill")
        self.assertEqual(result.lines("h0"),
                         ["the stream ended", "completion: transport retry counter exceeded", "done"], result)

    def test_a_sleeper_is_waited_for(self):
        result = self.run_on(("h0", "sh -c 'sleep 30; echo woke'"), ("h1", "sh -c 'exit 3'"))
        self.assertEqual(result.status, 3, result)
        self.assertEqual(result.lines("h0"), ["woke"], result)

    def test_death_that_nobody_sees(self):
        """The victim is killed during an endless wait, beside a program that runs for ever: the simulator cannot see
        the death by a turn."""
        process = self.start("run", "--wall-limit", "30s", "--on", "h0", f"{endings()} waits", "--on", "h1",
                             f"{endings()} works")
        self.assertEqual([process.stdout.readline() for _ in range(2)], ["h0| waits\n", "h1| works\n"])
        victim, = [pid for pid in apps.processes_with(self.mark)
                   if pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:2] ==
                   [bytes(endings()), b"waits"]]
        os.kill(victim, signal.SIGKILL)
        self.assertRegex(process.stderr.readline(), r"^rnicsim: h0: .*endings was killed by signal 9 \(Killed\)")
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        result = apps.finish(process)
        self.assertEqual(result.status, 128 + signal.SIGTERM, result)
        self.assert_shows_state(result, r"ended by signal 15 \(Terminated\)", r"h1 endings \(pid \d+\) thread 0: ")


class Creeping(Endings):
    """Simulated time advances without any other progress."""

    def test_server_with_a_timeout(self):
        """A server that waits with a timeout counts as ended when the others have ended, like a server without a
        timeout."""
        result, written = self.results("--on", "h0", f"{endings()} tick 500", "--on", "h1", "true")
        self.assertEqual(result.status, 0, result)
        self.assertIn("still waits for a connection", result.err)
        self.assertLess(written["end_ps"], 20 * SECOND)

    def test_server_beside_a_failure(self):
        result, written = self.results("--on", "h0", f"{endings()} tick 500", "--on", "h1", "false")
        self.assertEqual(result.status, 1, result)
        self.assertLess(written["end_ps"], 4 * SECOND)

    def test_server_of_python(self):
        result = self.run_on(("h0", "python3 -m http.server 8000"), ("h1", "true"))
        self.assertEqual(result.status, 0, result)
        self.assertIn("still waits for a connection", result.err)


class Limits(Endings):
    def test_simulated(self):
        result, written = self.results("--limit", "1020ms", "--", "ib_write_bw", "-D", "1000")
        self.assertEqual(result.status, LIMIT, result)
        self.assertEqual(written["end_ps"], 1.02 * SECOND)
        self.assert_shows_state(result, "ended at the limit of 1.02 s of simulated time", "h0 ib_write_bw",
                                "h1 ib_write_bw", "RC RTS")

    def test_before_the_devices_are_ready(self):
        result = self.call("run", "--limit", "1us", "--on", "h0", "true")
        self.assertEqual(result.status, LIMIT, result)
        self.assertIn("ended at the limit of 1 us of simulated time", result.out)
        self.assertEqual(result.err, "")

    def test_that_is_not_reached_changes_nothing(self):
        program = ("--", "ib_write_lat", "-n", "50")
        self.assertEqual(self.call("run", "--limit", "100s", "--wall-limit", "1000s", *program).out,
                         self.call("run", *program).out)

    def test_a_standstill_comes_first(self):
        program = ("--on", "h0", str(built("pauses", "#include <unistd.h>\nint main(void) { return pause(); }")))
        result = self.call("run", "--limit", "3600s", *program)
        self.assertIn("deadlock", result.out)
        self.assertEqual(result.out, self.call("run", *program).out)

    def test_wall(self):
        """The limit also holds when no simulated time passes."""
        result = self.call("run", "--wall-limit", "1500ms", "--on", "h0", str(counts()))
        self.assertEqual(result.status, LIMIT, result)
        self.assert_shows_state(result, "ended at the limit of 1.5 s of wall time",
                                r"h0 counts \(pid \d+\) thread 0: running")

    def test_wall_of_one_who_never_stops_printing(self):
        for command in ("yes", "cat /dev/zero"):
            with self.subTest(command=command):
                process = subprocess.Popen([apps.rnicsim(), "run", "--wall-limit", "2s", "--on", "h0", command],
                                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                           stderr=subprocess.DEVNULL, env=self.environment)
                self.assertEqual(process.wait(timeout=apps.RUN_SECONDS), LIMIT)

    def test_bench(self):
        result = self.call("bench", "write-4k", "--set", "measure.duration=10ms", "--limit", "13ms")
        self.assertEqual(result.status, LIMIT, result)
        self.assertIn("ended at the limit of 13 ms of simulated time", result.err)
        self.assertRegex(result.err, "RC RTS")

    def test_bench_that_is_interrupted(self):
        process = self.start("bench", "write-4k", "--set", "measure.duration=1000s")
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        result = apps.finish(process)
        self.assertEqual(result.status, 128 + signal.SIGINT, result)
        self.assertIn("ended by signal 2", result.err)
        self.assertIn("wait for their completions", result.err)

    def test_serve(self):
        name = f"rnicsim-test-{os.getpid()}-{time.monotonic_ns()}"
        result = apps.call("serve", "--wall-limit", "1s", env=dict(self.environment, RNICSIM_SOCKET=name))
        self.assertEqual(result.status, LIMIT, result)

    def test_wrong_values(self):
        wrong = dict.fromkeys(("--limit=5", "--wall-limit=soon", "--grace=-1s"), "is not a time with its unit")
        wrong.update(dict.fromkeys(("--limit=0s", "--wall-limit=0s", "--grace=0s"), "is not a time above 0"))
        for option, why in wrong.items():
            with self.subTest(option=option):
                result = self.call("run", option, "--", "true")
                self.assertEqual(result.status, USAGE_ERROR, result)
                name, value = option.split("=")
                self.assertEqual(result.err, f"rnicsim: {name}: '{value}' {why}"
                                 f"{', such as 10s' if 'unit' in why else ''}\n")


class ToldTwice(Endings):
    """timeout(1) signals its child and then its whole process group: both signals are a single request."""
    LONG = ("--on", "h0", "ib_write_bw -D 1000", "--on", "h1", "ib_write_bw -D 1000 10.0.0.1")

    def test_run_by_timeout(self):
        for signal_name, number in (("TERM", signal.SIGTERM), ("INT", signal.SIGINT)):
            for _ in range(3):
                with apps.folder() as folder:
                    results = folder / "results.json"
                    done = subprocess.run(["timeout", "--signal", signal_name, "2", apps.rnicsim(), "run", "--json",
                                           results, *self.LONG], env=self.environment, text=True, capture_output=True,
                                          timeout=apps.RUN_SECONDS, check=False)
                    self.assertIn(f"ended by signal {number}", done.stdout)
                    self.assertIn("simulated", done.stdout)
                    self.assertIn(f"ended by signal {number}", apps.read_json(results)["warnings"][0])

    def ended_by(self, process, gaps, number=signal.SIGTERM):
        process.send_signal(number)
        for gap in gaps:
            time.sleep(gap)
            process.send_signal(number)
        return apps.finish(process)

    def test_however_far_the_first_has_come(self):
        for gap in (0, 0.002, 0.01, 0.05):
            with self.subTest(gap=gap):
                process = self.start("run", "--topology", "star:8", "--on", "h[0-7]", "sh -c 'echo on; exec sleep 1e6 "
                                     "& while :; do :; done'")
                self.assertEqual(process.stdout.readline()[2:], "| on\n")
                result = self.ended_by(process, [gap] * 3)
                self.assertEqual(result.status, 128 + signal.SIGTERM, result)
                self.assertIn("ended by signal 15", result.out)

    def test_serve_leaves_nothing(self):
        name = f"rnicsim-test-{os.getpid()}-{time.monotonic_ns()}"
        process = self.start("serve", RNICSIM_SOCKET=name)
        self.assertIn(name, process.stdout.readline())
        result = self.ended_by(process, [0, 0.002])
        self.assertEqual(result.status, 0, result)
        self.assertIn("simulated", result.out)
        for folder in ("/tmp", "/dev/shm"):
            self.assertFalse(pathlib.Path(f"{folder}/rnicsim-hosts.{name}").exists())

    def test_bench(self):
        process = self.start("bench", "write-4k", "--set", "measure.duration=1000s")
        time.sleep(1)
        result = self.ended_by(process, [0, 0.002])
        self.assertEqual(result.status, 128 + signal.SIGTERM, result)
        self.assertIn("wait for their completions", result.err)


class AtTheBeginning(Endings):
    """A signal during the bring-up of the hosts' devices, which takes a while with these many hosts."""
    def interrupted(self, *arguments, **changes):
        process = self.start(arguments[0], "--topology", "star:48", *arguments[1:], **changes)
        while f"@rnicsim-top-{os.getuid()}-{process.pid}" not in apps.sockets_of_runs():
            self.assertIsNone(process.poll())
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        return apps.finish(process)

    def test_run(self):
        result = self.interrupted("run", "--", "ib_write_bw", "-D", "1000")
        self.assertEqual(result.status, 128 + signal.SIGINT, result)
        self.assertIn("ended by signal 2", result.out)
        self.assertEqual(result.err, "")

    def test_serve(self):
        result = self.interrupted("serve", RNICSIM_SOCKET=f"rnicsim-test-{os.getpid()}-{time.monotonic_ns()}")
        self.assertEqual((result.status, result.err), (0, ""), result)
        self.assertIn("us simulated", result.out)


class AlienImages(Endings):
    """A program may not exec an image that cannot be simulated; the exec fails with an error, and the run does not
    wait."""
    WAYS = ("execve", "execvp", "execl", "fexecve", "execveat", "posix_spawn", "posix_spawnp")

    def refused(self, path, says):
        environment = dict(self.environment, PATH=f"{path.parent}:{os.environ['PATH']}")
        result = apps.run_on((("h0", f"{endings()} execute {path}"), ("h1", "ibv_devices")), env=environment)
        self.assert_succeeded(result)
        self.assertEqual(result.lines("h0"), [f"{way}: ENOEXEC" for way in self.WAYS] +
                         ["a child: 7", "no such file: ENOENT", "no program: EACCES"], result)
        self.assertRegex(result.err, rf"rnicsim: h0: endings \(pid \d+\) cannot execute {path}: .*{says}")
        self.assertIn("rnic0", result.text("h1"))

    def test_static(self):
        self.refused(built("static", "int main(void) { return 0; }", "-static"), "statically linked")

    def test_script_of_a_static_interpreter(self):
        static = built("static", "int main(void) { return 0; }", "-static")
        with apps.folder() as folder:
            script = folder / "script"
            script.write_text(f"#!{static}\n")
            script.chmod(0o755)
            second = folder / "of-a-script"
            second.write_text(f"#!{script}\n")
            second.chmod(0o755)
            self.refused(script, f"its interpreter {static}: the program is statically linked")
            self.refused(second,
                         f"its interpreter {script}: its interpreter {static}: the program is statically linked")

    def test_the_loader_itself(self):
        """The loader has no interpreter, but attaches with the program that it loads."""
        loader = re.search(r"/\S*ld-linux\S*", subprocess.run(["ldd", "/bin/true"], capture_output=True, text=True,
                                                              check=True).stdout).group()
        result = self.run_on(("h0", f"sh -c '{loader} /bin/echo loaded'"), ("h1", "true"))
        self.assert_succeeded(result)
        self.assertEqual(result.lines("h0"), ["loaded"])


class Children(Endings):
    def run_mode(self, *arguments):
        result = self.run_on(("h0", " ".join([str(endings()), *arguments])), ("h1", "true"))
        self.assertEqual(result.status, 0, result)
        return result

    def test_dies_before_it_attaches(self):
        result = self.run_mode("child-dies")
        self.assertEqual(result.lines("h0"), ["the child ended with 7"], result)
        self.assertIn("did not attach", result.err)

    def test_cannot_be_loaded(self):
        library = built("libgone.so", "int gone(void) { return 0; }", "-shared", "-fPIC")
        program = built("needs-gone", "int gone(void); int main(void) { return gone(); }", str(library))
        moved = library.with_name("moved-away")
        library.rename(moved)
        self.addCleanup(moved.rename, library)
        result = self.run_mode("child-cannot-be-loaded", str(program))
        self.assertEqual(result.lines("h0"), ["the child ended with 127"], result)

    def test_stays_away(self):
        """The child never attaches. A signal ends the simulator's wait for the child, and the child itself."""
        process = self.start("run", "--on", "h0", f"{endings()} child-stays-away", "--on", "h1", "sleep 1")
        time.sleep(1.5)
        process.send_signal(signal.SIGTERM)
        result = apps.finish(process)
        self.assertEqual(result.status, 128 + signal.SIGTERM, result)
        self.assertNotIn("did not attach", result.err)

    def test_more_than_a_thousand(self):
        self.assertEqual(self.run_mode("children", "1100").lines("h0"), ["1100 known, 1100 waited for"])

    def test_popen(self):
        result = self.run_mode("popen")
        self.assert_succeeded(result)
        self.assertCountEqual(result.lines("h0"), ["from the shell", "to the shell", "they ended with 3 and 4"])


class Nothing(Endings):
    def test_frames_that_a_nic_had_no_room_for(self):
        result, written = self.results("--set", "nic.receive_buffer.size=32KiB", "--set", "nic.pcie.lanes=4", "--",
                                       "ib_send_bw", "-n", "200")
        self.assertEqual(result.status, 0, result)
        self.assertRegex(result.summary(), r"\n +h0: the NIC had no room for \d+ received frames and dropped them")
        self.assertEqual(len(written["warnings"]), 1, result)

    def test_over_a_stream(self):
        result = self.call("run", "--", str(endings()), "nothing")
        self.assert_succeeded(result)
        self.assertEqual(result.lines("h0"), ["read 0, readv 0", "recv 0, recvfrom 0, recvmsg 0, all 0", "then 1"],
                         result)
        self.assertEqual(result.lines("h1"), ["write 0, writev 0, send 0"], result)


def limit_descriptors(soft, hard):
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Descriptors(Endings):
    PROGRAMS = [("h0", "sh -c 'sleep 1; /bin/echo forked; ibv_devices | tail -1; echo end'"),
                ("h[1-3]", "ENDINGS channels 500")]

    def run_limited(self, soft, hard):
        commands = [(host, command.replace("ENDINGS", str(endings()))) for host, command in self.PROGRAMS]
        return apps.run_on(commands, "--topology", "star:4", env=self.environment,
                           preexec_fn=limit_descriptors(soft, hard))

    def test_without_standard_streams(self):
        with apps.folder() as folder:
            command = f"sh -c 'echo to both && echo >&2 && echo written > {folder}/file'"
            result = apps.run_on([("h0", command)], env=self.environment, preexec_fn=lambda: os.closerange(0, 3))
            self.assertEqual(result.status, 0, result)
            self.assertEqual((folder / "file").read_text(), "written\n")

    def test_a_hard_limit_below_what_programs_need(self):
        for most in (16, 64, 900):
            result = self.run_limited(most, most)
            self.assertEqual((result.status, result.out), (2, ""), result)
            self.assertEqual(result.err, f"rnicsim: a process may have at most {most} open files, but programs need "
                                         "901: raise the hard limit (ulimit -Hn)\n")

    # Opens files up to the soft limit, and forks; a grandchild prints how many it can still open.
    FORKS = r"""
        #include <fcntl.h>
        #include <stdio.h>
        #include <sys/resource.h>
        #include <sys/wait.h>
        #include <unistd.h>
        int main(void) {
          struct rlimit limit;
          getrlimit(RLIMIT_NOFILE, &limit);
          limit.rlim_cur = 1100;
          setrlimit(RLIMIT_NOFILE, &limit);
          int last = -1;
          for (int fd; (fd = open("/dev/null", O_RDONLY)) >= 0;) last = fd;
          for (int depth = 0; depth < 2; ++depth) {
            const pid_t child = fork();
            if (child < 0) return 1;
            if (child == 0) continue;
            int status;
            return waitpid(child, &status, 0) == child && status == 0 ? 0 : 2;
          }
          getrlimit(RLIMIT_NOFILE, &limit);
          printf("limit %d, none opened: %d\n", (int)limit.rlim_cur, open("/dev/null", O_RDONLY));
          close(last);
          printf("one opened: %d\n", open("/dev/null", O_RDONLY) == last);
          return 0;
        }
    """

    def test_a_fork_needs_none(self):
        result = self.assert_succeeded(self.run_on(("h0", str(built("forks", self.FORKS)))))
        self.assertEqual(result.lines("h0"), ["limit 1100, none opened: -1", "one opened: 1"], result)

    def test_a_file_that_is_too_large(self):
        """`ulimit -f`: an error line, and no death by SIGXFSZ."""
        limit = dict(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
        with apps.folder() as folder, open(folder / "out", "w", encoding="utf8") as out:
            done = subprocess.run([apps.rnicsim(), "describe", "nic"], stdout=out, stderr=subprocess.PIPE, text=True,
                                  env=self.environment, check=False, **limit)
        self.assertEqual((done.returncode, done.stderr), (2, "rnicsim: standard output: File too large\n"))
        result = self.call("run", "--on", "h0", "true", **limit)
        self.assertEqual((result.status, result.out), (2, ""), result)
        self.assertRegex(result.err, r"^rnicsim: .*: File too large\n$")

    def test_memory_that_the_system_refuses(self):
        """Memory is exhausted before the hosts are up, and after."""
        for most in (200, 1000):
            limit = (most << 20, most << 20)
            result = self.call("run", "--", "true", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit))
            self.assertEqual((result.status, result.out), (2, ""), result)
            self.assertRegex(result.err, r"^rnicsim: .*: Cannot allocate memory\n$")

    def test_the_soft_limit_is_raised(self):
        result = self.assert_succeeded(self.run_limited(1024, 4096))
        for host in ("h1", "h2", "h3"):
            self.assertEqual(result.lines(host), ["limit 1024", "all channels"], result)

    def test_at_the_hard_limit_objects_are_refused(self):
        result = self.run_limited(1024, 1024)
        self.assertEqual(result.lines("h0")[0], "forked", result)
        self.assertEqual(result.lines("h0")[-1], "end", result)
        self.assertEqual(result.lines("h1"), ["limit 1024", "all channels"], result)
        self.assertEqual(result.lines("h2"), ["limit 1024", "channels: EMFILE", "some channels"], result)
        self.assertEqual(result.lines("h3"), ["open: EMFILE"], result)
        self.assertIn("not reproducible: calls of programs failed", result.out)
        self.assertRegex(result.err, r"rnicsim: h\d: endings \(pid \d+\) is refused a channel: the simulator is out of "
                                     r"file descriptors: \d+ of 1024 are open; raise the hard limit")


# Refuses a system call like a container's profile, unless (or only if) the first argument has a certain value; then
# execs.
SECCOMP = """
import ctypes, os, struct, sys
refused, condition, value, command = int(sys.argv[1]), sys.argv[2], int(sys.argv[3], 0), sys.argv[4:]
EPERM, KEEP = 0x50001, 0x7fff0000
equal, other = {"unless": (1, 0), "if": (0, 1)}[condition]     # steps to skip
program = [(0x20, 0, 0, 0), (0x15, 0, 3, refused), (0x20, 0, 0, 16), (0x15, equal, other, value), (6, 0, 0, EPERM),
           (6, 0, 0, KEEP)]
code = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *step) for step in program))
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Program(len(program), ctypes.addressof(code)))) == 0, ctypes.get_errno()
os.execv(command[0], command)
"""
CALLS = {"personality": 135, "prctl": 157, "process_vm_readv": 310, "process_vm_writev": 311, "pidfd_open": 434,
         "clone3": 435}
PR_SET_TSC = 26
NO_SUCH_ARGUMENT = 0xfffffffe


class Refused(Endings):
    """System calls that a container's seccomp profile may refuse."""

    def under_filter(self, call, condition, value, *arguments):
        command = [sys.executable, "-c", SECCOMP, str(CALLS[call]), condition, str(value), apps.rnicsim(),
                   *map(str, arguments)]
        return apps.finish(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                            stderr=subprocess.PIPE, text=True, env=self.environment))

    def test_fixed_addresses(self):
        """The run goes on, and reports the lost property."""
        with apps.folder() as path:
            result = self.under_filter("personality", "unless", 0xffffffff, "run", "--json", path / "r.json", "--",
                                       "ib_write_lat", "-n", "50")
            warnings = apps.read_json(path / "r.json")["warnings"]
        self.assertEqual(result.status, 0, result)
        lost = [f"not reproducible: {host}: ib_write_lat has different addresses in each run" for host in ("h0", "h1")]
        for warning, text in zip(sorted(warnings), lost):
            self.assertTrue(warning.startswith(text), warnings)
            self.assertIn("docker run --security-opt seccomp=unconfined", warning)
        self.assertEqual(len(warnings), 2)
        self.assertIn(lost[0], result.out)

    def test_trap_of_the_time_stamp_counter(self):
        """The run goes on, and reports that programs read the real counter."""
        result = self.under_filter("prctl", "if", PR_SET_TSC, "run", "--", "ib_write_lat", "-n", "50")
        self.assertEqual(result.status, 0, result)
        self.assertIn("not reproducible: programs read the real time-stamp counter, because prctl(PR_SET_TSC) was "
                      "refused", result.out)

    def test_what_it_cannot_do_without(self):
        for call in ("process_vm_readv", "process_vm_writev", "pidfd_open", "clone3"):
            with self.subTest(call=call):
                result = self.under_filter(call, "unless", NO_SUCH_ARGUMENT, "run", "--", "ib_write_lat", "-n", "50")
                self.assertEqual(result.status, USAGE_ERROR, result)
                self.assertRegex(result.err, rf"^rnicsim: {call} is refused \(Operation not permitted\): .*; a seccomp "
                                             r"filter is in force; in a container: docker run --security-opt "
                                             r"seccomp=unconfined --cap-add SYS_PTRACE\n$")
                self.assertEqual(result.out, "")


ERASE = "\r\x1b[K"
# Prints, and computes for a while in real time.
SLOW = """
    #include <stdio.h>
    #include <sys/syscall.h>
    #include <time.h>
    #include <unistd.h>
    static double now(void) {
      struct timespec t;
      syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
      return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
    }
    int main(void) {
      for (int line = 0; line < 4; ++line) {
        printf("line %d\\n", line);
        usleep(1000);
        for (const double start = now(); now() - start < 2;) continue;
      }
      return 0;
    }
"""


class ProgressLine(Endings):
    def on_terminal(self, *arguments, term="xterm"):
        """All output of a run whose standard output and error are a terminal."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen([apps.rnicsim(), *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=theirs,
                                   stderr=theirs, env=dict(self.environment, TERM=term))
        os.close(theirs)
        text = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # no process has the terminal open any more
                break
            if not part:
                break
            text += part
        os.close(ours)
        self.assertEqual(process.wait(timeout=apps.RUN_SECONDS), 0, text)
        return text.decode().replace("\r\n", "\n")

    def test_tells_how_far_it_is(self):
        text = self.on_terminal("run", "--on", "h0", built("slow", SLOW))
        doing = r"[\d.]+ m?s simulated, [\d.]+ \S+ a second; h0 slow \(pid \d+\): (due|running)"
        self.assertRegex(text, r"\r\x1b\[K" + doing)

    def test_leaves_the_lines_alone(self):
        text = self.on_terminal("run", "--on", "h0", built("slow", SLOW))
        shown = [line.rsplit(ERASE, 1)[-1] for line in text.split("\n")]
        self.assertEqual([line for line in shown if line.startswith("h0|")], [f"h0| line {i}" for i in range(4)])
        self.assertNotIn(" a second; ", "\n".join(shown))

    def test_is_on_terminals_only(self):
        self.assertNotIn("\x1b", self.on_terminal("run", "--on", "h0", built("slow", SLOW), term="dumb"))
        result = self.run_on(("h0", str(built("slow", SLOW))), ("h1", "true"))
        self.assertNotIn("\x1b", result.out + result.err)

    def test_of_bench_and_calibrate(self):
        text = self.on_terminal("bench", "write-4k", "--set", "measure.duration=200ms")
        self.assertRegex(text, r"[\d.]+ \S+ simulated, [\d.]+ \S+ a second; \d+ operations done")
        self.assertRegex(self.on_terminal("calibrate", "CAL-6", "--jobs", "1"), r"\d of \d+ points done; waits for ")


if __name__ == "__main__":
    apps.main()
