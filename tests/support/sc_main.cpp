// The entry of a test that links SystemC: the library's main calls sc_main.
#include <gtest/gtest.h>

#include <systemc>

int sc_main(int argc, char* argv[]) {
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
