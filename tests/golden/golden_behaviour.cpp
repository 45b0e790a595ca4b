// SPDX-License-Identifier: Apache-2.0
// Simulator of the cases in traces/golden: runs one behaviour and records it.
//
//   golden_behaviour NAME TRACE [--software]     with the software's side, for `rnicsim replay`
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include <systemc>

#include "tests/golden/behaviours.h"

// Replaces SystemC's main, which prints a banner.
int main(int argc, char** argv) {
  setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);
  return sc_core::sc_elab_and_sim(argc, argv);
}

int sc_main(int argc, char* argv[]) {
  using namespace rnicsim::testing;
  const bool software = argc == 4 && argv[3] == std::string_view("--software");
  if (argc != 3 && !software) {
    fmt::print(stderr, "usage: golden_behaviour NAME TRACE [--software]\n");
    return 2;
  }
  const auto all = behaviours();
  const auto found = std::ranges::find(all, std::string_view(argv[1]), &Behaviour::name);
  if (found == all.end()) {
    fmt::print(stderr, "golden_behaviour: no behaviour is called '{}'\n", argv[1]);
    return 2;
  }
  ::testing::InitGoogleTest();
  if (software) {
    BehaviourRun::record_software(*found, argv[2]);
    return ::testing::UnitTest::GetInstance()->Failed() ? 1 : 0;
  }
  const auto trace = BehaviourRun::record_here(*found);
  if (!trace) {
    fmt::print(stderr, "golden_behaviour: the device lacks {}\n", found->needs.parameter);
    return 2;
  }
  std::ofstream file(argv[2], std::ios::binary | std::ios::trunc);
  file << *trace;
  if (!file.flush()) {
    fmt::print(stderr, "golden_behaviour: {}: cannot be written\n", argv[2]);
    return 1;
  }
  return ::testing::UnitTest::GetInstance()->Failed() ? 1 : 0;
}
