// SPDX-License-Identifier: Apache-2.0
// Request packets that arrive before missing ones, in the engine shell (nic.transport.reorder_window).
#include <utility>

#include "model/nic/engine/shell/engine_shell.h"

namespace rnicsim::nic {
namespace {

constexpr std::uint32_t kFrameOverhead = 128;  // receive buffer bytes for a packet's headers, at most

}  // namespace

// A packet whose payload cannot be placed yet occupies the receive buffer until its turn. The missing packets need
// buffer space, too, and only they end the wait. So kept packets have a limit of their own.
void EngineShell::keep_early(Qp& qp, PacketIn&& packet, const roce::Verdict& verdict) {
  ++counters_.out_of_sequence;
  auto& entry = qp.early.add(std::move(packet));
  if (verdict.range.length == 0) {
    entry.waiting = BufferHold(early_waiting_, entry.packet.payload().size() + kFrameOverhead);
    return;
  }
  entry.payload = EarlyPackets::Payload::on_its_way;
  Scatter scatter{.tag = issue(qp, Purpose::early_scatter, entry.psn().value()),
                  .qpn = qp.qpn,
                  .pd = qp.context.pd,
                  .access = verdict.access,
                  .remote = true,
                  .regions = {},
                  .payload = entry.packet.payload()};
  scatter.regions.push_back({verdict.range.rkey.value, verdict.range.address, verdict.range.length});
  entry.packet.hold = {};
  out_.scatter(std::move(scatter));
}

bool EngineShell::placed_early(const Qp& qp) const {
  return qp.early.due() && qp.early.first().payload != EarlyPackets::Payload::here;
}

// Handles the turn of a packet whose payload is placed or on its way.
void EngineShell::settle_early(Qp& qp, const PacketIn& packet, const roce::Verdict& verdict) {
  const auto& entry = qp.early.first();
  const AnswerAt at{verdict.pending_answer, entry.psn()};
  complete_receive(qp, packet, verdict);
  if (entry.payload == EarlyPackets::Payload::on_its_way) return qp.early.had_turn(entry.psn(), at.argument());
  if (entry.result == AccessResult::ok) tell_placed(qp, at);
  core_->placed(qp.slot, verdict.pending_answer, memory_result(entry.result));
}

void EngineShell::early_payload_placed(Qp& qp, roce::Psn psn, AccessResult result) {
  if (const auto argument = qp.early.came(psn, result)) payload_placed(qp, *argument, result);
}

}  // namespace rnicsim::nic
