// SPDX-License-Identifier: Apache-2.0
// main() of a test without SystemC.
#include "tests/support/run_tests.h"

int main(int argc, char* argv[]) { return rnicsim::run_tests(argc, argv); }
