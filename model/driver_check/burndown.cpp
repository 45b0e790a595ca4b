// SPDX-License-Identifier: Apache-2.0
#include "model/driver_check/burndown.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace rnicsim::driver_check {
namespace {

// Lines of the table for one class of names, in the order of the manual.
struct Lines {
  std::vector<std::string> touched, never, in_vain;

  std::string text(const char* what) const {
    const auto line = [what](const char* how, const std::vector<std::string>& names) {
      return names.empty() ? std::string() : fmt::format("{} {}: {}\n", what, how, fmt::join(names, ", "));
    };
    return line("used", touched) + line("never used", never) + line("refused", in_vain);
  }
};

std::string times(const char* name, std::uint64_t count) { return fmt::format("{} {}", name, count); }

}  // namespace

void Burndown::accessed(const nic::HostAccess& access) {
  if (access.space != nic::HostAccess::Space::bar) return;
  if (const auto* one = log_.register_at(access.offset)) ++registers_[one->offset].accesses;
  if (const auto* one = log_.doorbell_at(access.offset)) ++doorbells_[one->offset].accesses;
}

void Burndown::refused(const nic::Refusal& refusal) {
  using What = nic::Refusal::What;
  const bool doorbell = refusal.what <= What::doorbell;
  if (!doorbell && refusal.what != What::mmio_read && refusal.what != What::mmio_write) return;
  if (const auto* one = log_.doorbell_at(refusal.address); one != nullptr)
    ++doorbells_[one->offset].refused;
  else if (const auto* other = log_.register_at(refusal.address); other != nullptr)
    ++registers_[other->offset].refused;
  else
    ++nowhere_;
}

void Burndown::executed(const nic::CommandExecuted& executed) {
  auto& one = commands_[executed.opcode];
  ++(executed.status == nic::CommandStatus::ok ? one.done : one.refused[executed.status]);
}

std::string Burndown::text() const {
  const auto sorted = [](const auto& terms, const std::map<std::uint32_t, Touched>& touched) {
    Lines lines;
    for (const auto& term : terms) {
      const auto found = touched.find(term.offset);
      const auto counts = found != touched.end() ? found->second : Touched{};
      if (counts.accesses == 0) lines.never.push_back(term.name);
      if (counts.accesses > counts.refused) lines.touched.push_back(times(term.name, counts.accesses - counts.refused));
      if (counts.refused != 0) lines.in_vain.push_back(times(term.name, counts.refused));
    }
    return lines;
  };
  auto registers = sorted(terms_.registers(), registers_);
  if (nowhere_ != 0) registers.in_vain.push_back(times("offsets without a register", nowhere_));
  Lines commands;
  for (const auto& term : terms_.commands()) {
    const auto found = commands_.find(term.opcode);
    if (found == commands_.end()) {
      commands.never.push_back(term.name);
      continue;
    }
    if (found->second.done != 0) commands.touched.push_back(times(term.name, found->second.done));
    for (const auto& [status, count] : found->second.refused)
      commands.in_vain.push_back(fmt::format("{} {} ({})", term.name, count, terms_.status_name(status)));
  }
  for (const auto& [opcode, executed] : commands_) {
    bool known = false;
    for (const auto& term : terms_.commands()) known |= term.opcode == opcode;
    for (const auto& [status, count] : executed.refused)
      if (!known)
        commands.in_vain.push_back(
            fmt::format("opcode {:#06x} {} ({})", static_cast<unsigned>(opcode), count, terms_.status_name(status)));
  }
  return registers.text("registers") + sorted(terms_.doorbells(), doorbells_).text("doorbells") +
         commands.text("commands");
}

}  // namespace rnicsim::driver_check
