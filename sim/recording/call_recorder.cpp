// SPDX-License-Identifier: Apache-2.0
#include "sim/recording/call_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "model/base/kernel.h"
#include "model/host/kernel_agent.h"
#include "model/nic/seam/engine_trace.h"
#include "sim/adapter.h"
#include "sim/config/config_error.h"
#include "sim/processes/boundary.h"
#include "sim/system.h"

namespace rnicsim::sim {
namespace {

constexpr std::size_t kPartBytes = 64;  // of a mailbox in one event
constexpr std::array<std::byte, kPartBytes> kZeros{};

// nullopt: no post, or a value that a program wrote into the memory of its milestones.
std::optional<nic::QueueKind> queue_of(abi::MilestoneKind kind) {
  switch (kind) {
    case abi::MilestoneKind::posted: return nic::QueueKind::send;
    case abi::MilestoneKind::posted_receives: return nic::QueueKind::receive;
    case abi::MilestoneKind::posted_shared_receives: return nic::QueueKind::shared_receive;
    default: return std::nullopt;
  }
}

}  // namespace

CallRecorder::CallRecorder(System& system, EventSink& sink) : sink_(sink), boundary_(system.boundary()) {
  for (std::uint32_t i = 0; i < system.adapters(); ++i) watch(i, system.adapter(i));
}

void CallRecorder::watch(std::uint32_t index, Adapter& adapter) {
  if (adapter.in_guest())
    throw ConfigError(fmt::format("--record-calls: the software of {} is not simulated", adapter.label()));
  adapter.agent().command_answered.subscribe(
      [this, index](const host::CommandAnswered& command) { write_command(index, command); });
  adapter.agent().software.subscribe(
      [this, index](const host::SoftwareMilestone& step) { write_milestone(index, step); });
}

void CallRecorder::write_command(std::uint32_t index, const host::CommandAnswered& command) {
  write_mailbox(index, command, false, command.input);
  write_mailbox(index, command, true, command.output);
}

// A part of zeros is left out, except the first.
void CallRecorder::write_mailbox(std::uint32_t index, const host::CommandAnswered& command, bool is_answer,
                                 std::span<const std::byte> bytes) {
  for (std::size_t part = 0; part < bytes.size(); part += kPartBytes) {
    const auto content = bytes.subspan(part, std::min(kPartBytes, bytes.size() - part));
    if (part != 0 && std::memcmp(content.data(), kZeros.data(), content.size()) == 0) continue;
    auto event = make_event(
        time(), index, EventKind::command_bytes,
        {command.process, std::uint64_t(command.opcode), command.object, is_answer ? 1u : 0u, bytes.size(), part});
    std::memcpy(event.fields.data() + 6, content.data(), content.size());
    sink_.write(event);
  }
}

void CallRecorder::write_milestone(std::uint32_t index, const host::SoftwareMilestone& step) {
  const auto& milestone = step.milestone;
  if (milestone.kind == abi::MilestoneKind::polled) {
    sink_.write(make_event(time(), index, EventKind::polled,
                           {milestone.queue, milestone.position, milestone.count, milestone.time, step.process}));
    return;
  }
  const auto queue = queue_of(milestone.kind);
  if (!queue) return;
  const bool shared = *queue == nic::QueueKind::shared_receive;
  sink_.write(make_event(time(), index, EventKind::posted,
                         {shared ? 0 : milestone.queue, std::uint64_t(*queue), milestone.position, milestone.count,
                          milestone.time, step.process, shared ? milestone.queue : 0}));
}

Duration CallRecorder::time() const { return boundary_ != nullptr ? boundary_->time() : now(); }

}  // namespace rnicsim::sim
