// SPDX-License-Identifier: Apache-2.0
// A separate shared library, librnicsim_rtl_checked.so, because it takes long to build and is rarely needed.
#include <Vqp_engine_checked.h>
#include <verilated_fst_c.h>

#include "rtl/cosim/verilated_top.h"

namespace rnicsim::rtl {
namespace {

constexpr int kAllLevels = 99;

class CheckedTop : public VerilatedTopOf<Vqp_engine_checked> {
 public:
  explicit CheckedTop(const std::string& waves) {
    if (waves.empty()) return;
    context().traceEverOn(true);
    module().trace(&waves_, kAllLevels);
    waves_.open(waves.c_str());
  }
  ~CheckedTop() override { waves_.close(); }
  void dump(std::uint64_t time) override {
    if (waves_.isOpen()) waves_.dump(time);
  }

 private:
  VerilatedFstC waves_;
};

}  // namespace
}  // namespace rnicsim::rtl

extern "C" rnicsim::rtl::VerilatedTop* rnicsim_make_checked_top(const std::string& waves) {
  return new rnicsim::rtl::CheckedTop(waves);
}
