#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The NIC in the file system of a simulated host: programs find its files by every call, and no other device.

usage: host_files_test.py path/to/rnicsim
"""
import os
import pathlib
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402

DEVICE = "/sys/class/infiniband/rnic0"

# Checks a path by all calls that UCX, libfabric, Open MPI, hwloc or a shell use.
CALLS = r"""
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *file = "/sys/class/infiniband/rnic0/ports/1/gid_attrs/types/1";
static const char *verbs = "/dev/infiniband/uverbs0";

static void said(const char *call, int right) { printf("%s %s\n", call, right ? "right" : "WRONG"); }
static int holds(int fd) {
  char text[16] = {0};
  int right = read(fd, text, sizeof text - 1) == 8 && strcmp(text, "RoCE v2\n") == 0;
  close(fd);
  return right;
}
int main(void) {
  struct stat info;
  struct statx more;
  char path[PATH_MAX];
  struct dirent **list;
  said("open", holds(open(file, O_RDONLY)));
  said("open64", holds(open64(file, O_RDONLY)));
  said("openat", holds(openat(AT_FDCWD, file, O_RDONLY)));
  FILE *stream = fopen(file, "r");
  said("fopen", stream != NULL && fgetc(stream) == 'R');
  said("stat", stat(verbs, &info) == 0 && S_ISCHR(info.st_mode));
  said("fstatat", fstatat(AT_FDCWD, verbs, &info, 0) == 0 && S_ISCHR(info.st_mode));
  said("statx", statx(AT_FDCWD, verbs, 0, STATX_TYPE, &more) == 0 && S_ISCHR(more.stx_mode));
  said("lstat", lstat("/sys/class/infiniband/rnic0", &info) == 0 && S_ISLNK(info.st_mode));
  said("access", access(verbs, R_OK | W_OK) == 0);
  said("opendir", opendir("/sys/class/infiniband/rnic0/ports/1") != NULL);
  said("scandir", scandir("/sys/class/net", &list, NULL, alphasort) == 4 && strcmp(list[2]->d_name, "eth0") == 0);
  said("realpath", realpath("/sys/class/net/eth0/device", path) != NULL &&
                       strcmp(path, "/sys/devices/pci0001:00/0001:01:00.0") == 0);
  ssize_t length = readlink("/sys/class/infiniband/rnic0", path, sizeof path);
  said("readlink", length > 0 && memcmp(path, "../../devices/", 14) == 0);
  int folder = open("/sys/class/infiniband/rnic0/ports/1", O_RDONLY | O_DIRECTORY);
  said("relative", holds(openat(folder, "gid_attrs/types/1", O_RDONLY)));
  said("missing", open("/sys/class/infiniband/rnic0/ports/2/state", O_RDONLY) < 0);
  return 0;
}
"""

INTERFACES = r"""
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

int main(void) {
  struct ifaddrs *list;
  if (getifaddrs(&list) != 0) return 1;
  for (struct ifaddrs *each = list; each != NULL; each = each->ifa_next) {
    if (each->ifa_addr->sa_family != AF_INET) continue;
    struct sockaddr_in *address = (struct sockaddr_in *)each->ifa_addr, *mask = (struct sockaddr_in *)each->ifa_netmask;
    printf("%s %s", each->ifa_name, inet_ntoa(address->sin_addr));
    printf(" %s %u\n", inet_ntoa(mask->sin_addr), if_nametoindex(each->ifa_name));
  }
  freeifaddrs(list);
  struct ifreq entries[8];
  struct ifconf all = {.ifc_len = sizeof entries, .ifc_req = entries};
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (ioctl(fd, SIOCGIFCONF, &all) != 0) return 2;
  for (int i = 0; i < all.ifc_len / (int)sizeof *entries; ++i) {
    printf("%s %s", entries[i].ifr_name, inet_ntoa(((struct sockaddr_in *)&entries[i].ifr_addr)->sin_addr));
    if (ioctl(fd, SIOCGIFNETMASK, &entries[i]) != 0) return 3;
    printf(" %s", inet_ntoa(((struct sockaddr_in *)&entries[i].ifr_addr)->sin_addr));
    if (ioctl(fd, SIOCGIFINDEX, &entries[i]) != 0) return 4;
    printf(" %d\n", entries[i].ifr_ifindex);
  }
  return 0;
}
"""


class HostFiles(apps.LeavesNothing):
    def text(self, command, host="h1"):
        result = self.assert_succeeded(self.run_on((host, command)))
        return result.text(host)

    def test_every_call(self):
        result = self.text(str(apps.built("calls", CALLS)))
        self.assertGreater(result.count("right"), 12, result)
        self.assertNotIn("WRONG", result)

    def test_what_a_shell_sees(self):
        """Children see the files of their own host."""
        self.assertEqual(self.text(f"sh -c 'ls {DEVICE}/ports/1/gids | wc -l'"), "16")
        self.assertEqual(self.text(f"cat {DEVICE}/node_guid"), "0000:00ff:fe00:0101")
        self.assertEqual(self.text(f"cat {DEVICE}/node_guid", "h0"), "0000:00ff:fe00:0001")
        self.assertEqual(self.text(f"cat {DEVICE}/ports/1/gids/1"), "0000:0000:0000:0000:0000:ffff:0a00:0101")
        self.assertEqual(self.text(f"cat {DEVICE}/ports/1/pkeys/0"), "0xffff")
        self.assertEqual(self.text(f"cat {DEVICE}/ports/1/gid_attrs/ndevs/1"), "eth0")
        self.assertEqual(self.text("sh -c 'cd /; ls /dev/infiniband'"), "uverbs0")

    def test_gids_are_the_devices(self):
        shown = self.text("ibv_devinfo -v")
        for line in self.text(f"sh -c 'grep . {DEVICE}/ports/1/gid_attrs/types/*'").splitlines():
            self.assertIn(f"GID[{line.rpartition('/')[2].partition(':')[0]:>3}]:", shown)

    def test_go_with_the_run(self):
        name = self.text("sh -c 'echo $RNICSIM_SOCKET'")
        self.assertRegex(name, "^rnicsim-")
        self.assertFalse(pathlib.Path(f"/tmp/rnicsim-hosts.{name}").exists())

    def test_interfaces(self):
        """Both requests give the same answers, without the machine's own devices."""
        lines = ["lo 127.0.0.1 255.0.0.0 1", "eth0 10.0.1.1 255.255.0.0 2"]
        self.assertEqual(self.text(str(apps.built("interfaces", INTERFACES))).splitlines(), lines + lines)

    def test_hosts_are_different_machines(self):
        boots = {self.text("cat /proc/sys/kernel/random/boot_id", host) for host in ("h0", "h1")}
        self.assertEqual(len(boots), 2)


if __name__ == "__main__":
    apps.main()
