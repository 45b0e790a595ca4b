// SPDX-License-Identifier: Apache-2.0
#include "model/driver_check/driver_check.h"

#include <fmt/format.h>

#include <utility>

#include "model/driver_check/access_checks.h"
#include "model/driver_check/burndown.h"
#include "model/driver_check/command_checks.h"
#include "model/driver_check/completion_checks.h"
#include "model/driver_check/context.h"
#include "model/driver_check/doorbell_checks.h"
#include "model/driver_check/host_watch.h"
#include "model/driver_check/memory_checks.h"
#include "model/driver_check/receive_checks.h"
#include "model/nic/blocks.h"
#include "model/nic/contexts/translation.h"
#include "model/nic/nic.h"
#include "model/nic/pcie/dma.h"
#include "model/nic/seam/qp_engine.h"

namespace rnicsim::driver_check {
namespace {

constexpr std::uint32_t kRegisterPageBytes = 4096;

}  // namespace

// Subscribes to the NIC's trace points, interposes HostWatch at its DMA unit, and passes the events to the checks.
class DriverCheck::Watcher final : HostObserver {
 public:
  Watcher(nic::Nic& nic, const CheckParams& params, const nic::Personality& personality, const nic::DriverTerms& terms)
      : blocks_(nic.blocks()),
        context{.params = params, .personality = personality, .terms = terms, .pcie = blocks_.pcie},
        burndown(terms, context.log),
        watch_(blocks_.pcie, *this, params.owner_delay) {
    blocks_.dma_unit.reach(watch_);
    watch_accesses();
    watch_queues();
  }
  ~Watcher() { blocks_.dma_unit.reach(blocks_.pcie); }

  void finish() { interrupts_.finish(); }

 private:
  const nic::NicBlocks& blocks_;

 public:
  CheckContext context;
  Burndown burndown;

 private:
  void watch_accesses();
  void watch_queues();
  void accessed(const nic::HostAccess& access);
  void endpoint_refused(const nic::Refusal& refusal);
  void was_reset();

  void pushing(Pasid pasid, std::uint64_t address, std::size_t bytes) override;
  void sampled(Pasid pasid, std::uint64_t address, std::span<const std::byte> bytes) override;
  void landing(Pasid pasid, std::uint64_t address, std::span<const std::byte> bytes) override;
  void aborted(Pasid pasid, std::uint64_t address, std::size_t bytes, bool write) override;
  std::size_t owner_in(Pasid pasid, std::uint64_t address, std::size_t bytes) const override;

