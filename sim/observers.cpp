#include "sim/observers.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "model/base/byte_stream.h"

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
  auto* boundary = system_.boundary();
  if (boundary != nullptr) boundary->meet();
  const auto disagreements = audited();
  if (capture_) capture_->finish();
  follower_.finish();
  if (recording_) recording_->finish();
  system_.engines().check();
  for (const auto& line : disagreements) fmt::print(stderr, "rnicsim: counters' audit: {}\n", line);
  return disagreements.empty();
}

// Of all processes, in the first.
std::vector<std::string> Observers::audited() {
  if (!audit_) return {};
  auto lines = audit_->disagreements();
  auto* boundary = system_.boundary();
  if (boundary == nullptr) return lines;
  Message own;
  ByteWriter out(own);
  for (const auto& line : lines) out.put_bytes(std::as_bytes(std::span(line)));
  for (const auto& other : boundary->gather(std::move(own)))
    for (ByteReader in(other); !in.at_end();) {
      const auto line = in.take_bytes();
      lines.emplace_back(reinterpret_cast<const char*>(line.data()), line.size());
    }
  if (boundary->rank() != 0) lines.clear();
  return lines;
}

}  // namespace rnicsim::sim
