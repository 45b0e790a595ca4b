// SPDX-License-Identifier: Apache-2.0
#include "model/driver_check/command_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/endian/conversion.hpp>

namespace rnicsim::driver_check {
namespace {

constexpr std::uint64_t kQueueAlignment = 4096;

const char* name_of_command(const nic::DriverTerms& terms, nic::CommandOpcode opcode) {
  const auto found = std::ranges::find(terms.commands(), opcode, &nic::CommandTerm::opcode);
  return found != terms.commands().end() ? found->name : "a command";
}

std::optional<ObjectKind> kind_of(nic::CommandOpcode opcode) {
  using enum nic::CommandOpcode;
  switch (opcode) {
    case create_eq:
    case destroy_eq: return ObjectKind::eq;
    case create_cq:
    case destroy_cq:
    case query_cq:
    case modify_cq:
    case resize_cq: return ObjectKind::cq;
    case create_qp:
    case destroy_qp:
    case modify_qp:
    case query_qp:
    case attach_multicast:
    case detach_multicast: return ObjectKind::qp;
    case create_srq:
    case destroy_srq:
    case query_srq:
    case modify_srq: return ObjectKind::srq;
    default: return std::nullopt;
  }
}

}  // namespace

std::uint64_t CommandChecks::address_of(std::uint32_t index) const {
  return queue_ + std::uint64_t{index} * context_.personality.layout.command_entry;
}

void CommandChecks::register_written(std::uint32_t in_page, std::span<const std::byte> bytes) {
  const auto& personality = context_.personality;
  const auto written = personality.write_registers({.command_queue = queue_}, in_page, bytes);
  if (!written) return;
  if (written->command_queue && *written->command_queue % kQueueAlignment == 0) {
    queue_ = *written->command_queue;
    context_.objects.remove(MemoryKind::command_queue, 0);
    const auto entries = 1u << personality.layout.log_commands;
    context_.objects.add(kKernelPasid, {MemoryKind::command_queue, 0, queue_,
                                        std::uint64_t{entries} * personality.layout.command_entry});
  }
  if (!written->commands) return;
  const auto other_order = turned(bytes, bytes.size());
  const auto swapped = personality.write_registers({}, in_page, std::span(other_order).first(bytes.size()));
  rung(*written->commands, swapped ? swapped->commands.value_or(0) : 0);
}

bool CommandChecks::owned(std::uint32_t entries) {
  std::vector<std::byte> bytes(context_.personality.layout.command_entry);
  for (std::uint32_t index = 0; index < 1u << context_.personality.layout.log_commands; ++index)
    if ((entries >> index & 1) != 0 &&
        !(context_.peek(kKernelPasid, address_of(index), bytes) && context_.terms.entry_of(bytes, false).device_owns))
      return false;
  return entries != 0;
}

void CommandChecks::rung(std::uint32_t entries, std::uint32_t swapped) {
  for (std::uint32_t index = 0; index < 1u << context_.personality.layout.log_commands; ++index) {
    if ((entries >> index & 1) == 0) continue;
    auto issued = read_issued(index);
    if (!issued) continue;
    if (!issued->entry.device_owns) {
      if (issued_.contains(index)) continue;  // announced twice: the device executes the entry once
      if (swapped != entries && owned(swapped)) {
        context_.reports.add(FindingKind::wrong_endianness, {About::entry, 0},
                             fmt::format("kCommandDoorbell announces {:#x}, but the driver still owns entry {}; in "
                                         "big-endian order the bits are {:#x}, whose entries the device owns",
                                         entries, index, swapped));
      } else {
        context_.reports.add(
            FindingKind::entry_not_owned, {About::entry, index},
            fmt::format("kCommandDoorbell announces entry {}, but the owner byte still gives the entry to the driver: "
                        "the doorbell came before the entry, or names a wrong entry",
                        index));
      }
      continue;
    }
    validate_entry(index, *issued);
    issued_[index] = std::move(*issued);
  }
}

std::optional<CommandChecks::Issued> CommandChecks::read_issued(std::uint32_t index) {
  const auto& layout = context_.personality.layout;
  Issued issued;
  issued.bytes.resize(layout.command_entry);
  if (!context_.peek(kKernelPasid, address_of(index), issued.bytes)) return std::nullopt;
  issued.entry = context_.terms.entry_of(issued.bytes, false);
  const auto length = issued.entry.input_bytes;
  if (length < layout.command_header || length > layout.mailbox) return issued;
  issued.input.resize(length);
  if (!context_.peek(kKernelPasid, issued.entry.input, issued.input)) issued.input.clear();
  return issued;
}

void CommandChecks::validate_entry(std::uint32_t index, const Issued& issued) {
  const auto& layout = context_.personality.layout;
  const auto length = issued.entry.input_bytes;
  const auto swapped = context_.terms.entry_of(issued.bytes, true);
  const auto sound = [&](std::uint32_t bytes) { return bytes >= layout.command_header && bytes <= layout.mailbox; };
  if (!sound(length) && sound(swapped.input_bytes))
    context_.reports.add(
        FindingKind::wrong_endianness, {About::entry, 1},
        fmt::format("command entry {}: input_bytes {:#x} is invalid; in big-endian order the value is {}", index,
                    length, swapped.input_bytes));
  std::array<std::byte, 4> there;
  if (sound(length) && issued.input.empty() && context_.peek(kKernelPasid, swapped.input, there))
    context_.reports.add(FindingKind::wrong_endianness, {About::entry, 2},
                         fmt::format("command entry {}: no memory at the input address {:#x}; in big-endian order the "
                                     "address is {:#x}, which is in memory",
                                     index, issued.entry.input, swapped.input));
  if (const auto left = context_.terms.reserved_in_entry(issued.bytes))
    context_.reports.add(
        FindingKind::reserved_bytes, {About::entry, 0},
        fmt::format("command entry {}: reserved byte {:#04x} is {:#04x}", index, left->offset, left->value));
}

void CommandChecks::validate_mailbox(std::span<const std::byte> mailbox) {
  const auto said = context_.terms.header_of(mailbox, false);
  const auto swapped = context_.terms.header_of(mailbox, true);
  const auto known = [this](std::uint16_t opcode) {
    const auto as = static_cast<nic::CommandOpcode>(opcode);
    return std::ranges::find(context_.terms.commands(), as, &nic::CommandTerm::opcode) !=
           context_.terms.commands().end();
  };
  if (!known(said.opcode)) {
    if (known(swapped.opcode))
      context_.reports.add(
          FindingKind::wrong_endianness, {About::entry, 3},
          fmt::format("command: {:#06x} is no opcode; in big-endian order the opcode is {:#06x}, {}", said.opcode,
                      swapped.opcode,
                      name_of_command(context_.terms, static_cast<nic::CommandOpcode>(swapped.opcode))));
    return;
  }
  if (const auto left = context_.terms.reserved_in_mailbox(mailbox))
    context_.reports.add(FindingKind::reserved_bytes, {About::command, said.opcode},
                         fmt::format("mailbox of {}: reserved byte {:#04x} of {} is {:#04x}",
                                     name_of_command(context_.terms, static_cast<nic::CommandOpcode>(said.opcode)),
                                     left->offset, left->layout, left->value));
}

void CommandChecks::taken(const nic::CommandTaken& taken) {
  current_.reset();
  if (!taken.input.empty()) current_ = context_.personality.decode_command(taken.input, taken.entry.output_bytes);
  const auto found = issued_.find(taken.index);
  if (found == issued_.end()) return;
  auto& issued = found->second;
  const bool same = taken.entry.input == issued.entry.input && taken.entry.input_bytes == issued.entry.input_bytes &&
                    taken.entry.output == issued.entry.output && taken.entry.output_bytes == issued.entry.output_bytes;
  if (!same || (!issued.input.empty() && !taken.input.empty() && !std::ranges::equal(issued.input, taken.input)))
    compare(taken.index, issued, "between the doorbell and the device's read");
  issued.taken = true;
  if (!taken.input.empty()) validate_mailbox(taken.input);
}

// The output mailbox may share memory with the input mailbox: compare() then skips the input, which the device changes.
void CommandChecks::answering(std::uint64_t address) {
  const auto bytes = context_.personality.layout.command_entry;
  const auto found = issued_.find(static_cast<std::uint32_t>((address - queue_) / bytes));
  if (found == issued_.end() || !found->second.taken) return;
  const auto issued = std::move(found->second);
  issued_.erase(found);
  compare(static_cast<std::uint32_t>((address - queue_) / bytes), issued, "before the device returned the entry");
}

void CommandChecks::compare(std::uint32_t index, const Issued& issued, const char* when) {
  const auto now_there = read_issued(index);
  if (!now_there) return;
  const auto& entry = issued.entry;
  const bool shared = entry.input < entry.output + entry.output_bytes && entry.output < entry.input + entry.input_bytes;
  const bool entry_differs = now_there->bytes != issued.bytes;
  const bool input_differs = !shared && !entry_differs && now_there->input != issued.input && !issued.input.empty();
  if (!entry_differs && !input_differs) return;
  const auto& before = entry_differs ? issued.bytes : issued.input;
  const auto& after = entry_differs ? now_there->bytes : now_there->input;
  const auto [at, _] = std::ranges::mismatch(before, after);
  context_.reports.add(FindingKind::mailbox_rewritten, {About::entry, index},
                       fmt::format("command entry {}: the {} changed {}, at byte {:#04x}: wait until owner is 0", index,
                                   entry_differs ? "entry" : "input mailbox", when, at - before.begin()));
}

void CommandChecks::executed(const nic::CommandExecuted& executed) {
  if (executed.status == nic::CommandStatus::ok) return apply(executed);
  explain_refusal(executed);
}

void CommandChecks::explain_refusal(const nic::CommandExecuted& executed) {
  auto& reports = context_.reports;
  const auto* name = name_of_command(context_.terms, executed.opcode);
  const auto number = executed.object;
  const Subject key{About::command, std::uint64_t{static_cast<std::uint16_t>(executed.opcode)} << 32 | number};
  const auto kind = kind_of(executed.opcode);
  const auto syndrome = static_cast<nic::CommandSyndrome>(executed.syndrome);
  if (syndrome == nic::CommandSyndrome::in_use)
    return reports.add(FindingKind::in_use, key,
                       fmt::format("{} {}: another object still uses this object", name, number));
  if (!kind || (syndrome != nic::CommandSyndrome::no_object && executed.status != nic::CommandStatus::bad_resource))
    return;
  const auto turned_number = boost::endian::endian_reverse(number);
  if (turned_number != number && context_.objects.exists(*kind, turned_number))
    return reports.add(FindingKind::wrong_endianness, key,
                       fmt::format("{}: {:#x} is no {}; in big-endian order the number is {}", name, number,
                                   name_of(*kind), turned_number));
  if (const auto at = context_.objects.destroyed_at(*kind, number))
    return reports.add(FindingKind::destroyed_object, key,
                       fmt::format("{}: {} {} was destroyed {}", name, name_of(*kind), number, CheckContext::ago(*at)));
  reports.add(FindingKind::unknown_object, key, fmt::format("{}: there is no {} {}", name, name_of(*kind), number));
}

// --- Objects after an executed command.

void CommandChecks::apply(const nic::CommandExecuted& executed) {
  using enum nic::CommandOpcode;
  auto& objects = context_.objects;
  const auto number = executed.object;
  if (!current_) return;
  const auto& input = current_->input;
  switch (executed.opcode) {
    case teardown: return objects.destroy_all(now());
    case map_icm: return lent(std::get<nic::IcmRange>(input), true);
    case unmap_icm: return lent(std::get<nic::IcmRange>(input), false);
    case create_eq: return made_eq(number, std::get<nic::EventQueueContext>(input));
    case destroy_eq: return objects.destroy(ObjectKind::eq, number, now());
    case create_cq: return made_cq(number, std::get<nic::CompletionQueue>(input));
    case destroy_cq: return objects.destroy(ObjectKind::cq, number, now());
    case resize_cq: return resized_cq(std::get<nic::CqResize>(input));
    case modify_mpt: objects.destroy_region(number, now()); [[fallthrough]];
    case create_mpt: objects.regions[number] = std::get<nic::MemoryRegion>(input); return;
    case destroy_mpt: return objects.destroy_region(number, now());
    case create_qp: return made_qp(number, std::get<nic::QpContext>(input));
    case destroy_qp: return objects.destroy(ObjectKind::qp, number, now());
    case create_srq: return made_srq(number, std::get<nic::SharedReceiveQueue>(input));
    case destroy_srq: return objects.destroy(ObjectKind::srq, number, now());
    case modify_srq: {
      const auto& change = std::get<nic::SrqModification>(input);
      const auto found = objects.srqs.find(number);
      if ((change.attributes & nic::SrqModification::kRing) == 0 || found == objects.srqs.end()) return;
      auto& queue = found->second.context;
      queue.ring = change.ring;
      queue.log_entries = change.log_entries;
      objects.remove(MemoryKind::srq_ring, number);
      return objects.add(queue.pasid,
                         {MemoryKind::srq_ring, number, queue.ring, 1ull << (queue.log_entries + queue.log_stride)});
    }
    default: return;
  }
}

void CommandChecks::lent(const nic::IcmRange& range, bool mapped) {
  const auto table = static_cast<std::size_t>(range.table);
  if (table >= nic::kIcmTables || !mapped) return;
  context_.objects.add(kKernelPasid, {MemoryKind::icm, static_cast<std::uint32_t>(table), range.memory,
                                      std::uint64_t{range.count} * context_.personality.layout.contexts[table]});
}

void CommandChecks::made_cq(std::uint32_t cqn, const nic::CompletionQueue& queue) {
  auto& objects = context_.objects;
  auto& cq = objects.cqs[cqn];
  cq = {};
  cq.context = queue;
  cq.written = cq.landed = queue.producer;
  cq.first = queue.consumer;
  const auto& layout = context_.personality.layout;
  objects.add(queue.pasid, {MemoryKind::cq_ring, cqn, queue.ring, std::uint64_t{layout.cqe} << queue.log_entries});
  objects.add(queue.pasid, {MemoryKind::cq_record, cqn, queue.doorbell_record, layout.cq_record});
  validate_owners(
      About::cq, cqn, queue.pasid, queue.ring, layout.cqe, queue.producer, queue.log_entries,
      [this](auto entry, auto position, auto log) { return context_.terms.cqe_is_drivers(entry, position, log); });
}

void CommandChecks::made_eq(std::uint32_t eqn, const nic::EventQueueContext& queue) {
  auto& eq = context_.objects.eqs[eqn];
  eq = {queue, queue.producer};
  const auto& layout = context_.personality.layout;
  context_.objects.add(queue.pasid,
                       {MemoryKind::eq_ring, eqn, queue.ring, std::uint64_t{layout.eqe} << queue.log_entries});
  validate_owners(
      About::eq, eqn, queue.pasid, queue.ring, layout.eqe, queue.producer, queue.log_entries,
      [this](auto entry, auto position, auto log) { return context_.terms.eqe_is_drivers(entry, position, log); });
}

template <class IsDrivers>
void CommandChecks::validate_owners(About about, std::uint32_t number, Pasid pasid, std::uint64_t address,
                                    std::uint32_t entry, std::uint32_t first, std::uint8_t log,
                                    IsDrivers&& is_drivers) {
  constexpr std::size_t kAtOnce = 4096;
  const auto entries = 1u << log;
  std::uint32_t wrong = 0;
  std::optional<std::uint32_t> first_wrong;
  std::vector<std::byte> bytes;
  for (std::uint32_t at = 0; at < entries;) {
    const auto count = std::min<std::uint32_t>(entries - at, kAtOnce / entry);
    bytes.resize(std::size_t{count} * entry);
    if (!context_.peek(pasid, address + std::uint64_t{at} * entry, bytes)) return;
    for (std::uint32_t i = 0; i < count; ++i) {
      // Position of the device's first write to this entry.
      const auto position = first + ((at + i - first) & (entries - 1));
      if (!is_drivers(std::span(bytes).subspan(std::size_t{i} * entry, entry), position, log)) continue;
      ++wrong;
      if (!first_wrong) first_wrong = at + i;
    }
    at += count;
  }
  if (wrong != 0)
    context_.reports.add(FindingKind::owner_bits, {about, number},
                         fmt::format("{} {}: {} of the {} entries of the new ring, the first is entry {}, have owner "
                                     "bits as after a write of the device: set the owner bytes first",
                                     name_of(about == About::cq ? ObjectKind::cq : ObjectKind::eq), number, wrong,
                                     entries, *first_wrong));
}

void CommandChecks::made_qp(std::uint32_t qpn, const nic::QpContext& context) {
  auto& objects = context_.objects;
  const auto& layout = context_.personality.layout;
  objects.make(qpn, context);
  if (context.has_send)
    objects.add(context.pasid, {MemoryKind::send_ring, qpn, context.send_ring,
                                std::uint64_t{layout.send_block()} << context.log_send_blocks});
  if (context.has_receive)
    objects.add(context.pasid, {MemoryKind::receive_ring, qpn, context.receive_ring,
                                1ull << (context.log_receive_wqes + context.log_receive_stride)});
  if (context.has_send || context.has_receive)
    objects.add(context.pasid, {MemoryKind::qp_record, qpn, context.doorbell_record, layout.qp_record});
}

void CommandChecks::made_srq(std::uint32_t srqn, const nic::SharedReceiveQueue& queue) {
  context_.objects.srqs[srqn] = {.context = queue};
  context_.objects.add(queue.pasid,
                       {MemoryKind::srq_ring, srqn, queue.ring, 1ull << (queue.log_entries + queue.log_stride)});
  context_.objects.add(queue.pasid,
                       {MemoryKind::srq_record, srqn, queue.doorbell_record, context_.personality.layout.qp_record});
}

void CommandChecks::resized_cq(const nic::CqResize& resize) {
  const auto found = context_.objects.cqs.find(resize.cqn);
  if (found == context_.objects.cqs.end()) return;
  auto& cq = found->second;
  const auto& layout = context_.personality.layout;
  cq.context.ring = resize.ring;
  cq.context.log_entries = resize.log_entries;
  cq.landed = cq.written;  // CQEs on their way go to the former ring
  std::vector<std::byte> record(layout.cq_record);
  if (context_.peek(cq.context.pasid, cq.context.doorbell_record, record))
    cq.resized_at = context_.personality.cqes_consumed(record);
  context_.objects.remove(MemoryKind::cq_ring, resize.cqn);
  context_.objects.add(cq.context.pasid,
                       {MemoryKind::cq_ring, resize.cqn, resize.ring, std::uint64_t{layout.cqe} << resize.log_entries});
}

// A queue pair in RESET restarts its queues at 0.
void CommandChecks::state_changed(const nic::QpStateChanged& changed) {
  const auto found = context_.objects.qps.find(changed.qpn.value);
  if (found == context_.objects.qps.end()) return;
  auto& qp = found->second;
  qp.state = changed.to;
  if (changed.to == roce::QpState::reset) qp.announced = qp.received = 0;
}

void CommandChecks::forget() {
  queue_ = 0;
  issued_.clear();
  current_.reset();
  context_.objects.destroy_all(now());
  context_.objects.remove(MemoryKind::command_queue, 0);
}

}  // namespace rnicsim::driver_check
