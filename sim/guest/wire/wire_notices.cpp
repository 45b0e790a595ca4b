// SPDX-License-Identifier: Apache-2.0
#include "sim/guest/wire/wire_notices.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "sim/os/progress_line.h"

namespace rnicsim::sim {
namespace {

constexpr std::array kMeanings{"frames of length 0",
                               "lengths beyond 64 KiB",
                               "frames without an Ethernet header",
                               "connections that ended within a frame",
                               "connections that ended",
                               "refused connections of further peers",
                               "TAP interfaces that were removed",
                               "frames of other stations, dropped",
                               "frames lost, because the peer did not accept them",
                               "frames lost, because no peer was connected",
                               "frames lost, because the peer did not answer ARP"};
static_assert(kMeanings.size() == static_cast<std::size_t>(WireTrouble::count));

void print_line(const std::string& line) {
  progress_line::erase();
  fmt::print(stderr, "rnicsim: {}\n", line);
}

}  // namespace

WireNotices::WireNotices(std::string host, Say say) : host_(std::move(host)), say_(say ? std::move(say) : print_line) {}

void WireNotices::tell(WireTrouble kind, const std::string& text) {
  if (counts_[static_cast<std::size_t>(kind)]++ == 0) say_(fmt::format("{}: {}", host_, text));
}

std::vector<std::string> WireNotices::report() const {
  std::vector<std::string> lines;
  for (std::size_t kind = 0; kind < counts_.size(); ++kind)
    if (counts_[kind] != 0) lines.push_back(fmt::format("{}: {}: {}", host_, kMeanings[kind], counts_[kind]));
  return lines;
}

}  // namespace rnicsim::sim
