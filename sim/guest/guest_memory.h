// A guest's memory, as far as the device may reach it: ranges of bus addresses, each a piece of a file that the guest
// shares by its descriptor, or one that the protocol's messages reach. No access takes simulated time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <stdexcept>
#include <string>

#include "sim/descriptor.h"

namespace rnicsim::sim {

// A range that cannot be mapped: an errno, and why.
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
  // Memory without a descriptor. False: the guest refuses, or does not answer.
  struct Messages {
    std::function<bool(std::uint64_t address, std::span<std::byte> bytes)> read;
    std::function<bool(std::uint64_t address, std::span<const std::byte> bytes)> write;
  };
  enum class Answer { done, unmapped, no_right, taken_away, refused };

  GuestMemory() = default;
  GuestMemory(const GuestMemory&) = delete;
  GuestMemory& operator=(const GuestMemory&) = delete;
  ~GuestMemory() { clear(); }

  // MapError: some of the range is mapped already, or the file does not hold it.
  void map(std::uint64_t address, std::uint64_t bytes, Rights rights, const Descriptor& file, std::uint64_t offset);
  void map(std::uint64_t address, std::uint64_t bytes, Rights rights, const Messages& messages);
  bool unmap(std::uint64_t address, std::uint64_t bytes);  // false: no range is exactly that
  void clear();
  std::size_t ranges() const { return ranges_.size(); }

  // All of it or nothing, unless the guest takes memory away meanwhile. It may lie in several ranges, side by side.
  Answer read(std::uint64_t address, std::span<std::byte> bytes);
  Answer write(std::uint64_t address, std::span<const std::byte> bytes);
  bool holds(std::uint64_t address, std::uint64_t bytes) const;

 private:
  struct Range {
    std::uint64_t bytes = 0;
    Rights rights{};
    std::byte* shared = nullptr;  // nullptr: by messages
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
