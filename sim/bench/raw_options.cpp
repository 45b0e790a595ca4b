// SPDX-License-Identifier: Apache-2.0
#include "sim/bench/raw_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "sim/bench/table_reader.h"

namespace rnicsim::sim::bench {
namespace {

void read_key(TableReader& reader, RawOptions& options) {
  const auto* node = reader.find("rss_key");
  if (!node) return;
  const std::string needed = fmt::format("{} bytes, two hexadecimal digits each,", options.rss_key.size());
  const auto text = node->value<std::string>();
  if (!node->is_string() || text->size() != 2 * options.rss_key.size()) reader.refuse("rss_key", needed);
  for (std::size_t i = 0; i < options.rss_key.size(); ++i) {
    const char* digits = text->data() + 2 * i;
    const auto [end, error] = std::from_chars(digits, digits + 2, options.rss_key[i], 16);
    if (error != std::errc{} || end != digits + 2) reader.refuse("rss_key", needed);
  }
}

std::string field_names() {
  std::string names;
  for (std::size_t i = 0; i < kRssFields; ++i)
    names += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", to_string(static_cast<RssField>(i)));
  return names;
}

void read_fields(TableReader& reader, RawOptions& options) {
  const auto* node = reader.find("rss_fields");
  if (!node) return;
  const auto* list = node->as_array();
  const std::string needed = fmt::format("a list of some of {},", field_names());
  if (!list || list->empty()) reader.refuse("rss_fields", needed);
  options.rss_fields.clear();
  for (const auto& entry : *list) {
    std::size_t field = 0;
    while (field < kRssFields && entry.value<std::string>() != to_string(static_cast<RssField>(field))) ++field;
    if (field == kRssFields) reader.refuse("rss_fields", needed);
    if (std::ranges::find(options.rss_fields, static_cast<RssField>(field)) != options.rss_fields.end())
      reader.complain("rss_fields", fmt::format("\"{}\" is listed twice", to_string(static_cast<RssField>(field))));
    options.rss_fields.push_back(static_cast<RssField>(field));
  }
}

}  // namespace

std::string_view to_string(RssField field) {
  constexpr std::string_view kNames[kRssFields] = {"src_ipv4", "dst_ipv4", "src_port_udp", "dst_port_udp"};
  return kNames[static_cast<std::size_t>(field)];
}

std::uint32_t RawOptions::frame_bytes(std::uint32_t message) const {
  return tso_mss ? std::min(message, kHeaderBytes + *tso_mss) : message;
}

std::string RawOptions::key_text() const {
  std::string text;
  for (const auto byte : rss_key) text += fmt::format("{:02x}", byte);
  return text;
}

void read_raw_options(TableReader& reader, RawOptions& options) {
  reader.number("flows", options.flows, 1, 65536);
  reader.flag("checksums", options.checksums);
  reader.number("tso_mss", options.tso_mss, 18, 9000);
  reader.number("rx_queues", options.rx_queues, 1, 256);
  read_key(reader, options);
  read_fields(reader, options);
}

void refuse_raw_options(const TableReader& reader) {
  for (const char* key : {"flows", "checksums", "tso_mss", "rx_queues", "rss_key", "rss_fields"})
    if (reader.has(key)) reader.complain(key, "needs transport = \"raw\"");
}

}  // namespace rnicsim::sim::bench
