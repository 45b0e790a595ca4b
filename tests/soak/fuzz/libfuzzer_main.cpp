// SPDX-License-Identifier: Apache-2.0
// libFuzzer has the main function; SystemC's library still needs sc_main.
#include <spdlog/spdlog.h>

#include <cstdint>
#include <systemc>

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  spdlog::set_level(spdlog::level::off);
  return 0;
}

int sc_main(int, char**) { return 0; }
