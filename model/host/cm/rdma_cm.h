// The RDMA connection manager in its host: QP1, the kernel's time for each message, and the programs' channels.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "model/abi/attach.h"
#include "model/base/agenda.h"
#include "model/base/event_queue.h"
#include "model/base/trace.h"
#include "model/host/cm/counters.h"
#include "model/host/cm/management_port.h"
#include "model/host/cm/rdma_ids.h"
#include "model/host/cm/user_commands.h"
#include "model/host/command_gate.h"
#include "model/host/driver.h"
#include "model/host/event_channels.h"
#include "model/host/host_params.h"

namespace rnicsim::host {

// A message that leaves for QP1, or that came there and is acted on.
struct CmMessage {
  bool sent;
  const cm::Message& content;
};

class RdmaCm {
 public:
  RdmaCm(const HostParams& params, const abi::HostEntry& self, std::vector<abi::HostEntry> hosts, Driver& driver,
         const CommandGate& gate, EventChannels& channels);

  // Waits, when the device is up. std::runtime_error: it cannot be used.
  void bring_up();
  static bool is_for_it(const abi::Eqe& eqe);
  void interrupt();

  // ENODEV: the device has no datagrams; EAGAIN: it is not up.
  int command(const UserChannel& channel, std::uint32_t command, std::span<const std::byte> input,
              std::span<std::byte> output);
  void close_channel(std::uint32_t channel);
  void close_process(Pasid process);

  CmCounters counters() const;
  std::size_t ids() const { return ids_ ? ids_->size() : 0; }
  std::size_t connections() const { return ids_ ? ids_->manager().connections() : 0; }

  trace::Point<CmMessage> message;
  trace::Point<cm::Transition> state_changed;

 private:
  void handle_arrivals();
  void expire();
  void flush();
  void depart();

  const HostParams params_;
  const abi::HostEntry self_;
  const std::vector<abi::HostEntry> hosts_;
  Driver& driver_;
  const CommandGate& gate_;
  EventChannels& channels_;
  ManagementPort port_;
  bool up_ = false;
  std::optional<RdmaIds> ids_;
  EventQueue<ManagementPort::Arrival> arrivals_;
  EventQueue<cm::Outgoing> departures_;
  Alarm timer_;
  Duration worker_free_;     // one work queue handles what arrives
  std::uint64_t malformed_ = 0;
};

}  // namespace rnicsim::host
