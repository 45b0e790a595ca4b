// SPDX-License-Identifier: Apache-2.0
// The memory of a guest, as far as the device may access it: ranges of bus addresses. The guest shares a range as a
// part of a file, by a descriptor; the device accesses a range without a descriptor by messages of the protocol. No
// access takes simulated time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <stdexcept>
#include <string>

#include "sim/os/descriptor.h"

namespace rnicsim::sim {

// A range that cannot be mapped: an errno and the reason.
class MapError : public std::runtime_error {
 public:
  MapError(int error, const std::string& why) : std::runtime_error(why), error(error) {}
  const int error;
};

class GuestMemory {
 public:
  struct Rights {
    bool read = false;
    bool write = false;
  };
  // Access to memory without a descriptor. False: the guest refused, or did not answer.
  struct Messages {
    std::function<bool(std::uint64_t address, std::span<std::byte> bytes)> read;
    std::function<bool(std::uint64_t address, std::span<const std::byte> bytes)> write;
  };
  enum class Answer { done, unmapped, no_right, taken_away, refused };

  GuestMemory() = default;
  GuestMemory(const GuestMemory&) = delete;
  GuestMemory& operator=(const GuestMemory&) = delete;
  ~GuestMemory() { clear(); }

  // MapError: a part of the range is mapped already, or the file is shorter than the range.
  void map(std::uint64_t address, std::uint64_t bytes, Rights rights, const Descriptor& file, std::uint64_t offset);
  void map(std::uint64_t address, std::uint64_t bytes, Rights rights, const Messages& messages);
  bool unmap(std::uint64_t address, std::uint64_t bytes);  // false: there is no such range
  void clear();
  std::size_t ranges() const { return ranges_.size(); }

  // An access may cross adjacent ranges. A refused access changes no byte, except when a file shrinks during the
  // access.
  Answer read(std::uint64_t address, std::span<std::byte> bytes);
  Answer write(std::uint64_t address, std::span<const std::byte> bytes);
  // Reads shared memory for an observer. False: the memory is not shared, or not mapped; no message is sent.
  bool peek(std::uint64_t address, std::span<std::byte> bytes);
  bool holds(std::uint64_t address, std::uint64_t bytes) const;

 private:
  struct Range {
    std::uint64_t bytes = 0;
    Rights rights{};
    std::byte* shared = nullptr;  // nullptr: accessed by messages
    Messages messages{};
  };
  using Ranges = std::map<std::uint64_t, Range>;  // by address

  void refuse_overlap(std::uint64_t address, std::uint64_t bytes) const;
  static void release(const Range& range);
  Ranges::iterator range_at(std::uint64_t address);
  template <class Visit>
  Answer each_piece(std::uint64_t address, std::uint64_t bytes, Visit&& visit);

  Ranges ranges_;
};

const char* to_string(GuestMemory::Answer answer);

}  // namespace rnicsim::sim
