// SPDX-License-Identifier: Apache-2.0
// Verilator's classes and <systemc> cannot be compiled in one translation unit, so only this file and checked_top.cpp
// include Verilator's classes.
#include <Vqp_engine.h>

#include "rtl/cosim/verilated_top.h"

namespace rnicsim::rtl {

std::unique_ptr<VerilatedTop> make_top() { return std::make_unique<VerilatedTopOf<Vqp_engine>>(); }

}  // namespace rnicsim::rtl
