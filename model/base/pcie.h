// SPDX-License-Identifier: Apache-2.0
// PCIe extensions of a TLM-2.0 generic payload: the PASID prefix of every request to host memory, and the translation
// request (ATS).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <tlm>

#include "model/base/units.h"

namespace rnicsim {

using Pasid = std::uint32_t;
inline constexpr Pasid kKernelPasid = 0;

struct PasidExtension : tlm::tlm_extension<PasidExtension> {
  Pasid pasid = kKernelPasid;
  tlm::tlm_extension_base* clone() const override { return new PasidExtension(*this); }
  void copy_from(const tlm::tlm_extension_base& other) override {
    pasid = static_cast<const PasidExtension&>(other).pasid;
  }
};

// The effect of a request at the host, called directly instead of as a transaction. The DMA unit uses it at the
// endpoint, or at the root complex of this project. No function takes simulated time. False: completer abort.
class HostMemory {
 public:
  virtual bool read(Pasid pasid, std::uint64_t address, std::span<std::byte> bytes) = 0;
  virtual bool write(Pasid pasid, std::uint64_t address, std::span<const std::byte> bytes) = 0;
  // False: a read that was aborted gets no completion at all, because its process has ended. The requester waits for
  // its completion timeout.
  virtual bool answers(Pasid) const { return true; }
  // Reads memory for an observer of the model, at the present time. The device makes no access, and no counter changes.
  // False: the observer cannot see that memory.
  virtual bool peek(Pasid, std::uint64_t, std::span<std::byte>) { return false; }

 protected:
  ~HostMemory() = default;
};

// The effect of the CPU's requests at the device, called directly. False: refused.
class DeviceBar {
 public:
  virtual bool read_bar(std::uint64_t offset, std::span<std::byte> bytes) = 0;
  virtual bool write_bar(std::uint64_t offset, std::span<const std::byte> bytes) = 0;

 protected:
  ~DeviceBar() = default;
};

// Asks, with TLM_IGNORE_COMMAND, for the physical address of the request's address in its PASID. The root complex fills
// in `physical` or refuses; no data moves. Two addresses mean the same memory exactly when their physical addresses are
// equal.
struct TranslationExtension : tlm::tlm_extension<TranslationExtension> {
  std::uint64_t physical = 0;
  tlm::tlm_extension_base* clone() const override { return new TranslationExtension(*this); }
  void copy_from(const tlm::tlm_extension_base& other) override {
    physical = static_cast<const TranslationExtension&>(other).physical;
  }
};

// Messages between a device with an address translation cache and the host's IOMMU (PCIe Base Specification, chapter
// 10: ATS and PRI). Pages are 4 KiB in a process's address space.
//
// The answer to a translation request: the page's address on the bus.
struct PageTranslation {
  bool present = false;
  bool writable = false;
  std::uint64_t address = 0;
  Duration walk{};  // time of the IOMMU's page walk, also if the page is not present
};
// Asks the host to make a page present; the host answers with a response of the same index.
struct PageRequest {
  Pasid pasid = 0;
  std::uint64_t address = 0;
  bool write = false;
  std::uint32_t index = 0;
};
struct PageResponse {
  std::uint32_t index = 0;
  bool ok = false;  // false: the process has no such page, or no right to write it
};
// The host withdraws these pages: the device drops their translations, and answers with the tag when no access uses
// them any more.
struct PageInvalidation {
  Pasid pasid = 0;
  std::uint64_t address = 0;
  std::uint64_t pages = 0;
  std::uint32_t tag = 0;
};

// Carries one of these messages, with TLM_IGNORE_COMMAND. The first three kinds go to the host, the other two to the
// device.
struct PageMessageExtension : tlm::tlm_extension<PageMessageExtension> {
  enum class Kind : std::uint8_t { translate, request, invalidated, response, invalidate };
  Kind kind = Kind::translate;
  PageTranslation translation;  // translate: filled in by the host
  std::uint64_t address = 0;    // address of the translate request
  PageRequest request;
  PageResponse response;
  PageInvalidation invalidation;
  std::uint32_t tag = 0;  // invalidated
  tlm::tlm_extension_base* clone() const override { return new PageMessageExtension(*this); }
  void copy_from(const tlm::tlm_extension_base& other) override {
    *this = static_cast<const PageMessageExtension&>(other);
  }
};

}  // namespace rnicsim
