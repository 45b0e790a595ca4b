// SPDX-License-Identifier: Apache-2.0
#include "sim/recording/log_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "model/nic/nic.h"
#include "sim/config/config_error.h"
#include "sim/config/param_list.h"

namespace rnicsim::sim {
namespace {

struct Row {
  EventKind kind;
  const char* block;
  LogLevel level;
};

constexpr std::array kRows = {
    Row{EventKind::command, "command", LogLevel::debug},
    Row{EventKind::device_command, "command", LogLevel::debug},
    Row{EventKind::doorbell, "doorbell", LogLevel::debug},
    Row{EventKind::cq_arm, "doorbell", LogLevel::trace},
    Row{EventKind::eq_doorbell, "doorbell", LogLevel::trace},
    Row{EventKind::doorbell_refused, "doorbell", LogLevel::info},
    Row{EventKind::wqe_fetch, "engine", LogLevel::trace},
    Row{EventKind::wqe, "engine", LogLevel::debug},
    Row{EventKind::qp_state, "engine", LogLevel::info},
    Row{EventKind::packet_sent, "packets", LogLevel::trace},
    Row{EventKind::packet_received, "packets", LogLevel::trace},
    Row{EventKind::packet_dropped, "packets", LogLevel::info},
    Row{EventKind::frame_sent, "port", LogLevel::trace},
    Row{EventKind::frame_received, "port", LogLevel::trace},
    Row{EventKind::frame_fault, "cable", LogLevel::info},
    Row{EventKind::cqe, "completion", LogLevel::debug},
    Row{EventKind::eqe, "events", LogLevel::debug},
    Row{EventKind::eqe_lost, "events", LogLevel::info},
    Row{EventKind::interrupt, "events", LogLevel::trace},
    Row{EventKind::event_taken, "kernel", LogLevel::trace},
    Row{EventKind::dma_abort, "iommu", LogLevel::info},
    Row{EventKind::cm_sent, "cm", LogLevel::debug},
    Row{EventKind::cm_received, "cm", LogLevel::debug},
    Row{EventKind::cm_state, "cm", LogLevel::info},
    Row{EventKind::refused, "refused", LogLevel::info},
};
static_assert(kRows.size() == static_cast<std::size_t>(EventKind::mmio_write) - 1,
              "a row for each kind of event except the end and the software's events");

constexpr std::array kLevels = {"off", "error", "warn", "info", "debug", "trace"};

}  // namespace

std::vector<bool> shown_kinds(const std::vector<LogChoice>& choices) {
  std::vector<bool> shown(static_cast<std::size_t>(EventKind::count));
  for (const auto& choice : choices)
    for (const auto& row : kRows)
      if (choice.block.empty() || choice.block == row.block)
        shown[static_cast<std::size_t>(row.kind)] = row.level <= choice.level;
  return shown;
}

std::vector<std::string> log_blocks() {
  std::vector<std::string> blocks;
  for (const auto& row : kRows)
    if (std::ranges::find(blocks, row.block) == blocks.end()) blocks.emplace_back(row.block);
  return blocks;
}

LogChoice parse_log_choice(std::string_view text) {
  const auto colon = text.find(':');
  const auto level = std::ranges::find(kLevels, text.substr(0, colon));
  if (level == kLevels.end())
    throw ConfigError(fmt::format("--log: '{}' is none of {}", shown(text.substr(0, colon)), fmt::join(kLevels, ", ")));
  LogChoice choice{static_cast<LogLevel>(level - kLevels.begin()), {}};
  if (colon == text.npos) return choice;
  choice.block = text.substr(colon + 1);
  const auto blocks = log_blocks();
  if (std::ranges::find(blocks, choice.block) != blocks.end()) return choice;
  const auto meant = nearest_name(choice.block, blocks);
  throw ConfigError(fmt::format("--log: there is no block '{}'{}; there are {}", shown(choice.block),
                                meant ? fmt::format(" (did you mean {}?)", *meant) : "", fmt::join(blocks, ", ")));
}

LogLevel message_level(const std::vector<LogChoice>& choices) {
  auto level = LogLevel::warn;
  for (const auto& choice : choices)
    if (choice.block.empty()) level = choice.level;
  return level;
}

}  // namespace rnicsim::sim
