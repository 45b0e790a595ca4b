// SPDX-License-Identifier: Apache-2.0
#include "sim/recording/counter_audit.h"

#include <fmt/format.h>

#include <array>

#include "model/base/byte_stream.h"
#include "model/fabric/fault_injector.h"
#include "model/host/kernel_agent.h"
#include "model/host/root_complex.h"
#include "model/nic/blocks.h"
#include "model/nic/nic.h"
#include "model/nic/packets/loopback.h"
#include "model/nic/packets/packet_tx.h"
#include "model/nic/packets/port.h"
#include "model/nic/packets/receive/packet_rx.h"
#include "model/nic/packets/receive/raw_rx.h"
#include "model/nic/queues/command_unit.h"
#include "model/nic/queues/completion.h"
#include "model/nic/queues/doorbell.h"
#include "model/nic/queues/event_writer.h"
#include "model/nic/queues/wqe_fetch.h"
#include "model/nic/seam/qp_engine.h"
#include "sim/adapter.h"
#include "sim/adapter_counters.h"
#include "sim/config/config.h"
#include "sim/processes/boundary.h"
#include "sim/results/counter_list.h"

namespace rnicsim::sim {

CounterAudit::CounterAudit(System& system) : system_(system) {
  for (std::size_t i = 0; i < system.adapters(); ++i) {
    Adapter& host = system.adapter(i);
    auto& counters = hosts_.emplace_back();
    recount_network(counters, host.nic().blocks());
    if (auto* cable = system.faults(i)) recount_cable(counters, *cable);
    recount_queues(counters, host.nic().blocks());
    recount_doorbells(counters, host.nic().blocks());
    recount_host(counters, host);
  }
}

void CounterAudit::recount_network(Counters& counters, const nic::NicBlocks& nic) {
  const auto packets = [&counters](const std::string& pipeline, trace::Point<nic::PacketTrace>& point) {
    point.subscribe([&count = counters[pipeline + ".packets"],
                     &bytes = counters[pipeline + ".payload_bytes"]](const nic::PacketTrace& packet) {
      ++count;
      bytes += packet.payload.size();
    });
  };
  packets("nic.tx", nic.tx.sent);
  packets("nic.rx", nic.rx.received);
  const std::array causes{&counters["nic.tx.no_source_gid"], &counters["nic.rx.rx_icrc_encapsulated"],
                          &counters["nic.rx.malformed"],     &counters["nic.raw.no_flow"],
                          &counters["nic.rx.not_ours"],      &counters["nic.rx.bad_pkey"]};
  for (auto* point : {&nic.tx.dropped, &nic.raw.dropped, &nic.rx.dropped})
    point->subscribe([causes](const nic::PacketDropped& drop) { ++*causes.at(std::size_t(drop.cause)); });
  nic.port.sent.subscribe(
      [&count = counters["nic.port.tx_frames"], &bytes = counters["nic.port.tx_bytes"]](const Frame& frame) {
        ++count;
        bytes += frame.size();
      });
  nic.engine.trace().cnp_taken.subscribe(
      [&count = counters["nic.engine.rp_cnp_handled"]](const nic::CnpTaken&) { ++count; });
  nic.loopback.sent.subscribe(
      [&count = counters["nic.loopback.frames"], &bytes = counters["nic.loopback.bytes"]](const Frame& frame) {
        ++count;
        bytes += frame.size();
      });
  nic.port.received.subscribe([&count = counters["nic.port.rx_frames"],
                               &bytes = counters["nic.port.rx_bytes"]](const nic::FrameReceived& frame) {
    ++count;
    bytes += frame.bytes;
  });
}

void CounterAudit::recount_cable(Counters& counters, fabric::FaultInjector& cable) {
  const std::array actions{&counters["link.dropped"], &counters["link.corrupted"], &counters["link.duplicated"],
                           &counters["link.delayed"], &counters["link.reordered"]};
  cable.entered.subscribe([actions](const fabric::FaultTrace& entered) {
    if (entered.fault != nullptr) ++*actions.at(std::size_t(entered.fault->action));
  });
}

void CounterAudit::recount_queues(Counters& counters, const nic::NicBlocks& nic) {
  nic.wqe_fetch.requested.subscribe([&count = counters["nic.wqe_fetch.fetches"],
                                     &bytes = counters["nic.wqe_fetch.bytes"]](const nic::WqeFetch& fetch) {
    ++count;
    bytes += fetch.bytes;
  });
  nic.completion.written.subscribe([&count = counters["nic.completion.cqes"],
                                    &errors = counters["nic.completion.error_cqes"]](const nic::CqeWritten& written) {
    ++count;
    if (written.cqe.syndrome != roce::Status::success) ++errors;
  });
  nic.events.written.subscribe([&count = counters["nic.events.events"]](const nic::EventTrace&) { ++count; });
  nic.events.lost.subscribe([&count = counters["nic.events.eq_overruns"]](const nic::EventTrace&) { ++count; });
  nic.command_unit.executed.subscribe(
      [&count = counters["nic.command.commands"],
       &refused = counters["nic.command.refused"]](const nic::CommandExecuted& command) {
        ++count;
        if (command.status != nic::CommandStatus::ok) ++refused;
      });
}

void CounterAudit::recount_doorbells(Counters& counters, const nic::NicBlocks& nic) {
  auto& send = counters["nic.doorbell.send_doorbells"];
  auto& blueflame = counters["nic.doorbell.blueflame_doorbells"];
  nic.doorbell.rung.subscribe(
      [&send, &blueflame](const nic::DoorbellRung& rung) { ++(rung.wqe_bytes == 0 ? send : blueflame); });
  nic.doorbell.armed.subscribe([&count = counters["nic.doorbell.cq_arms"]](const nic::CqArmed&) { ++count; });
  nic.doorbell.consumed.subscribe(
      [&count = counters["nic.doorbell.eq_doorbells"]](const nic::EqConsumed&) { ++count; });
  nic.doorbell.refused.subscribe(
      [&send, &blueflame, &wrong_page = counters["nic.doorbell.doorbell_wrong_page"],
       &malformed = counters["nic.doorbell.doorbell_malformed"]](const nic::DoorbellRefused& refused) {
        using Refused = nic::DoorbellRefused;
        if (refused.kind == Refused::Kind::send) ++send;
        if (refused.kind == Refused::Kind::blueflame) ++blueflame;
        ++(refused.reason == Refused::Reason::wrong_page ? wrong_page : malformed);
      });
}

void CounterAudit::recount_host(Counters& counters, Adapter& host) {
  if (host.in_guest()) return;
  host.agent().command_answered.subscribe(
      [&count = counters["kernel.commands"], &refused = counters["kernel.commands_refused"]](
          const host::CommandAnswered& command) { ++(command.error == 0 ? count : refused); });
  host.agent().event_taken.subscribe([&count = counters["kernel.events"]](const host::EventTaken&) { ++count; });
  host.root_complex().interrupted.subscribe(
      [&count = counters["root_complex.interrupts"]](const host::Interrupt&) { ++count; });
  host.root_complex().dma_written.subscribe(
      [&count = counters["iommu.writes"], &bytes = counters["iommu.write_bytes"]](const host::DmaWrite& write) {
        ++count;
        bytes += write.length;
      });
  host.iommu().fault.subscribe([&count = counters["iommu.faults"]](const host::IommuFault&) { ++count; });
}

std::vector<std::string> CounterAudit::disagreements() const {
  auto lines = own_disagreements();
  auto* boundary = system_.boundary();
  if (boundary == nullptr) return lines;
  Message own;
  ByteWriter out(own);
  for (const auto& line : lines) out.put_bytes(std::as_bytes(std::span(line)));
  for (const auto& other : boundary->gather(std::move(own)))
    for (ByteReader in(other); !in.at_end();) {
      const auto line = in.take_bytes();
      lines.emplace_back(reinterpret_cast<const char*>(line.data()), line.size());
    }
  return boundary->rank() == 0 ? lines : std::vector<std::string>();
}

std::vector<std::string> CounterAudit::own_disagreements() const {
  std::vector<std::string> found;
  for (std::uint32_t i = 0; i < hosts_.size(); ++i) {
    if (const auto* boundary = system_.boundary(); boundary != nullptr && !boundary->is_here(i)) continue;
    auto recounted = hosts_[i];
    const std::string host = system_.adapter(i).label();
    const CounterList list(system_.counters(i));
    for (const auto& entry : list.entries()) {
      const auto counter = recounted.find(entry.path);
      if (counter == recounted.end()) continue;
      if (counter->second != entry.value)
        found.push_back(fmt::format("{}: {} is {}, but its trace points reported {}", host, entry.path, entry.value,
                                    counter->second));
      recounted.erase(counter);
    }
    for (const auto& [path, value] : recounted) found.push_back(fmt::format("{}: unknown counter {}", host, path));
  }
  return found;
}

}  // namespace rnicsim::sim
