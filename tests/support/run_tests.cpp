// SPDX-License-Identifier: Apache-2.0
#include "tests/support/run_tests.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace rnicsim {
namespace {

// Filter with the names of the source's tests. Returned unchanged if the source has no tests; such a filter matches
// none.
std::string tests_of(const std::string& source) {
  const std::string file = "/" + source.substr(1);
  const auto& unit_test = *testing::UnitTest::GetInstance();
  std::string names;
  for (int i = 0; i < unit_test.total_test_suite_count(); ++i) {
    const auto& suite = *unit_test.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const auto& test = *suite.GetTestInfo(j);
      if (std::string(test.file()).ends_with(file))
        names += (names.empty() ? "" : ":") + (std::string(suite.name()) + "." + test.name());
    }
  }
  return names.empty() ? source : names;
}

std::string without_sources(const std::string& filter) {
  const std::size_t refused = filter.find('-');
  std::istringstream patterns(filter.substr(0, refused));
  std::string result;
  for (std::string pattern; std::getline(patterns, pattern, ':');)
    result += (result.empty() ? "" : ":") + (pattern.starts_with('@') ? tests_of(pattern) : pattern);
  if (refused != std::string::npos) result += filter.substr(refused);
  return result;
}

}  // namespace

int run_tests(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  GTEST_FLAG_SET(filter, without_sources(GTEST_FLAG_GET(filter)));
  return RUN_ALL_TESTS();
}

}  // namespace rnicsim
