#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Another user of the machine must not be able to act as the host of a user's programs by taking a simulation's names.

Tests with another user need root; the other tests run for every user. All tests run in a separate network namespace
where possible, so that no other simulation of this user is found.

usage: local_users_test.py path/to/rnicsim
"""
import ctypes
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402
from apps import LeavesNothing  # noqa: E402

USAGE_ERROR = 2
NOBODY = 65534
NEW_NETWORK = 0x40000000  # CLONE_NEWNET
IS_ROOT = os.geteuid() == 0
# True in a new network namespace: its abstract sockets are all of this test.
IS_ALONE = ctypes.CDLL(None).unshare(NEW_NETWORK) == 0 if IS_ROOT else False

LISTENER = r"""
import socket, sys
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind("\0" + sys.argv[1])
listener.listen(8)
print("listens", flush=True)
while True:
    visitor, _ = listener.accept()
    print("heard", len(visitor.recv(4096)), flush=True)
"""


class LocalUsers(LeavesNothing):
    def setUp(self):
        super().setUp()
        self.name = f"rnicsim-test-{os.getpid()}-{time.monotonic_ns()}"
        self.environment["RNICSIM_SOCKET"] = self.name
        self.folders = [pathlib.Path(f"{place}/rnicsim-hosts.{self.name}") for place in ("/tmp", "/dev/shm")]
        for folder in self.folders:
            self.addCleanup(shutil.rmtree, folder, ignore_errors=True)

    def as_nobody(self, program, *arguments):
        # The system's Python: other users may not read one in root's folders.
        process = subprocess.Popen(["/usr/bin/python3", "-c", program, *arguments], user=NOBODY, group=NOBODY,
                                   extra_groups=[], stdout=subprocess.PIPE, text=True, cwd="/")
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def foreign_listener(self, name=None):
        process = self.as_nobody(LISTENER, name or self.name)
        self.assertEqual(process.stdout.readline(), "listens\n")
        return process

    def serve(self):
        server = self.start("serve")
        first = server.stdout.readline()
        self.assertRegex(first, "^rnicsim: serving at ", server.stderr.read() if first == "" else "")
        return server, first.split()[3].rstrip(";")

    def end(self, server):
        server.send_signal(signal.SIGTERM)
        result = apps.finish(server)
        self.assertEqual(result.status, 0, result)
        return result

    def attached(self, command, host="h0"):
        """Runs a program in the environment that `rnicsim env` prints."""
        lines = self.call("env", host)
        self.assertEqual(lines.status, 0, lines)
        return subprocess.run(["sh", "-c", f"{lines.out}\nexec {command}"], env=self.environment, text=True,
                              capture_output=True, timeout=apps.RUN_SECONDS, check=False)

    def refused(self, *arguments):
        result = self.call(*arguments)
        self.assertEqual((result.status, result.out), (USAGE_ERROR, ""), result)
        self.assertEqual(result.err.count("\n"), 1, result)
        return result.err


class Folders(LocalUsers):
    @unittest.skipUnless(IS_ROOT, "another user is needed")
    def test_of_another_user_are_refused(self):
        for folder in self.folders:
            with self.subTest(folder):
                made = self.as_nobody("import os, sys; os.makedirs(sys.argv[1])", str(folder / "h0" / "tmp"))
                self.assertEqual(made.wait(), 0)
                for arguments in (("serve",), ("shell", "-c", "true")):
                    error = self.refused(*arguments)
                    self.assertIn(f"{folder} is needed", error)
                    self.assertIn(f"the folder belongs to user {NOBODY}", error)
                    self.assertIn("RNICSIM_SOCKET", error)
                self.assertTrue((folder / "h0" / "tmp").is_dir())
                shutil.rmtree(folder)

    def test_links_and_files_are_refused(self):
        for folder in self.folders:
            for make in (lambda path: path.symlink_to("/"), pathlib.Path.touch):
                make(folder)
                self.assertIn(f"{folder} is needed", self.refused("serve"))
                folder.unlink()
        for folder in self.folders:
            self.assertFalse(folder.exists())

    def test_of_this_user_are_made_anew(self):
        for folder in self.folders:
            (folder / "h0" / "tmp").mkdir(parents=True)
            (folder / "h0" / "tmp" / "planted").touch()
        server, _ = self.serve()
        for folder in self.folders:
            self.assertEqual(folder.stat().st_mode & 0o777, 0o700)
        self.assertEqual(self.attached("ls /tmp/planted").returncode, 2)
        self.end(server)

    def test_programs_take_none_that_others_can_write(self):
        """Folders that other users can write or own are ignored: their files are not the host's."""
        server, _ = self.serve()
        for folder in self.folders:
            (folder / "h0" / "kernel" / "etc").mkdir(parents=True, exist_ok=True)
            (folder / "h0" / "kernel" / "etc" / "hostname").write_text("forged\n")
        self.assertEqual(self.attached("cat /etc/hostname").stdout, "forged\n")
        for folder in self.folders:
            folder.chmod(0o777)
        self.assertNotIn("forged", self.attached("cat /etc/hostname").stdout)
        if IS_ROOT:
            for folder in self.folders:
                folder.chmod(0o700)
                os.chown(folder, NOBODY, NOBODY)
            self.assertNotIn("forged", self.attached("cat /etc/hostname").stdout)
        for folder in self.folders:
            if IS_ROOT:
                os.chown(folder, 0, 0)
            folder.chmod(0o700)
        self.end(server)


