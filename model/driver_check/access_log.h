// The last accesses of the CPU to a device, in the words of its manual.
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
  void answer(const nic::HostAnswer& answer);  // to the last of them
  void refuse();                               // the last of them

  std::vector<std::string> lines() const;
  std::uint64_t count() const { return count_; }
  // As it came, of the last access: as far as it is kept.
  std::span<const std::byte> last_bytes() const;
  std::size_t last_size() const { return last().size; }
  std::uint64_t last_offset() const { return last().offset; }

  // "kStatus", "MSI-X table, vector 3", "UAR page 1, kCqArm"; of what has no name its offset.
  std::string place(Space space, std::uint64_t offset) const;
  const nic::RegisterTerm* register_at(std::uint64_t offset) const;  // whose bytes hold the offset
  const nic::DoorbellTerm* doorbell_at(std::uint64_t offset) const;  // of the BAR

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
