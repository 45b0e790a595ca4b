// The IOMMU of a host: which process's memory a PASID means, and which ranges of it the device may touch.
// Everything else is a completer abort, counted and recorded.
#pragma once

#include <boost/icl/interval_map.hpp>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>

#include "model/base/pcie.h"
#include "model/base/stats.h"
#include "model/base/trace.h"
#include "model/base/units.h"
#include "model/host/address_space.h"

namespace rnicsim::host {

struct IommuFault {
  enum class Reason : std::uint8_t { no_process, not_pinned, not_mapped };
  Duration at;
  Pasid pasid;
  std::uint64_t address;
  std::uint64_t length;
  bool write;
  Reason reason;
};
const char* to_string(IommuFault::Reason reason);

struct IommuCounters {
  Counter reads = 0;
  Counter writes = 0;
  Counter read_bytes = 0;
  Counter write_bytes = 0;
  Counter faults = 0;

  void describe(CounterVisitor& visit) const {
    visit.counter("reads", reads, "requests", "DMA reads that the IOMMU let pass");
    visit.counter("writes", writes, "requests", "DMA writes that the IOMMU let pass");
    visit.counter("read_bytes", read_bytes, "bytes", "bytes of those reads");
    visit.counter("write_bytes", write_bytes, "bytes", "bytes of those writes");
    visit.counter("faults", faults, "requests", "DMA aborted: to a range not pinned, not mapped, or of no process");
  }
};

class Iommu {
 public:
  explicit Iommu(std::string host) : host_(std::move(host)) {}

  // `space` stays until detach.
  void attach(Pasid pasid, AddressSpace& space);
  void detach(Pasid pasid);

  // Counted, byte by byte. 0 or errno: EINVAL for a range that wraps, ESRCH for no such process, EFAULT for memory that
  // is not there; unpin: EINVAL unless all of the range is pinned.
  int pin(Pasid pasid, std::uint64_t address, std::uint64_t bytes);
  int unpin(Pasid pasid, std::uint64_t address, std::uint64_t bytes);

  // False: aborted.
  bool read(Pasid pasid, std::uint64_t address, std::span<std::byte> bytes);
  bool write(Pasid pasid, std::uint64_t address, std::span<const std::byte> bytes);

  const IommuCounters& counters() const { return counters_; }
  trace::Point<IommuFault> fault;

 private:
  using Pins = boost::icl::interval_map<std::uint64_t, std::uint32_t>;
  struct Process {
    AddressSpace* space;
    Pins pins;
    // The range found pinned last: most accesses are to its like.
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };

  static bool pinned(Process& process, std::uint64_t address, std::uint64_t bytes);
  AddressSpace* translate(Pasid pasid, std::uint64_t address, std::uint64_t bytes, bool write);
  bool has_ended(Pasid pasid) const;
  void record(Pasid pasid, std::uint64_t address, std::uint64_t bytes, bool write, IommuFault::Reason reason);

  std::string host_;
  std::map<Pasid, Process> processes_;
  std::set<Pasid> departed_;
  Counter faults_told_ = 0;
  IommuCounters counters_;
};

}  // namespace rnicsim::host
