// What the cases came to, for people and for machines.
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

// A line, and what there is to tell.
std::string verdict_text(const Verdict& verdict);
// "22 cases: 21 passed, 1 failed, 0 broken"
std::string tally_text(const Tally& tally);
// As Jenkins and GitLab take it. `suite` is the folder.
std::string junit_xml(const std::string& suite, const std::vector<Verdict>& verdicts);
// The same at every run.
Json check_json(const std::string& folder, const std::vector<Verdict>& verdicts);

}  // namespace rnicsim::sim::check
