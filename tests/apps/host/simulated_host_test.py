#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The simulated host as programs see it: name, clocks, numbers, random bytes and folders, by every call; and runs and
hosts in parallel do not disturb each other.

usage: simulated_host_test.py path/to/rnicsim     (needs gcc, g++, rustc and go)
"""
import ctypes
import fcntl
import os
import pathlib
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402
from apps import built  # noqa: E402

HOST_VIEW = apps.PROGRAMS / "host_view.c"
FILES = "/tmp/rnicsim-hosts."
MEMORY = "/dev/shm/rnicsim-hosts."


def has_user_dispatch():
    """True for Linux since 5.11, unless a container forbids the call."""
    set_user_dispatch, off = 59, 0
    return ctypes.CDLL(None).prctl(set_user_dispatch, off, 0, 0, 0) == 0


def host_view():
    return built("host_view", HOST_VIEW.read_text(), "-lpthread")


class HostTestCase(apps.TestCase):
    def on_both(self, mode):
        """The lines of each host in a reproducible run."""
        return self.on_both_run(f"{host_view()} {mode}")

    def on_both_run(self, command):
        result = self.assert_succeeded(apps.run_on([("h0", command), ("h1", command)]))
        return result.lines("h0"), result.lines("h1")

    def on_h0(self, command):
        return self.assert_succeeded(apps.run_on([("h0", str(command))])).lines("h0")


class View(HostTestCase):
    def test_a_librarys_constructor_sees_the_host(self):
        library = built("libhost_view.so", HOST_VIEW.read_text(), "-DCONSTRUCTOR", "-shared", "-fPIC")
        program = built("linked_view", HOST_VIEW.read_text(), "-DLINKED", "-lpthread", str(library),
                        f"-Wl,-rpath,{library.parent}")
        result = self.assert_succeeded(apps.run_on([(host, str(program)) for host in ("h0", "h1")]))
        for index in (0, 1):
            seen = f"host h{index} h{index} pid {1000 * (index + 1)} time 1700000000"
            self.assertEqual(result.lines(f"h{index}"), [f"constructor: {seen}", f"main: {seen}"], result)

    def test_clocks_count_from_a_boot_some_hours_ago(self):
        lines = self.on_h0(f"{host_view()} clocks")
        self.assertEqual(lines, ["hours 3", "apart 0 0 0 0 0", "boot right", "slept 2"])

    def test_of_its_processors_a_process_is_told_what_it_used(self):
        def used(after, process, thread, children):
            return f"{after}: process{f' {process}' * 5}, thread{f' {thread}' * 3}, children{f' {children}' * 2}"

        program = built("cpu_times", (apps.PROGRAMS / "cpu_times.c").read_text(), "-lpthread")
        self.assertEqual(self.on_h0(program), [
            used("asleep", 0, 0, 0), used("busy", 20, 20, 0), "the second thread: 30", used("threads", 60, 20, 0),
            used("after exec", 20, 20, 40), "the child: 60, of faults 0", used("a child", 60, 20, 60)])
        self.assertEqual(self.on_h0(f"{program} others"), [
            "spinning: 30, its process 30", "ended: -1, its process 30; no clock -1", "stopped: 20 20", "going on: 30",
            "the child: 30, children 30; none -1 1", "nobody's: -1, children 30"])
        result = apps.run_on([("h0", f"{program} timer")])
        self.assertEqual(result.lines("h0"), ["timer 0"])
        self.assertIn("system call 222 is not simulated", result.summary())

    def test_a_shell_tells_the_time_of_its_children(self):
        lines = self.on_h0("bash -c 'TIMEFORMAT=%R,%U; { time sleep 3; } 2>&1'")
        self.assertRegex(lines[-1], r"^3\.00\d,0\.0\d\d$")

    def test_nobody_else_uses_it(self):
        lines = self.on_h0(f"{host_view()} idle")
        self.assertEqual(lines, ["memory 1 1 0, of sysinfo 1 1", "load 0 0 0, of sysinfo 0"])

    def test_chance_is_drawn_from_the_seed(self):
        first, other = self.on_both("random")
        self.assertEqual((first, other), self.on_both("random"))
        self.assertEqual(len(first), 9)
        for ours, theirs in zip(first[:-1], other[:-1]):
            self.assertNotEqual(ours, theirs)
        self.assertEqual(first[-2:], ["numbers 1000 1000 1000 1000", "own maps readable"])
        seeded = apps.run_on([("h0", f"{host_view()} random")], "--seed", "2").lines("h0")
        self.assertNotEqual(first[0], seeded[0])

    def test_waits_of_every_kind_take_simulated_time(self):
        self.assertEqual(self.on_h0(f"{host_view()} waits"), [
            "woke 1", "futex 0 after 5 ms", "timeout 1 after 3 ms; other value 1", "barrier after 3 ms, once 1",
            "mutex 1 after 4 ms, thread said 7", "condition 1 after 1000 ms"])

    def test_waits_for_processes_and_for_threads_that_end(self):
        program = built("shared_waits", (apps.PROGRAMS / "shared_waits.c").read_text(), "-lpthread")
        self.assertEqual(self.on_h0(program), [
            "flock 0 0 at 5", "fcntl 0 0 at 5", "lockf 0 0 at 5", "barrier 0 1 at 3", "mutex 1 dead, 2 lost at 5",
            "condition 1 at 2", "read too early 0"])

    def test_waits_without_an_end_are_refused(self):
        self.assertEqual(self.on_h0(f"{host_view()} refused_waits"),
                         ["own mutex 1, own rwlock 1 1", "semaphore 1, condition 1, mutex 1"])

    def test_a_wait_in_the_real_kernel_is_no_standstill(self):
        result = apps.run_on([("h0", f"{host_view()} real_wait")])
        self.assertEqual((result.status, result.lines("h0")), (0, ["read x 0"]), result)
        self.assertIn("not reproducible: host_view (pid 1000): blocked in the real kernel", result.summary())

    def test_numbers_of_threads_and_processes_are_the_hosts(self):
        self.assertEqual(self.on_h0(f"{host_view()} identities"), [
            "affinity 0 0 1 0", "scheduler 0 0 3 0 1", "parameters 0 0 0", "priority 0 19 19 1, main's 1", "told 0 1",
            "limit 1, group 1000 1000 1000", "child's session 1002",
            "child 1002, session 1002, priority 0 19, lives 1", "ended 1002, 1 3 after 2 ms",
            "stranger found 0 times, waited for 0", "stranger found 0 times, waited for 0", "lock of 1000"])

    def test_processes_that_hand_over_by_memory_alone(self):
        self.assertEqual(self.on_h0(f"{host_view()} handover"), ["handed over 400 times"])

    def test_a_small_stack_for_signals(self):
        """The program computes between its calls and is therefore interrupted by the simulator's signal; more often on
        a busy machine."""
        for _ in range(3):
            self.assertEqual(self.on_h0(f"{host_view()} stack"),
                             ["handled 300, the stack is ours, too small 1"])

    def test_a_call_that_is_not_simulated_is_told_of(self):
        result = apps.run_on([("h0", f"{host_view()} uname")])
        self.assertIn("not reproducible: host_view (pid 1000): system call 309 is not simulated",
                      result.summary())


    def test_so_is_one_that_the_c_library_has_a_name_for(self):
        for call, number in (("unshare(0)", 272), ("inotify_init1(0)", 294), ("setns(-1, 0)", 308)):
            script = f"import ctypes; ctypes.CDLL(None).{call}"
            result = apps.run_on([("h0", f"python3 -c '{script}'")])
            self.assertIn(f"not reproducible: python3 (pid 1000): system call {number} is not simulated",
                          result.summary())

    def test_forks_within_the_c_library(self):
        self.assertEqual(self.on_h0(built("forks", (apps.PROGRAMS / "forks.c").read_text())), [
            "a terminal: 1 1; ended 1 2 after 20 ms", "0 after 0 ms; in /, parent 1 after 50 ms",
            "_Fork: 1 5 after 3 ms", "held 0, then 1; blocked 1, then 2; held 1, then not 1", "select: 1"])

    def test_what_is_in_the_machines_tmp_is_no_link(self):
        with apps.folder() as folder:
            (folder / "file").write_text("")
            script = f"readlink -f {folder}/file; [ -L {folder} ] || echo no link; cd {folder}; realpath file"
            self.assertEqual(self.on_h0(f"sh -c '{script}'"), [f"{folder}/file", "no link", f"{folder}/file"])
            resolve = (f"import os, pathlib; print(os.path.realpath(\"{folder}/file\"), "
                       f"pathlib.Path(\"{folder}\").resolve(True))")
            self.assertEqual(self.on_h0(f"python3 -c '{resolve}'"), [f"{folder}/file {folder}"])
            self.assertEqual(self.on_h0(f"sh -c 'rm -r {folder}; [ -e {folder} ] || echo gone'"), ["gone"])
            self.assertTrue((folder / "file").exists())

    def test_names_of_hosts_are_in_files(self):
        command = "cat /etc/hostname /proc/sys/kernel/hostname /etc/hosts"
        for host, lines in zip(("h0", "h1"), self.on_both_run(command)):
            self.assertEqual(lines, [host, host, "127.0.0.1 localhost", "::1 localhost ip6-localhost ip6-loopback",
                                     "10.0.0.1 h0", "fd00::1 h0", "10.0.1.1 h1", "fd00::1:1 h1"])

    def test_init_takes_orphans(self):
        script = """
