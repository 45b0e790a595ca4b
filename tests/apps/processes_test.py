#!/usr/bin/env python3
"""What processes of one host have in common: what a forked child may do with its parent's objects, what a process that
was handed a context's descriptor may, and what huge pages lie behind a region.

usage: processes_test.py path/to/rnicsim     (needs gcc and libibverbs' headers)
"""
import os
import pathlib
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import apps  # noqa: E402
from apps import LeavesNothing, built  # noqa: E402

SOURCE = pathlib.Path(__file__).resolve().with_name("processes.c")
TRAFFIC = "traffic ok"
DESTROYED = ["destroy_qp: ok", "destroy_cq: ok", "dereg_mr: ok", "dealloc_pd: ok", "close_device: ok"]


class Processes(LeavesNothing):
    OPTIONS = ()

    def both(self, mode):
        """What the parent said, the child, and neither."""
        command = f"{built('processes', SOURCE.read_text(), '-libverbs')} {mode}"
        result = apps.run_on([("h0", command)], *self.OPTIONS, env=self.environment)
        self.assertEqual(result.status, 0, result)
        self.assertNotIn("keeps object", result.err, result)
        self.assertNotIn("mmio", result.err, result)
        said = {"parent": [], "child": [], "": []}
        for line in result.lines("h0"):
            who, mark, text = line.partition(": ")
            said[who if mark else ""].append(text if mark else line)
        return said


class Forks(Processes):
    def check(self, mode, child, end="ended with 0"):
        """Whatever the child does, the parent's traffic goes on."""
        said = self.both(mode)
        self.assertEqual(said["parent"], [TRAFFIC] * 3 + DESTROYED)
        self.assertEqual(said["child"], child)
        self.assertEqual(said[""], [f"the child {end}"])

    USES = ["post_send: ENODEV", "post_recv: ENODEV", "poll_cq: ENODEV", "modify_qp: ENODEV", "reg_mr: ENODEV",
            "alloc_pd: ENODEV"]

    def test_uses_the_parents(self):
        self.check("child-uses", self.USES)

    def test_opens_anew(self):
        self.check("child-opens", [TRAFFIC, *DESTROYED])

    def test_opens_anew_and_uses_the_parents(self):
        """Its own rings lie where its parent's lie in the parent."""
        self.check("child-opens-and-uses", [TRAFFIC, *self.USES, "close_device: ok", TRAFFIC, *DESTROYED])

    def test_closes_the_parents(self):
        self.check("child-closes", ["destroy_qp: ENODEV", "destroy_cq: EBUSY", "dereg_mr: ENODEV", "dealloc_pd: ENODEV",
                                    "close_device: ok"])

    def test_exits(self):
        self.check("child-exits", [])

    def test_dies(self):
        self.check("child-dies", [], "died of 9")


class Imports(Processes):
    USED = "the parent's memory says hello, child"
    LEFT = "the child left hello, parent"

    def test_passed_by_a_stream(self):
        said = self.both("import")
        self.assertEqual(said["child"], [self.USED, "destroy_qp: ok", "destroy_cq: ok", "dereg_mr: ok",
                                         "close_device: ok"])
        self.assertEqual(said["parent"], [self.LEFT, TRAFFIC, *DESTROYED])

    def test_importer_destroys(self):
        said = self.both("importer-destroys")
        self.assertEqual(said["child"], [self.USED, "dereg_mr of the parent's: ok", "destroy_qp: ok", "destroy_cq: ok",
                                         "dereg_mr: ok", "dealloc_pd of the parent's: EBUSY", "close_device: ok"])
        self.assertEqual(said["parent"], [self.LEFT, "destroy_qp: ok", "dealloc_pd: ok", "close_device: ok"])

    def test_importer_dies(self):
        """Its objects go; what it had imported stays the owner's."""
        said = self.both("importer-dies")
        self.assertEqual(said["child"], [self.USED])
        self.assertEqual(said["parent"], [self.LEFT, TRAFFIC, *DESTROYED])

    def check_owner_goes(self, mode, end):
        """Its region goes, and the window on it; the PD stays for the other's objects."""
        said = self.both(mode)
        self.assertEqual(said["child"], [
            self.USED, "window: success", TRAFFIC, "the dead parent's memory: local protection error",
            "import_mr: ENOENT", "import_pd: ok", "dealloc_mw: ENOENT", *DESTROYED])
        self.assertEqual(said[""], [f"the owner {end}"])

    def test_owner_dies(self):
        self.check_owner_goes("owner-dies", "died of 9")

    def test_owner_ends(self):
        self.check_owner_goes("owner-ends", "ended with 0")

    def test_guesses(self):
        said = self.both("guess")
        self.assertEqual(said["child"], ["import of a pipe: EINVAL", "import of no descriptor: EINVAL",
                                         "import of an event descriptor: EINVAL", "guessed nothing"])
        self.assertEqual(said["parent"], ["the child left hello, child", TRAFFIC, *DESTROYED])


