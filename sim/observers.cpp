// SPDX-License-Identifier: Apache-2.0
#include "sim/observers.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "sim/driver_checks.h"
#include "sim/engine_choice.h"
#include "sim/recording/capture.h"
#include "sim/recording/counter_audit.h"
#include "sim/recording/event_log.h"
#include "sim/recording/recorder.h"
#include "sim/system.h"

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
  if (!options.pcap.empty()) capture_ = std::make_unique<Capture>(system, options.pcap);
  if (!options.record.empty())
    recording_ = std::make_unique<Recording>(system, header, options.record, options.recorded);
  if (options.audit || recording_) audit_ = std::make_unique<CounterAudit>(system);
  if (EventLog::shows(options.log)) log_ = std::make_unique<EventLog>(system, options.log);
  if (options.check) checks_ = std::make_unique<DriverChecks>(system, options.check_params);
  spdlog::set_level(spdlog_level(message_level(options.log)));
}

Observers::~Observers() = default;

bool Observers::finish() {
  if (auto* boundary = system_.boundary()) boundary->meet();
  const auto disagreements = audit_ ? audit_->disagreements() : std::vector<std::string>();
  if (capture_) capture_->finish();
  follower_.finish();
  if (recording_) recording_->finish();
  system_.engines().check();
  for (const auto& line : disagreements) fmt::print(stderr, "rnicsim: counters' audit: {}\n", line);
  const bool sound = !checks_ || checks_->finish();
  return disagreements.empty() && sound;
}

}  // namespace rnicsim::sim
