// SPDX-License-Identifier: Apache-2.0
#include "sim/report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "sim/config/config_error.h"
#include "sim/config/data_files.h"

namespace rnicsim::sim::report {
namespace {

std::string replaced(std::string_view text, std::string_view characters,
                     std::string_view (*replacement)(char character)) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const auto next = std::min(text.find_first_of(characters, at), text.size());
    result += text.substr(at, next - at);
    if (next < text.size()) result += replacement(text[next]);
    at = next + 1;
  }
  return result;
}

}  // namespace

std::string html_text(std::string_view text) {
  return replaced(text, "&<>\"'", [](char character) -> std::string_view {
    switch (character) {
      case '&': return "&amp;";
      case '<': return "&lt;";
      case '>': return "&gt;";
      case '"': return "&quot;";
      default: return "&#39;";
    }
  });
}

std::string script_json(const Json& json) {
  // In JSON these characters occur only in strings. dump() replaces bytes that are not UTF-8, such as in file names.
  const auto text = json.dump();
  return replaced(text, "<>&", [](char character) -> std::string_view {
    return character == '<' ? "\\u003c" : character == '>' ? "\\u003e" : "\\u0026";
  });
}

std::string page_part(const char* name) {
  const auto path = data_folder(DataKind::report) / name;
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in.is_open() || in.bad()) throw ConfigError(fmt::format("{}: {}", path.string(), std::strerror(errno)));
  return text;
}

std::string filled_page(const char* frame_name, const PageParts& parts) {
  // Searches forward only, so that inserted text is not searched for marks.
  const std::string frame = page_part(frame_name);
  std::string result;
  std::size_t at = 0;
  for (const auto& [mark, text] : parts) {
    const auto found = frame.find(mark, at);
    if (found == frame.npos) throw ConfigError(fmt::format("{}: {} is missing", frame_name, mark));
    result.append(frame, at, found - at).append(text);
    at = found + mark.size();
  }
  return result.append(frame, at);
}

std::string page(std::string_view title, const Json& data) {
  return filled_page("report.html", {{"{{title}}", html_text(title)},
                                     {"{{style}}", page_part("report.css")},
                                     {"{{plotly licence}}", page_part("plotly/LICENSE")},
                                     {"{{plotly}}", page_part("plotly/plotly-basic.min.js")},
                                     {"{{data}}", script_json(data)},
                                     {"{{results script}}", page_part("results.js")},
                                     {"{{plots script}}", page_part("plots.js")},
                                     {"{{script}}", page_part("report.js")}});
}

}  // namespace rnicsim::sim::report
