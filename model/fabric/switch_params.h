// SPDX-License-Identifier: Apache-2.0
// Parameters and counters of a switch.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "model/base/params.h"
#include "model/base/policy_choice.h"
#include "model/base/ports/priority_map.h"
#include "model/base/stats.h"
#include "model/fabric/pause_watchdog_params.h"
#include "model/fabric/red_thresholds.h"
#include "model/fabric/shared_buffer_params.h"

namespace rnicsim {
class QueueDiscipline;
namespace fabric {
class PathChoice;
}  // namespace fabric
}  // namespace rnicsim

namespace rnicsim::fabric {

using namespace rnicsim::literals;

struct PfcParams {
  std::uint32_t priorities = 0;
  ByteCount xoff = 64_KiB;
  ByteCount xon = 48_KiB;
  ByteCount headroom = 64_KiB;
  std::uint32_t quanta = 65535;
  PauseWatchdogParams watchdog;

  void describe(ParamVisitor& visit) {
    visit.param("priorities", priorities,
                "lossless priorities, one bit for each: the switch pauses their senders, and obeys pauses; 0: none",
                {0, 255});
    visit.param("xoff", xoff, "bytes held of a port's priority at which the switch pauses the sender", {1, 1e12});
    visit.param("xon", xon, "bytes held of a port's priority at which the sender may send again", {0, 1e12});
    visit.param("headroom", headroom,
                "bytes beyond xoff for frames that arrive until the pause takes effect; further frames are lost",
                {0, 1e12});
    visit.param("quanta", quanta, "duration of a requested pause, in times of 512 bits", {2, 65535});
    visit.group("watchdog", watchdog);
    visit.refuse(xon >= xoff, "xon", "is not less than", "xoff");
    visit.idle(priorities == 0, {"xoff", "xon", "headroom", "quanta", "watchdog"}, "priorities");
  }
};

struct EcnParams {
  static constexpr const char* kAtWords[] = {"dequeue", "enqueue"};

  std::uint32_t priorities = 0;
  ByteCount kmin{400'000};
  ByteCount kmax{1'600'000};
  double pmax = 0.2;
  std::string by_priority;
  std::string at{kAtWords[0]};
  bool drop_not_ect = false;

  void describe(ParamVisitor& visit) {
    visit.param("priorities", priorities,
                "priorities whose frames are marked when their queue is long, one bit for each; 0: none", {0, 255});
    visit.param("kmin", kmin, "waiting bytes of a port's priority above which some frames are marked", {0, 1e12});
    visit.param("kmax", kmax, "waiting bytes above which each frame is marked", {1, 1e12});
    visit.param("pmax", pmax, "share of marked frames just below kmax; the share grows linearly from kmin to kmax",
                {0, 1});
    visit.param("by_priority", by_priority,
                "thresholds of single priorities, each as priority:kmin:kmax:pmax, such as \"3:100KB:400KB:0.2 "
                "4:5KB:200KB:0.01\"; other priorities use kmin, kmax and pmax");
    visit.param("at", at, "time at which the queue's length decides: when a frame leaves, or when a frame arrives",
                kAtWords);
    visit.param("drop_not_ect", drop_not_ect,
                "drop a frame that cannot be marked (Not-ECT) when it arrives, instead of marking it; not for lossless "
                "priorities");
    visit.refuse(kmin > kmax, "kmin", "is more than", "kmax");
    visit.refuse(!parse_red_thresholds(by_priority, {kmin, kmax, pmax}), "by_priority",
                 "is not a list of priority:kmin:kmax:pmax with kmin not above kmax, such as \"3:100KB:400KB:0.2\"");
    const auto own = named_priorities(by_priority);
    visit.idle(priorities == 0, {"kmin", "kmax", "pmax", "by_priority", "at", "drop_not_ect"}, "priorities");
    visit.idle((priorities & ~own) == 0, {"kmin", "kmax", "pmax"}, "by_priority");
    visit.idle((priorities & own) == 0, {"by_priority"}, "priorities");
  }
};

struct SwitchParams {
  static constexpr const char* kJitterWords[] = {"auto", "off", "on"};

  Duration latency = 300_ns;
  ByteCount port_buffer = 64_MiB;
  SharedBufferParams buffer;
  PfcParams pfc;
  EcnParams ecn;
  PolicyChoice<QueueDiscipline> scheduler{"strict"};
  PolicyChoice<PathChoice> path{"ecmp"};
  std::string jitter{kJitterWords[0]};
  PriorityParams priority;
  bool histograms = false;

