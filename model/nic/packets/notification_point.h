// SPDX-License-Identifier: Apache-2.0
// The notification point of congestion control (NP): answers a marked packet or a loss with a congestion notification
// packet to the sender (CNP; IBTA annex A17.9.3), at most as often as its parameters allow. CNPs take no credits of the
// engine, so that queued data does not stop them.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <utility>

#include "model/base/delay_line.h"
#include "model/base/fifo.h"
#include "model/base/kernel.h"
#include "model/base/ports/priority_map.h"
#include "model/base/stream.h"
#include "model/nic/packets/congestion_seen.h"
#include "model/nic/packets/notification_counters.h"
#include "model/nic/packets/notification_params.h"
#include "model/nic/packets/packet_streams.h"

namespace rnicsim::nic {

class NotificationPoint {
 public:
  NotificationPoint(const NotificationParams& params, const PriorityMap& priorities);

  Output<PacketOut> cnp;

  // Scopes (queue pairs or addresses) for which the time of the next CNP is remembered. Any host can send datagrams
  // from any number of addresses, so memory and search must have a limit.
  static constexpr std::size_t kMostKeys = 4096;

  void see(const CongestionSeen& seen);
  void reset();

  std::size_t remembered() const { return answered_.size(); }
  const NotificationCounters& counters() const { return counters_; }

 private:
  enum class Moderation : std::uint8_t { ip, port, qp };
  using Key = std::pair<std::uint32_t, roce::Gid>;  // a queue pair, an address, or neither

  Key key_of(const CongestionSeen& seen) const;
  void forget_oldest();
  bool may_answer(const CongestionSeen& seen);
  void send_due();

  const NotificationParams params_;
  const PriorityMap priorities_;
  const Moderation moderation_;
  std::set<Key> answered_;                // keys with a CNP less than min_time_between_cnps ago
  Fifo<std::pair<Key, Duration>> order_;  // the same keys, the oldest first; time of the next CNP
  DelayLine<PacketOut> waiting_{[this] { send_due(); }};
  NotificationCounters counters_;
};

}  // namespace rnicsim::nic
