#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
rdma-core's own Python tests from Debian (python3-pyverbs), on a simulated host: a test for each module of
rdma_core_tests.toml.

usage: rdma_core_test.py path/to/rnicsim [RdmaCore.test_MODULE ...]
"""
import functools
import os
import pathlib
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402

from rdma_core import THEIR_TESTS, SkipList, copy_tests  # noqa: E402

LIST = SkipList(pathlib.Path(__file__).resolve().with_name("rdma_core_tests.toml"))
GID_OF_IPV4 = 1

# iproute2's output for a device of h0.
IP = """#!/bin/sh
read -r mac < "/sys/class/net/$4/address" || exit 1
echo '[{"address": "'"$mac"'", "addr_info": [{"local": "10.0.0.1"}]}]'
"""


@functools.cache
def device():
    """Output of `ibv_devinfo -v` on h0."""
    return apps.run_on([("h0", "ibv_devinfo -v")]).text("h0")


def make_ip(folder):
    folder.mkdir()
    (folder / "ip").write_text(IP)
    (folder / "ip").chmod(0o755)
    return dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}")


class RdmaCore(apps.TestCase):
    def setUp(self):
        # Debian's container images omit /usr/share/doc.
        self.assertTrue(THEIR_TESTS.is_dir(), f"{THEIR_TESTS} is not there: python3-pyverbs without its documentation?")

    def run_module(self, module):
        with apps.folder() as folder:
            copy_tests(folder)
            command = (f"/usr/bin/python3 -B tests/run_tests.py --dev rnic0 --port 1 --gid {GID_OF_IPV4} -v "
                       f"tests.{module}")
            return apps.run_on([("h0", command)], cwd=folder, env=make_ip(folder / "bin"))

    def check(self, module):
        result = self.run_module(module)
        wrong = LIST.check([module], result.errors("h0"), device)
        if wrong:
            self.fail("\n".join([*wrong, "", str(result)]))
        self.assertEqual(result.status, 0, result)

    def test_list(self):
        self.assertEqual(list(LIST.wrong_in_itself()), [])


def add_tests():
    for module in LIST.modules:
        setattr(RdmaCore, module, lambda self, module=module: self.check(module))


add_tests()

if __name__ == "__main__":
    apps.main()
