#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Sharing between processes of a host: objects of the parent in a forked child, objects of a process that received a
context's descriptor, and huge pages behind a region.

usage: processes_test.py path/to/rnicsim     (needs gcc and libibverbs' headers)
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402
from apps import LeavesNothing, built  # noqa: E402

SOURCE = apps.PROGRAMS / "processes.c"
TRAFFIC = "traffic ok"
DESTROYED = ["destroy_qp: ok", "destroy_cq: ok", "dereg_mr: ok", "dealloc_pd: ok", "close_device: ok"]


class Processes(LeavesNothing):
    OPTIONS = ()

    def both(self, mode):
        """Lines of the parent ("parent"), of the child ("child"), and without a label ("")."""
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
        """The parent's traffic goes on, whatever the child does."""
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
        """The child's own rings are at the addresses of the parent's rings in the parent."""
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
        """The importer's objects are destroyed; imported objects stay with their owner."""
        said = self.both("importer-dies")
        self.assertEqual(said["child"], [self.USED])
        self.assertEqual(said["parent"], [self.LEFT, TRAFFIC, *DESTROYED])

    def check_owner_goes(self, mode, end):
        """The owner's region and its window are destroyed; the PD stays for the importer's objects."""
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
    """Memory registered in huge pages; host.huge_pages is the number of pages of a host."""
    BYTES = 8 << 20
    PAGE = 2 << 20
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
    # Prints the number of free huge pages after each step.
    TAKES = r"""
        #define _GNU_SOURCE
        #include <errno.h>
        #include <infiniband/verbs.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <sys/mman.h>
        #include <sys/shm.h>
        #include <sys/wait.h>
        #include <unistd.h>
        enum { kPage = 2 << 20 };
        static int number_in(const char *path) {
          FILE *file = fopen(path, "r");
          int number = -1;
          if (!file || fscanf(file, "%d", &number) != 1) return -1;
          fclose(file);
          return number;
        }
        static void tell(const char *when) {
          char line[128];
          int total = -1, left = -1;
          FILE *file = fopen("/proc/meminfo", "r");
          while (fgets(line, sizeof line, file)) {
            sscanf(line, "HugePages_Total: %d", &total);
            sscanf(line, "HugePages_Free: %d", &left);
          }
          fclose(file);
          printf("%s: %d of %d, %d of %d\n", when, left, total,
                 number_in("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages"),
                 number_in("/proc/sys/vm/nr_hugepages"));
          fflush(stdout);
        }
        static char *map(size_t bytes, int flags) {
          return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_HUGETLB | flags, -1, 0);
        }
        int main(void) {
          tell("none");
          char *one = map(kPage + 1, MAP_PRIVATE);
          if (one == MAP_FAILED || (size_t)one % kPage) return 1;
          one[2 * kPage - 1] = 7;
          tell("two mapped");
          char *shared = map(kPage, MAP_SHARED);
          if (!fork()) {
            strcpy(shared, "child");
            one[2 * kPage - 1] = 8;
            tell("in a child");
            _exit(map(2 * kPage, MAP_PRIVATE) != MAP_FAILED || errno != ENOMEM);
          }
          int status = 0;
          wait(&status);
          printf("child %d, %s, %d\n", status, shared, one[2 * kPage - 1]);
          printf("of 1 GiB: %d\n", map(kPage, MAP_PRIVATE | 30 << 26) == MAP_FAILED ? errno : 0);
          munmap(one, 2 * kPage);
          tell("unmapped");
          int segment = shmget(IPC_PRIVATE, kPage + 1, IPC_CREAT | SHM_HUGETLB | 0600);
          tell("a segment");
          char *attached = shmat(segment, NULL, 0);
          if (attached == (char *)-1 || (size_t)attached % kPage) return 2;
          struct ibv_context *context = ibv_open_device(ibv_get_device_list(NULL)[0]);
          struct ibv_mr *mr = ibv_reg_mr(ibv_alloc_pd(context), attached, kPage, IBV_ACCESS_LOCAL_WRITE);
          if (!mr || ibv_dereg_mr(mr)) return 3;
          printf("a further one: %d\n", shmget(IPC_PRIVATE, 2 * kPage, IPC_CREAT | SHM_HUGETLB | 0600) < 0 ? errno : 0);
          shmctl(segment, IPC_RMID, NULL);
          tell("removed");
          shmdt(attached);
          tell("detached");
        }
    """

    def run_huge(self, program, pages, *more):
        return self.call("run", *more, "--set", f"host.huge_pages={pages}", "--on", "h0", program)

    def pages_registered(self, *arguments):
        program = built("huge-pages", self.PROGRAM, "-libverbs")
        with apps.folder() as path:
            result = self.run_huge(f"{program} {' '.join(arguments)}", 4, "--json", path / "r.json")
            self.assert_succeeded(result)
            counters = apps.read_json(path / "r.json")["hosts"]["h0"]["counters"]
        return next(value for name, value in flat(counters) if name.endswith("pages_registered"))

    def test_small(self):
        self.assertEqual(self.pages_registered(), self.BYTES // 4096)

    def test_huge(self):
        self.assertEqual(self.pages_registered("huge"), self.BYTES // self.PAGE)
        self.assertEqual(self.pages_registered("huge", "then-small"), self.BYTES // self.PAGE + self.BYTES // 4096)

    def test_the_host_has_no_more(self):
        program = built("huge-pages", self.PROGRAM, "-libverbs")
        self.assertEqual(self.run_huge(f"{program} huge", 3).status, 1)
        self.assertEqual(self.call("run", "--on", "h0", f"{program} huge").status, 1)

    def test_they_are_taken_and_given_back(self):
        result = self.run_huge(str(built("huge-takes", self.TAKES, "-libverbs")), 4)
        self.assert_succeeded(result)
        self.assertEqual(result.lines("h0"), [
            "none: 4 of 4, 4 of 4", "two mapped: 2 of 4, 2 of 4", "in a child: 1 of 4, 1 of 4",
            "child 0, child, 7", "of 1 GiB: 12", "unmapped: 3 of 4, 3 of 4", "a segment: 1 of 4, 1 of 4",
            "a further one: 12", "removed: 1 of 4, 1 of 4", "detached: 3 of 4, 3 of 4"])


def flat(tree, name=""):
    """(path, number) of every leaf."""
    if not isinstance(tree, dict):
        yield name, tree
        return
    for key, value in tree.items():
        yield from flat(value, f"{name}.{key}")


if __name__ == "__main__":
    apps.main()
