// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/implied_deliveries.h"

#include <utility>

namespace rnicsim::sim::replay {
namespace {

using roce::Operation;

// Assembles messages from accepted packets.
class Assembly {
 public:
  bool open() const { return open_; }
  bool goes_on_with(const WirePacket& packet) const {
    return open_ && packet.psn() == next_ && operation_ == packet.row().operation;
  }
  void give_up() { open_ = false; }

  void add(const WirePacket& packet) {
    const auto& row = packet.row();
    if (row.begins()) begin(packet);
    const auto bytes = packet.payload.bytes();
    message_.bytes.insert(message_.bytes.end(), bytes.begin(), bytes.end());
    next_ = packet.psn() + 1;
    open_ = !row.ends();
  }
  Delivery take(const WirePacket& last) {
    message_.frame = last.frame;
    message_.immediate = last.headers.immediate;
    if (last.headers.invalidate) message_.invalidate = last.headers.invalidate->value;
    return std::exchange(message_, {});
  }
  // False: a WRITE whose length differs from its RETH; it is dropped.
  bool fits() const { return !message_.is_write || message_.bytes.size() == message_.target.length; }

 private:
  void begin(const WirePacket& packet) {
    message_ = {};
    operation_ = packet.row().operation;
    message_.is_write = operation_ == Operation::write;
    if (packet.headers.reth) message_.target = *packet.headers.reth;
    if (packet.headers.deth) message_.source = packet.headers.deth->source.value;
    const auto grh = packet.grh.bytes();
    message_.bytes.assign(grh.begin(), grh.end());
  }

  Delivery message_;
  Operation operation_{};
  roce::Psn next_;
  bool open_ = false;
};

bool accepted(const QpEnvironment& qp, const Request& request, Assembly& assembly) {
  const auto& packet = *request.packet;
  const auto operation = packet.row().operation;
  if (operation != Operation::send && operation != Operation::write) return false;
  if (qp.transport == roce::Transport::rc) return request.executed;
  if (qp.transport == roce::Transport::ud) return packet.headers.deth->qkey == qp.qkey;
  if (packet.row().begins() || assembly.goes_on_with(packet)) return true;
  assembly.give_up();
  return false;
}

}  // namespace

std::vector<Delivery> implied_deliveries(const QpEnvironment& qp) {
  std::vector<Delivery> deliveries;
  Assembly assembly;
  for (const auto& request : qp.requests) {
    if (!accepted(qp, request, assembly)) continue;
    assembly.add(*request.packet);
    if (!assembly.open() && assembly.fits()) deliveries.push_back(assembly.take(*request.packet));
  }
  return deliveries;
}

}  // namespace rnicsim::sim::replay
