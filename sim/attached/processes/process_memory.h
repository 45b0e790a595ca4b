// SPDX-License-Identifier: Apache-2.0
// Memory of a real process as DMA sees it. Memory shared with the simulator is accessed directly, other memory by the
// kernel (process_vm_readv and process_vm_writev). One object belongs to one image: exec ends it and makes another.
//
// A page that the process unmaps while it is pinned stays, as on Linux: the process moves the page aside, and the page
// keeps its bus address. Memory that is mapped later at the old address gets another bus address.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "model/host/memory/address_space.h"
#include "sim/attached/native/stall_guard.h"
#include "sim/attached/processes/kept_pages.h"
#include "sim/attached/processes/shared_memory.h"
#include "sim/attached/time/host_turns.h"
#include "sim/os/descriptor.h"

namespace rnicsim::sim {

// End of user addresses on x86-64. Values that a program passes are checked against it.
inline constexpr std::uint64_t kMemoryEnd = 1ull << 47;
inline bool is_user_range(std::uint64_t address, std::uint64_t bytes) {
  return address <= kMemoryEnd && bytes <= kMemoryEnd - address;
}

class ProcessMemory final : public host::AddressSpace, private KeptWrites {
 public:
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
  };

  // `process` is a pidfd; the caller keeps it open until end().
  ProcessMemory(pid_t pid, const Descriptor& process, SharedMemory& shared);
  ~ProcessMemory() override;
  ProcessMemory(const ProcessMemory&) = delete;
  ProcessMemory& operator=(const ProcessMemory&) = delete;

  // The image has ended. Later writes of the device are dropped.
  void end();
  bool has_exited() const;  // true for a zombie, too
  void guard(StallGuard& guard) { guard_ = &guard; }

  // --- host::AddressSpace, by bus address. Writes outside the shared memory are kept and done together by flush():
  // before the next turn of a program of the host (join), before a read of the same pages, and when many are kept.
  // Writes to memory that other processes may map are done at once.
  bool read(std::uint64_t address, std::span<std::byte> bytes) override;
  bool write(std::uint64_t address, std::span<const std::byte> bytes) override;
  int admit(std::uint64_t address, std::uint64_t bytes, bool writable) override;
  std::optional<host::SharedPage> shared_page(std::uint64_t address) const override;
  bool exists() const override { return alive_ && !has_exited(); }
  std::uint64_t place_on_bus(std::uint64_t address, std::uint64_t bytes) override {
    return bus_address_for(address, bytes);
  }
  void left_bus(std::uint64_t address, std::uint64_t bytes) override;
  void flush() override;
  void join(HostTurns& turns) { turns_ = &turns; }
  void turn_begins() { turns_->begin(); }
  void write_at_once(bool on) { write_at_once_ = on; }  // real time: programs read at any moment
  // Called with the bus address and length of a kept write whose memory was unmapped. Later accesses to the page fail
  // until it is pinned again.
  std::function<void(std::uint64_t, std::uint64_t)> lost_write;

  // --- Pages that move. Ranges hold addresses of the process unless a comment says "bus".
  // Bus address for a range that is about to be pinned.
  std::uint64_t bus_address_for(std::uint64_t address, std::uint64_t bytes);
  // The first pinned range within a range of bus addresses; nullopt: none.
  using FirstPinned = std::function<std::optional<Range>(const Range&)>;
  FirstPinned first_pinned;
  // The first whole pages in `range` that are pinned. `own_only`: without shared mappings.
  std::optional<Range> first_pinned_pages(const Range& range, const FirstPinned& pinned, bool own_only) const;
  // From now on the pages of `range` are at `to`.
  void move(const Range& range, std::uint64_t to, const FirstPinned& pinned);
  // A free address range to which the process can move pages aside.
  std::uint64_t place_aside(const Range& range);
  // `bus` was unpinned. Ranges aside that hold no pinned page any more are added to `free`.
  void unpinned(const Range& bus, const FirstPinned& pinned, std::vector<Range>& free);
  // Length of the mappings of one object, from the mapping that begins at `address`.
  std::uint64_t bytes_of_object_at(std::uint64_t address) const;

 private:
  struct Place {
    std::uint64_t end;      // bus address behind the last byte
    std::uint64_t address;  // address in the process of the first byte
  };
  struct SharedRange {
    std::uint64_t end;
    host::SharedPage first;
  };
  struct Piece {
    std::uint64_t address;  // in the process
    std::size_t offset;     // in the range of bus addresses
    std::size_t bytes;
  };

  bool owns_its_number();
  std::byte* shared(std::uint64_t address, std::uint64_t bytes) const;
  std::vector<Piece> pieces(std::uint64_t address, std::uint64_t bytes) const;
  bool read_piece(std::uint64_t address, std::span<std::byte> bytes);
  bool keeps_some_of(std::uint64_t address, std::uint64_t bytes);
  void keep(std::uint64_t address, std::uint64_t bus_address, std::span<const std::byte> bytes);
  KeptPages::Page& page_for(std::uint64_t address, std::size_t begin, std::size_t end);
  std::size_t write_some(std::size_t first);
  bool write_by_force(KeptPages::Page& page);
  Descriptor open_memory(int flags) const;
  void lose(const KeptPages::Page& page);
  bool is_lost(std::uint64_t address, std::uint64_t bytes) const;
  bool is_shared(std::uint64_t address, std::uint64_t bytes) const;
  void forget_shared(std::uint64_t begin, std::uint64_t end);
  void cut(std::uint64_t at);
  std::vector<Range> still_in_place(const Range& range, const FirstPinned& pinned) const;
  std::vector<Range> without_shared(const std::vector<Range>& ranges) const;
  void give_up(const Range& bus, std::vector<Range>& free);

  pid_t pid_;
  const Descriptor& process_;
  SharedMemory& shared_memory_;
  StallGuard* guard_ = nullptr;
  bool alive_ = true;
  std::chrono::steady_clock::time_point seen_alive_;
  bool write_at_once_ = false;
  HostTurns own_turns_;
  HostTurns* turns_ = &own_turns_;
  KeptPages kept_;
  std::vector<iovec> from_, to_;                 // scratch space of one call
  std::map<std::uint64_t, Place> moved_;         // by bus address; other pages have equal bus and process addresses
  std::map<std::uint64_t, SharedRange> shared_;  // by bus address
  std::set<std::uint64_t> lost_;                 // numbers of bus pages whose memory was unmapped
  std::uint64_t next_bus_address_;
  std::uint64_t next_aside_;
};

}  // namespace rnicsim::sim
