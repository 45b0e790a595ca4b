// SPDX-License-Identifier: Apache-2.0
#include "sim/trace_file/encoding.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include "sim/results/json.h"

namespace rnicsim::sim {
namespace {

constexpr std::string_view kMagic = "rnicsim trace\n";
constexpr std::size_t kMostHosts = 1 << 16;

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <class Value>
Value member(const Json& json, const char* name) {
  try {
    return json.at(name).get<Value>();
  } catch (const JsonError&) {
    throw TraceError(fmt::format("the header has no valid '{}'", name));
  }
}

// Takes O(n log n) time: Json's operator[] would search all members for each new one.
Json configuration_json(const TraceHeader& header) {
  std::vector<std::pair<std::string_view, std::size_t>> paths;
  for (const auto& entry : header.configuration) paths.emplace_back(entry.first, paths.size());
  std::ranges::sort(paths);
  // If a path has several values, the last one is written in the place of the first.
  std::vector<std::size_t> value_at(paths.size());
  std::vector<bool> is_first(paths.size());
  for (std::size_t begin = 0, end = 0; begin < paths.size(); begin = end) {
    while (end < paths.size() && paths[end].first == paths[begin].first) ++end;
    is_first[paths[begin].second] = true;
    value_at[paths[begin].second] = paths[end - 1].second;
  }
  auto json = Json::object();
  auto& members = json.items();
  for (std::size_t i = 0; i < paths.size(); ++i)
    if (is_first[i]) members.emplace_back(header.configuration[i].first, header.configuration[value_at[i]].second);
  return json;
}

TraceHeader header_of(const Json& json) {
  TraceHeader header;
  header.program = member<std::string>(json, "program");
  if (json.contains("title")) header.title = member<std::string>(json, "title");
  header.seed = member<std::uint64_t>(json, "seed");
  header.time = member<std::string>(json, "time");
  header.hosts = member<std::vector<std::string>>(json, "hosts");
  if (header.hosts.size() > kMostHosts) throw TraceError("the header names too many hosts");
  if (json.contains("commands")) header.commands = member<std::vector<std::string>>(json, "commands");
  if (json.contains("system")) header.system = member<std::string>(json, "system");
  const auto configuration = member<Json>(json, "configuration");
  if (!configuration.is_object()) throw TraceError("the configuration in the header is not a JSON object");
  for (const auto& [path, value] : configuration.items()) {
    if (!value.is_string()) throw TraceError("the configuration in the header is not text");
    header.configuration.emplace_back(path, value.get<std::string>());
  }
  return header;
}

}  // namespace

std::uint64_t next_long_number(std::span<const std::byte>& bytes) {
  const auto* at = bytes.data();
  const auto* const end = at + std::min(bytes.size(), kMostNumberBytes);
  std::uint64_t value = 0;
  for (unsigned shift = 0; at != end; shift += 7) {
    const auto byte = std::to_integer<std::uint64_t>(*at++);
    value |= (byte & 0x7f) << shift;
    if (byte >= 0x80) continue;
    if (shift == 63 && byte > 1) break;
    bytes = bytes.subspan(std::size_t(at - bytes.data()));
    return value;
  }
  throw TraceError(bytes.size() < kMostNumberBytes ? "a number is cut short" : "a number of more than 64 bits");
}

void encode_header(const TraceHeader& header, std::vector<std::byte>& out) {
  Json json;
  json["program"] = header.program;
  if (!header.title.empty()) json["title"] = header.title;
  json["seed"] = header.seed;
  json["time"] = header.time;
  json["hosts"] = header.hosts;
  if (!header.commands.empty()) json["commands"] = header.commands;
  if (!header.system.empty()) json["system"] = header.system;
  json["kinds"] = own_schema();
  json["configuration"] = configuration_json(header);
  // Arguments of a program need not be UTF-8; dump() replaces invalid bytes.
  const auto text = json.dump(1);
  const auto append = [&out](std::string_view characters) {
    const auto bytes = std::as_bytes(std::span(characters));
    out.insert(out.end(), bytes.begin(), bytes.end());
  };
  append(kMagic);
  append_number(out, kTraceVersion);
  append_number(out, text.size());
  append(text);
}

void check_header_start(std::span<const std::byte> bytes) {
  if (!as_text(bytes).starts_with(kMagic)) throw TraceError("not a trace of rnicsim");
  bytes = bytes.subspan(kMagic.size());
  const auto version = next_number(bytes);
  if (version < kOldestTraceVersion || version > kTraceVersion)
    throw TraceError(fmt::format("format version {}; this program reads versions {} to {}", version,
                                 kOldestTraceVersion, kTraceVersion));
}

FileHeader decode_header(std::span<const std::byte> bytes) {
  check_header_start(bytes);
  bytes = bytes.subspan(kMagic.size());
  const auto version = static_cast<std::uint32_t>(next_number(bytes));
  if (next_number(bytes) != bytes.size()) throw TraceError("the length in the header is wrong");
  const auto json = Json::parse_if_valid(as_text(bytes));
  if (!json || !json->is_object()) throw TraceError("the header is not JSON");
  auto header = header_of(*json);
  if (version == 1) return {version, std::move(header), TraceSchema::of_version_1()};
  return {version, std::move(header), TraceSchema(member<std::vector<std::string>>(*json, "kinds"))};
}

std::byte* encode_fields(const TraceEvent& event, std::byte* out) {
  static const auto counts = [] {
    std::array<std::uint8_t, std::size_t(EventKind::count)> made{};
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = std::uint8_t(info(EventKind(i)).fields.size());
    return made;
  }();
  std::size_t count = counts[std::size_t(event.kind)];
  while (count > 0 && event.fields[count - 1] == 0) --count;
  for (std::size_t i = 0; i < count; ++i) out = put_number(out, event.fields[i]);
  return out;
}

std::byte* EventEncoder::encode(const EncodedEvent& event, std::byte* out) {
  std::byte* const body = out + 1;  // most lengths are one byte
  std::byte* end = put_number(body, std::uint64_t(event.kind));
  end = put_number(end, event.host);
  end = put_number(end, std::uint64_t((event.at - last_).ps));
  last_ = event.at;
  std::memcpy(end, event.fields.data(), event.fields.size());
  end += event.fields.size();
  const auto length = std::size_t(end - body);
  if (length < 0x80) {
    *out = std::byte(length);
    return end;
  }
  std::byte number[kMostNumberBytes];
  const auto bytes = std::size_t(put_number(number, length) - number);
  std::memmove(out + bytes, body, length);
  std::memcpy(out, number, bytes);
  return out + bytes + length;
}

void EventEncoder::encode(const TraceEvent& event, std::vector<std::byte>& out) {
  std::byte fields[EncodedEvent::kMostFieldBytes], bytes[kMostBytes];
  const EncodedEvent encoded{event.at, event.host, event.kind, {}, {fields, encode_fields(event, fields)}};
  out.insert(out.end(), bytes, encode(encoded, bytes));
}

const FileKind& EventDecoder::decode(std::span<const std::byte>& bytes, TraceEvent& event) {
  const auto length = next_number(bytes);
  if (length > bytes.size()) throw TraceError("an event is cut short");
  auto body = bytes.first(length);
  bytes = bytes.subspan(length);
  const auto number = next_number(body);
  if (number >= kinds_.size()) throw TraceError(fmt::format("an event of unknown kind {}", number));
  const auto& kind = kinds_[number];
  const auto host = next_number(body);
  const bool is_end = kind.known != nullptr && kind.known->kind == EventKind::end;
  if (host >= hosts_ && !is_end) throw TraceError("an event of an unknown host");
  const auto later = next_number(body);
  if (later > std::uint64_t(std::numeric_limits<std::int64_t>::max() - last_.ps))
    throw TraceError("an event at an impossible time");
  last_.ps += std::int64_t(later);
  event.at = last_;
  event.host = std::uint32_t(host);
  if (kind.known != nullptr) {
    event.kind = kind.known->kind;
    decode_fields(kind, body, event);
  }
  return kind;
}

void EventDecoder::decode_fields(const FileKind& kind, std::span<const std::byte> body, TraceEvent& event) const {
  const auto most = kind.fields.size();
  const auto check = [&](std::size_t count) {
    if (count == most) throw TraceError(fmt::format("an event '{}' with too many fields", kind.name));
  };
  std::size_t count = 0;
  if (kind.is_own) {
    for (; !body.empty(); ++count) {
      check(count);
      event.fields[count] = next_number(body);
    }
    std::fill(event.fields.begin() + std::ptrdiff_t(count), event.fields.end(), 0);
    return;
  }
  event.fields.fill(0);
  for (; !body.empty(); ++count) {
    check(count);
    const auto value = next_number(body);
    if (kind.positions[count] != FileKind::kUnknown) event.fields[kind.positions[count]] = value;
  }
}

}  // namespace rnicsim::sim
