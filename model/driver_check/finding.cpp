// SPDX-License-Identifier: Apache-2.0
#include "model/driver_check/finding.h"

#include <fmt/format.h>

#include <iterator>

namespace rnicsim::driver_check {
namespace {

using enum FindingKind;

// In the order of FindingKind. The sections are headings of docs/device.md.
constexpr KindTerm kKinds[] = {
    {memory_space_off, "memory_space_off", "Configuration space",
     "an access to BAR0 while Command has memory space off: never enabled, or not restored after a function-level "
     "reset"},
    {reset_window, "reset_window", "Configuration space",
     "an access to BAR0 within 100 ms of a function-level reset (PCIe 4.0, 6.6.2)"},
    {wrong_width, "wrong_width", "The register page", "an access to a register or doorbell with a wrong width"},
    {wrong_direction, "wrong_direction", "The register page",
     "a write to a read-only register, or a read of a write-only register"},
    {no_register, "no_register", "The register page", "an access to an offset of BAR0 without a register"},
    {bad_alignment, "bad_alignment", "The register page", "a command queue that is not aligned to 4 KiB"},
    {no_progress, "no_progress", "The register page", "a register polled many times in a row with the same value"},
    {wrong_endianness, "wrong_endianness", "The device: a programmer's manual",
     "an invalid value that is valid with swapped bytes"},
    {unknown_object, "unknown_object", "5. Commands", "a number or key of an object that never existed"},
    {destroyed_object, "destroyed_object", "5. Commands", "a number or key of an object that was destroyed"},
    {in_use, "in_use", "Syndromes", "an object was destroyed, or ICM unmapped, while another object still uses it"},
    {wrong_page, "wrong_page", "2. Doorbells: UAR pages",
     "a doorbell on a UAR page that does not belong to the object"},
    {wrong_state, "wrong_state", "2. Doorbells: UAR pages",
     "a doorbell of a queue pair in RESET, or of a queue pair without a send queue"},
    {past_ring, "past_ring", "2. Doorbells: UAR pages", "a producer that announces more entries than the ring has"},
    {stale_wqe, "stale_wqe", "2. Doorbells: UAR pages",
     "a doorbell before its WQE is visible: the ring still has the old contents"},
    {unsound_wqe, "unsound_wqe", "Send queue",
     "a WQE with a wrong index or queue pair, without a length, or with an unknown opcode"},
    {reserved_bytes, "reserved_bytes", "Send queue",
     "reserved bytes of a WQE, an entry or a mailbox that are not 0: often left from an earlier use"},
    {owner_bits, "owner_bits", "Completion queue",
     "entries of a new ring whose owner bits say that the device has written them"},
    {body_before_owner, "body_before_owner", "Completion queue",
     "a CQE that the driver consumed, or read, before the owner bit was valid"},
    {consumer_past_producer, "consumer_past_producer", "Doorbell records",
     "a consumer index beyond the entries that the device has written"},
    {arm_past_producer, "arm_past_producer", "2. Doorbells: UAR pages",
     "a CQ armed with a consumer index beyond the entries that the device has written: the event is lost"},
    {old_ring_position, "old_ring_position", "5. Commands",
     "a consumer index from before the resize: the index continues in the new ring"},
    {record_not_updated, "record_not_updated", "Completion queue",
     "a CQ overrun: the driver consumed entries without an update of the record, or the CQ is too small"},
    {srq_next_posted, "srq_next_posted", "Shared receive queue",
     "an entry whose `next` names an entry that is already posted"},
    {entry_not_owned, "entry_not_owned", "5. Commands",
     "a command doorbell before the entry's owner byte is the device's"},
    {mailbox_rewritten, "mailbox_rewritten", "5. Commands",
     "a command's entry or input mailbox that changed between its doorbell and its completion"},
    {bus_master_off, "bus_master_off", "Configuration space",
     "work for the device while Command has bus mastering off"},
    {never_mapped, "never_mapped", "3. Queues and their entries", "a DMA access to memory that was never mapped"},
    {unmapped, "unmapped", "3. Queues and their entries", "a DMA access to memory that was unmapped"},
    {interrupt_lost, "interrupt_lost", "Interrupts",
     "an interrupt raised while MSI-X is disabled: the interrupt is lost"},
    {interrupt_masked, "interrupt_masked", "Interrupts",
     "an interrupt raised while its vector is masked, and the vector is never unmasked"},
};
static_assert(std::size(kKinds) == kFindingKinds);

}  // namespace

std::span<const KindTerm> finding_kinds() { return kKinds; }

const KindTerm& term_of(FindingKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

std::string Finding::line() const {
  return fmt::format("{}: {}: {} (docs/device.md, {})", in_words(at), name(), text, section());
}

std::string in_words(Duration time) {
  const auto ps = static_cast<double>(time.ps);
  if (ps < 1e6) return fmt::format("{:.6g} ns", ps / 1e3);
  if (ps < 1e9) return fmt::format("{:.9g} us", ps / 1e6);
  return fmt::format("{:.12g} ms", ps / 1e9);
}

}  // namespace rnicsim::driver_check
