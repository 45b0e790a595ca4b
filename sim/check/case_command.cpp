// SPDX-License-Identifier: Apache-2.0
#include "sim/check/case_command.h"

#include <fmt/format.h>

#include <string_view>

namespace rnicsim::sim::check {
namespace {

void add(std::vector<std::string>& words, const char* option, const std::vector<std::string>& values) {
  for (const auto& value : values) words.insert(words.end(), {option, value});
}

void replace_all(std::string& text, std::string_view what, const std::string& by) {
  for (auto at = text.find(what); at != text.npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

}  // namespace

std::vector<std::string> command_of(const Case& of, const std::optional<std::uint64_t>& seed, const RunFiles& files,
                                    bool records) {
  if (const auto* simulator = std::get_if<Simulator>(&of.run)) {
    auto words = simulator->words;
    for (auto& word : words) {
      replace_all(word, kTraceWord, files.trace.string());
      replace_all(word, kResultsWord, files.results.string());
      if (seed) replace_all(word, kSeedWord, std::to_string(*seed));
    }
    return words;
  }
  // This program, even if its file is replaced during the check.
  std::vector<std::string> words{"/proc/self/exe"};
  const auto* workload = std::get_if<Workload>(&of.run);
  if (workload)
    words.insert(words.end(), {"bench", workload->name});
  else
    words.emplace_back("run");
  if (of.nic) words.insert(words.end(), {"--nic", *of.nic});
  if (of.host) words.insert(words.end(), {"--host-profile", *of.host});
  if (of.topology) words.insert(words.end(), {"--topology", *of.topology});
  if (of.engine) words.insert(words.end(), {"--engine", *of.engine});
  if (seed) words.insert(words.end(), {"--seed", std::to_string(*seed)});
  if (of.simulated_limit) words.insert(words.end(), {"--limit", fmt::format("{}ps", of.simulated_limit->ps)});
  add(words, "--set", of.sets);
  add(words, "--fault", of.faults);
  if (records || of.needs_trace()) words.insert(words.end(), {"--record", files.trace.string()});
  if (records || of.needs_results()) words.insert(words.end(), {"--json", files.results.string()});
  if (workload) return words;
  const auto& programs = std::get<Programs>(of.run);
  for (const auto& [host, command] : programs.on) words.insert(words.end(), {"--on", host, command});
  if (!programs.words.empty()) words.emplace_back("--");
  words.insert(words.end(), programs.words.begin(), programs.words.end());
  return words;
}

}  // namespace rnicsim::sim::check
