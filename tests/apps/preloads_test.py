#!/usr/bin/env python3
"""Does a library that a program preloads into its children stand in for their calls, before the simulated host does?

usage: preloads_test.py path/to/rnicsim     (needs gcc)
"""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import apps  # noqa: E402
from apps import LeavesNothing, built  # noqa: E402

# What it puts in front, the next library's answer follows: that of the simulated host.
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


if __name__ == "__main__":
    apps.main()
