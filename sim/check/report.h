// SPDX-License-Identifier: Apache-2.0
// Reports of a check: text, JUnit XML, JSON.
#pragma once

#include <string>
#include <vector>

#include "sim/check/verdict.h"
#include "sim/results/json.h"

namespace rnicsim::sim::check {

struct Tally {
  std::size_t passed = 0, failed = 0, broken = 0;
  std::size_t all() const { return passed + failed + broken; }
};
const char* name_of(Outcome outcome);
Tally tally(const std::vector<Verdict>& verdicts);

// One line with the outcome, then the findings or notes.
std::string verdict_text(const Verdict& verdict);
// Summary in one line: "22 cases: 21 passed, 1 failed, 0 broken".
std::string tally_text(const Tally& tally);
// JUnit XML as Jenkins and GitLab read it. `suite`: name of the folder.
std::string junit_xml(const std::string& suite, const std::vector<Verdict>& verdicts);
// Contains nothing that varies between equal runs, such as wall time.
Json check_json(const std::string& folder, const std::vector<Verdict>& verdicts);

}  // namespace rnicsim::sim::check
