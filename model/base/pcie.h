// What PCIe adds to a TLM-2.0 generic payload: the PASID prefix of every request to host memory, and the translation
// request (ATS).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <tlm>

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

}  // namespace rnicsim
