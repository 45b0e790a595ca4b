// SPDX-License-Identifier: Apache-2.0
// The kernel's driver of one device, as the host's kernel uses it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "model/base/pcie.h"
#include "model/base/units.h"

namespace rnicsim::host {

class RootComplex;

class KernelDriver {
 public:
  virtual RootComplex& root_complex() const = 0;
  // Reason of a failed bring-up; empty: no failure.
  virtual const std::string& failure() const = 0;

  // Destroys the process's objects in dependency order. No callback of the process runs after this call; `done` runs
  // when the device has destroyed the objects.
  virtual void forget(Pasid process, std::function<void()> done) = 0;
  // Sets the page size of regions in this memory.
  virtual void back(Pasid process, std::uint64_t address, std::uint64_t bytes, ByteCount page) = 0;

  // --- Event channels of connections: those of the first device.
  virtual bool owns_channel(Pasid process, std::uint32_t channel) const = 0;
  virtual void deliver_connection(std::uint32_t channel, std::uint32_t id) = 0;
  virtual void forget_connection(std::uint32_t channel, std::uint32_t id) = 0;

 protected:
  ~KernelDriver() = default;
};

}  // namespace rnicsim::host
