// SPDX-License-Identifier: Apache-2.0
// The kernel's QP1, the general services interface (IBTA vol 1, 13.5): management datagrams, which pass through the
// device as the packets of any UD QP.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>

#include "model/abi/context.h"
#include "model/abi/queue.h"
#include "model/cm/messages.h"
#include "model/host/driver.h"
#include "model/host/gids.h"
#include "verbs/provider/completion_ring.h"
#include "verbs/provider/receive_ring.h"
#include "verbs/provider/send_ring.h"

namespace rnicsim::host {

class ManagementPort {
 public:
  static constexpr std::uint32_t kCqn = 0;
  static bool is_for_it(const abi::Eqe& eqe) { return eqe.type == abi::EventType::completion && eqe.number == kCqn; }

  struct Arrival {
    Gid local;  // GIDs of the packet's GRH or IPv4 header
    Gid remote;
    std::uint8_t traffic_class;
    cm::Mad mad;
  };

  explicit ManagementPort(Driver& driver) : driver_(driver) {}

  // Waits. Throws std::runtime_error with the reason if the device cannot be used. Without UD support in the device the
  // port stays unavailable.
  void bring_up();
  bool available() const { return available_; }

  void send(const abi::AddressVector& path, const cm::Mad& mad);
  // Handles the event of the port's CQ: calls `arrived` for each received datagram.
  void interrupt(const std::function<void(const Arrival&)>& arrived);

 private:
  struct Departure {
    abi::AddressVector path;
    cm::Mad mad;
  };

  void create_queues();
  void create_completion_queue(const provider::DmaBuffer& record);
  void register_buffers();
  abi::Qpc create_queue_pair(const provider::DmaBuffer& records);
  void make_ready(abi::Qpc qpc);
  void receive_into(std::uint32_t buffer);
  void post_waiting();
  std::optional<Arrival> arrival_in(const abi::Cqe& cqe, std::uint32_t buffer) const;

  Driver& driver_;
  bool available_ = false;
  provider::DmaBuffer send_buffers_;
  provider::DmaBuffer receive_buffers_;
  std::optional<provider::SendRing> send_;
  std::optional<provider::ReceiveRing> receive_;
  provider::CompletionRing completions_;
  std::deque<Departure> waiting_;  // datagrams that wait for a place in the send queue
  std::uint32_t next_send_ = 0;
};

}  // namespace rnicsim::host