import os, time
if os.fork() == 0:
    parent = os.getpid()
    if os.fork() == 0:
        before = os.getppid() == parent
        time.sleep(0.2)
        print(before, os.getppid(), flush=True)
        os.execlp("sh", "sh", "-c", "echo $PPID; grep PPid /proc/self/status")
    time.sleep(0.1)
    os._exit(0)
time.sleep(1)
"""
        with apps.folder() as folder:
            (folder / "orphan.py").write_text(script)
            self.assertEqual(self.on_h0(f"python3 {folder / 'orphan.py'}"), ["True 1", "1", "PPid:\t1002"])

    def test_clones_are_forks_or_refused(self):
        program = built("clones", (apps.PROGRAMS / "calls" / "clones.c").read_text())
        result = apps.run_on([("h0", program)])
        self.assertEqual(result.status, 0, result)
        refused = "-1 Function not implemented"
        self.assertEqual(result.lines("h0"), [
            "child 1001: stack 1, self 0, 2000 us", "own stack: 1, status 7, changed 0, after 1500 us",
            "told 1", "child 1002: stack 1, self 1, 2000 us", "with numbers: 1, status 7, changed 0, after 2000 us",
            "child 1003: stack 1, self 0, 2000 us", "as vfork: 1, status 7, changed 0, after 2000 us",
            "by number: 1, status 5, changed 0, after 3000 us",
            f"shares memory: {refused}", f"shares files: {refused}", f"without a signal: {refused}",
            "without a stack: -1 Invalid argument", f"a name space: {refused}", f"a stack by number: {refused}",
            f"clone3: {refused}"])
        self.assertIn("not reproducible: clones (pid 1000): system call 56 is not simulated", result.summary())

    def test_there_are_no_rings(self):
        script = ("import ctypes; c = ctypes.CDLL(None, use_errno=True); "
                  "print(*((c.syscall(425 + i, 8, 0), ctypes.get_errno()) for i in range(3)))")
        self.assertEqual(self.on_h0(f"python3 -c '{script}'"), ["(-1, 38) (-1, 38) (-1, 38)"])

    def test_nobody_is_traced(self):
        script = "import ctypes; c = ctypes.CDLL(None); print(c.ptrace(0), c.syscall(101, 0))"
        self.assertEqual(self.on_h0(f"python3 -c '{script}'"), ["-1 -1"])


@unittest.skipUnless(has_user_dispatch(), "no syscall user dispatch")
class CallInstructions(HostTestCase):
    """System calls without the C library; see docs/system-calls.md."""

    def program(self):
        return built("call_instructions", (apps.PROGRAMS / "call_instructions.c").read_text(), "-lpthread")

    def test_they_are_answered_as_by_name(self):
        lines = self.on_h0(self.program())
        self.assertRegex(lines.pop(3), r"drew 8 bytes: [0-9a-f]{16}")
        self.assertRegex(lines.pop(1), r"wall 1700000000\.\d{9}, 25 ns later")
        self.assertEqual(lines, [
            "pid 1, parent 1, thread 1", "slept 5000000025 ns", "a host's file: 1: CA", "errors: -9 -2",
            "woken after 3 ms: 1", "read 1 byte: x", "its action: 1", "blocked 0, then heard 1; pid 1", "stack 0: 1 1",
            "the child's pid: 1", "its end: 1, 7"])

    def test_they_are_the_same_at_every_run(self):
        self.assertEqual(*(self.on_h0(self.program()) for _ in range(2)))

    def test_a_thread_of_their_own_is_refused_and_told_of(self):
        result = apps.run_on([("h0", f"{self.program()} thread")])
        self.assertEqual((result.status, result.lines("h0")[-1]), (0, "a thread: -38"), result)
        self.assertIn("not reproducible: call_instructions (pid 1000): system call 56 is not simulated",
                      result.summary())


class Runtimes(HostTestCase):
    def test_futures_and_atomic_waits(self):
        program = built("future", (apps.PROGRAMS / "future.cc").read_text(), "-lpthread",
                        compiler=("g++", "-std=c++20", "-O1", "-x", "c++", "-", "-x", "none"))
        expected = ["task 1 after 5 ms", "nothing 1 after 100 ms", "atomic 1, future 4 after 3 ms"]
        self.assertEqual(self.on_h0(program), expected)

    def test_rust(self):
        program = built("thread_wait", (apps.PROGRAMS / "thread_wait.rs").read_text(),
                        compiler=("/usr/bin/rustc", "-O", "-"))
        expected = ["sum 90 after 10 ms", "timeout true after 20 ms", "computed true"]
        for _ in range(3):
            self.assertEqual(self.on_h0(program), expected)

    @unittest.skipUnless(has_user_dispatch(), "no syscall user dispatch")
    def test_go(self):
        with apps.folder() as cache:
            program = built("goroutines", "", str(apps.PROGRAMS / "goroutines.go"),
                            compiler=("env", "GO111MODULE=off", f"GOCACHE={cache}", "go", "build"))
            lines = self.on_h0(program)
        self.assertRegex(lines[0], r"^writes 160 took \d+(\.\d+)?.s by 1\d\.\d+ms$")
        self.assertEqual(lines[1], "it is 2023-11-14T22:13:20Z for 1000")
        self.assertRegex(lines[2], r"^h0 /tmp/go\d+ <nil>$")
        self.assertEqual(lines[3:], ["from 10.0.0.1 <nil>", "a child says h0 <nil>"])
        for _ in range(3):
            self.assertEqual(self.on_h0(program), lines)


MAKES_PROGRAMS = """
cp /bin/echo /tmp/shout
/tmp/shout by path
PATH=/tmp:$PATH
shout by search
echo 'echo as a script' > /tmp/told
chmod +x /tmp/told
told
python3 - <<end
import os
output = (os.POSIX_SPAWN_OPEN, 1, "/tmp/said", os.O_WRONLY | os.O_CREAT, 0o600)
os.waitpid(os.posix_spawnp("shout", ["shout", "spawned"], os.environ, file_actions=[output]), 0)
end
cat /tmp/said
"""


class Folders(HostTestCase):
    def test_each_host_has_its_own(self):
        commands = [(f"h{i}", f"{host_view()} files of-h{i}") for i in (0, 1)]
        result = self.assert_succeeded(apps.run_on(commands))
        for index in (0, 1):
            self.assertEqual(result.lines(f"h{index}"), [
                f"holds of-h{index}", "realpath /tmp/host_view.txt", "memory /dev/shm/host_view",
                "stands in /tmp/deep", "connected"], result)
        self.assertFalse(os.path.exists("/tmp/host_view.txt") or os.path.exists("/tmp/deep"))
        self.assertFalse(os.path.exists("/dev/shm/host_view"))

    def test_the_machines_files_are_seen_and_stay(self):
        with apps.folder() as folder:
            (folder / "input").write_text("outside")
            lines = self.on_h0(f"sh -c 'cat {folder}/input; echo more > {folder}/output; rm {folder}'")
            self.assertEqual(lines, ["outside"])
            self.assertEqual((folder / "output").read_text(), "more\n")

    def test_programs_made_there_run(self):
        with apps.folder() as folder:
            (folder / "script").write_text(MAKES_PROGRAMS)
            self.assertEqual(self.on_h0(f"sh {folder}/script"), ["by path", "by search", "as a script", "spawned"])

    def test_abstract_sockets_are_the_hosts(self):
        for lines in self.on_both("sockets"):
            self.assertEqual(lines, ["bound host_view 0"])

    def serve(self, name):
        environment = dict(os.environ, RNICSIM_SOCKET=name)
        process = apps.start("serve", env=environment)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertIn("serving", process.stdout.readline())
        return process

    def test_without_a_descriptor_left(self):
        """A listing of the machine's /tmp needs two descriptors; the host's own files are reachable without any."""
        program = apps.built("full", """
            #include <fcntl.h>
            #include <stdio.h>
            #include <sys/resource.h>
            #include <sys/stat.h>
            int main(void) {
              const struct rlimit few = {64, 64};
              struct stat status;
              setrlimit(RLIMIT_NOFILE, &few);
              while (open("/dev/null", O_RDONLY) >= 0) continue;
              printf("%d %d\\n", stat("/tmp", &status), mkdir("/tmp/mine", 0700));
            }
            """)
        result = apps.run_on([("h0", str(program))])
        self.assertEqual(result.lines("h0"), ["0 0"], result)

    def test_they_go_with_the_run(self):
        name = f"rnicsim-test-{os.getpid()}-ends"
        process = self.serve(name)
        self.assertTrue(os.path.isdir(f"{FILES}{name}/h0") and os.path.isdir(f"{MEMORY}{name}/h0"))
        process.send_signal(signal.SIGTERM)
        process.wait()
        self.assertFalse(os.path.exists(FILES + name) or os.path.exists(MEMORY + name))

    def test_what_a_killed_run_left_goes_with_the_next(self):
        name = f"rnicsim-test-{os.getpid()}-killed"
        process = self.serve(name)
        files = pathlib.Path(FILES + name)
        (files / "h0/tmp/locked").mkdir(parents=True)
        (files / "h0/tmp/locked/file").touch()
        (files / "h0/tmp/locked").chmod(0)
        os.utime(files, (0, 0))
        self.on_h0("true")
        self.assertTrue(files.exists())  # files of a running simulation stay
        process.kill()
        process.wait()
        os.utime(files, (0, 0))
        self.on_h0("true")
        self.assertFalse(files.exists() or os.path.exists(MEMORY + name))

    def test_a_folder_that_is_not_ours_stays(self):
        name = f"rnicsim-test-{os.getpid()}-held"
        os.mkdir(FILES + name, 0o700)
        self.addCleanup(lambda: os.path.exists(FILES + name) and os.rmdir(FILES + name))
        os.utime(FILES + name, (0, 0))
        holder = os.open(FILES + name, os.O_RDONLY)
        fcntl.flock(holder, fcntl.LOCK_EX)
        self.on_h0("true")
        self.assertTrue(os.path.exists(FILES + name))
        os.close(holder)


class SideBySide(HostTestCase):
    RUNS = 20
    AT_A_TIME = 4

    def test_mpirun(self):
        with apps.folder() as folder:
            program = folder / "mpi_ring"
            subprocess.run(["mpicc", "-O1", "-o", program, apps.PROGRAMS / "verbs" / "mpi_ring.c"], check=True)
            command = f"mpirun --allow-run-as-root --oversubscribe -n 2 {program}"
            for _ in range(0, self.RUNS, self.AT_A_TIME):
                started = [apps.start("run", "--on", "h0", command) for _ in range(self.AT_A_TIME)]
                for result in [apps.finish(process) for process in started]:
                    self.assertEqual(result.status, 0, result)
                    self.assertEqual(sorted(line for line in result.lines("h0") if line.startswith("rank")),
                                     ["rank 0 of 2 on h0: right", "rank 1 of 2 on h0: right"], result)


if __name__ == "__main__":
    unittest.TestLoader.sortTestMethodsUsing = None
    apps.main()