  AccessChecks accesses_{context};
  DoorbellChecks doorbells_{context};
  CommandChecks commands_{context};
  CompletionChecks completions_{context};
  ReceiveChecks receives_{context};
  MemoryChecks memory_{context};
  InterruptChecks interrupts_{context};
  HostWatch watch_;
  bool blocked_ = false;  // the access that aborts next was refused since bus mastering is off
};

void DriverCheck::Watcher::watch_accesses() {
  auto& pcie = blocks_.pcie;
  pcie.accessed.subscribe([this](const nic::HostAccess& access) { accessed(access); });
  pcie.read_answered.subscribe([this](const nic::HostAnswer& answer) {
    context.log.answer(answer);
    accesses_.answered(answer);
  });
  pcie.refusal.subscribe([this](const nic::Refusal& refusal) { endpoint_refused(refusal); });
  pcie.raised.subscribe([this](const nic::InterruptRaised& raised) { interrupts_.raised(raised); });
  pcie.was_reset.subscribe([this](const nic::FunctionReset&) { was_reset(); });
  blocks_.translation.refusal.subscribe([this](const nic::Refusal& refusal) { memory_.refused(refusal); });
}

void DriverCheck::Watcher::watch_queues() {
  blocks_.doorbell.rung.subscribe([this](const nic::DoorbellRung& rung) { doorbells_.rung(rung); });
  blocks_.doorbell.armed.subscribe([this](const nic::CqArmed& arm) { doorbells_.armed(arm); });
  blocks_.doorbell.consumed.subscribe([this](const nic::EqConsumed& eq) { doorbells_.consumed(eq); });
  blocks_.doorbell.refusal.subscribe([this](const nic::Refusal& refusal) {
    burndown.refused(refusal);
    doorbells_.refused(refusal);
  });
  auto& engine = blocks_.engine.trace();
  engine.doorbell_ignored.subscribe([this](const nic::DoorbellIgnored& ignored) { doorbells_.ignored(ignored); });
  engine.state_changed.subscribe([this](const nic::QpStateChanged& changed) { commands_.state_changed(changed); });
  engine.wqe_taken.subscribe([this](const nic::WqeTaken& taken) { receives_.taken(taken); });
  blocks_.command_unit.taken.subscribe([this](const nic::CommandTaken& taken) { commands_.taken(taken); });
  blocks_.command_unit.executed.subscribe([this](const nic::CommandExecuted& executed) {
    burndown.executed(executed);
    commands_.executed(executed);
  });
  blocks_.completion.written.subscribe([this](const nic::CqeWritten& written) {
    completions_.written(written);
    receives_.completed(written.cqe);
  });
  const auto event = [this](const nic::EventTrace& event) { completions_.event_written(event); };
  blocks_.events.written.subscribe(event);
}

void DriverCheck::Watcher::accessed(const nic::HostAccess& access) {
  context.log.add(now(), access);
  burndown.accessed(access);
  interrupts_.check_pending();
  // With memory space off the device refuses the access, and no register sees it.
  if (access.space == nic::HostAccess::Space::bar && !blocks_.pcie.memory_enabled()) return;
  interrupts_.accessed(access);
  accesses_.accessed(access);
  const auto& pci = context.personality.layout.pci;
  const bool in_page = access.offset >= pci.registers && access.offset - pci.registers < kRegisterPageBytes;
  if (access.space == nic::HostAccess::Space::bar && access.write && in_page)
    commands_.register_written(static_cast<std::uint32_t>(access.offset - pci.registers), access.bytes);
}

void DriverCheck::Watcher::endpoint_refused(const nic::Refusal& refusal) {
  blocked_ = refusal.why == nic::Refusal::Why::bus_master_off;
  burndown.refused(refusal);
  accesses_.refused(refusal);
}

void DriverCheck::Watcher::was_reset() {
  accesses_.was_reset();
  commands_.forget();
  interrupts_.was_reset();
  watch_.forget();
}

void DriverCheck::Watcher::pushing(Pasid pasid, std::uint64_t address, std::size_t bytes) {
  context.objects.each_at(pasid, address, bytes, [&](const MemoryRange& range) {
    if (range.kind == MemoryKind::cq_record) completions_.pushing(range.number);
  });
}

void DriverCheck::Watcher::sampled(Pasid pasid, std::uint64_t address, std::span<const std::byte> bytes) {
  context.objects.each_at(pasid, address, bytes.size(), [&](const MemoryRange& range) {
    // A read of a part of a record is not checked.
    const bool whole = range.address >= address && range.address + range.bytes <= address + bytes.size();
    const auto record = whole ? bytes.subspan(range.address - address, range.bytes) : std::span<const std::byte>();
    switch (range.kind) {
      case MemoryKind::cq_record: return whole ? completions_.record_read(range.number, record) : void();
      case MemoryKind::qp_record: return whole ? receives_.record_read(range.number, record) : void();
      case MemoryKind::srq_record: return whole ? receives_.shared_record_read(range.number, record) : void();
      case MemoryKind::srq_ring: return receives_.shared_entries_read(range, address, bytes);
      default: return;
    }
  });
}

void DriverCheck::Watcher::landing(Pasid pasid, std::uint64_t address, std::span<const std::byte> bytes) {
  context.objects.each_at(pasid, address, bytes.size(), [&](const MemoryRange& range) {
    if (range.kind == MemoryKind::cq_ring) completions_.landing(range, address, bytes.size());
    if (range.kind == MemoryKind::command_queue) commands_.answering(address);
  });
}

void DriverCheck::Watcher::aborted(Pasid pasid, std::uint64_t address, std::size_t bytes, bool write) {
  if (!std::exchange(blocked_, false)) memory_.aborted(pasid, address, bytes, write);
}

// In a write of several entries only the owner bytes of the last entry are delayed.
std::size_t DriverCheck::Watcher::owner_in(Pasid pasid, std::uint64_t address, std::size_t bytes) const {
  auto owner = bytes;
  context.objects.each_at(pasid, address, bytes, [&](const MemoryRange& range) {
    if (range.kind == MemoryKind::cq_ring || range.kind == MemoryKind::eq_ring)
      owner = bytes - std::min(bytes, context.terms.owner_bytes());
  });
  return owner;
}

DriverCheck::DriverCheck(nic::Nic& nic, const CheckParams& params, const nic::Personality& personality,
                         const nic::DriverTerms& terms)
    : watcher_(std::make_unique<Watcher>(nic, params, personality, terms)) {}

DriverCheck::~DriverCheck() = default;

void DriverCheck::tell(std::function<void(const Finding&)> found) {
  watcher_->context.reports.found = std::move(found);
}

void DriverCheck::mapped(Pasid pasid, std::uint64_t address, std::uint64_t bytes) {
  watcher_->context.maps.map(pasid, address, bytes);
}

void DriverCheck::unmapped(Pasid pasid, std::uint64_t address, std::uint64_t bytes) {
  watcher_->context.maps.unmap(pasid, address, bytes, now());
}

const std::vector<Finding>& DriverCheck::findings() const { return watcher_->context.reports.all(); }

void DriverCheck::finish() { watcher_->finish(); }

std::string DriverCheck::burndown() const {
  const auto& context = watcher_->context;
  auto text = watcher_->burndown.text();
  if (const auto more = context.reports.left_out(); more != 0)
    text += fmt::format("findings not listed after the first {}: {}\n", Reports::kMost, more);
  if (context.failed_reads != 0)
    text += fmt::format("failed reads of host memory: {} (the check of the unread bytes was skipped)\n",
                        context.failed_reads);
  return text;
}

std::uint64_t DriverCheck::accesses() const { return watcher_->context.log.count(); }

}  // namespace rnicsim::driver_check
