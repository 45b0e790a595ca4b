// SPDX-License-Identifier: Apache-2.0
// Loads the library of checked_top.cpp by the program's run path: lib/rnicsim beside the program's folder.
#include <dlfcn.h>
#include <fmt/format.h>

#include <stdexcept>

#include "rtl/cosim/verilated_top.h"

namespace rnicsim::rtl {
namespace {

using Make = VerilatedTop*(const std::string& waves);

// Never unloaded, because objects of the library may live until the process ends.
Make* loaded() {
  void* const library = ::dlopen("librnicsim_rtl_checked.so", RTLD_NOW | RTLD_LOCAL);
  void* const make = library != nullptr ? ::dlsym(library, "rnicsim_make_checked_top") : nullptr;
  if (make == nullptr)
    throw std::runtime_error(
        fmt::format("cannot load the RTL with assertions and waves ({}); in a build tree `ninja -C build/release "
                    "rtl_checked` builds it",
                    ::dlerror()));
  return reinterpret_cast<Make*>(make);
}

}  // namespace

std::unique_ptr<VerilatedTop> make_checked_top(const std::string& waves) {
  static Make* const make = loaded();
  return std::unique_ptr<VerilatedTop>(make(waves));
}

}  // namespace rnicsim::rtl
