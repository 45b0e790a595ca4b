#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Virtual machines of `rnicsim vm`: their boot, their commands, their image, their ends.

usage: guests_test.py path/to/rnicsim [TESTS]
"""
import os
import pathlib
import re
import shutil
import signal
import stat
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import apps  # noqa: E402

TOOLS = {"qemu-system-x86_64": "qemu-system-x86", "readelf": "binutils", "modprobe": "kmod", "cpio": "cpio",
         "zstd": "zstd", "apt-get": "apt", "dpkg-deb": "dpkg"}
# Temporary files of all programs that the tests start.
TEMPORARY = tempfile.TemporaryDirectory(prefix="rnicsim-test-")
os.environ["TMPDIR"] = TEMPORARY.name
RXE = "modprobe rdma_rxe && rdma link add rxe0 type rxe netdev eth0"


def missing_tool():
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    return next((f"{package} is not installed" for tool, package in TOOLS.items()
                 if shutil.which(tool, path=path) is None), None)


def on(*pairs):
    return [word for guest, command in pairs for word in ("--on", guest, command)]


def vm(*arguments, **options):
    return apps.call("vm", *arguments, **options)


def machines():
    """PIDs of the QEMUs and image makers that this test has started, through its launchers."""
    found = set()
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().split(b"\0")
            environment = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        ours = command[0].endswith(b"qemu-system-x86_64") or any(word.endswith(b"/make_image") for word in command)
        if ours and os.fsencode(f"TMPDIR={TEMPORARY.name}") in environment:
            found.add(int(folder.name))
    return found


def wait_until(condition, seconds=apps.RUN_SECONDS):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s")
        time.sleep(0.1)


class GuestTest(apps.TestCase):
    @classmethod
    def setUpClass(cls):
        reason = missing_tool()
        if reason is not None:
            raise unittest.SkipTest(reason)
        # The user's image, which is made only once.
        result = vm("--image-only")
        if result.status == 2 and "is there a network?" in result.err:
            raise unittest.SkipTest(result.err)
        assert result.status == 0, result

    def tearDown(self):
        self.assertEqual(machines(), set())
        self.assertEqual(os.listdir(TEMPORARY.name), [])

    def assert_ended(self, result, status):
        self.assertEqual(result.status, status, result)


class Pair(GuestTest):
    """The part that CI runs: a single boot of two guests."""

    def test_pair(self):
        both = [("g[0-1]", "uname -r")]
        for device in ("rnic0", "rxe0"):
            pingpong = f"ibv_rc_pingpong -d {device} -g 1"
            both += [("g0", f"{pingpong} -n 100"), ("g1", f"{pingpong} -n 100 g0"),
                     ("g0", f"{pingpong} -n 10 -s 65536 -c"), ("g1", f"{pingpong} -n 10 -s 65536 -c 10.0.0.1")]
            if device == "rnic0":
                both.append(("g[0-1]", RXE))
        result = vm("--check", "--audit", *on(*both))
        self.assert_ended(result, 0)
        for guest in ("g0", "g1"):
            self.assertRegex(result.text(guest), r"(?m)^\d+\.\d+\.\d+-\d+-amd64$")
            self.assertEqual(len(re.findall(r"(?m)^100 iters in ", result.text(guest))), 2, result)
            self.assertEqual(len(re.findall(r"(?m)^10 iters in ", result.text(guest))), 2, result)
        # 4 KiB are 4 packets each way, 64 KiB are 16. Soft-RoCE's packets do not use the NIC.
        self.assertRegex(result.out, r"nic\.rx\.payload_bytes +1064960 +1064960 ")
        self.assertEqual(result.err.count(" 0 findings"), 2, result)


class Commands(GuestTest):
    def test_names_addresses_and_statuses(self):
        result = vm("--guests", "3",
                    *on(("g[0-2]", "hostname"), ("g2", "ping -c 2 g0 && ping -c 2 10.0.0.2"),
                        ("g1", "echo bad >&2; exit 5"), ("g0", "exit 3")))
        self.assert_ended(result, 5)
        for guest in ("g0", "g1", "g2"):
            self.assertIn(guest, result.lines(guest))
        self.assertEqual(result.text("g2").count("2 received"), 2, result)
        self.assertEqual(result.errors("g1"), "bad")

    def test_two_at_once_in_one_guest(self):
        # Each command waits for a file of the other command.
        result = vm("--guests", "1",
                    *on(("g0", "touch /tmp/a; until [ -e /tmp/b ]; do sleep 0.1; done; echo first"),
                        ("g0", "until [ -e /tmp/a ]; do sleep 0.1; done; touch /tmp/b; echo second")))
        self.assert_ended(result, 0)
        self.assertEqual(sorted(result.lines("g0")), ["first", "second"])

    def test_what_is_printed_comes_whole(self):
        # Not fold(1): some versions end the last line, and others do not.
        line = f"yes {'x' * 100} | head -n 30000; printf 'no end'; printf '\\001\\377\\n' >&2"
        result = vm("--guests", "1", *on(("g0", line)))
        self.assert_ended(result, 0)
        self.assertEqual(result.lines("g0"), ["x" * 100] * 30000 + ["no end"])
        self.assertIn("g0| \x01", result.err)

    def test_rdma_cm_and_perftest_on_soft_roce(self):
        result = vm("--driver", "none",
                    *on(("g[0-1]", RXE), ("g0", "rping -s -C 10 -v"), ("g1", "rping -c -a g0 -C 10 -v"),
                        ("g0", "ib_write_bw -n 100 -s 4096"), ("g1", "ib_write_bw -n 100 -s 4096 g0")))
        self.assert_ended(result, 0)
        self.assertTrue(apps.perftest_rows(result.lines("g1")), result)

    def test_modules_of_the_image_load(self):
        names = "nvme-rdma nvmet-rdma rds_rdma smc ib_iser rpcrdma nfsv4 nfsd ext4 brd loop ib_umad"
        result = vm("--guests", "1", *on(("g0", f"for m in {names}; do modprobe $m || exit 1; done; nvme version")))
        self.assert_ended(result, 0)

    def test_a_fault_of_the_kernel_fails_the_run(self):
        with apps.folder() as folder:
            result = vm("--guests", "1", "--consoles", folder,
                        *on(("g0", "echo 1 >/proc/sys/kernel/sysrq; echo c >/proc/sysrq-trigger")))
            self.assert_ended(result, 1)
            self.assertIn("g0's kernel: ", result.err)
            self.assertIn("sysrq triggered crash", (folder / "g0.console").read_text(errors="replace"))

    def test_a_guest_that_goes_ends_the_run(self):
        result = vm(*on(("g1", "sleep 1000"), ("g0", "poweroff -f")))
        self.assert_ended(result, 1)
        self.assertIn("g0: QEMU of this guest ended", result.err)


class Image(GuestTest):
    def test_files_and_programs_of_the_users(self):
        with apps.folder() as folder:
            (folder / "notes").mkdir()
            (folder / "notes" / "text").write_text("a note\n")
            script = folder / "my_script"
            script.write_text("#!/bin/sh\necho mine\n")
            script.chmod(script.stat().st_mode | stat.S_IXUSR)
            result = vm("--guests", "1", "--add", folder / "notes", "--add", script,
                        "--add", f"{folder / 'notes' / 'text'}=/etc/other", "--add", shutil.which("tac"),
                        *on(("g0", "my_script; cat notes/text /etc/other | tac")))
        self.assert_ended(result, 0)
        self.assertEqual(result.lines("g0"), ["mine", "a note", "a note"])

    def test_module_of_the_users(self):
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        module = next(pathlib.Path(base, "rnicsim", "guest", "base").rglob("brd.ko"))
        with apps.folder() as folder:
            shutil.copy(module, folder)
            result = vm("--guests", "1", "--add", folder / "brd.ko", *on(("g0", "modprobe brd && modinfo -n brd")))
            self.assert_ended(result, 0)
            self.assertIn("/updates/brd.ko", result.text("g0"))
            # A module for another kernel.
            (folder / "brd.ko").write_bytes(module.read_bytes().replace(b"vermagic=6", b"vermagic=5"))
            result = vm("--add", folder / "brd.ko", *on(("g0", "true")))
            self.assert_ended(result, 2)
            self.assertIn("was built for kernel 5.", result.err)

    def test_what_cannot_be_added_is_one_line(self):
        for added, words in (("/no/such/file", "there is no /no/such/file"), ("/bin/sh=relative", "is not a path")):
            result = vm("--add", added, *on(("g0", "true")))
            self.assert_ended(result, 2)
            self.assertEqual(len(result.err.splitlines()), 1, result)
            self.assertIn(words, result.err)

    def test_killed_while_the_image_is_made(self):
        with apps.folder() as folder:
            process = apps.start("vm", "--image", folder / "image", "--image-only")
            self.addCleanup(process.kill)
            wait_until((folder / "image" / "base.new").exists)
            process.kill()
            apps.finish(process)
            wait_until(lambda: not machines())
            self.assertEqual(sorted(os.listdir(folder / "image")), ["lock", "packages"])

    def test_no_packages_is_one_line(self):
        with apps.folder() as folder:
            # apt without package lists.
            configuration = folder / "apt.conf"
            configuration.write_text(f'Dir::State::lists "{folder}";\n')
            result = vm("--image", folder / "image", *on(("g0", "true")),
                        env={**os.environ, "APT_CONFIG": str(configuration)})
            self.assert_ended(result, 2)
            self.assertIn("apt-get update", result.err)
            self.assertEqual(len([line for line in result.err.splitlines() if "making" not in line]), 1, result)


class Ends(GuestTest):
    def test_command_lines_that_are_refused(self):
        for arguments, words in ((on(("g2", "true")), "no guest is called 'g2'"), ([], "no guest has a command"),
                                 (["--memory", "1MiB", *on(("g0", "true"))], "--memory"),
                                 (["--guests", "0", *on(("g0", "true"))], "--guests")):
            result = vm(*arguments)
            self.assert_ended(result, 2)
            self.assertEqual(len(result.err.splitlines()), 1, result)
            self.assertIn(words, result.err)

    def test_limit(self):
        result = vm("--wall-limit", "60s", *on(("g0", "echo up; sleep 1000"), ("g1", "sleep 1000")))
        self.assert_ended(result, 124)
        self.assertIn("ended at the limit of 60 s", result.err)
        if "up" in result.lines("g0"):
            self.assertIn("g0: 'echo up; sleep 1000' is still running", result.err)

    def test_boot_limit(self):
        result = vm("--guests", "1", "--boot-limit", "1s", *on(("g0", "true")))
        self.assert_ended(result, 1)
        self.assertIn("the guests have not booted within 1 s", result.err)

    def test_kernel_that_panics_at_boot(self):
        result = vm("--guests", "1", "--kernel-words", "rdinit=/nowhere", *on(("g0", "true")))
        self.assert_ended(result, 1)
        self.assertIn("g0's console ended with:", result.err)
        self.assertIn("Kernel panic", result.err)

    def begin(self):
        process = apps.start("vm", *on(("g0", "echo up; sleep 1000"), ("g1", "sleep 1000")))
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "g0| up\n")
        self.assertEqual(len(machines()), 2)
        return process

    def test_signals(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.begin()
            process.send_signal(number)
            result = apps.finish(process)
            self.assert_ended(result, 128 + number)
            self.assertEqual(machines(), set())

    def test_killed(self):
        process = self.begin()
        process.kill()
        self.assertEqual(apps.finish(process).status, 128 + signal.SIGKILL)
        wait_until(lambda: not machines())

    def test_killed_while_it_boots(self):
        process = apps.start("vm", *on(("g0", "true")))
        self.addCleanup(process.kill)
        wait_until(lambda: len(machines()) == 2)
        process.kill()
        apps.finish(process)
        wait_until(lambda: not machines())


if __name__ == "__main__":
    apps.main()
