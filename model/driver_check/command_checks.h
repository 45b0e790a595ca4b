// SPDX-License-Identifier: Apache-2.0
// Checks of commands: entries and mailboxes, and whether the driver leaves them unchanged while the device owns them.
// Executed commands create and destroy the entries of Objects.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "model/driver_check/context.h"
#include "model/nic/queues/command_unit.h"

namespace rnicsim::driver_check {

class CommandChecks {
 public:
  explicit CommandChecks(CheckContext& context) : context_(context) {}

  // A write to the register page: command doorbell or address of the command queue.
  void register_written(std::uint32_t in_page, std::span<const std::byte> bytes);
  void taken(const nic::CommandTaken& taken);
  void executed(const nic::CommandExecuted& executed);
  // The device is about to write the answer into an entry of the command queue.
  void answering(std::uint64_t address);
  void state_changed(const nic::QpStateChanged& changed);
  void forget();  // a function-level reset

 private:
  // Entry and input mailbox as the driver left them at the doorbell.
  struct Issued {
    nic::CommandEntry entry;
    std::vector<std::byte> bytes;  // bytes of the entry
    std::vector<std::byte> input;  // bytes of the input mailbox; empty: could not be read
    bool taken = false;
  };
  void rung(std::uint32_t entries, std::uint32_t swapped);
  bool owned(std::uint32_t entries);
  std::optional<Issued> read_issued(std::uint32_t index);
  void validate_entry(std::uint32_t index, const Issued& issued);
  void validate_mailbox(std::span<const std::byte> mailbox);
  void compare(std::uint32_t index, const Issued& issued, const char* when);
  std::uint64_t address_of(std::uint32_t index) const;

  void apply(const nic::CommandExecuted& executed);
  void made_cq(std::uint32_t cqn, const nic::CompletionQueue& queue);
  void made_eq(std::uint32_t eqn, const nic::EventQueueContext& queue);
  void made_qp(std::uint32_t qpn, const nic::QpContext& context);
  void made_srq(std::uint32_t srqn, const nic::SharedReceiveQueue& queue);
  void resized_cq(const nic::CqResize& resize);
  void lent(const nic::IcmRange& range, bool mapped);
  template <class IsDrivers>
  void validate_owners(About about, std::uint32_t number, Pasid pasid, std::uint64_t address, std::uint32_t entry,
                       std::uint32_t first, std::uint8_t log, IsDrivers&& is_drivers);
  void explain_refusal(const nic::CommandExecuted& executed);

  CheckContext& context_;
  std::uint64_t queue_ = 0;
  std::map<std::uint32_t, Issued> issued_;  // key: index of the entry
  std::optional<nic::Command> current_;
};

}  // namespace rnicsim::driver_check
