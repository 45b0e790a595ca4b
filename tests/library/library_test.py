#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""librnicsim as a user gets it: the library is installed into a prefix, the prefix is moved, and a virtual platform is
built with the library outside of the tree, by find_package and by pkg-config.

usage: library_test.py BUILD_FOLDER PYTHON [unittest's arguments]
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PLATFORM = HERE / "platform"
sys.path.insert(0, str(HERE.parent / "unit" / "guest"))
import machines  # noqa: E402

BUILD = PYTHON = None


def run(*command, **more):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, **more)
    if result.returncode:
        raise AssertionError(f"{command}: {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(cls.folder.name)
        run("cmake", "--install", BUILD, "--component", "library", "--prefix", folder / "first")
        cls.prefix = folder / "moved"
        (folder / "first").rename(cls.prefix)
        # A project outside the tree must find nothing of the source tree around it.
        cls.project = folder / "project"
        shutil.copytree(PLATFORM, cls.project)
        cls.environment = {name: value for name, value in os.environ.items() if not name.startswith("RNICSIM")}
        cls.environment["SYSTEMC_DISABLE_COPYRIGHT_MESSAGE"] = "1"
        package = next(cls.prefix.rglob("rnicsim.pc")).parent
        cls.environment["PKG_CONFIG_PATH"] = str(package)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_platform(self, program, *arguments, libraries=None):
        environment = dict(self.environment)
        if libraries:
            environment["LD_LIBRARY_PATH"] = libraries
        return subprocess.run([program, *arguments], capture_output=True, text=True, env=environment)

    def test_find_package(self):
        build = self.project / "build"
        log = run("cmake", "-S", self.project, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={self.prefix}",
                  "-DCMAKE_BUILD_TYPE=Debug", env=self.environment)
        profiles = pathlib.Path(log.split("profiles: ")[1].splitlines()[0])
        self.assertEqual(profiles, self.prefix / "share/rnicsim/nics")
        run("cmake", "--build", build, env=self.environment)
        program = build / "platform"
        for profile in sorted(profiles.glob("*.toml")):
            result = self.run_platform(program, profile)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("65536 bytes written, completed and interrupted after", result.stdout)
        usual = self.run_platform(program, profiles / "cx5-100g.toml").stdout
        slow = self.run_platform(program, profiles / "cx5-100g.toml", "nic.port.rate=10Gb/s").stdout
        self.assertGreater(self.picoseconds(slow), 5 * self.picoseconds(usual))
        self.refused(program, "no/such.toml", "no/such.toml: ")
        bad = self.project / "bad.toml"
        for text, told in [("[nic.port]\nrate = 100\n", f"{bad}:2: nic.port.rate: 100 has no unit"),
                           ("[nic.prt]\nrate = '1 Gb/s'\n", f"{bad}:2: there is no parameter nic.prt.rate"),
                           ("[lnik]\nlatency = '1 ns'\n", f"{bad}:2: there is no parameter lnik.latency"),
                           ("base = 'elsewhere'\n", "its base 'elsewhere' is not in the same folder"),
                           ("base = 'bad'\n", f"{bad}: the profile is its own base")]:
            bad.write_text(text)
            self.refused(program, bad, told)

    def refused(self, program, profile, told):
        result = self.run_platform(program, profile)
        self.assertEqual(result.returncode, 2, result.stdout)
        self.assertIn(told, result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)

    @staticmethod
    def picoseconds(line):
        number, unit = line.split("after ")[1].split(";")[0].split()
        return float(number) * {"ps": 1, "ns": 1e3, "us": 1e6}[unit]

    def test_pkg_config(self):
        flags = run("pkg-config", "--cflags", "--libs", "rnicsim", env=self.environment).split()
        program = self.project / "by_pkg_config"
        run("g++", "-std=c++20", self.project / "platform.cpp", "-o", program, *flags, env=self.environment)
        libraries = run("pkg-config", "--variable=libdir", "rnicsim", env=self.environment).strip()
        result = self.run_platform(program, libraries=libraries)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("65536 bytes written", result.stdout)

    def test_device_of_somebody_elses_for_virtual_machines(self):
        source = self.project.parent / "guest_device"
        shutil.copytree(HERE / "guest_device", source)
        run("cmake", "-S", source, "-B", source / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={self.prefix}",
            env=self.environment)
        run("cmake", "--build", source / "build", env=self.environment)
        program = source / "build" / "guest_device"
        for protocol, machine in (("qemu", machines.QemuMachine), ("vfio-user", machines.VfioMachine)):
            sockets = [source / f"{protocol}.{name}" for name in ("sock", "qtest")][:2 if protocol == "qemu" else 1]
            with subprocess.Popen([program, protocol, *sockets], env=self.environment, text=True,
                                  stdout=subprocess.PIPE) as server:
                self.addCleanup(server.kill)
                self.assertEqual(server.stdout.readline(), f"serving at {sockets[0]}\n")
                guest = machine(*sockets) if protocol == "qemu" else machine(*sockets, vectors=1)
                self.drive(guest, protocol)
                guest.close()
                server.terminate()
                self.assertIn("1 interrupts, 0 DMA requests refused", server.stdout.read())
                self.assertEqual(server.wait(), 0)

    def drive(self, guest, protocol):
        self.assertEqual(guest.config_read(0), 0x00011234)
        self.assertEqual(guest.capabilities(), {0x10: 0x40, 0x11: 0x80})
        guest.config_write(0x10, 0xc0000000)
        guest.config_write(0x14, 1)
        guest.config_write(0x04, 0x6, 2)
        self.assertEqual(guest.read(0, 4), b"rcni")
        if protocol == "qemu":  # a client of vfio-user has an eventfd instead
            guest.write(0x800, machines.abi.kMsiWindow.to_bytes(8, "little"))
            guest.write(0x808, bytes(8))
            guest.config_write(0x82, 0x8000, 2)
        number = guest.allocate(8)
        number.data[:8] = (41).to_bytes(8, "little")
        guest.write(8, (machines.MEMORY_AT + number.offset).to_bytes(8, "little"))
        self.assertTrue(guest.wait_interrupt(0, 1))
        self.assertEqual(int.from_bytes(number.data[:8], "little"), 42)
        guest.config_write(0x48, 0x8000, 2)  # function-level reset
        self.assertEqual(guest.config_read(0x10), 0xc)

    def test_layouts_in_c(self):
        program = "#include <rnicsim/abi/command.h>\nint main(void) { return sizeof(struct rnicsim_qpc) != 256; }\n"
        run("gcc", "-std=c11", "-Werror", f"-I{self.prefix}/include", "-x", "c", "-", "-o", self.project / "c",
            input=program)
        run(self.project / "c")

    def test_python(self):
        packages = self.prefix / "lib/python3/dist-packages"
        if not packages.exists():
            self.skipTest("built without pybind11")
        program = ("import rnicsim; device = rnicsim.device('cx5-100g')\n"
                   "assert device.config_read(0, 2) == rnicsim.abi.kPciVendorId\nprint(rnicsim.__file__)")
        told = run(PYTHON, "-c", program, env=self.environment | {"PYTHONPATH": str(packages)})
        self.assertEqual(pathlib.Path(told.strip()).parent, packages / "rnicsim")

    def test_cxx_of_another_age_is_told(self):
        flags = run("pkg-config", "--cflags", "rnicsim", env=self.environment).split()
        result = subprocess.run(["g++", "-std=c++17", "-fsyntax-only", self.project / "platform.cpp", *flags],
                                capture_output=True, text=True)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("rnicsim needs C++20", result.stderr)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    BUILD, PYTHON = sys.argv.pop(1), sys.argv.pop(1)
    unittest.main()
