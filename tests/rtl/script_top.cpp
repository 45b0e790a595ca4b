// The engine as the scripts of this folder Verilate it: one, whichever is asked for.
#include <Vqp_engine.h>

#include "rtl/cosim/verilated_top.h"

namespace rnicsim::rtl {

std::unique_ptr<VerilatedTop> make_top() { return std::make_unique<VerilatedTopOf<Vqp_engine>>(); }
std::unique_ptr<VerilatedTop> make_checked_top(const std::string&) { return make_top(); }

}  // namespace rnicsim::rtl
