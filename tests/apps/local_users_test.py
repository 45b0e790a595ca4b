#!/usr/bin/env python3
"""Can another user of this machine make himself the host of somebody's programs, by the names that a simulation uses?

What another user does is done as `nobody`, which needs root; the rest is tested by every user.

usage: local_users_test.py path/to/rnicsim
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import apps  # noqa: E402
from apps import LeavesNothing  # noqa: E402

USAGE_ERROR = 2
NOBODY = 65534
IS_ROOT = os.geteuid() == 0


class LocalUsers(LeavesNothing):
    def setUp(self):
        super().setUp()
        self.name = f"rnicsim-test-{os.getpid()}-{time.monotonic_ns()}"
        self.environment["RNICSIM_SOCKET"] = self.name
        self.folders = [pathlib.Path(f"{place}/rnicsim-hosts.{self.name}") for place in ("/tmp", "/dev/shm")]
        for folder in self.folders:
            self.addCleanup(shutil.rmtree, folder, ignore_errors=True)

    def as_nobody(self, program, *arguments):
        # The system's Python: one below root's folders is not for everybody.
        process = subprocess.Popen(["/usr/bin/python3", "-c", program, *arguments], user=NOBODY, group=NOBODY,
                                   extra_groups=[], stdout=subprocess.PIPE, text=True, cwd="/")
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
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
        """A program in the environment that `env` prints."""
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
                    self.assertIn(f"user {NOBODY} has made it", error)
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
        """Whoever made it: what somebody put there meanwhile is not the host's."""
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


class Leftovers(LocalUsers):
    """Of a run that was killed: its programs die with it, and its folders go with the next run."""

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
                 "/sys/class/infiniband; echo mine > /tmp/of-the-host\"'"
        done = subprocess.run(["unshare", "-m", "sh", "-c", script, apps.rnicsim()], env=self.environment, text=True,
                              capture_output=True, timeout=apps.RUN_SECONDS, check=False)
        self.assertEqual(done.returncode, 0, done)
        name, device = apps.labelled(done.stdout, "h0")
        self.assertEqual(device, "rnic0")
        self.assertIn("the hosts have no /dev/shm of their own", done.stderr)
        self.assertFalse(pathlib.Path(f"/tmp/rnicsim-hosts.{name}").exists())
        self.assertFalse(pathlib.Path("/tmp/of-the-host").exists())


if __name__ == "__main__":
    apps.main()
