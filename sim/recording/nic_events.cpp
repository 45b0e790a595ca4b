// SPDX-License-Identifier: Apache-2.0
// The part of Recorder that watches a single NIC and its root port; does not depend on System.
#include <isa-l/crc.h>

#include <utility>

#include "model/fabric/fault_injector.h"
#include "model/host/root_complex.h"
#include "model/nic/blocks.h"
#include "model/nic/contexts/translation.h"
#include "model/nic/packets/packet_tx.h"
#include "model/nic/packets/port.h"
#include "model/nic/packets/receive/packet_rx.h"
#include "model/nic/packets/receive/raw_rx.h"
#include "model/nic/pcie/pcie_endpoint.h"
#include "model/nic/queues/command_unit.h"
#include "model/nic/queues/completion.h"
#include "model/nic/queues/doorbell.h"
#include "model/nic/queues/event_writer.h"
#include "model/nic/queues/wqe_fetch.h"
#include "model/nic/seam/qp_engine.h"
#include "sim/recording/recorder.h"

namespace rnicsim::sim {
namespace {

template <class Enum>
std::uint64_t number(Enum value) {
  return static_cast<std::uint64_t>(value);
}

// The same CRC as zlib's crc32().
std::uint32_t crc_of(std::span<const std::byte> bytes) {
  return crc32_gzip_refl(0, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

}  // namespace

std::uint32_t PayloadCrcs::of(const Payload& payload) {
  const auto bytes = payload.bytes();
  // Payloads begin at multiples of 64 bytes; the address decides only the cost.
  const auto place = reinterpret_cast<std::uintptr_t>(bytes.data()) / 64 * 0x9e3779b97f4a7c15u >> 56;
  auto& known = known_[place];
  const auto held = known.payload.bytes();
  // The receiver's packet is the last one with this payload in most cases. If the place kept its memory, the pool of
  // payloads would hand out only memory whose places collide.
  if (held.data() == bytes.data() && held.size() == bytes.size()) return std::exchange(known, {}).crc;
  known = {payload, crc_of(bytes)};
  return known.crc;
}

void Recorder::watch_nic(std::uint32_t host, const nic::NicBlocks& nic) {
  if (level_ == RecordLevel::all) watch_network(host, nic);
  watch_queues(host, nic);
  watch_doorbells(host, nic);
  watch_refusals(host, nic);
}

void Recorder::watch_network(std::uint32_t host, const nic::NicBlocks& nic) {
  const auto dropped = [this, host](const nic::PacketDropped& drop) {
    write(host, EventKind::packet_dropped, {number(drop.cause)});
  };
  nic.tx.sent.subscribe(
      [this, host](const nic::PacketTrace& packet) { write_packet(host, EventKind::packet_sent, packet); });
  nic.tx.dropped.subscribe(dropped);
  nic.rx.received.subscribe(
      [this, host](const nic::PacketTrace& packet) { write_packet(host, EventKind::packet_received, packet); });
  nic.raw.dropped.subscribe(dropped);
  nic.rx.dropped.subscribe(dropped);
  nic.port.sent.subscribe([this, host](const Frame& frame) { write(host, EventKind::frame_sent, {frame.size()}); });
  nic.port.received.subscribe([this, host](const nic::FrameReceived& frame) {
    write(host, EventKind::frame_received, {frame.bytes, std::uint64_t((now() + frame.delay - time()).ps)});
  });
}

void Recorder::write_packet(std::uint32_t host, EventKind kind, const nic::PacketTrace& packet) {
  const roce::Headers& headers = packet.headers;
  const roce::Bth& bth = headers.bth;
  const auto aeth = headers.aeth.value_or(roce::Aeth{0, 0});
  const auto deth = headers.deth.value_or(roce::Deth{});
  const auto atomic = headers.atomic.value_or(roce::AtomicEth{});
  const auto reth = headers.reth.value_or(roce::Reth{0, atomic.rkey, 0});
  // Addresses are left out: addresses of programs inside the simulator differ at each run.
  write(host, kind,
        {packet.qpn.value,
         number(bth.opcode),
         bth.psn.value(),
         bth.destination.value,
         bth.ack_request,
         bth.solicited,
         packet.payload.size(),
         packet.payload.empty() ? 0 : crcs_.of(packet.payload),
         aeth.syndrome,
         aeth.msn,
         reth.length,
         reth.rkey.value,
         headers.immediate.value_or(0),
         headers.invalidate.value_or(roce::Rkey{}).value,
         deth.qkey,
         headers.xrc_srqn.value_or(deth.source.value),
         atomic.swap_add,
         atomic.compare,
         headers.atomic_ack.value_or(0),
         bth.fecn,
         bth.becn});
}

void Recorder::watch_queues(std::uint32_t host, const nic::NicBlocks& nic) {
  nic.wqe_fetch.requested.subscribe([this, host](const nic::WqeFetch& fetch) {
    write(host, EventKind::wqe_fetch, {fetch.qpn.value, number(fetch.queue), fetch.bytes});
  });
  nic.engine.trace().wqe_taken.subscribe([this, host](const nic::WqeTaken& wqe) {
    write(host, EventKind::wqe,
          {wqe.qpn.value, number(wqe.queue), wqe.index, number(wqe.opcode), wqe.bytes, wqe.signaled});
  });
  nic.engine.trace().state_changed.subscribe([this, host](const nic::QpStateChanged& change) {
    write(host, EventKind::qp_state, {change.qpn.value, number(change.from), number(change.to)});
  });
  nic.completion.written.subscribe([this, host](const nic::CqeWritten& written) {
    const nic::Cqe& cqe = written.cqe;
    write(host, EventKind::cqe,
          {cqe.qpn, written.cqn.value, written.index, number(cqe.opcode), cqe.wqe_counter, number(cqe.syndrome),
           cqe.byte_count, number(cqe.send_opcode), cqe.immediate});
  });
  nic.events.written.subscribe([this, host](const nic::EventTrace& event) {
    write(host, EventKind::eqe, {event.eqn, number(event.type), event.number});
  });
  nic.events.lost.subscribe([this, host](const nic::EventTrace& event) {
    write(host, EventKind::eqe_lost, {event.eqn, number(event.type), event.number});
  });
  nic.command_unit.executed.subscribe([this, host](const nic::CommandExecuted& command) {
    write(host, EventKind::device_command,
          {number(command.opcode), command.object, number(command.status), command.syndrome});
  });
}

void Recorder::watch_doorbells(std::uint32_t host, const nic::NicBlocks& nic) {
  nic.doorbell.rung.subscribe([this, host](const nic::DoorbellRung& rung) {
    write(host, EventKind::doorbell, {rung.qpn.value, rung.producer, rung.wqe_bytes, rung.page});
  });
  nic.doorbell.armed.subscribe([this, host](const nic::CqArmed& arm) {
    write(host, EventKind::cq_arm, {arm.cqn, arm.consumer, arm.solicited_only});
  });
  nic.doorbell.consumed.subscribe([this, host](const nic::EqConsumed& eq) {
    write(host, EventKind::eq_doorbell, {eq.eqn, eq.consumer});
  });
}

void Recorder::watch_refusals(std::uint32_t host, const nic::NicBlocks& nic) {
  using What = nic::Refusal::What;
  const auto refused = [this, host](const nic::Refusal& refusal) {
    const bool in_memory = refusal.what == What::command || refusal.what >= What::dma_read;
    write(host, EventKind::refused,
          {number(refusal.what), refusal.object, refusal.qpn, number(refusal.why),
           in_memory ? shown(refusal.address) : refusal.address});
  };
  nic.doorbell.refusal.subscribe(refused);
  nic.pcie.refusal.subscribe(refused);
  nic.command_unit.refusal.subscribe(refused);
  // Without addresses this event adds nothing to the NAK or the CQE.
  if (addresses_ == Addresses::shown) nic.translation.refusal.subscribe(refused);
  nic.engine.trace().doorbell_ignored.subscribe([refused](const nic::DoorbellIgnored& ignored) {
    refused({.what = What::send_doorbell, .why = ignored.why, .object = ignored.qpn.value, .qpn = ignored.qpn.value});
  });
}

void Recorder::watch_root(std::uint32_t host, host::RootComplex& root, std::uint32_t device) {
  root.interrupted.subscribe(
      [this, host](const host::Interrupt& interrupt) { write(host, EventKind::interrupt, {interrupt.vector}); });
  root.iommu().fault.subscribe([this, host, device](const host::IommuFault& fault) {
    if (fault.from.function != device) return;
    write(host, EventKind::dma_abort,
          {fault.from.pasid, fault.write, number(fault.reason), fault.length, shown(fault.address)});
  });
}

}  // namespace rnicsim::sim
