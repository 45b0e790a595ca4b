// A real process's memory as DMA finds it: what it shares with the simulator directly, the rest by the kernel
// (process_vm_readv and its like). An image's own: exec brings another, and this one ends.
//
// A page that the process unmaps while it is pinned stays, as on Linux: the process moves it to a place of its own, its
// bus address stays what it was, and other memory that comes to lie at the old place gets another.
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

#include "model/host/address_space.h"
#include "sim/attached/host_turns.h"
#include "sim/attached/kept_pages.h"
#include "sim/attached/shared_memory.h"
#include "sim/attached/stall_guard.h"
#include "sim/descriptor.h"

namespace rnicsim::sim {

class ProcessMemory final : public host::AddressSpace, private KeptWrites {
 public:
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
  };

  // `process` is a pidfd, which stays open until end().
  ProcessMemory(pid_t pid, const Descriptor& process, SharedMemory& shared);
  ~ProcessMemory() override;
  ProcessMemory(const ProcessMemory&) = delete;
  ProcessMemory& operator=(const ProcessMemory&) = delete;

  // The image is no more: what the device still does to it is lost.
  void end();
  bool has_exited() const;  // the process (a zombie counts)
  void guard(StallGuard& guard) { guard_ = &guard; }

  // --- host::AddressSpace, by bus address. Writes outside the shared memory are kept and done in one go: nobody can
  // see them before flush(), which comes before the next turn of one of the host's programs (join), before they are
  // read, and when there are many. What other processes may map is written at once.
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
  void write_at_once(bool on) { write_at_once_ = on; }  // real time: the process looks at any moment
  // Called with bus address and length when a write that was kept found no memory any more. From then on the page is
  // refused, until it is pinned anew.
  std::function<void(std::uint64_t, std::uint64_t)> lost_write;

  // --- Pages that move. Ranges of the process's addresses unless they say otherwise.
  // Where the device is to find a range that is about to be pinned.
  std::uint64_t bus_address_for(std::uint64_t address, std::uint64_t bytes);
  // The first pinned range of bus addresses within another; nullopt: there is none.
  using FirstPinned = std::function<std::optional<Range>(const Range&)>;
  FirstPinned first_pinned;
  // The first whole pages in `range` that are pinned; with `own_only` of memory that is not shared.
  std::optional<Range> first_pinned_pages(const Range& range, const FirstPinned& pinned, bool own_only) const;
  // The pages of `range` lie at `to` from now on.
  void move(const Range& range, std::uint64_t to, const FirstPinned& pinned);
  // A place, that nobody else uses, for pages that the process is to put aside.
  std::uint64_t place_aside(const Range& range);
  // These bus addresses were unpinned. The places aside that nobody needs any more are added to `free`.
  void unpinned(const Range& bus, const FirstPinned& pinned, std::vector<Range>& free);
  // From the mapping that begins at `address` on, those of the same object.
  std::uint64_t bytes_of_object_at(std::uint64_t address) const;

 private:
  struct Place {
    std::uint64_t end;      // of the bus addresses
    std::uint64_t address;  // the process's, of the first
  };
  struct SharedRange {
    std::uint64_t end;
    host::SharedPage first;
  };
  struct Piece {
    std::uint64_t address;  // the process's
    std::size_t offset;     // in a range of bus addresses
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
  std::vector<iovec> from_, to_;                 // of one call
  std::map<std::uint64_t, Place> moved_;         // by bus address; the others lie where their number says
  std::map<std::uint64_t, SharedRange> shared_;  // by bus address
  std::set<std::uint64_t> lost_;                 // bus pages
  std::uint64_t next_bus_address_;
  std::uint64_t next_aside_;
};

}  // namespace rnicsim::sim
