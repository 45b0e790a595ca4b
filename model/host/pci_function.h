// The device as the kernel's PCI code sees it: found in configuration space, enabled, its interrupts routed. Every
// function waits: call from an SC_THREAD. std::runtime_error says what is wrong with the device.
#pragma once

#include <cstdint>

#include "model/host/root_complex.h"

namespace rnicsim::host {

class PciFunction {
 public:
  explicit PciFunction(RootComplex& root_complex) : root_complex_(root_complex) {}

  void identify();                     // vendor, device, BAR size, register page's magic and version
  void enable(std::uint32_t vectors);  // memory space, bus mastering, `vectors` MSI-X vectors

 private:
  void size_bar();
  void route_vector(std::uint32_t vector);

  RootComplex& root_complex_;
};

}  // namespace rnicsim::host
