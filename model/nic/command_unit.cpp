// The command queue itself; the commands are in commands.cpp.
#include "model/nic/command_unit.h"

#include <algorithm>
#include <cstring>

namespace rnicsim::nic {

void CommandUnit::doorbell(std::uint32_t entries) {
  for (std::uint32_t index = 0; index < 1u << abi::kCommandLogEntries; ++index)
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
  const auto address = pcie_.command_queue() + std::uint64_t{current_->index} * sizeof(abi::CommandEntry);
  dma_.read(kKernelPasid, address, sizeof(abi::CommandEntry),
            [this, epoch = epoch_](AccessResult result, const Payload& bytes) { entry_read(epoch, result, bytes); });
}

void CommandUnit::entry_read(std::uint64_t epoch, AccessResult result, const Payload& bytes) {
  if (epoch != epoch_) return;
  auto& entry = current_->entry;
  if (result == AccessResult::ok) std::memcpy(static_cast<void*>(&entry), bytes.bytes().data(), sizeof(entry));
  if (result != AccessResult::ok || entry.owner != 1) {
    ++counters_.bad_entries;
    return next();
  }
  const std::uint32_t length = entry.input_bytes;
  if (length < sizeof(abi::CommandHeader) || length > abi::kMailboxBytes)
    return complete(abi::CommandStatus::bad_input_length);
  dma_.read(kKernelPasid, entry.input, length,
            [this, epoch](AccessResult read, const Payload& data) { input_read(epoch, read, data); });
}

void CommandUnit::complete(abi::CommandStatus status, std::uint32_t syndrome) {
  auto& entry = current_->entry;
  ++counters_.commands;
  if (status != abi::CommandStatus::ok) ++counters_.refused;
  auto& output = current_->output;
  if (output.size() < sizeof(abi::CommandResult)) output.resize(sizeof(abi::CommandResult));
  abi::CommandResult head;
  head.status = status;
  head.syndrome = syndrome;
  head.object = current_->object;
  const std::uint16_t opcode = input<abi::CommandHeader>().opcode;
  executed({static_cast<abi::CommandOpcode>(opcode), current_->object, status, syndrome});
  std::memcpy(output.data(), &head, sizeof(head));
  const auto finish = [this, epoch = epoch_, address = pcie_.command_queue(), index = current_->index](
                          abi::CommandStatus final_status) {
    if (epoch != epoch_) return;
    const std::byte done[] = {std::byte{0}, static_cast<std::byte>(final_status)};
    dma_.write(kKernelPasid, address + std::uint64_t{index} * sizeof(abi::CommandEntry), Payload::copy_of(done),
               nullptr);
    events_.interrupt(0);
    next();
  };
  const auto length = std::min<std::size_t>(output.size(), entry.output_bytes);
  if (length == 0) return finish(status);
  dma_.write(kKernelPasid, entry.output, Payload::copy_of(std::span(output).first(length)),
             [finish, status](AccessResult written, Payload) {
               finish(written == AccessResult::ok ? status : abi::CommandStatus::bad_mailbox);
             });
}

void CommandUnit::qp_done(const QpCommandDone& done) {
  if (!current_) return;
  const auto opcode = static_cast<abi::CommandOpcode>(std::uint16_t(input<abi::CommandHeader>().opcode));
  const auto status = static_cast<abi::CommandStatus>(done.status);
  const auto number = current_->object;
  const bool ok = status == abi::CommandStatus::ok;
  if ((opcode == abi::CommandOpcode::create_qp && !ok) || (opcode == abi::CommandOpcode::destroy_qp && ok))
    groups_.forget({number});
  if (opcode == abi::CommandOpcode::create_qp && !ok) contexts_.qps.erase(number);
  const bool ends = ok && (opcode == abi::CommandOpcode::destroy_qp || done.context.state == abi::QpState::reset);
  if (ends) qp_silenced(Qpn{number});
  if (ok && opcode == abi::CommandOpcode::destroy_qp) contexts_.qps.erase(number);
  if (ok && opcode == abi::CommandOpcode::query_qp) output(abi::QueryQp{{}, done.context});
  if (ends && opcode != abi::CommandOpcode::create_qp)
    return windows_.close_all_of(Qpn{number}, [this, epoch = epoch_, status, syndrome = done.syndrome] {
      if (epoch == epoch_) complete(status, syndrome);
    });
  // That there is no such queue pair an engine says by the status alone.
  if (status == abi::CommandStatus::bad_resource && done.syndrome == 0)
    return refuse(CommandSyndrome::no_object, status);
  complete(status, done.syndrome);
  if (ok && opcode == abi::CommandOpcode::create_qp) qp_created(Qpn{number});
}

void CommandUnit::cq_resized(std::uint32_t producer) {
  if (!current_) return;
  abi::ResizedCq resized;
  resized.producer = producer;
  output(resized);
  complete(abi::CommandStatus::ok);
}

void CommandUnit::cq_not_resized(CommandSyndrome why, abi::CommandStatus status) {
  if (current_) refuse(why, status);
}

}  // namespace rnicsim::nic
