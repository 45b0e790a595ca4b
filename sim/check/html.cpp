// SPDX-License-Identifier: Apache-2.0
#include "sim/check/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "sim/check/report.h"
#include "sim/report/page.h"

namespace rnicsim::sim::check {
namespace {

// Output of programs need not be UTF-8; the detour over JSON replaces invalid bytes.
std::string escaped(std::string_view text) {
  return report::html_text(Json::parse(Json(text).dump()).get<std::string>());
}

std::string cell(const Divergence::Side& side, std::size_t row) {
  if (row < side.events.size())
    return fmt::format("<td{}>{}</td>", row == 0 ? " class=\"other\"" : "", escaped(side.events[row]));
  const bool says_why = row == 0 && !side.none.empty();
  return fmt::format("<td class=\"none\">{}</td>", says_why ? escaped(side.none) : "");
}

// Rows with the events of both traces: the equal events before, the first that differs, and the events after it.
std::string events_html(const Difference& difference) {
  const auto& first = *difference.first;
  // `heading` has the form "the last events of h0, the same in both".
  const auto heading = first.heading.empty() ? first.what : "T" + first.heading.substr(1) + "; then the difference";
  auto html = fmt::format(
      "<h3>{}</h3>\n<table class=\"events\">\n"
      "<thead><tr><th scope=\"col\">A: {}</th><th scope=\"col\">B: {}</th></tr></thead>\n<tbody>\n",
      escaped(heading), escaped(difference.a), escaped(difference.b));
  for (const auto& line : first.before) html += fmt::format("<tr><td>{0}</td><td>{0}</td></tr>\n", escaped(line));
  const auto rows = std::max({std::size_t{1}, first.a.events.size(), first.b.events.size()});
  for (std::size_t row = 0; row < rows; ++row)
    html += fmt::format("<tr>{}{}</tr>\n", cell(first.a, row), cell(first.b, row));
  return html + "</tbody>\n</table>\n";
}

std::string headers_html(const char* title, const std::vector<HeaderDifference>& differences) {
  if (differences.empty()) return "";
  auto html = fmt::format(
      "<table>\n<thead><tr><th scope=\"col\">{}</th><th scope=\"col\">A</th><th scope=\"col\">B</th></tr></thead>\n"
      "<tbody>\n",
      title);
  for (const auto& each : differences)
    html += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td></tr>\n", escaped(each.name), escaped(each.a),
                        escaped(each.b));
  return html + "</tbody>\n</table>\n";
}

std::string cause_html(const Difference& difference) {
  const auto& cause = difference.cause;
  std::string html = "<h3>Cause</h3>\n";
  if (!cause.block.empty())
    html += fmt::format("<p>First in <b>{}</b>: {}.</p>\n", escaped(cause.block), escaped(cause.decided_by));
  if (!cause.step.empty()) html += fmt::format("<p>Step: {}.</p>\n", escaped(cause.step));
  if (cause.likely.empty()) html += fmt::format("<p>{}.</p>\n", escaped(verdict_of(cause)));
  html += headers_html("differs in", cause.likely) + headers_html("differs elsewhere in", cause.elsewhere);
  if (cause.one_sided.empty()) return html;
  return html +
         fmt::format("<details><summary>{} parameters that are only in one of the versions</summary>\n{}</details>\n",
                     cause.one_sided.size(), headers_html("parameter", cause.one_sided));
}

std::string case_html(const Verdict& verdict) {
  const char* alarm = verdict.outcome == Outcome::passed ? "" : " class=\"alarm\"";
  auto html = fmt::format("<section{}>\n<h2>{}: {}</h2>\n", alarm, escaped(verdict.name), name_of(verdict.outcome));
  for (const auto& note : verdict.notes) html += fmt::format("<p class=\"note\">{}</p>\n", escaped(note));
  for (const auto& finding : verdict.findings) {
    const auto end = finding.find('\n');
    html += fmt::format("<p>{}</p>\n", escaped(std::string_view(finding).substr(0, end)));
    if (end == finding.npos || end + 1 == finding.size()) continue;
    html += fmt::format("<details><summary>all of it as text</summary><pre>{}</pre></details>\n", escaped(finding));
  }
  if (verdict.difference) {
    if (verdict.difference->first) html += events_html(*verdict.difference);
    html += cause_html(*verdict.difference);
  }
  return html + "</section>\n";
}

}  // namespace

std::string html_page(const std::string& suite, const std::vector<Verdict>& verdicts) {
  std::string cases;
  // Cases that need attention come first.
  for (const auto outcome : {Outcome::failed, Outcome::broken, Outcome::passed})
    for (const auto& verdict : verdicts)
      if (verdict.outcome == outcome) cases += case_html(verdict);
  const auto title = escaped(suite);
  return report::filled_page("check.html", {{"{{title}}", title},
                                            {"{{style}}", report::page_part("report.css")},
                                            {"{{title}}", title},
                                            {"{{summary}}", escaped(tally_text(tally(verdicts)))},
                                            {"{{cases}}", cases}});
}

}  // namespace rnicsim::sim::check
