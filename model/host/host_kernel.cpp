// SPDX-License-Identifier: Apache-2.0
#include "model/host/host_kernel.h"

#include <cerrno>
#include <utility>

#include "model/host/cm/rdma_cm.h"
#include "model/host/kernel_driver.h"
#include "model/host/memory/iommu.h"
#include "model/host/memory/page_faults.h"

namespace rnicsim::host {

HostKernel::HostKernel(const HostParams& params, Iommu& iommu, Neighbours fabric)
    : iommu_(iommu),
      fabric_(std::move(fabric)),
      next_pasid_(kKernelPasid + 1),
      cm_(std::make_unique<RdmaCm>(
          params, fabric_,
          RdmaIds::EventSink{
              [this](std::uint32_t channel, std::uint32_t id) { drivers_.front()->deliver_connection(channel, id); },
              [this](std::uint32_t channel, std::uint32_t id) { drivers_.front()->forget_connection(channel, id); }})),
      page_faults_(std::make_unique<PageFaults>(params, iommu)) {}
HostKernel::~HostKernel() = default;

void HostKernel::join(KernelDriver& driver) {
  drivers_.push_back(&driver);
  page_faults_->add(driver.root_complex());
}

void HostKernel::device_is_up() {
  ++devices_up_;
  if (!ready()) return;
  cm_->begin();
  wake(became_ready_);
}

std::string HostKernel::failure() const {
  for (const KernelDriver* driver : drivers_)
    if (!driver->failure().empty()) return driver->failure();
  return {};
}

Pasid HostKernel::attach(AddressSpace& space) {
  const Pasid pasid = next_pasid_++;
  processes_.insert(pasid);
  iommu_.attach(pasid, space);
  return pasid;
}

void HostKernel::detach(Pasid process, std::function<void()> done) {
  cm_->close_process(process);
  processes_.erase(process);
  const auto forgotten = [this, process, left = std::make_shared<std::size_t>(drivers_.size()),
                          done = std::move(done)] {
    if (--*left != 0) return;
    page_faults_->forget(process);
    iommu_.detach(process);
    if (done) done();
  };
  for (KernelDriver* driver : drivers_) driver->forget(process, forgotten);
}

int HostKernel::pin(Pasid process, std::uint64_t address, std::uint64_t bytes, bool writable) {
  return iommu_.pin(process, address, bytes, writable);
}
int HostKernel::unpin(Pasid process, std::uint64_t address, std::uint64_t bytes, bool writable) {
  return iommu_.unpin(process, address, bytes, writable);
}
void HostKernel::back(Pasid process, std::uint64_t address, std::uint64_t bytes, ByteCount page) {
  for (KernelDriver* driver : drivers_) driver->back(process, address, bytes, page);
}

int HostKernel::rdma_cm(Pasid process, std::uint32_t channel, std::uint32_t command, std::span<const std::byte> input,
                        std::span<std::byte> output) {
  if (!drivers_.front()->owns_channel(process, channel)) return EBADF;
  return cm_->command({process, channel}, command, input, output);
}

std::size_t HostKernel::connection_ids() const { return cm_->ids(); }
std::size_t HostKernel::connections() const { return cm_->connections(); }

}  // namespace rnicsim::host
