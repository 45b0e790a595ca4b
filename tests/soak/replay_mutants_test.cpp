// SPDX-License-Identifier: Apache-2.0
// Replays of altered recordings of software must end, report an error or a difference, and do no harm.
// RNICSIM_SOAK_MUTANTS (default 60), RNICSIM_WALK_SEED of the first mutant (default 1).
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "sim/trace_file/trace_reader.h"
#include "sim/trace_file/trace_writer.h"
#include "tests/soak/dice.h"

namespace rnicsim::testing {
namespace {

namespace fs = std::filesystem;
using sim::EventKind;
using sim::TraceEvent;

struct Recorded {
  sim::TraceHeader header;
  std::vector<TraceEvent> events;
  Duration end;
};

Recorded read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  sim::TraceReader reader(file, path.string());
  Recorded recorded{reader.header(), {}, {}};
  while (const auto event = reader.next()) recorded.events.push_back(*event);
  recorded.end = reader.end();
  return recorded;
}

void write(const Recorded& recorded, const fs::path& path) {
  std::ofstream file(path, std::ios::binary);
  sim::TraceWriter writer(file, recorded.header);
  for (const auto& event : recorded.events) writer.write(event);
  writer.finish(recorded.end);
}

void alter(TraceEvent& event, Dice& dice) {
  const std::size_t fields = sim::info(event.kind).fields.size();
  auto& field = event.fields[dice.below(fields)];
  switch (dice.below(4)) {
    case 0: field ^= std::uint64_t(1) << dice.below(64); break;
    case 1: field = dice.bits(); break;
    case 2: field = dice.below(3) - std::uint64_t(1); break;
    default: event.host ^= 1;
  }
}

void mutate(Recorded& recorded, Dice& dice) {
  std::vector<std::size_t> software;
  for (std::size_t i = 0; i < recorded.events.size(); ++i)
    if (sim::is_of_software(recorded.events[i].kind)) software.push_back(i);
  const auto place = std::ptrdiff_t(dice.one_of(software));
  const auto event = recorded.events.begin() + place;
  switch (dice.below(4)) {
    case 0: recorded.events.erase(event); break;
    case 1: recorded.events.insert(event, TraceEvent(*event)); break;
    default: alter(*event, dice);
  }
}

class ReplayMutants : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/rnicsim-test-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Returns the exit status, or 1000 plus the signal's number.
  int call(const std::string& command) const {
    const int status = std::system((command + " > " + (folder_ / "out").string() + " 2>&1").c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }

  fs::path folder_;
};

TEST_F(ReplayMutants, EndByThemselves) {
  const fs::path trace = folder_ / "a.trace", altered = folder_ / "b.trace";
  ASSERT_EQ(call(fmt::format("{}/tests/golden_behaviour rnr_retry {} --software", RNICSIM_BINARY_DIR, trace.string())),
            0);
  const Recorded recorded = read(trace);
  const auto first = number_of_environment("RNICSIM_WALK_SEED", 1);
  for (std::uint64_t seed = first; seed < first + number_of_environment("RNICSIM_SOAK_MUTANTS", 60); ++seed) {
    Dice dice(seed);
    Recorded mutant = recorded;
    for (std::uint32_t i = dice.between(1, 3); i > 0; --i) mutate(mutant, dice);
    write(mutant, altered);
    for (const char* pace : {"", "--as-possible"}) {
      // Status 124: timeout ended the command.
      const int status =
          call(fmt::format("timeout 60 {}/bin/rnicsim replay {} {}", RNICSIM_BINARY_DIR, pace, altered.string()));
      EXPECT_LE(status, 2) << "seed " << seed << " " << pace;
    }
  }
}

}  // namespace
}  // namespace rnicsim::testing
