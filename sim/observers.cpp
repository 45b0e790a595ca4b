#include "sim/observers.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "sim/engine_choice.h"

namespace rnicsim::sim {
namespace {

spdlog::level::level_enum spdlog_level(LogLevel level) {
  return level == LogLevel::off     ? spdlog::level::off
         : level == LogLevel::error ? spdlog::level::err
                                    : spdlog::level::warn;
}

}  // namespace

Observers::Observers(System& system, const ObserverOptions& options, const TraceHeader& header)
    : system_(system), follower_(system, options.follow) {
  if (!options.pcap.empty()) capture_.emplace(system, options.pcap);
  if (!options.record.empty()) recording_.emplace(system, header, options.record);
  if (options.audit || recording_) audit_.emplace(system);
  if (EventLog::shows(options.log)) log_.emplace(system, options.log);
  spdlog::set_level(spdlog_level(message_level(options.log)));
}

bool Observers::finish() {
  if (auto* boundary = system_.boundary()) boundary->meet();
  const auto disagreements = audit_ ? audit_->disagreements() : std::vector<std::string>();
  if (capture_) capture_->finish();
  follower_.finish();
  if (recording_) recording_->finish();
  system_.engines().check();
  for (const auto& line : disagreements) fmt::print(stderr, "rnicsim: counters' audit: {}\n", line);
  return disagreements.empty();
}

}  // namespace rnicsim::sim
