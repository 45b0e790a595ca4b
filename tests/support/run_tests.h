// SPDX-License-Identifier: Apache-2.0
// Common main function of test programs.
#pragma once

namespace rnicsim {

// Takes GoogleTest's arguments and returns GoogleTest's status. In a filter, `@agenda_test.cpp` stands for all tests of
// that source; ctest uses this to run one of several tests that share a program.
int run_tests(int argc, char** argv);

}  // namespace rnicsim
