// SPDX-License-Identifier: Apache-2.0
// The IOMMU of a host: maps a PASID to a process's memory, and knows the ranges that the device may read or write. Any
// other access is a completer abort, counted and recorded.
//
// Each page that the device asks for has a number, its physical frame, which is common to all mappings of the page.
// Frames are numbered in the order of the requests, so that the numbers are the same in every run.
#pragma once

#include <array>
#include <boost/icl/interval_map.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/abi/attach.h"
#include "model/base/pcie.h"
#include "model/base/stats.h"
#include "model/base/trace.h"
#include "model/base/units.h"
#include "model/host/host_counters.h"
#include "model/host/memory/address_space.h"

namespace rnicsim::host {

// Source of a request: a device function of the host, and the process for which it asks (kKernelPasid: none).
struct Requester {
  constexpr Requester(Pasid for_process, std::uint32_t of_function = 0) : pasid(for_process), function(of_function) {}
  Pasid pasid;
  std::uint32_t function;
};

struct IommuFault {
  enum class Reason : std::uint8_t { no_process, not_pinned, not_mapped, read_only };
  Duration at;
  Requester from;
  std::uint64_t address;
  std::uint64_t length;
  bool write;
  Reason reason;
};
const char* to_string(IommuFault::Reason reason);

// A range was pinned or unpinned once.
struct IommuMapping {
  Pasid domain;  // the process's PASID, or a function's own_domain()
  std::uint64_t address;
  std::uint64_t length;
  bool pinned;
  bool writable;
};
// A process's memory became reachable (`attached`) or unreachable.
struct IommuProcess {
  Pasid domain;
  bool attached;
};
// Pages of a process are brought in.
struct IommuDemand {
  Pasid domain;
  std::uint64_t address;
  std::uint64_t length;
};

class Iommu {
 public:
  explicit Iommu(std::string host) : host_(std::move(host)) {}

  // Domain of requests without a PASID: memory that the function itself reaches. Used like a PASID below.
  static constexpr Pasid own_domain(std::uint32_t function) { return function << kPasidBits; }

  // `space` must live until detach().
  void attach(Pasid pasid, AddressSpace& space);
  void detach(Pasid pasid);

  // Pins are counted for each byte. 0 or errno. EINVAL: the range wraps; ESRCH: no such process; EFAULT: memory is not
  // mapped, or read-only although `writable`. unpin(): EINVAL unless the whole range has such a pin.
  int pin(Pasid pasid, std::uint64_t address, std::uint64_t bytes, bool writable = true);
  int unpin(Pasid pasid, std::uint64_t address, std::uint64_t bytes, bool writable = true);
  // The first range without a gap that is pinned in [address, address + bytes): {begin, bytes}.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> first_pinned(Pasid pasid, std::uint64_t address,
                                                                      std::uint64_t bytes) const;

  // --- Pages on demand, by the process's own addresses: pinned until the process moves or unmaps them.
  PageTranslation page_translation(Requester from, std::uint64_t address) const;
  // Pins the pages of the range that are not present yet, as pin(). On an error the pages before it stay present.
  int bring_in(Pasid pasid, std::uint64_t address, std::uint64_t bytes, bool writable);
  struct PageRun {
    std::uint64_t address;
    std::uint64_t pages;
  };
  // Withdraws the present pages of a range: translations no longer find them, but the device may use them until
  // release().
  std::vector<PageRun> withdraw(Pasid pasid, std::uint64_t address, std::uint64_t bytes);
  void release(Pasid pasid, std::uint64_t address, std::uint64_t bytes);

  // False: completer abort.
  bool read(Requester from, std::uint64_t address, std::span<std::byte> bytes);
  bool write(Requester from, std::uint64_t address, std::span<const std::byte> bytes);

  // Reads as read(), for an observer: no counter changes, and no fault is recorded.
  bool peek(Requester from, std::uint64_t address, std::span<std::byte> bytes);

  // False: the process has ended, its objects are still being destroyed, and its memory is gone. Linux keeps the pages
  // pinned until then: here writes are accepted and lost, and reads get no completion.
  bool answers(Requester from) const;

  // nullopt: not pinned.
  std::optional<std::uint64_t> physical(Requester from, std::uint64_t address);
  // Counts and records a write that passed the IOMMU but found no memory. The caller writes the log line.
  void lost_write(Pasid pasid, std::uint64_t address, std::uint64_t bytes);

  const IommuCounters& counters(std::uint32_t function = 0) const { return counters_.at(function); }
  trace::Point<IommuFault> fault;
  trace::Point<IommuMapping> mapping;
  trace::Point<IommuProcess> presence;
  trace::Point<IommuDemand> demand;

 private:
  static constexpr unsigned kPasidBits = 20;

  struct PinCount {
    std::uint32_t all = 0;
    std::uint32_t writable = 0;
    bool operator==(const PinCount&) const = default;
    PinCount& operator+=(const PinCount& other);
    PinCount& operator-=(const PinCount& other);
  };
  using Pins = boost::icl::interval_map<std::uint64_t, PinCount>;
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    bool has(std::uint64_t address, std::uint64_t bytes) const {
      return address >= begin && address <= end && bytes <= end - address;
    }
  };
  // The two ranges that were last found pinned. Reads of a device alternate between WQEs and payload.
  struct KnownRanges {
    Range newer;
    Range older;
    bool has(std::uint64_t address, std::uint64_t bytes) const {
      return newer.has(address, bytes) || older.has(address, bytes);
    }
    void add(const Range& range) { older = std::exchange(newer, range); }
  };
  struct OnDemandPage {
    std::uint64_t bus_address;
    bool writable;
    bool withdrawn = false;
  };
  struct Process {
    AddressSpace* space;
    Pins pins;
    KnownRanges known[2];                           // for reading and for writing: most accesses fall into these ranges
    std::map<std::uint64_t, std::uint64_t> frames;  // frame by page, for pages that a device asked for
    std::map<std::uint64_t, OnDemandPage> on_demand{};  // by page
  };

  // True if every byte has at least one such pin.
  static bool has_pin(const Pins& pins, std::uint64_t address, std::uint64_t bytes, bool writable);
  static bool pinned(Process& process, std::uint64_t address, std::uint64_t bytes, bool writable);
  static void forget(Process& process, std::uint64_t address, std::uint64_t bytes);
  static Pasid domain_of(const Requester& from) {
    constexpr Pasid kNobody = ~0u;
    if (from.pasid >> kPasidBits != 0) return kNobody;
    return from.pasid == kKernelPasid ? own_domain(from.function) : from.pasid;
  }
  AddressSpace* translate(const Requester& from, std::uint64_t address, std::uint64_t bytes, bool write) {
    if (last_ != nullptr && domain_of(from) == last_domain_ && last_->known[write].has(address, bytes))
      return last_->space;
    return find(from, address, bytes, write);
  }
  AddressSpace* find(const Requester& from, std::uint64_t address, std::uint64_t bytes, bool write);
  bool has_ended(const Requester& from) const;
  void record(const Requester& from, std::uint64_t address, std::uint64_t bytes, bool write, IommuFault::Reason reason);

  std::string host_;
  std::map<Pasid, Process> processes_;
  Process* last_ = nullptr;  // process of the last request
  Pasid last_domain_ = 0;
  std::set<Pasid> departed_;
  std::map<SharedPage, std::uint64_t> frames_;
  Counter faults_told_ = 0;
  std::array<IommuCounters, abi::kMaxDevices> counters_{};  // by function
};

}  // namespace rnicsim::host
