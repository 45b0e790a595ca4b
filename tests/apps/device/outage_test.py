#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Links that go down and devices that fail, as programs see them.

usage: outage_test.py path/to/rnicsim     (needs gcc, libibverbs' headers and perftest)
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402
from apps import built  # noqa: E402

# Prints the given number of asynchronous events of the device, each followed by the port's state.
EVENTS = r"""
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  int count = argc > 1 ? atoi(argv[1]) : 1;
  struct ibv_device** list = ibv_get_device_list(NULL);
  struct ibv_context* context = ibv_open_device(list[0]);
  struct ibv_async_event event;
  struct ibv_port_attr port;
  while (count-- > 0 && ibv_get_async_event(context, &event) == 0) {
    const int type = event.event_type;
    if (type == IBV_EVENT_DEVICE_FATAL) {
      puts("device fatal");
    } else {
      if (ibv_query_port(context, 1, &port) != 0) return 1;
      printf("%s: %d\n", type == IBV_EVENT_PORT_ERR ? "port error" : "port active", port.state);
    }
    ibv_ack_async_event(&event);
  }
  return 0;
}
"""
DOWN, UP = "port error: 1", "port active: 4"  # IBV_PORT_DOWN, IBV_PORT_ACTIVE


class Outages(apps.TestCase):
    def run_listeners(self, *faults, hosts=("h0", "h1"), count=2):
        events = built("async_events", EVENTS, "-libverbs")
        options = [word for fault in faults for word in ("--fault", fault)]
        with apps.folder() as path:
            result = self.assert_succeeded(apps.run_on([(host, f"{events} {count}") for host in hosts], *options,
                                                       "--json", path / "results.json"))
            return result, apps.read_json(path / "results.json")

    # The outage of h0's link is an event at both ends of the cable.
    def test_a_link_goes_down_and_comes_back(self):
        result, found = self.run_listeners("link_down,host=h0,at=15ms,for=2ms")
        for host in ("h0", "h1"):
            self.assertEqual(result.lines(host), [DOWN, UP], result)
            self.assertEqual(found["hosts"][host]["counters"]["nic.port.link_down_events_phy"], 1)

    # The link comes back when the last outage ends, at 19 ms.
    def test_outages_overlap(self):
        result, _ = self.run_listeners("link_down,host=h0,at=15ms,for=2ms", "link_down,host=h1,at=16ms,for=3ms")
        for host in ("h0", "h1"):
            self.assertEqual(result.lines(host), [DOWN, UP], result)
        self.assertGreaterEqual(float(re.search(r"--- ([\d.]+) ms simulated", result.out)[1]), 19, result)

    # The outage is late because perftest first measures the CPU's frequency, for a second. The transfer takes 27 ms.
    def test_a_transfer_outlives_an_outage(self):
        with apps.folder() as path:
            self.assert_succeeded(apps.run("ib_write_bw -n 5000", "--fault", "link_down,host=h0,at=1020ms,for=2ms",
                                           "--json", path / "results.json"))
            hosts = apps.read_json(path / "results.json")["hosts"]
        self.assertGreater(sum(host["counters"]["nic.port.link_down_discards"] for host in hosts.values()), 0)

    def test_a_device_fails(self):
        result, _ = self.run_listeners("fatal,host=h0,at=15ms", hosts=("h0",), count=1)
        self.assertEqual(result.lines("h0"), ["device fatal"], result)


if __name__ == "__main__":
    apps.main()
