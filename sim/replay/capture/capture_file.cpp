// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/capture/capture_file.h"

#include <fmt/format.h>
#include <pcap/pcap.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>

#include "sim/config/config_error.h"

namespace rnicsim::sim::replay {
namespace {

struct Closer {
  void operator()(pcap_t* file) const { pcap_close(file); }
};

constexpr std::int64_t kPsPerSecond = 1'000'000'000'000;
constexpr std::int64_t kPsPerNanosecond = 1'000;
constexpr std::int64_t kMostSeconds = 1'000'000;  // limit of the distance between two frames, against nonsense times

std::int64_t apart(std::int64_t first, std::int64_t then, std::int64_t most) {
  constexpr std::int64_t kSane = std::int64_t{1} << 61;  // limit that keeps the difference within 64 bits
  return std::clamp(std::clamp(then, -kSane, kSane) - std::clamp(first, -kSane, kSane), -most, most);
}

// With PCAP_TSTAMP_PRECISION_NANO, tv_usec holds nanoseconds.
Duration between(const timeval& first, const timeval& then) {
  return {apart(first.tv_sec, then.tv_sec, kMostSeconds) * kPsPerSecond +
          apart(first.tv_usec, then.tv_usec, kPsPerSecond / kPsPerNanosecond) * kPsPerNanosecond};
}

}  // namespace

std::vector<CapturedFrame> read_capture(const std::filesystem::path& path) {
  std::array<char, PCAP_ERRBUF_SIZE> why{};
  const std::unique_ptr<pcap_t, Closer> file(
      pcap_open_offline_with_tstamp_precision(path.c_str(), PCAP_TSTAMP_PRECISION_NANO, why.data()));
  // libpcap's message does not always name the file.
  if (!file) throw ConfigError(fmt::format("{}: not a readable capture: {}", shown(path.string()), why.data()));
  if (const int link = pcap_datalink(file.get()); link != DLT_EN10MB) {
    const char* const name = pcap_datalink_val_to_name(link);
    throw ConfigError(fmt::format("{}: the frames are {}; Ethernet frames are needed", shown(path.string()),
                                  name != nullptr ? name : fmt::format("of link type {}", link)));
  }
  std::vector<CapturedFrame> frames;
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  timeval first{};
  int status = 0;
  while ((status = pcap_next_ex(file.get(), &header, &data)) == 1) {
    const auto bytes = std::as_bytes(std::span(data, header->caplen));
    if (frames.empty()) first = header->ts;
    frames.push_back({static_cast<std::uint32_t>(frames.size() + 1),
                      header->len,
                      {bytes.begin(), bytes.end()},
                      between(first, header->ts)});
  }
  if (status == PCAP_ERROR)
    throw ConfigError(
        fmt::format("{}: broken after frame {}: {}", shown(path.string()), frames.size(), pcap_geterr(file.get())));
  return frames;
}

}  // namespace rnicsim::sim::replay
