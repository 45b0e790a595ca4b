// SPDX-License-Identifier: Apache-2.0
// A Verilated module with a clock, and an inserter that makes streams idle and stall.
#pragma once

#include <gtest/gtest.h>
#include <verilated.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>

#include "rtl/cosim/coverage.h"

namespace rnicsim::rtl::test {

// The module is in reset during the first tick. A failed assertion of the module fails the test.
template <class Module>
class Clocked {
 public:
  Clocked() : context_(std::make_unique<VerilatedContext>()), module_(std::make_unique<Module>(context_.get())) {
    context_->fatalOnError(false);
    module_->clk_i = 0;
    module_->rst_ni = 0;
    module_->eval();
    tick();
    module_->rst_ni = 1;
    module_->eval();
  }
  ~Clocked() {
    EXPECT_EQ(context_->errorCount(), 0) << "an assertion of the module failed";
    module_->final();
    write_coverage(*context_);
  }
  Clocked(const Clocked&) = delete;
  Clocked& operator=(const Clocked&) = delete;

  Module* operator->() { return module_.get(); }
  bool failed() const { return context_->errorCount() != 0; }
  // Updates the outputs after inputs were changed within a cycle.
  void settle() { module_->eval(); }
  void tick() {
    module_->eval();
    module_->clk_i = 1;
    module_->eval();
    context_->timeInc(1);
    module_->clk_i = 0;
    module_->eval();
    context_->timeInc(1);
  }

 private:
  const std::unique_ptr<VerilatedContext> context_;
  const std::unique_ptr<Module> module_;
};

// Decides for one side of a stream in which cycles the side offers or accepts data.
class Inserter {
 public:
  enum class Mode { always, often, seldom, bursts };
  Inserter(Mode mode, unsigned seed) : mode_(mode), random_(seed) {}

  bool open() {
    switch (mode_) {
      case Mode::always: return true;
      case Mode::often: return random_() % 4 != 0;
      case Mode::seldom: return random_() % 4 == 0;
      case Mode::bursts: break;
    }
    if (left_ == 0) {
      left_ = 1 + random_() % 40;
      burst_ = !burst_;
    }
    --left_;
    return burst_;
  }

 private:
  const Mode mode_;
  std::minstd_rand random_;
  std::uint32_t left_ = 0;
  bool burst_ = false;
};

inline constexpr Inserter::Mode kModes[] = {Inserter::Mode::always, Inserter::Mode::often, Inserter::Mode::seldom,
                                            Inserter::Mode::bursts};
inline std::string name_of(Inserter::Mode mode) {
  constexpr const char* kNames[] = {"always", "often", "seldom", "bursts"};
  return kNames[static_cast<int>(mode)];
}

}  // namespace rnicsim::rtl::test
