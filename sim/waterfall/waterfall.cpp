// SPDX-License-Identifier: Apache-2.0
#include "sim/waterfall/waterfall.h"

#include <algorithm>
#include <vector>

#include "model/host/gids.h"
#include "model/host/kernel_agent.h"
#include "model/nic/blocks.h"
#include "model/nic/contexts/gather_scatter.h"
#include "model/nic/contexts/processing_units.h"
#include "model/nic/nic.h"
#include "model/nic/packets/loopback.h"
#include "model/nic/packets/packet_tx.h"
#include "model/nic/packets/port.h"
#include "model/nic/packets/receive/packet_rx.h"
#include "model/nic/queues/completion.h"
#include "model/nic/queues/doorbell.h"
#include "model/nic/seam/qp_engine.h"
#include "sim/adapter.h"
#include "sim/config/config.h"
#include "sim/system.h"
#include "sim/waterfall/assembler.h"

namespace rnicsim::sim {
namespace {

std::vector<Assembler::Costs> costs_of(const System& system) {
  std::vector<Assembler::Costs> costs;
  for (std::size_t i = 0; i < system.adapters(); ++i) {
    const auto& cpu = system.config().host_of(system.adapter(i).interface().host).cpu;
    costs.push_back({cpu.post_wqe, cpu.detect});
  }
  return costs;
}

}  // namespace

const WaterfallSummary::Operation* WaterfallSummary::find(nic::SendOpcode opcode, bool one_way) const {
  const auto found = std::ranges::find_if(operations, [&](const Operation& operation) {
    return operation.opcode == opcode && operation.one_way == one_way;
  });
  return found != operations.end() ? &*found : nullptr;
}

Waterfall::Waterfall(System& system)
    : assembler_(std::make_unique<Assembler>(costs_of(system))), stored_(system.adapters()) {
  assembler_->finished = [this](const Journey& journey) {
    count(journey);
    finished(journey);
  };
  for (std::uint32_t i = 0; i < system.adapters(); ++i) {
    Adapter& host = system.adapter(i);
    Mac mac;
    std::ranges::copy(host.interface().mac, mac.begin());
    hosts_[mac] = i;
    watch_software(i, host);
    watch_queues(i, host.nic().blocks());
    watch_packets(i, host.nic().blocks());
  }
}

Waterfall::~Waterfall() = default;

void Waterfall::watch_software(std::uint32_t index, Adapter& host) {
  // A guest's stores reach the device at the time when they are made, and its software reports no milestones.
  if (!host.in_guest()) {
    host.agent().software.subscribe(
        [this, index](const host::SoftwareMilestone& told) { assembler_->software(index, told.milestone); });
    host.root_complex().carried.subscribe(
        [this, index](const host::MmioCarried& carried) { stored_[index] = carried.stored; });
  }
  const auto& nic = host.nic().blocks();
  nic.doorbell.rung.subscribe([this, index, in_guest = host.in_guest()](const nic::DoorbellRung& rung) {
    assembler_->doorbell(index, now(), rung, in_guest ? now() : stored_[index]);
  });
  nic.units.doorbell_taken.subscribe(
      [this, index](const nic::DoorbellTaken& taken) { assembler_->doorbell_taken(index, now(), taken); });
}

void Waterfall::watch_queues(std::uint32_t index, const nic::NicBlocks& nic) {
  nic.engine.trace().wqe_taken.subscribe(
      [this, index](const nic::WqeTaken& wqe) { assembler_->wqe_taken(index, now(), wqe); });
  nic.engine.trace().state_changed.subscribe([this, index](const nic::QpStateChanged& change) {
    if (change.to == roce::QpState::reset) assembler_->qp_reset(index, change.qpn);
  });
  nic.engine.trace().send_completed.subscribe(
      [this, index](const nic::SendCompleted& completed) { assembler_->send_completed(index, now(), completed); });
  nic.completion.written.subscribe(
      [this, index](const nic::CqeWritten& written) { assembler_->cqe_written(index, written); });
  nic.completion.landed.subscribe(
      [this, index](const nic::CqeLanded& landed) { assembler_->cqe_landed(index, now(), landed); });
}

void Waterfall::watch_packets(std::uint32_t index, const nic::NicBlocks& nic) {
  nic.engine.trace().request_began.subscribe(
      [this, index](const nic::RequestBegan& began) { assembler_->request_began(index, now(), began); });
  nic.gather_scatter.translated.subscribe(
      [this, index](const nic::AccessTranslated& done) { assembler_->translated(index, now(), done.tag); });
  nic.tx.sent.subscribe([this, index](const nic::PacketTrace& packet) {
    std::optional<std::uint32_t> to;
    if (const auto found = hosts_.find(packet.addresses.destination_mac); found != hosts_.end()) to = found->second;
    assembler_->packet_sent(index, now(), packet, to);
  });
  for (auto* scheduled : {&nic.port.scheduled, &nic.loopback.scheduled})
    scheduled->subscribe(
        [this, index](const nic::FrameScheduled& frame) { assembler_->frame_scheduled(index, frame); });
  nic.rx.received.subscribe(
      [this, index](const nic::PacketTrace& packet) { assembler_->packet_received(index, packet); });
  nic.engine.trace().request_taken.subscribe(
      [this, index](const nic::RequestTaken& taken) { assembler_->request_taken(index, now(), taken); });
  nic.engine.trace().request_placed.subscribe(
      [this, index](const nic::RequestPlaced& placed) { assembler_->request_placed(index, now(), placed); });
  nic.engine.trace().answer_taken.subscribe(
      [this, index](const nic::AnswerTaken& taken) { assembler_->answer_taken(index, now(), taken); });
  nic.engine.trace().answer_placed.subscribe(
      [this, index](const nic::AnswerPlaced& placed) { assembler_->answer_placed(index, now(), placed); });
}

void Waterfall::count(const Journey& journey) {
  auto& spans = spans_[{journey.one_way, journey.opcode}];
  if (!spans) spans = std::make_unique<Spans>();
  spans->latency.add(journey.latency());
  for (std::size_t i = 0; i < kStages; ++i) spans->stages[i].add(journey.time_in(Stage(i)));
}

WaterfallSummary Waterfall::summary() const {
  WaterfallSummary summary;
  for (const auto& [key, spans] : spans_) {
    auto& operation = summary.operations.emplace_back();
    operation.one_way = key.first;
    operation.opcode = key.second;
    operation.latency = spans->latency.spread();
    for (std::size_t i = 0; i < kStages; ++i) operation.stages[i] = spans->stages[i].spread();
  }
  summary.failed = assembler_->failed();
  summary.irregular = assembler_->irregular();
  const auto known = assembler_->complete() + summary.failed + assembler_->lost();
  summary.unfinished = assembler_->taken() - std::min(known, assembler_->taken());
  return summary;
}

}  // namespace rnicsim::sim
