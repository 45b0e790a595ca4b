#include <Vqp_engine_waves.h>
#include <verilated_fst_c.h>

#include "rtl/cosim/verilated_top.h"

namespace rnicsim::rtl {
namespace {

constexpr int kAllLevels = 99;

class TopWithWaves : public VerilatedTopOf<Vqp_engine_waves> {
 public:
  explicit TopWithWaves(const std::string& file) {
    context.traceEverOn(true);
    module().trace(&waves_, kAllLevels);
    waves_.open(file.c_str());
  }
  ~TopWithWaves() override { waves_.close(); }
  void dump(std::uint64_t time) override { waves_.dump(time); }

 private:
  VerilatedFstC waves_;
};

}  // namespace

std::unique_ptr<VerilatedTop> make_top_with_waves(const std::string& file) {
  return std::make_unique<TopWithWaves>(file);
}

}  // namespace rnicsim::rtl
