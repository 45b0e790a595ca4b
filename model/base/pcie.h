// What PCIe adds to a TLM-2.0 generic payload: the PASID prefix of every request to host memory.
#pragma once

#include <cstdint>
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

}  // namespace rnicsim
