// SPDX-License-Identifier: Apache-2.0
// Entry of a test that links SystemC: the library's main() calls sc_main().
#include <systemc>

#include "tests/support/run_tests.h"

int sc_main(int argc, char* argv[]) { return rnicsim::run_tests(argc, argv); }