class Names(LocalUsers):
    def test_a_taken_one_says_by_whom(self):
        server, _ = self.serve()
        error = self.refused("serve")
        self.assertIn(f"cannot listen for programs at {self.name}: your process {server.pid} listens at this socket",
                      error)
        self.assertIn("RNICSIM_SOCKET", error)
        self.end(server)

    @unittest.skipUnless(IS_ROOT, "another user is needed")
    def test_another_users_is_told(self):
        listener = self.foreign_listener()
        self.assertIn(f"process {listener.pid} of user {NOBODY} listens at this socket", self.refused("serve"))
        for arguments in (("env", "h0"), ("shell", "h0", "-c", "true")):
            error = self.refused(*arguments)
            self.assertIn(f"process {listener.pid} of user {NOBODY} listens at {self.name}", error)
            self.assertIn("RNICSIM_SOCKET", error)

    @unittest.skipUnless(IS_ROOT, "another user is needed")
    def test_no_program_attaches_to_another_users(self):
        server, _ = self.serve()
        lines = self.call("env", "h0").out
        self.end(server)
        listener = self.foreign_listener()
        victim = subprocess.run(["sh", "-c", f"{lines}\nexec true"], env=self.environment, text=True,
                                capture_output=True, timeout=apps.RUN_SECONDS, check=False)
        self.assertNotEqual(victim.returncode, 0)
        self.assertIn(f"process {listener.pid} of user {NOBODY} listens at {self.name}", victim.stderr)
        self.assertEqual(listener.stdout.readline(), "heard 0\n")

    @unittest.skipUnless(IS_ROOT, "another user is needed")
    def test_a_program_of_another_user_is_told_why(self):
        server, _ = self.serve()
        library = re.search(r"LD_PRELOAD='(.*)'", self.call("env", "h0").out)[1]
        with apps.folder() as folder:
            folder.chmod(0o755)
            shutil.copy(library, folder)
            stranger = subprocess.run(["/bin/true"], user=NOBODY, group=NOBODY, extra_groups=[], text=True,
                                      capture_output=True, timeout=apps.RUN_SECONDS, check=False, cwd="/",
                                      env={"LD_PRELOAD": str(folder / "librnicsim_os.so"),
                                           "RNICSIM_SOCKET": self.name, "RNICSIM_HOST": "h0"})
        self.assertNotEqual(stranger.returncode, 0)
        self.assertIn(f"this simulator belongs to user 0, and refuses programs of user {NOBODY}", stranger.stderr)
        self.assertIn(f"the process belongs to user {NOBODY}", self.end(server).err)


