// SPDX-License-Identifier: Apache-2.0
// The RDMA connection manager of a host: QP1 of its devices, the kernel's time for each message, and the programs'
// channels.
#pragma once

#include <map>
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
#include "model/host/gids.h"
#include "model/host/host_params.h"

namespace rnicsim::host {

// A message that leaves for QP1 of a device, or that was received there and is about to be handled.
struct CmMessage {
  bool sent;
  std::uint32_t device;
  const cm::Message& content;
};

class RdmaCm {
 public:
  RdmaCm(const HostParams& params, Neighbours fabric, RdmaIds::EventSink sink);

  // A device that is up, with its QP1 and its address resolution.
  struct Device {
    ManagementPort& port;
    const CommandGate& gate;
    const abi::PortAttributes& attributes;
    std::uint32_t ack_delay;
  };
  void add(const abi::NetworkInterface& interface, const Device& device);
  // Call when all devices are up. Devices that were not added have no datagrams.
  void begin();
  void arrived(std::uint32_t device, const ManagementPort::Arrival& arrival);

  // 0 or errno. ENODEV: no device has datagrams; EAGAIN: devices are not yet up.
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
  struct Arrived {
    std::uint32_t device = 0;
    ManagementPort::Arrival arrival;
  };

  void handle_arrivals();
  void expire();
  void flush();
  void depart();

  const HostParams params_;
  const Neighbours fabric_;
  const RdmaIds::EventSink sink_;
  std::map<std::uint32_t, Device> devices_;
  std::vector<RdmaIds::Device> known_;  // devices, as ids see them
  bool up_ = false;
  std::optional<RdmaIds> ids_;
  EventQueue<Arrived> arrivals_;
  EventQueue<cm::Outgoing> departures_;
  Alarm timer_;
  Duration worker_free_;  // end of the last queued handling: one work queue handles all received messages
  std::uint64_t malformed_ = 0;
};

}  // namespace rnicsim::host
