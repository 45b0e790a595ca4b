// SPDX-License-Identifier: Apache-2.0
// The kernel's PCI code for the device: finds the device in configuration space, enables it, and routes its interrupts.
// Every function waits: call from an SC_THREAD. Throws std::runtime_error with the device's fault.
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