@unittest.skipUnless(IS_ALONE, "needs a network namespace of its own")
class WithoutAName(LocalUsers):
    """Without RNICSIM_SOCKET the simulation of this user is found; a foreign one cannot take its place."""

    def setUp(self):
        super().setUp()
        del self.environment["RNICSIM_SOCKET"]

    def test_the_name_cannot_be_guessed(self):
        names = set()
        for _ in range(2):
            server, name = self.serve()
            self.assertRegex(name, r"^rnicsim-serve-0-[0-9a-f]{16}$")
            names.add(name)
            self.end(server)
        self.assertEqual(len(names), 2)

    def test_others_find_it(self):
        foreign = [self.foreign_listener(f"rnicsim-serve-0{end}") for end in ("", "-0123456789abcdef", "-zz")]
        self.assertIn("no simulation is running", self.refused("env", "h0"))
        server, name = self.serve()
        self.assertEqual(self.attached("hostname", "h1").stdout, "h1\n")
        self.assertIn(f"RNICSIM_SOCKET='{name}'", self.call("env", "h0").out)
        joined = self.call("shell", "h1", "-c", "hostname")
        self.assertEqual((joined.status, joined.out), (0, "h1\n"), joined)
        self.assertIn(f"the simulation that runs at {name}", self.refused("shell", "--seed", "2", "-c", "true"))
        self.assertRegex(self.refused("serve"), rf"serves at {name} \(pid {server.pid}\).*RNICSIM_SOCKET")
        self.assertEqual(self.end(server).err, "")
        self.assertIn("no simulation is running", self.refused("env", "h0"))
        for listener in foreign:
            self.assertIsNone(listener.poll())

    def test_two_are_told_apart_by_name(self):
        server, name = self.serve()
        self.environment["RNICSIM_SOCKET"] = name[:-1] + ("0" if name[-1] != "0" else "1")
        other, other_name = self.serve()
        del self.environment["RNICSIM_SOCKET"]
        result = self.call("env", "h0")
        self.assertEqual(result.status, USAGE_ERROR, result)
        for text in (name, other_name, f"(pid {server.pid})", f"(pid {other.pid})", "RNICSIM_SOCKET"):
            self.assertIn(text, result.err)
        self.environment["RNICSIM_SOCKET"] = other_name
        self.assertEqual(self.attached("hostname").stdout, "h0\n")
        for each in (server, other):
            self.end(each)

    def test_top_sees_no_other_users_runs(self):
        server, _ = self.serve()
        program = LISTENER.replace("SOCK_SEQPACKET", "SOCK_STREAM")
        process = self.as_nobody(program, f"rnicsim-top-0-{os.getpid()}")
        self.assertEqual(process.stdout.readline(), "listens\n")
        seen = self.call("top", "--once")
        self.assertEqual(seen.status, 0, seen)
        self.assertIn("rnicsim serve", seen.out)
        self.assertIn("no simulation of yours", self.refused("top", str(os.getpid())))
        self.end(server)


class Leftovers(LocalUsers):
    """Leftovers of a killed run: its programs end with it, and the next run removes its folders."""

    def test_of_a_killed_run(self):
        server, _ = self.serve()
        for folder in self.folders:
            self.assertTrue(folder.is_dir())
        server.kill()
        server.wait()
        self.assertEqual(self.call("run", "--on", "h0", "true").status, 0)
        for folder in self.folders:
            self.assertFalse(folder.exists(), folder)

    def test_of_one_that_goes_on_nothing_is_removed(self):
        server, _ = self.serve()
        self.assertEqual(self.call("run", "--on", "h0", "true").status, 0)
        for folder in self.folders:
            self.assertTrue(folder.is_dir())
        self.assertEqual(self.attached("hostname").stdout, "h0\n")
        self.end(server)
        for folder in self.folders:
            self.assertFalse(folder.exists(), folder)

    def test_one_of_its_folders_alone(self):
        for folder in self.folders:
            (folder / "h0").mkdir(parents=True)
            self.assertEqual(self.call("run", "--on", "h0", "true").status, 0)
            self.assertFalse(folder.exists(), folder)

    @unittest.skipUnless(IS_ROOT, "a mount is needed")
    def test_without_shared_memory(self):
        script = "mount -t tmpfs -o ro none /dev/shm && exec \"$0\" run --on h0 'sh -c \"echo $RNICSIM_SOCKET; ls " \
                 "/sys/class/infiniband; echo mine > /tmp/without-shared-memory\"'"
        done = subprocess.run(["unshare", "-m", "sh", "-c", script, apps.rnicsim()], env=self.environment, text=True,
                              capture_output=True, timeout=apps.RUN_SECONDS, check=False)
        self.assertEqual(done.returncode, 0, done)
        name, device = apps.labelled(done.stdout, "h0")
        self.assertEqual(device, "rnic0")
        self.assertIn("all hosts share the machine's /dev/shm", done.stderr)
        self.assertFalse(pathlib.Path(f"/tmp/rnicsim-hosts.{name}").exists())
        self.assertFalse(pathlib.Path("/tmp/without-shared-memory").exists())


if __name__ == "__main__":
    apps.main()
