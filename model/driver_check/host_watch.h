// SPDX-License-Identifier: Apache-2.0
// Interposed between the DMA unit and the host: reports each access with its bytes and its result when it is sampled or
// lands. A NIC without a check has no HostWatch.
//
// With `owner_delay` the owner bytes at the end of an entry land this much later than the entry's body. Later writes
// wait behind them. A read pushes the waiting writes first, as PCIe orders posted writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "model/base/kernel.h"
#include "model/base/pcie.h"

namespace rnicsim::driver_check {

// Receiver of the accesses.
class HostObserver {
 public:
  // A read is about to push held writes.
  virtual void pushing(Pasid pasid, std::uint64_t address, std::size_t bytes) = 0;
  virtual void sampled(Pasid pasid, std::uint64_t address, std::span<const std::byte> bytes) = 0;
  virtual void landing(Pasid pasid, std::uint64_t address, std::span<const std::byte> bytes) = 0;
  virtual void aborted(Pasid pasid, std::uint64_t address, std::size_t bytes, bool write) = 0;
  // Offset in this write of the owner bytes that are delayed; bytes.size(): none.
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
  bool peek(Pasid pasid, std::uint64_t address, std::span<std::byte> bytes) override {
    return host_.peek(pasid, address, bytes);
  }
  // Function-level reset: drops the writes that have not landed.
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
