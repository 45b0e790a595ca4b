#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
rdma-core's own Python tests from Debian (python3-pyverbs) in a guest of `rnicsim vm`, on the project's kernel driver
and provider. rdma_core_tests.toml lists the modules, and the permitted skips with their reasons.

usage: rdma_core_test.py path/to/rnicsim [TESTS]
"""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "apps" / "stock")]
from guests_test import GuestTest, on, vm  # noqa: E402
import apps  # noqa: E402
from rdma_core import THEIR_TESTS, SkipList, copy_tests  # noqa: E402

LIST = SkipList(HERE / "rdma_core_tests.toml")
GID_OF_IPV4 = 1


class RdmaCore(GuestTest):
    def setUp(self):
        # Debian's container images omit /usr/share/doc.
        self.assertTrue(THEIR_TESTS.is_dir(), f"{THEIR_TESTS} is not there: python3-pyverbs without its documentation?")

    def test_list(self):
        self.assertEqual(list(LIST.wrong_in_itself()), [])

    def test_modules(self):
        # One process, because Python takes half a minute to start under TCG.
        modules = " ".join(f"tests.{module}" for module in LIST.modules)
        command = ("echo 8 >/proc/sys/vm/nr_hugepages && cd theirs && "
                   f"python3 -B tests/run_tests.py --dev rnic0 --port 1 --gid {GID_OF_IPV4} -v {modules}")
        with apps.folder() as folder:
            (folder / "theirs").mkdir()
            copy_tests(folder / "theirs")
            result = vm("--guests", "1", "--with", "python", "--memory", "512MiB", "--wall-limit", "900s", "--add",
                        folder / "theirs", *on(("g0", "ibv_devinfo -v"), ("g0", command)))
        wrong = LIST.check(LIST.modules, result.errors("g0"), lambda: result.text("g0"))
        if wrong:
            self.fail("\n".join([*wrong, "", str(result)]))
        self.assert_ended(result, 0)


if __name__ == "__main__":
    apps.main()
