// What a case's run is worth.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/check/case.h"
#include "sim/check/children.h"

namespace rnicsim::sim::check {

enum class Outcome { passed, failed, broken };

// Where a run of a case leaves what it made.
struct RunFiles {
  explicit RunFiles(const std::filesystem::path& folder)
      : trace(folder / "trace"), results(folder / "results.json"), out(folder / "out"), err(folder / "err") {}
  std::filesystem::path trace, results, out, err;
};

// What --update would put in an expectation's place.
struct Replacement {
  std::filesystem::path file;
  std::string content;
};

struct Verdict {
  std::string name;
  Outcome outcome = Outcome::passed;
  // Each a line, and lines that tell more.
  std::vector<std::string> findings;
  // That would make it pass, as far as files can.
  std::vector<Replacement> replacements;
  bool is_mended = false;  // by those
  double seconds = 0;

  // The findings' first line.
  std::string headline() const;
};

Verdict broken(const std::string& name, const std::string& why);

// `updating`: an expectation that is not there, or that cannot be read, is a new one.
Verdict judge(const Case& of, const Ended& ended, const RunFiles& files, bool updating);

}  // namespace rnicsim::sim::check
