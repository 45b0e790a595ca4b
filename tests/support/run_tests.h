// What main does in a program of tests.
#pragma once

namespace rnicsim {

// GoogleTest's arguments; its status. In a filter `@agenda_test.cpp` stands for all tests of that source: by that ctest
// tells apart the tests that share a program.
int run_tests(int argc, char** argv);

}  // namespace rnicsim
