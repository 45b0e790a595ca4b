// SPDX-License-Identifier: Apache-2.0
// Log of the last accesses of the CPU to a device, with the names of the device's manual.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/base/units.h"
#include "model/nic/pcie/pcie_endpoint.h"
#include "model/nic/personality/driver_terms.h"
#include "model/nic/personality/personality.h"

namespace rnicsim::driver_check {

class AccessLog {
 public:
  static constexpr std::size_t kKept = 10;
  using Space = nic::HostAccess::Space;

  AccessLog(const nic::Personality& personality, const nic::DriverTerms& terms)
      : personality_(personality), terms_(terms) {}

  void add(Duration at, const nic::HostAccess& access);
  void answer(const nic::HostAnswer& answer);  // for the last access
  void refuse();                               // marks the last access as refused

  std::vector<std::string> lines() const;
  std::uint64_t count() const { return count_; }
  // Bytes of the last access in bus order, at most kBytesKept; empty for a read without an answer.
  std::span<const std::byte> last_bytes() const;
  std::size_t last_size() const { return last().size; }
  std::uint64_t last_offset() const { return last().offset; }

  // Examples: "kStatus", "MSI-X table, vector 3", "UAR page 1, kCqArm". A place without a name has its offset.
  std::string place(Space space, std::uint64_t offset) const;
  const nic::RegisterTerm* register_at(std::uint64_t offset) const;  // null: no register there
  const nic::DoorbellTerm* doorbell_at(std::uint64_t offset) const;  // null: no doorbell there

 private:
  static constexpr std::size_t kBytesKept = 16;
  struct Access {
    Duration at;
    Space space = Space::bar;
    bool write = false;
    bool refused = false;
    std::uint64_t offset = 0;
    std::size_t size = 0;
    bool has_bytes = false;
    std::array<std::byte, kBytesKept> bytes{};
  };
  const Access& last() const { return kept_[(count_ + kKept - 1) % kKept]; }
  Access& last() { return kept_[(count_ + kKept - 1) % kKept]; }
  static void keep(Access& access, std::span<const std::byte> bytes);
  std::string line(const Access& access) const;

  const nic::Personality& personality_;
  const nic::DriverTerms& terms_;
  std::array<Access, kKept> kept_{};
  std::uint64_t count_ = 0;
};

}  // namespace rnicsim::driver_check
