#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
A library that a program preloads into its children interposes their calls before the simulated host does. Programs
find libraries by the LD_LIBRARY_PATH of their user.

usage: preloads_test.py path/to/rnicsim     (needs gcc)
"""
import os
import pathlib
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402
from apps import LeavesNothing, built  # noqa: E402

# Prefixes the answer of the next library, which is the simulated host's.
LIBRARY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <stddef.h>
int gethostname(char* name, size_t length) {
  int (*next)(char*, size_t) = (int (*)(char*, size_t))dlsym(RTLD_NEXT, "gethostname");
  memcpy(name, "on-", 3);
  return next(name + 3, length - 3);
}
"""
PROGRAM = r"""
#include <stdio.h>
#include <unistd.h>
int main() {
  char name[100];
  gethostname(name, sizeof name);
  puts(name);
  return 0;
}
"""


class Preloads(LeavesNothing):
    def said(self, script):
        names = {"library": built("preloaded_host_name", LIBRARY, "-shared", "-fPIC", "-ldl"),
                 "program": built("host_name", PROGRAM)}
        result = apps.run_on([("h0", "sh -c '" + script.format(**names) + "'")], env=self.environment)
        self.assertEqual(result.status, 0, result)
        return result.lines("h0")

    def test_a_child_has_it(self):
        self.assertEqual(self.said("{program}; LD_PRELOAD={library} {program}; {program}"), ["h0", "on-h0", "h0"])

    def test_a_childs_child_has_it(self):
        self.assertEqual(self.said('LD_PRELOAD={library} sh -c "{program}; {program}"'), ["on-h0", "on-h0"])

    def test_until_it_is_taken_back(self):
        self.assertEqual(self.said('LD_PRELOAD={library} sh -c "unset LD_PRELOAD; {program}"'), ["h0"])

    def test_two_in_their_order(self):
        self.assertEqual(self.said('LD_PRELOAD="{library} /lib/x86_64-linux-gnu/libm.so.6" {program}'), ["on-h0"])


class Searched(LeavesNothing):
    """LD_LIBRARY_PATH has the libraries of the simulated host first, then the user's."""

    @classmethod
    def setUpClass(cls):
        library = built("libofusers.so", "int number(void) { return 7; }", "-shared", "-fPIC")
        cls.folder = str(library.parent)
        cls.program = str(built("uses_library", "int number(void); int main(void) { return number() - 7; }",
                                f"-L{cls.folder}", "-lofusers"))
        cls.ours = str(pathlib.Path(apps.rnicsim()).resolve().parent.parent / "lib" / "rnicsim")

    def path_of(self, *commands, **variables):
        """The search path in the environment of a host's shell."""
        result = apps.run_on([("h0", command) for command in commands], env=dict(self.environment, **variables))
        self.assertEqual(result.status, 0, result)
        return result.lines("h0")[-1].split(":")

    def test_of_the_run(self):
        result = apps.run_on([("h0", self.program)], env=dict(self.environment, LD_LIBRARY_PATH=self.folder))
        self.assertEqual(result.status, 0, result)
        ours, *rest = self.path_of("sh -c 'echo $LD_LIBRARY_PATH'", LD_LIBRARY_PATH=f"/a:{self.folder}:/b")
        self.assertIn("/fd/", ours)
        self.assertEqual(rest, ["/a", self.folder, "/b"])

    def test_of_a_program(self):
        for command in (f"env LD_LIBRARY_PATH={self.folder} {self.program}",
                        f"sh -c 'export LD_LIBRARY_PATH=/nowhere:{self.folder}; {self.program}'",
                        f"sh -c 'LD_LIBRARY_PATH=$LD_LIBRARY_PATH:{self.folder} sh -c {self.program}'",
                        f"sh -c 'LD_LIBRARY_PATH={self.folder}:$LD_LIBRARY_PATH ibv_devices && "
                        f"LD_LIBRARY_PATH={self.folder} {self.program}'"):
            with self.subTest(command):
                result = apps.run_on([("h0", command)], env=self.environment)
                self.assertEqual(result.status, 0, result)

    def test_ours_stays_the_first_and_comes_once(self):
        nested = "sh -c 'LD_LIBRARY_PATH=/a:$LD_LIBRARY_PATH: sh -c \"echo \\$LD_LIBRARY_PATH\"'"
        ours, *rest = self.path_of(nested, LD_LIBRARY_PATH="/b")
        self.assertIn("/fd/", ours)
        self.assertEqual(rest, ["/a", "/b", ""])
        self.assertEqual(len(self.path_of("sh -c 'env -i sh -c \"echo \\$LD_LIBRARY_PATH\"'")), 1)

    def test_of_a_shell_and_of_env(self):
        name = f"rnicsim-test-{os.getpid()}-{time.monotonic_ns()}"
        environment = dict(self.environment, RNICSIM_SOCKET=name, LD_LIBRARY_PATH=self.folder, SHELL="/bin/bash")
        script = f"{self.program} && eval \"$(LD_PRELOAD= {apps.rnicsim()} env h1)\" && {self.program} && " \
                 "echo $LD_LIBRARY_PATH"
        result = apps.call("shell", "-c", script, env=environment)
        self.assertEqual(result.status, 0, result)
        self.assertEqual(result.out.splitlines()[-1], f"{self.ours}:{self.folder}")


if __name__ == "__main__":
    apps.main()
