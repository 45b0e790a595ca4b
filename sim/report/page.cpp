#include "sim/report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "sim/config/config_error.h"
#include "sim/config/data_files.h"

namespace rnicsim::sim::report {
namespace {

std::string part(const char* name) {
  const auto path = data_folder(DataKind::report) / name;
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in.is_open() || in.bad()) throw ConfigError(fmt::format("{}: {}", path.string(), std::strerror(errno)));
  return text;
}

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
      case '&':
        return "&amp;";
      case '<':
        return "&lt;";
      case '>':
        return "&gt;";
      case '"':
        return "&quot;";
      default:
        return "&#39;";
    }
  });
}

std::string script_json(const nlohmann::ordered_json& json) {
  // Such characters stand in strings only. What a name of a file holds need not be UTF-8.
  const auto text = json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return replaced(text, "<>&", [](char character) -> std::string_view {
    return character == '<' ? "\\u003c" : character == '>' ? "\\u003e" : "\\u0026";
  });
}

std::string page(std::string_view title, const nlohmann::ordered_json& data) {
  const std::array<std::pair<std::string_view, std::string>, 8> parts{{
      {"{{title}}", html_text(title)},
      {"{{style}}", part("report.css")},
      {"{{plotly licence}}", part("plotly/LICENSE")},
      {"{{plotly}}", part("plotly/plotly-basic.min.js")},
      {"{{data}}", script_json(data)},
      {"{{results script}}", part("results.js")},
      {"{{plots script}}", part("plots.js")},
      {"{{script}}", part("report.js")},
  }};
  // In their order, each once: what was put in is not looked through again.
  const std::string frame = part("report.html");
  std::string result;
  std::size_t at = 0;
  for (const auto& [mark, text] : parts) {
    const auto found = frame.find(mark, at);
    if (found == frame.npos) throw ConfigError(fmt::format("report.html: no {} where it should be", mark));
    result.append(frame, at, found - at).append(text);
    at = found + mark.size();
  }
  return result.append(frame, at);
}

}  // namespace rnicsim::sim::report
