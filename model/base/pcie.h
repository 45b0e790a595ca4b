// What PCIe adds to a TLM-2.0 generic payload: the PASID prefix of every request to host memory, and the translation
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

// What a request does at the host, without one: of the DMA unit at the endpoint, and of that at a root complex of ours.
// None of these takes time. False: aborted.
class HostMemory {
 public:
  virtual bool read(Pasid pasid, std::uint64_t address, std::span<std::byte> bytes) = 0;
  virtual bool write(Pasid pasid, std::uint64_t address, std::span<const std::byte> bytes) = 0;
  // False: a read that was aborted gets no completion at all, because its process has ended. The requester waits for
  // its completion timeout.
  virtual bool answers(Pasid) const { return true; }
  // Reads memory for an observer of the model, at the present time. The device makes no access, and no counter changes.
  // False: the observer cannot see that memory.
  virtual bool look(Pasid, std::uint64_t, std::span<std::byte>) { return false; }

 protected:
  ~HostMemory() = default;
};

// The same the other way: what the CPU's requests do at the device. False: refused.
class DeviceBar {
 public:
  virtual bool read_bar(std::uint64_t offset, std::span<std::byte> bytes) = 0;
  virtual bool write_bar(std::uint64_t offset, std::span<const std::byte> bytes) = 0;

 protected:
  ~DeviceBar() = default;
};

// With TLM_IGNORE_COMMAND: which physical address does that of the request, in that PASID, mean? The root complex fills
// it in, or refuses; nothing is moved. Addresses mean the same memory exactly when their physical ones are equal.
struct TranslationExtension : tlm::tlm_extension<TranslationExtension> {
  std::uint64_t physical = 0;
  tlm::tlm_extension_base* clone() const override { return new TranslationExtension(*this); }
  void copy_from(const tlm::tlm_extension_base& other) override {
    physical = static_cast<const TranslationExtension&>(other).physical;
  }
};

// What passes between a device that has a cache of translations and its host's IOMMU (PCIe Base Spec, chapter 10: ATS
// and PRI). Pages of 4 KiB, of a process's own addresses.
//
// The answer to a translation request: where the page lies on the bus.
struct PageTranslation {
  bool present = false;
  bool writable = false;
  std::uint64_t address = 0;
  Duration walk{};                       // the IOMMU's time for it, found or not
};
// The page is not there: the host is asked to bring it in, and answers with a response of the same index.
struct PageRequest {
  Pasid pasid = 0;
  std::uint64_t address = 0;
  bool write = false;
  std::uint32_t index = 0;
};
struct PageResponse {
  std::uint32_t index = 0;
  bool ok = false;                       // false: there is no such page for the process, or not for that
};
// These pages are another's from now on: the device forgets their translations, and answers with the tag when it uses
// them no more.
struct PageInvalidation {
  Pasid pasid = 0;
  std::uint64_t address = 0;
  std::uint64_t pages = 0;
  std::uint32_t tag = 0;
};

// With TLM_IGNORE_COMMAND: one of these. The first three go to the host, the others to the device.
struct PageMessageExtension : tlm::tlm_extension<PageMessageExtension> {
  enum class Kind : std::uint8_t { translate, request, invalidated, response, invalidate };
  Kind kind = Kind::translate;
  PageTranslation translation;           // translate: filled in by the host
  std::uint64_t address = 0;             // of that
  PageRequest request;
  PageResponse response;
  PageInvalidation invalidation;
  std::uint32_t tag = 0;                 // invalidated
  tlm::tlm_extension_base* clone() const override { return new PageMessageExtension(*this); }
  void copy_from(const tlm::tlm_extension_base& other) override {
    *this = static_cast<const PageMessageExtension&>(other);
  }
};

}  // namespace rnicsim
