// SPDX-License-Identifier: Apache-2.0
// An event channel, with the commands to the kernel's connection manager that go through it.
#pragma once

#include <rdma/rdma_cma.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "verbs/port/device_port.h"
#include "verbs/port/event_pipe.h"
#include "verbs/rdmacm/kernel_interface.h"

namespace rnicsim::rdmacm {

struct EventChannel : rdma_event_channel {
  explicit EventChannel(DevicePort& carrier) : rdma_event_channel{}, port(carrier), pipe(carrier) {}

  // Execute a command of <rdma/rdma_user_cm.h>. Return 0 or an errno.
  int command(std::uint32_t number, std::span<const std::byte> input, std::span<std::byte> output = {}) {
    return port.rdma_cm(pipe.number(), number, input, output);
  }
  template <class Input>
  int tell(std::uint32_t number, const Input& input) {
    return command(number, std::as_bytes(std::span(&input, 1)));
  }
  template <class Input, class Output>
  int ask(std::uint32_t number, const Input& input, Output& output) {
    return command(number, std::as_bytes(std::span(&input, 1)), std::as_writable_bytes(std::span(&output, 1)));
  }

  // Removes the records of events of this id or group: the kernel has none left, and the descriptor must not stay
  // readable.
  void forget(std::uint32_t id) {
    pipe.purge([id](const abi::EventRecord& record) {
      return record.type == abi::EventRecord::kConnectionEvent && record.number == id;
    });
  }

  DevicePort& port;
  EventPipe pipe;

  static EventChannel& of(rdma_event_channel* channel) { return *static_cast<EventChannel*>(channel); }
};

// Opens a channel of the calling process. Returns 0 or an errno; ENODEV: there is no device.
int open_channel(std::unique_ptr<EventChannel>& opened);

}  // namespace rnicsim::rdmacm
