#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The Debian package in a minimal Debian 12, as an ordinary user, with the sources hidden. Needs root, debootstrap and a
mirror (RNICSIM_TEST_MIRROR, or Debian's own); a skip names the missing one.

usage: package_test.py path/to/rnicsim
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402

SOURCES = pathlib.Path(__file__).resolve().parents[3]
MIRROR = os.environ.get("RNICSIM_TEST_MIRROR", "http://deb.debian.org/debian")
MINUTES = 30

# Runs in new namespaces, in which all mounts end with the command: the file systems of a running machine, no sources.
INSIDE = """
mount -t tmpfs none "$1"
mount -t proc proc "$2/proc"
mount -t tmpfs -o mode=1777 none "$2/dev/shm"
chroot=$2
shift 2
exec chroot "$chroot" "$@"
"""


def call(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60 * MINUTES,
                          check=False, **options)
    return apps.Result([str(word) for word in command], done.returncode, done.stdout, done.stderr)


def missing():
    if os.geteuid() != 0:
        return "debootstrap and chroot want root"
    for tool in "debootstrap", "dpkg-shlibdeps", "file", "unshare":
        if not shutil.which(tool):
            return f"no {tool}"
    if call("unshare", "--mount", "--pid", "--fork", "true").status != 0:
        return "no namespaces: unshare --mount --pid is refused"
    return None


class Package(apps.TestCase):
    @classmethod
    def setUpClass(cls):
        why = missing()
        if why:
            raise unittest.SkipTest(why)
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="rnicsim-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.chroot = cls.folder / "debian"
        made = call("debootstrap", "--variant=minbase", "bookworm", cls.chroot, MIRROR)
        if made.status != 0:
            raise unittest.SkipTest(f"debootstrap failed, mirror {MIRROR}: {made.out.splitlines()[-1:]}")
        build_tree = pathlib.Path(apps.rnicsim()).resolve().parents[1]
        packed = call("cpack", "-B", cls.folder / "package", cwd=build_tree)
        assert packed.status == 0, packed
        cls.package, = (cls.folder / "package").glob("rnicsim_*.deb")
        shutil.copy(cls.package, cls.chroot / "tmp")
        environment = {"DEBIAN_FRONTEND": "noninteractive"}
        for command in (f"apt-get -q update && apt-get -q install -y /tmp/{cls.package.name}", "useradd -m somebody"):
            done = cls.inside("sh", "-c", command, **environment)
            assert done.status == 0, done

    @classmethod
    def inside(cls, *command, **environment):
        return call("unshare", "--mount", "--pid", "--fork", "sh", "-euc", INSIDE, "sh", SOURCES, cls.chroot, *command,
                    env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", **environment})

    def as_user(self, command):
        return self.inside("setpriv", "--reuid=somebody", "--regid=somebody", "--init-groups", "env",
                           "HOME=/home/somebody", "sh", "-c", f"cd && {command}")

    def test_stock_program(self):
        result = self.as_user("id -un >&2; rnicsim run -- ib_write_bw -n 1000 --report_gbits")
        self.assert_succeeded(result)
        self.assertIn("somebody", result.err)
        self.assertTrue(apps.perftest_rows(result.lines("h1")), result)

    def test_workload(self):
        result = self.as_user("rnicsim bench write-4k --json results.json && test -s results.json")
        self.assertEqual(result.status, 0, result)

    def test_version(self):
        version = self.as_user("rnicsim --version").out.splitlines()[0].removeprefix("rnicsim ")
        installed = self.inside("dpkg-query", "-W", "-f", "${Version}", "rnicsim").out
        self.assertEqual(re.findall(r"\w+", installed), re.findall(r"\w+", version))

    def test_programs_outside_have_the_verbs_library_of_the_system(self):
        result = self.as_user("ldd $(command -v ib_write_bw)")
        self.assertRegex(result.out, r"libibverbs\.so\.1 => /lib/")

    def test_a_page_a_command(self):
        pages = self.inside("ls", "/usr/share/man/man1").out
        commands = re.findall(r"(?m)^  (\w+) ", self.as_user("rnicsim --help").out.split("Subcommands:")[1])
        for command in commands:
            self.assertIn(f"rnicsim-{command}.1.gz", pages)

    def test_the_device_in_python(self):
        if "/_core." not in call("dpkg-deb", "--contents", self.package).out:
            self.skipTest("this build has no Python module: python3-dev and pybind11-dev were not installed")
        result = self.as_user("python3 -c 'import rnicsim; print(rnicsim.__file__)'")
        self.assertEqual(result.status, 0, result)
        self.assertEqual(result.out, "/usr/lib/python3/dist-packages/rnicsim/__init__.py\n")


if __name__ == "__main__":
    apps.main()
