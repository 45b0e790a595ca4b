// SPDX-License-Identifier: Apache-2.0
// The command queue; the commands are in commands.cpp.
#include "model/nic/queues/command_unit.h"

#include <algorithm>
#include <cstddef>

namespace rnicsim::nic {

void CommandUnit::doorbell(std::uint32_t entries) {
  for (std::uint32_t index = 0; index < 1u << personality_.layout.log_commands; ++index)
    if ((entries >> index & 1) != 0 && std::ranges::find(pending_, index) == pending_.end()) pending_.push_back(index);
  if (!current_) next();
}

void CommandUnit::reset() {
  ++epoch_;
  pending_.clear();
  current_.reset();
}

void CommandUnit::next() {
  current_.reset();
  if (pending_.empty()) return;
  current_.emplace().index = pending_.front();
  pending_.pop_front();
  const auto bytes = personality_.layout.command_entry;
  const auto address = pcie_.command_queue() + std::uint64_t{current_->index} * bytes;
  dma_.read(kKernelPasid, address, bytes,
            dma_.closure([this, epoch = epoch_](AccessResult result, const Payload& bytes) {
              entry_read(epoch, result, bytes);
            }));
}

void CommandUnit::entry_read(std::uint64_t epoch, AccessResult result, const Payload& bytes) {
  if (epoch != epoch_) return;
  auto& entry = current_->entry;
  if (result == AccessResult::ok) entry = personality_.decode_command_entry(bytes.bytes());
  if (!entry.device_owns) {
    ++counters_.bad_entries;
    const auto bytes_of_entry = personality_.layout.command_entry;
    refusal({.what = Refusal::What::command,
             .why = result == AccessResult::ok ? Refusal::Why::not_owned : Refusal::Why::unreadable,
             .object = current_->index,
             .address = pcie_.command_queue() + std::uint64_t{current_->index} * bytes_of_entry});
    return next();
  }
  const auto length = entry.input_bytes;
  if (length < personality_.layout.command_header || length > personality_.layout.mailbox) {
    taken({current_->index, entry, {}});
    return complete(CommandStatus::bad_input_length);
  }
  dma_.read(kKernelPasid, entry.input, length,
            dma_.closure([this, epoch](AccessResult read, const Payload& data) { input_read(epoch, read, data); }));
}

void CommandUnit::complete(CommandStatus status, std::uint32_t syndrome) {
  auto& entry = current_->entry;
  ++counters_.commands;
  if (status != CommandStatus::ok) ++counters_.refused;
  const auto output = personality_.encode({status, syndrome, object()}, current_->output);
  executed({current_->command.opcode, object(), status, syndrome});
  const auto finish = [this, epoch = epoch_, address = pcie_.command_queue(),
                       index = current_->index](CommandStatus final_status) {
    if (epoch != epoch_) return;
    dma_.write(kKernelPasid, address + std::uint64_t{index} * personality_.layout.command_entry,
               Payload::copy_of(personality_.command_done(final_status)),
               dma_.closure([this, epoch](AccessResult written, const Payload&) {
                 if (epoch == epoch_ && written != AccessResult::ok)
                   pcie_.internal_error(HealthSyndrome::command_queue_access);
               }));
    events_.interrupt(0);
    next();
  };
  const auto length = std::min<std::size_t>(output.size(), entry.output_bytes);
  if (length == 0) return finish(status);
  dma_.write(kKernelPasid, entry.output, Payload::copy_of(std::span(output).first(length)),
             dma_.closure([finish, status](AccessResult written, Payload) {
               finish(written == AccessResult::ok ? status : CommandStatus::bad_mailbox);
             }));
}

void CommandUnit::qp_done(const QpCommandDone& done) {
  if (!current_) return;
  const auto opcode = current_->command.opcode;
  const auto status = done.status;
  const auto number = object();
  const bool ok = status == CommandStatus::ok;
  if ((opcode == CommandOpcode::create_qp && !ok) || (opcode == CommandOpcode::destroy_qp && ok))
    groups_.forget({number});
  if (opcode == CommandOpcode::create_qp && !ok) contexts_.qps.erase(number);
  const bool ends = ok && (opcode == CommandOpcode::destroy_qp || done.context.state == roce::QpState::reset);
  if (ends) qp_silenced(Qpn{number});
  if (ok && opcode == CommandOpcode::destroy_qp) contexts_.qps.erase(number);
  if (ok && opcode == CommandOpcode::query_qp) current_->output = done.context;
  if (ends && opcode != CommandOpcode::create_qp)
    return windows_.close_all_of(Qpn{number}, [this, epoch = epoch_, status, syndrome = done.syndrome] {
      if (epoch == epoch_) complete(status, syndrome);
    });
  // For a missing queue pair the engine returns the status only.
  if (status == CommandStatus::bad_resource && done.syndrome == 0) return refuse(CommandSyndrome::no_object, status);
  complete(status, done.syndrome);
  if (ok && opcode == CommandOpcode::create_qp) qp_created(Qpn{number});
}

void CommandUnit::cq_resized(std::uint32_t producer) {
  if (!current_) return;
  current_->output = CqResized{producer};
  complete(CommandStatus::ok);
}

void CommandUnit::cq_not_resized(CommandSyndrome why, CommandStatus status) {
  if (current_) refuse(why, status);
}

}  // namespace rnicsim::nic
