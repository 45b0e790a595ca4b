// Stands between the DMA unit and the host: sees each access with its bytes and its result, when it is sampled or
// lands. A NIC that nobody checks has nothing in its place.
//
// With `owner_delay` the last bytes of an entry, which tell its owner, land so much later than the entry's body; what
// is written behind them waits as well, and a read pushes them, as PCIe orders posted writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "model/base/kernel.h"
#include "model/base/pcie.h"

namespace rnicsim::driver_check {

// Who looks at the accesses.
class HostObserver {
 public:
  // A read is about to push writes that are held.
  virtual void pushing(Pasid pasid, std::uint64_t address, std::size_t bytes) = 0;
  virtual void sampled(Pasid pasid, std::uint64_t address, std::span<const std::byte> bytes) = 0;
  virtual void landing(Pasid pasid, std::uint64_t address, std::span<const std::byte> bytes) = 0;
  virtual void aborted(Pasid pasid, std::uint64_t address, std::size_t bytes, bool write) = 0;
  // Where in this write the owner bytes of an entry begin that are to land late; bytes.size(): nowhere.
  virtual std::size_t owner_in(Pasid pasid, std::uint64_t address, std::size_t bytes) const = 0;

 protected:
  ~HostObserver() = default;
};

class HostWatch final : public HostMemory {
 public:
  HostWatch(HostMemory& host, HostObserver& observer, Duration owner_delay)
      : host_(host), observer_(observer), owner_delay_(owner_delay) {}

  bool read(Pasid pasid, std::uint64_t address, std::span<std::byte> bytes) override;
  bool write(Pasid pasid, std::uint64_t address, std::span<const std::byte> bytes) override;
  bool answers(Pasid pasid) const override { return host_.answers(pasid); }
  bool look(Pasid pasid, std::uint64_t address, std::span<std::byte> bytes) override {
    return host_.look(pasid, address, bytes);
  }
  // The function was reset: what has not landed never does.
  void forget();

 private:
  struct Held {
    Pasid pasid;
    std::uint64_t address;
    std::vector<std::byte> bytes;
  };
  bool land(Pasid pasid, std::uint64_t address, std::span<const std::byte> bytes);
  void hold(Pasid pasid, std::uint64_t address, std::span<const std::byte> bytes);
  void land_held();

  HostMemory& host_;
  HostObserver& observer_;
  const Duration owner_delay_;
  std::deque<Held> held_;
  bool landing_ = false;
  Alarm due_{[this] { land_held(); }};
};

}  // namespace rnicsim::driver_check
