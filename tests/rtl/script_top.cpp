// SPDX-License-Identifier: Apache-2.0
// Top for scripts of this folder: Verilates the single engine that the script names.
#include <Vqp_engine.h>

#include "rtl/cosim/verilated_top.h"

namespace rnicsim::rtl {

std::unique_ptr<VerilatedTop> make_top() { return std::make_unique<VerilatedTopOf<Vqp_engine>>(); }
std::unique_ptr<VerilatedTop> make_checked_top(const std::string&) { return make_top(); }

}  // namespace rnicsim::rtl