  // Reserved bytes of the packet memory of a switch with this number of ports.
  std::uint64_t reserved_bytes(std::size_t ports) const {
    const auto lossless = static_cast<std::uint64_t>(std::popcount(pfc.priorities));
    return ports * (lossless * buffer.lossless.size.bytes + (kPriorities - lossless) * buffer.lossy.size.bytes);
  }
  void describe(ParamVisitor& visit) {
    visit.param("latency", latency, "first bit in to first bit out of an idle port; docs/timing.md", {0, 1e12});
    visit.param("port_buffer", port_buffer,
                "bytes that may wait and leave at a port, of priorities that are not lossless; the next frame is lost",
                {1, 1e12});
    visit.group("buffer", buffer);
    visit.group("pfc", pfc);
    visit.group("ecn", ecn);
    scheduler.describe(visit, "scheduler", "policy that selects the queue of a port that sends next");
    path.describe(visit, "path", "policy that selects one of several equally short paths");
    visit.param(
        "jitter", jitter,
        "delay each frame at random by up to its own time on the line, without a change of order, so that synchronized "
        "senders do not stay in step. auto: from the switch's first lost frame on, and with ecn.priorities",
        kJitterWords);
    priority.describe(visit);
    visit.param(
        "histograms", histograms,
        "add histograms of queue lengths and of pause times to the results, by port and priority; docs/congestion.md");
    const bool has_static = buffer.size.bytes != 0 && !buffer.is_dynamic();
    visit.refuse(has_static && pfc.priorities != 0 && buffer.lossless.static_th.bytes + buffer.lossless.size.bytes == 0,
                 "buffer.lossless.static_th", "is 0: a priority without loss would have no buffer");
    visit.refuse(buffer.size.bytes != 0 && pfc.priorities != 0 && buffer.lossless.xoff > buffer.size,
                 "buffer.lossless.xoff", "is more than", "buffer.size");
    constexpr std::uint32_t kAll = (1 << kPriorities) - 1;
    visit.idle(buffer.size.bytes != 0, {"pfc.xoff", "pfc.xon", "pfc.headroom"}, "buffer.size");
    visit.idle(pfc.priorities == 0, {"buffer.lossless", "buffer.headroom_pool"}, "pfc.priorities");
    visit.idle(pfc.priorities == kAll, {"buffer.lossy", "port_buffer"}, "pfc.priorities");
    visit.idle((ecn.priorities & ~pfc.priorities) == 0, {"ecn.drop_not_ect"}, "pfc.priorities");
  }
};

// Counters of one port, by priority. They show which port is a bottleneck, and which device pauses which.
struct SwitchPortCounters {
  std::array<Counter, kPriorities> busy_ps{};     // time that frames occupied the line
  std::array<Counter, kPriorities> wait_ps{};     // time that frames waited for other frames or a pause
  std::array<Counter, kPriorities> paused_ps{};   // time that the peer paused the port
  std::array<Counter, kPriorities> stopped_ps{};  // time that the peer was requested to pause
  Counter control_ps = 0;                         // time that control frames occupied the line
  // Largest number of bytes in the output queue, and in the input buffer.
  std::array<Counter, kPriorities> most_queue{};
  std::array<Counter, kPriorities> most_held{};
  Counter tx_discards = 0;
  Counter rx_discards = 0;
  Counter ecn_marked = 0;
  std::uint32_t markable = 0;  // priorities, a bit each, with a frame that could be marked (ECT)
};

struct SwitchCounters {
  Counter frames = 0;
  Counter bytes = 0;
  Counter unknown = 0;
  Counter path_changes = 0;
  Counter most_waiting = 0;
  Counter most_bytes = 0;
  Counter most_shared = 0;
  Counter most_headroom = 0;
  Counter tx_busy_ps = 0;
  Counter tx_wait_ps = 0;
  Counter tx_discards = 0;
  Counter rx_discards = 0;
  Counter ecn_marked = 0;
  Counter tx_pause = 0;
  Counter rx_pause = 0;
  Counter tx_paused_ps = 0;
  Counter pfcwd_storms = 0;
  Counter pfcwd_restored = 0;
  Counter pfcwd_discards = 0;
  std::vector<Counter> port_busy_ps;

  void describe(CounterVisitor& visit) const {
    visit.counter("frames", frames, "frames", "frames received for forwarding");
    visit.counter("bytes", bytes, "bytes", "bytes of these frames, without FCS");
    visit.counter("unknown", unknown, "frames", "frames dropped: no port leads to the destination");
    visit.counter("path_changes", path_changes, "flowlets",
                  "flowlets on another path than the previous frames of their flow, with path = \"flowlet\"");
    visit.most("most_waiting", most_waiting, "frames", "most frames at a time that waited for, or left by, one port");
    visit.most("most_bytes", most_bytes, "bytes", "most bytes at a time that waited for, or left by, one port");
    visit.most("buffer_most_shared", most_shared, "bytes", "most bytes of the shared memory in use at a time");
    visit.most("buffer_most_headroom", most_headroom, "bytes", "most bytes of all headroom in use at a time");
    visit.busy("tx_busy", tx_busy_ps, static_cast<std::uint32_t>(port_busy_ps.size()),
               "time that ports were busy with leaving frames, sum of all ports", port_busy_ps);
    visit.waited("tx_wait", tx_wait_ps, "time that frames waited for other frames and pauses, sum of all frames");
    visit.counter("tx_discards", tx_discards, "frames", "frames dropped: the buffer of the leaving port was full");
    visit.counter("rx_discards", rx_discards, "frames",
                  "frames of lossless priorities dropped: the headroom of the arrival port was used up");
    visit.counter("ecn_marked", ecn_marked, "frames", "frames marked (CE) because of the length of their queue");
    visit.counter("tx_pause", tx_pause, "frames", "frames sent to pause a sender or to end a pause (IEEE 802.1Qbb)");
    visit.counter("rx_pause", rx_pause, "frames", "pause frames received");
    visit.counter("tx_paused", tx_paused_ps, "ps", "time that priorities of ports were paused, sum of all priorities");
    visit.counter("pfcwd_storms", pfcwd_storms, "storms", "pause storms that the watchdog found");
    visit.counter("pfcwd_restored", pfcwd_restored, "storms", "pause storms that have ended");
    visit.counter("pfcwd_discards", pfcwd_discards, "frames",
                  "frames dropped because of a pause storm; tx_discards also counts them");
  }
};

}  // namespace rnicsim::fabric
