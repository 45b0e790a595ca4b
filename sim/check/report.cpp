// SPDX-License-Identifier: Apache-2.0
#include "sim/check/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <numeric>
#include <string_view>

#include "sim/results/results_json.h"

namespace rnicsim::sim::check {
namespace {

// Output of programs need not be UTF-8, nor consist of characters that XML allows.
std::string xml_text(std::string_view text) {
  auto valid = Json::parse(Json(text).dump()).get<std::string>();
  for (const char* none : {"\uFFFE", "\uFFFF"})
    for (auto at = valid.find(none); at != valid.npos; at = valid.find(none)) valid.replace(at, 3, "?");
  std::string result;
  for (const char c : valid) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      case '\n':
      case '\t': result += c; break;
      default: result += static_cast<unsigned char>(c) < ' ' ? '?' : c;
    }
  }
  return result;
}

std::string all_findings(const Verdict& verdict) { return fmt::format("{}", fmt::join(verdict.findings, "\n")); }

Json lines_of(const Divergence::Side& side) {
  return side.events.empty() ? Json::array({side.none}) : Json(side.events);
}

Json difference_json(const Difference& difference) {
  Json json = Json::object();
  json["a"] = difference.a;
  json["b"] = difference.b;
  if (difference.first) {
    const auto& first = *difference.first;
    json["what"] = first.what;
    json["before"] = first.before;
    json["events_a"] = lines_of(first.a);
    json["events_b"] = lines_of(first.b);
  }
  const auto& cause = difference.cause;
  if (!cause.block.empty()) {
    json["block"] = cause.block;
    json["decided_by"] = cause.decided_by;
  }
  if (!cause.step.empty()) json["step"] = cause.step;
  json["headers"] = Json::array();
  json["cause"] = verdict_of(cause);
  for (const auto* part : {&cause.likely, &cause.elsewhere, &cause.one_sided})
    for (const auto& each : *part)
      json["headers"].push_back(
          {{"name", each.name}, {"a", each.a}, {"b", each.b}, {"is_parameter", each.is_parameter}});
  return json;
}

}  // namespace

const char* name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::passed: return "passed";
    case Outcome::failed: return "failed";
    default: return "broken";
  }
}

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
  text += '\n';
  for (const auto& note : verdict.notes) text += fmt::format("  {}\n", note);
  return text;
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
      xml += verdict.notes.empty() ? "/>\n"
                                   : fmt::format(">\n      <system-out>{}</system-out>\n    </testcase>\n",
                                                 xml_text(fmt::format("{}", fmt::join(verdict.notes, "\n"))));
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
  for (const auto& verdict : verdicts) {
    Json of{{"case", verdict.name}, {"outcome", name_of(verdict.outcome)}, {"findings", verdict.findings}};
    if (!verdict.notes.empty()) of["notes"] = verdict.notes;
    if (verdict.difference) of["difference"] = difference_json(*verdict.difference);
    json["cases"].push_back(std::move(of));
  }
  return json;
}

}  // namespace rnicsim::sim::check
