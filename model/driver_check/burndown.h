// SPDX-License-Identifier: Apache-2.0
// Counts, for each register, doorbell and command, how often the driver used it and how often the device refused it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "model/driver_check/access_log.h"
#include "model/nic/queues/command_unit.h"

namespace rnicsim::driver_check {

class Burndown {
 public:
  Burndown(const nic::DriverTerms& terms, const AccessLog& log) : terms_(terms), log_(log) {}

  void accessed(const nic::HostAccess& access);
  void refused(const nic::Refusal& refusal);
  void executed(const nic::CommandExecuted& executed);

  // Lines, each with a newline: used, never used, refused.
  std::string text() const;

 private:
  struct Touched {
    std::uint64_t accesses = 0;
    std::uint64_t refused = 0;
  };
  struct Executed {
    std::uint64_t done = 0;
    std::map<nic::CommandStatus, std::uint64_t> refused;
  };

  const nic::DriverTerms& terms_;
  const AccessLog& log_;
  std::map<std::uint32_t, Touched> registers_;  // by offset
  std::map<std::uint32_t, Touched> doorbells_;
  std::map<nic::CommandOpcode, Executed> commands_;
  std::uint64_t nowhere_ = 0;  // refused accesses to places without a name
};

}  // namespace rnicsim::driver_check
