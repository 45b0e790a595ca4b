// The IOMMU of a host: which process's memory a PASID means, which ranges of it the device may read and which it may
// write. Everything else is a completer abort, counted and recorded.
//
// Each page that the device asks for has a number, its physical frame, which all its mappings have in common. They are
// given out in the order of asking, so that they are the same at every run.
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
#include "model/host/address_space.h"
#include "model/host/host_counters.h"

namespace rnicsim::host {

// Whose request it is: a device of the host, and the process for which it asks, if it does for one.
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

// A range was pinned, or unpinned, once.
struct IommuMapping {
  Pasid domain;                          // the process's PASID, or a function's own_domain()
  std::uint64_t address;
  std::uint64_t length;
  bool pinned;
  bool writable;
};
// A process's memory can be reached from now on, or not any more.
struct IommuProcess {
  Pasid domain;
  bool attached;
};
// Pages of a process are to be there from now on, or are withdrawn.
struct IommuDemand {
  Pasid domain;
  std::uint64_t address;
  std::uint64_t length;
};

class Iommu {
 public:
  explicit Iommu(std::string host) : host_(std::move(host)) {}

  // In the place of a PASID, below: what a function reaches that asks without one.
  static constexpr Pasid own_domain(std::uint32_t function) { return function << kPasidBits; }

  // `space` stays until detach.
  void attach(Pasid pasid, AddressSpace& space);
  void detach(Pasid pasid);

  // Counted, byte by byte. 0 or errno: EINVAL for a range that wraps, ESRCH for no such process, EFAULT for memory that
  // is not there or, `writable` for the device, read-only; unpin: EINVAL unless all of the range is pinned so.
  int pin(Pasid pasid, std::uint64_t address, std::uint64_t bytes, bool writable = true);
  int unpin(Pasid pasid, std::uint64_t address, std::uint64_t bytes, bool writable = true);
  // The first range from `address` on, below address + bytes, that is pinned without a gap: {begin, bytes}.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> first_pinned(Pasid pasid, std::uint64_t address,
                                                                      std::uint64_t bytes) const;

  // --- Pages on demand, of the process's own addresses: pinned for as long as the process leaves them where they are.
  PageTranslation page_translation(Requester from, std::uint64_t address) const;
  // As pin(), of the pages of that range that are not there so already; until some of it could not be.
  int bring_in(Pasid pasid, std::uint64_t address, std::uint64_t bytes, bool writable);
  struct PageRun {
    std::uint64_t address;
    std::uint64_t pages;
  };
  // Those of a range that are there are no more, to who asks for them; until release() the device may use them.
  std::vector<PageRun> withdraw(Pasid pasid, std::uint64_t address, std::uint64_t bytes);
  void release(Pasid pasid, std::uint64_t address, std::uint64_t bytes);

  // False: aborted.
  bool read(Requester from, std::uint64_t address, std::span<std::byte> bytes);
  bool write(Requester from, std::uint64_t address, std::span<const std::byte> bytes);

  // As read(), for an observer: nothing is counted, and no fault recorded.
  bool look(Requester from, std::uint64_t address, std::span<std::byte> bytes);

  // False: the process has ended, its objects are still being destroyed, and its memory is gone. Linux keeps the pages
  // pinned for so long: writes are accepted and lost, reads get no completion.
  bool answers(Requester from) const;

  // nullopt: not pinned.
  std::optional<std::uint64_t> physical(Requester from, std::uint64_t address);
  // A write that was let pass turned out to have no memory: counted and recorded. The caller tells people.
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
  struct OnDemandPage {
    std::uint64_t bus_address;
    bool writable;
    bool withdrawn = false;
  };
  struct Process {
    AddressSpace* space;
    Pins pins;
    Range known[2];  // found pinned last for reading, for writing: most accesses are to its like
    std::map<std::uint64_t, std::uint64_t> frames;  // by page, of those asked for
    std::map<std::uint64_t, OnDemandPage> on_demand{};  // by page
  };

  // Whether every byte is pinned so at least once.
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
  Process* last_ = nullptr;                       // whose memory was asked for last
  Pasid last_domain_ = 0;
  std::set<Pasid> departed_;
  std::map<SharedPage, std::uint64_t> frames_;
  Counter faults_told_ = 0;
  std::array<IommuCounters, abi::kMaxDevices> counters_{};  // by function
};

}  // namespace rnicsim::host