class ForksInRealTime(Forks):
    OPTIONS = ("--time=real",)


class ImportsInRealTime(Imports):
    OPTIONS = ("--time=real",)


class HugePages(LeavesNothing):
    """Registered in pages of their size. Needs some that are free: /proc/sys/vm/nr_hugepages."""
    BYTES = 8 << 20
    PROGRAM = r"""
        #define _GNU_SOURCE
        #include <infiniband/verbs.h>
        #include <stdlib.h>
        #include <sys/mman.h>
        int main(int count, char **flags) {
          const int how = MAP_PRIVATE | MAP_ANONYMOUS | (count > 1 ? MAP_HUGETLB : 0);
          (void)flags;
          void *memory = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, how, -1, 0);
          struct ibv_context *context = ibv_open_device(ibv_get_device_list(NULL)[0]);
          struct ibv_pd *pd = ibv_alloc_pd(context);
          struct ibv_mr *mr = ibv_reg_mr(pd, memory, 8 << 20, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_HUGETLB);
          // Small pages where huge ones were.
          if (memory == MAP_FAILED || !mr || ibv_dereg_mr(mr)) return 1;
          if (count < 3) return 0;
          const int again = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
          if (mmap(memory, 8 << 20, PROT_READ | PROT_WRITE, again, -1, 0) != memory) return 2;
          return !ibv_reg_mr(pd, memory, 8 << 20, IBV_ACCESS_LOCAL_WRITE);
        }
    """

    @staticmethod
    def free_huge_pages():
        lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
        values = {name: value.split() for name, value in (line.split(":") for line in lines)}
        return int(values["HugePages_Free"][0]), int(values["Hugepagesize"][0]) << 10

    def pages_registered(self, *arguments):
        program = built("huge-pages", self.PROGRAM, "-libverbs")
        with apps.folder() as path:
            result = self.call("run", "--json", path / "r.json", "--on", "h0", f"{program} {' '.join(arguments)}")
            self.assert_succeeded(result)
            counters = apps.read_json(path / "r.json")["hosts"]["h0"]["counters"]
        return next(value for name, value in flat(counters) if name.endswith("pages_registered"))

    def test_small(self):
        self.assertEqual(self.pages_registered(), self.BYTES // 4096)

    def test_huge(self):
        free, size = self.free_huge_pages()
        if free * size < self.BYTES or size > self.BYTES:
            raise unittest.SkipTest("no huge pages are free")
        self.assertEqual(self.pages_registered("huge"), self.BYTES // size)
        self.assertEqual(self.pages_registered("huge", "then-small"), self.BYTES // size + self.BYTES // 4096)


def flat(tree, name=""):
    """(path, number) of every leaf."""
    if not isinstance(tree, dict):
        yield name, tree
        return
    for key, value in tree.items():
        yield from flat(value, f"{name}.{key}")


if __name__ == "__main__":
    apps.main()
