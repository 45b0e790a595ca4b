// Rewrites golden traces, and says what changed: `./rnicsim bless [NAME...]`. Nothing else does.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <systemc>

#include "sim/recording/trace_diff.h"
#include "tests/golden/behaviours.h"

namespace {

using namespace rnicsim;
using namespace rnicsim::testing;

// What is new about `fresh`, against the file at `path`.
std::string change(const std::filesystem::path& path, const std::string& fresh) {
  std::ifstream golden(path, std::ios::binary);
  std::istringstream now(fresh);
  if (!golden) return "new\n";
  try {
    sim::TraceReader a(golden, path.filename().string()), b(now, "the new trace");
    const auto difference = sim::compare_traces(a, b);
    return difference.equal ? fmt::format("the header alone (A old, B new):\n{}", difference.header)
                            : fmt::format("(A old, B new)\n{}{}", difference.header, difference.events);
  } catch (const sim::TraceError& error) {
    return fmt::format("the old one cannot be read: {}\n", error.what());
  }
}

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool bless(const Behaviour& behaviour) {
  const auto path = golden_trace(behaviour);
  const auto fresh = BehaviourRun::record_apart(behaviour).value();
  if (::testing::UnitTest::GetInstance()->Failed()) return false;
  if (content(path) == fresh) {
    fmt::print("{}: unchanged\n", behaviour.name);
    return true;
  }
  fmt::print("{}: {}", behaviour.name, change(path, fresh));
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << fresh;
  if (file.flush()) return true;
  fmt::print(stderr, "rnicsim: {}: cannot be written\n", path.string());
  return false;
}

// Traces of behaviours that are no more.
void remove_others() {
  std::set<std::string> listed;
  for (const auto& behaviour : behaviours()) listed.insert(behaviour.name + ".trace");
  for (const auto& file : std::filesystem::directory_iterator(kGoldenFolder)) {
    if (listed.contains(file.path().filename().string())) continue;
    std::filesystem::remove(file.path());
    fmt::print("{}: removed\n", file.path().filename().string());
  }
}

}  // namespace

// In the place of SystemC's own, whose banner is not part of our output.
int main(int argc, char** argv) {
  setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);
  return sc_core::sc_elab_and_sim(argc, argv);
}

int sc_main(int argc, char* argv[]) {
  const std::set<std::string> wanted(argv + 1, argv + argc);
  ::testing::InitGoogleTest();
  auto unknown = wanted;
  for (const auto& behaviour : behaviours()) unknown.erase(behaviour.name);
  for (const auto& name : unknown) fmt::print(stderr, "rnicsim: no golden trace is called '{}'\n", name);
  if (!unknown.empty()) return 2;
  std::filesystem::create_directories(kGoldenFolder);
  if (wanted.empty()) remove_others();
  for (const auto& behaviour : behaviours())
    if ((wanted.empty() || wanted.contains(behaviour.name)) && !bless(behaviour)) return 1;
  return 0;
}
