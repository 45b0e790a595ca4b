// SPDX-License-Identifier: Apache-2.0
// The kernel of a simulated host, as far as RDMA needs it: gives PASIDs to processes, pins memory, manages connections.
// Each device has a driver (kernel_driver.h), which destroys the objects that a dead process leaves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "model/base/kernel.h"
#include "model/base/pcie.h"
#include "model/base/units.h"
#include "model/host/gids.h"
#include "model/host/host_params.h"
#include "model/host/memory/address_space.h"

namespace rnicsim::host {

class Iommu;
class KernelDriver;
class PageFaults;
class RdmaCm;

class HostKernel {
 public:
  // `fabric`: all interfaces, including this host's.
  HostKernel(const HostParams& params, Iommu& iommu, Neighbours fabric);
  ~HostKernel();
  HostKernel(const HostKernel&) = delete;
  HostKernel& operator=(const HostKernel&) = delete;

  const Neighbours& fabric() const { return fabric_; }
  // Each driver calls join() when it is made, in the order of devices, and device_is_up() when its device is up.
  void join(KernelDriver& driver);
  void device_is_up();

  // False until all devices are up: system calls return EAGAIN, and commands wait.
  bool ready() const { return devices_up_ == drivers_.size(); }
  const sc_core::sc_event& became_ready() const { return became_ready_; }
  std::string failure() const;  // reason for which a device failed; empty: no failure

  // --- Processes. `space` must live until `done` of detach() has run. For an attached process the caller pins kMemory*
  // of attach.h.
  Pasid attach(AddressSpace& space);
  // Destroys the process's objects on each device, then unmaps the process from the IOMMU. No callback of the process
  // runs after this call; `done` runs when all devices have destroyed the objects.
  void detach(Pasid process, std::function<void()> done);
  bool knows(Pasid process) const { return processes_.contains(process); }
  std::size_t processes() const { return processes_.size(); }

  // 0 or errno. Every device can reach pinned memory, in the process's PASID.
  int pin(Pasid process, std::uint64_t address, std::uint64_t bytes, bool writable = true);
  int unpin(Pasid process, std::uint64_t address, std::uint64_t bytes, bool writable = true);
  // Sets the page size of regions in this memory, if it is larger than host.page_size: huge pages, hugetlbfs.
  void back(Pasid process, std::uint64_t address, std::uint64_t bytes, ByteCount page);

  // --- Pages on demand.
  PageFaults& page_faults() { return *page_faults_; }

  // --- Connections: a command of <rdma/rdma_user_cm.h>, as Call::rdma_cm of attach.h. 0 or errno.
  int rdma_cm(Pasid process, std::uint32_t channel, std::uint32_t command, std::span<const std::byte> input,
              std::span<std::byte> output);
  std::size_t connection_ids() const;  // rdma_cm_ids of all processes
  std::size_t connections() const;     // connections of the communication manager, including timewait
  RdmaCm& cm() { return *cm_; }

 private:
  Iommu& iommu_;
  const Neighbours fabric_;
  std::vector<KernelDriver*> drivers_;
  std::size_t devices_up_ = 0;
  std::set<Pasid> processes_;
  Pasid next_pasid_;
  std::unique_ptr<RdmaCm> cm_;
  std::unique_ptr<PageFaults> page_faults_;
  sc_core::sc_event became_ready_;
};

}  // namespace rnicsim::host
