// What Verilator makes and <systemc> do not compile in one translation unit: this and checked_top.cpp are the only ones
// that see it.
#include <Vqp_engine.h>

#include "rtl/cosim/verilated_top.h"

namespace rnicsim::rtl {

std::unique_ptr<VerilatedTop> make_top() { return std::make_unique<VerilatedTopOf<Vqp_engine>>(); }

}  // namespace rnicsim::rtl
