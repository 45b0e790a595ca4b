#include "sim/observers.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

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
  if (!options.pcap.empty()) system.capture(options.pcap);
  if (!options.record.empty()) recording_.emplace(system, header, options.record);
  if (options.audit || recording_) audit_.emplace(system);
  if (EventLog::shows(options.log)) log_.emplace(system, options.log);
  spdlog::set_level(spdlog_level(message_level(options.log)));
}

bool Observers::finish() {
  system_.finish_capture();
  follower_.finish();
  if (recording_) recording_->finish();
  system_.engines().check();
  if (!audit_) return true;
  const auto disagreements = audit_->disagreements();
  for (const auto& line : disagreements) fmt::print(stderr, "rnicsim: counters' audit: {}\n", line);
  return disagreements.empty();
}

}  // namespace rnicsim::sim
