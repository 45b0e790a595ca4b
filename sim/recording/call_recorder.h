// SPDX-License-Identifier: Apache-2.0
// Records calls of the verbs library (--record-calls): the mailboxes of calls that are commands, posted WQEs and polled
// CQEs. The library reports posts and polls as milestones (model/abi/attach.h), which take no simulated time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "sim/trace_file/format.h"

namespace rnicsim::host {
struct CommandAnswered;
struct SoftwareMilestone;
}  // namespace rnicsim::host

namespace rnicsim::sim {

class Adapter;
class Boundary;
class System;

class CallRecorder {
 public:
  // Subscribes to every host. Make the object before the simulation starts; `sink` must live as long as the system.
  // ConfigError: a host is outside the simulation, or a virtual machine.
  CallRecorder(System& system, EventSink& sink);

 private:
  void watch(std::uint32_t index, Adapter& adapter);
  void write_command(std::uint32_t index, const host::CommandAnswered& command);
  void write_mailbox(std::uint32_t index, const host::CommandAnswered& command, bool is_answer,
                     std::span<const std::byte> bytes);
  void write_milestone(std::uint32_t index, const host::SoftwareMilestone& step);
  Duration time() const;

  EventSink& sink_;
  const Boundary* const boundary_;
};

}  // namespace rnicsim::sim
