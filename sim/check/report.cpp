#include "sim/check/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <numeric>
#include <string_view>

#include "sim/results_json.h"

namespace rnicsim::sim::check {
namespace {

const char* name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::passed:
      return "passed";
    case Outcome::failed:
      return "failed";
    default:
      return "broken";
  }
}

// What a program printed need be neither UTF-8 nor characters that XML has.
std::string xml_text(std::string_view text) {
  const auto valid = Json::parse(Json(text).dump()).get<std::string>();
  std::string result;
  for (const char c : valid) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\n':
      case '\t':
        result += c;
        break;
      default:
        result += static_cast<unsigned char>(c) < ' ' ? '?' : c;
    }
  }
  return result;
}

std::string all_findings(const Verdict& verdict) { return fmt::format("{}", fmt::join(verdict.findings, "\n")); }

}  // namespace

Tally tally(const std::vector<Verdict>& verdicts) {
  Tally result;
  for (const auto& verdict : verdicts)
    ++(verdict.outcome == Outcome::passed   ? result.passed
       : verdict.outcome == Outcome::failed ? result.failed
                                            : result.broken);
  return result;
}

std::string verdict_text(const Verdict& verdict) {
  constexpr std::array kWords{"passed", "FAILED", "BROKEN"};
  std::string text = fmt::format("{}  {}", kWords.at(std::size_t(verdict.outcome)), verdict.name);
  const char* before = ": ";
  for (const auto& finding : verdict.findings) {
    text += before + finding;
    while (text.ends_with('\n')) text.pop_back();
    before = "\n  ";
  }
  return text + '\n';
}

std::string tally_text(const Tally& tally) {
  return fmt::format("{} case{}: {} passed, {} failed, {} broken", tally.all(), tally.all() == 1 ? "" : "s",
                     tally.passed, tally.failed, tally.broken);
}

std::string junit_xml(const std::string& suite, const std::vector<Verdict>& verdicts) {
  const auto counts = tally(verdicts);
  const double seconds = std::accumulate(verdicts.begin(), verdicts.end(), 0.0,
                                         [](double sum, const Verdict& verdict) { return sum + verdict.seconds; });
  const auto totals = fmt::format(R"(name="{}" tests="{}" failures="{}" errors="{}" skipped="0" time="{:.3f}")",
                                  xml_text(suite), counts.all(), counts.failed, counts.broken, seconds);
  std::string xml =
      fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {}>\n  <testsuite {}>\n", totals, totals);
  for (const auto& verdict : verdicts) {
    xml += fmt::format(R"(    <testcase name="{}" classname="{}" time="{:.3f}")", xml_text(verdict.name),
                       xml_text(suite), verdict.seconds);
    if (verdict.outcome == Outcome::passed) {
      xml += "/>\n";
      continue;
    }
    const char* element = verdict.outcome == Outcome::failed ? "failure" : "error";
    xml +=
        fmt::format(">\n      <{} message=\"{}\" type=\"{}\">{}</{}>\n    </testcase>\n", element,
                    xml_text(verdict.headline()), name_of(verdict.outcome), xml_text(all_findings(verdict)), element);
  }
  return xml + "  </testsuite>\n</testsuites>\n";
}

Json check_json(const std::string& folder, const std::vector<Verdict>& verdicts) {
  auto json = results_of_command("check");
  const auto counts = tally(verdicts);
  json["folder"] = folder;
  json["passed"] = counts.passed;
  json["failed"] = counts.failed;
  json["broken"] = counts.broken;
  json["cases"] = Json::array();
  for (const auto& verdict : verdicts)
    json["cases"].push_back(
        {{"case", verdict.name}, {"outcome", name_of(verdict.outcome)}, {"findings", verdict.findings}});
  return json;
}

}  // namespace rnicsim::sim::check
