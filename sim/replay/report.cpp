// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "sim/replay/validator.h"
#include "sim/results/json.h"
#include "sim/results/results_json.h"

namespace rnicsim::sim::replay {
namespace {

constexpr std::size_t kShownDifferences = 20;
constexpr std::size_t kShownPackets = 4;

// Lines of packets by frame: the last few up to a frame, oldest first.
class Excerpt {
 public:
  explicit Excerpt(std::uint32_t upto) : upto_(upto) {}
  void add(const WirePacket& packet, const char* arrow) {
    if (packet.frame <= upto_) add(packet.frame, arrow, decoded(packet_of(packet)));
  }
  void add(const CmMessage& message) {
    if (message.frame <= upto_) add(message.frame, message.sent ? "<-" : "->", decoded(message.envelope));
  }
  std::string text() {
    std::ranges::sort(lines_);
    std::string text = "    last packets of this QP:\n";
    for (auto i = lines_.size() - std::min(lines_.size(), kShownPackets); i < lines_.size(); ++i)
      text += fmt::format("        {}\n", lines_[i].second);
    return text;
  }

 private:
  void add(std::uint32_t frame, const char* arrow, const std::string& what) {
    lines_.emplace_back(frame, fmt::format("frame {:>6}  {} {}", frame, arrow, what));
  }

  const std::uint32_t upto_;
  std::vector<std::pair<std::uint32_t, std::string>> lines_;
};

std::string last_packets(const QpEnvironment& qp, std::uint32_t frame) {
  Excerpt excerpt(frame);
  for (const auto& request : qp.requests) excerpt.add(*request.packet, "->");
  for (const auto* answer : qp.answers) excerpt.add(*answer, "<-");
  return excerpt.text();
}

std::string last_packets(const RequesterEnvironment& qp, std::uint32_t frame) {
  Excerpt excerpt(frame);
  for (const auto* packet : qp.sent) excerpt.add(*packet, "<-");
  for (const auto* answer : qp.answers) excerpt.add(*answer, "->");
  return excerpt.text();
}

std::string last_packets(const CmTraffic& management, std::uint32_t frame) {
  Excerpt excerpt(frame);
  for (const auto& message : management.messages) excerpt.add(message);
  return excerpt.text();
}

std::string place(const Difference& difference) {
  return difference.theirs ? fmt::format("frame {}", difference.frame)
                           : fmt::format("caused by frame {}", difference.frame);
}

// `packets`: the last packets of the QP.
std::string difference_text(const Difference& difference, const std::string& whose, const std::string& packets) {
  auto text = fmt::format("difference in {}: {}, {}\n", kSubjects[static_cast<std::size_t>(difference.subject)], whose,
                          place(difference));
  text += fmt::format("    ours    {}\n    theirs  {}\n", difference.ours.value_or("nothing"),
                      difference.theirs.value_or("nothing"));
  for (const auto& field : difference.fields)
    text += fmt::format("    {:<11} ours {}, theirs {}\n", field.field, field.ours, field.theirs);
  return text + packets;
}

std::string row(const std::string& name, std::uint64_t value) { return fmt::format("{:<40} {:>8}\n", name, value); }

const char* name_of(roce::Transport transport) {
  if (transport == roce::Transport::rc) return "RC";
  return transport == roce::Transport::uc ? "UC" : "UD";
}

// The wire does not show every QP number.
std::string number_text(roce::Qpn qpn) { return qpn.value == 0 ? "?" : fmt::format("{:#08x}", qpn.value); }

std::string qp_line(const QpEnvironment& qp, const Comparison& answers, const Comparison& deliveries) {
  auto text = fmt::format("{} QP {}", name_of(qp.transport), number_text(qp.group ? roce::Qpn{} : qp.qpn));
  if (qp.group) text += fmt::format(" of group {}", address_text(*qp.group));
  if (qp.transport != roce::Transport::ud) text += fmt::format(" of {}", address_text(qp.peer));
  if (qp.reliable()) text += fmt::format(" QP {:#08x}", qp.peer_qpn.value);
  text += fmt::format(", MTU {}, from PSN {}: {} packets, {} messages delivered", roce::mtu_bytes(qp.path_mtu),
                      qp.first_psn.value(), qp.requests.size(), deliveries.matched);
  if (qp.reliable()) text += fmt::format(", {} answers, {} matched", qp.answers.size(), answers.matched);
  return text + fmt::format(", {} differences\n", answers.differences.size() + deliveries.differences.size());
}

std::string requester_line(const RequesterEnvironment& qp, const Comparison& comparison) {
  auto text = fmt::format("{} QP {} sends to {}", name_of(qp.transport), number_text(qp.qpn), address_text(qp.peer));
  if (qp.transport != roce::Transport::ud) text += fmt::format(" QP {:#08x}", qp.peer_qpn.value);
  text += fmt::format(": {} messages, {} packets, {} matched", qp.posted.size(), qp.sent.size(), comparison.matched);
  const auto backs = qp.count(Cause::nak) + qp.count(Cause::rnr) + qp.count(Cause::timeout);
  if (backs != 0)
    text += fmt::format(", went back {} times ({} by NAK or gap, {} by RNR, {} by timeout)", backs,
                        qp.count(Cause::nak), qp.count(Cause::rnr), qp.count(Cause::timeout));
  return text + fmt::format(", {} differences\n", comparison.differences.size());
}

std::size_t messages_sent(const CmTraffic& management) {
  return static_cast<std::size_t>(std::ranges::count(management.messages, true, &CmMessage::sent));
}

std::string management_line(const CmTraffic& management, const Comparison& comparison) {
  if (management.messages.empty() && management.odd.empty()) return {};
  const auto sent = messages_sent(management);
  return fmt::format("connection management: {} messages received, {} sent, {} matched, {} differences\n",
                     management.messages.size() - sent, sent, comparison.matched, comparison.differences.size());
}

// Calls `visit` for each difference with its owner and a function that returns the last packets.
template <class Visit>
void each_difference(const Replay& replay, Visit&& visit) {
  const auto& qps = replay.environment.qps;
  for (std::size_t i = 0; i < qps.size(); ++i)
    for (const auto* comparison : {&replay.comparisons[i], &replay.deliveries[i]})
      for (const auto& difference : comparison->differences)
        visit(difference, qps[i].qpn.value, [&] { return last_packets(qps[i], difference.frame); });
  const auto& requesters = replay.environment.requesters;
  for (std::size_t i = 0; i < requesters.size(); ++i)
    for (const auto& difference : replay.requests[i].differences)
      visit(difference, requesters[i].qpn.value, [&] { return last_packets(requesters[i], difference.frame); });
  for (const auto& difference : replay.managed.differences)
    visit(difference, kGeneralServicesQp, [&] { return last_packets(replay.management, difference.frame); });
  for (const auto& stray : replay.strays) visit(stray, std::optional<std::uint32_t>(), [] { return std::string(); });
}

std::string frames_text(const Replay& replay) {
  const auto& capture = replay.capture;
  auto text = row("frames", capture.frames) + row("RoCEv2", capture.roce_frames()) +
              row("  parsed", capture.packets.size()) + row("  ICRC right", capture.icrc_right());
  for (const auto& packet : capture.unparsed)
    text += fmt::format("  frame {} not parsed: {}\n", packet.frame, roce::text(packet.error));
  text += fmt::format("as {}{}\n", address_text(replay.environment.address),
                      replay.engine == EngineParams{}.kind ? "" : ", engine " + replay.engine);
  for (const auto& [role, name, meaning] : kRoles)
    if (const auto count = replay.environment.count(role)) text += row(fmt::format("  {}", meaning), count);
  for (const auto& odd : replay.management.odd)
    text += fmt::format("  frame {}, {} QP1, is not a message of connection management: {}\n", odd.frame,
                        odd.sent ? "from" : "to", odd.what);
  return text;
}

Json difference_json(const Difference& difference, std::optional<std::uint32_t> qpn) {
  Json json;
  if (qpn) json["qpn"] = *qpn;
  json["subject"] = kSubjects[static_cast<std::size_t>(difference.subject)];
  json["frame"] = difference.frame;
  if (difference.ours) json["ours"] = *difference.ours;
  if (difference.theirs) json["theirs"] = *difference.theirs;
  json["fields"] = Json::array();
  for (const auto& field : difference.fields)
    json["fields"].push_back({{"field", field.field}, {"ours", field.ours}, {"theirs", field.theirs}});
  return json;
}

Json qps_json(const Replay& replay) {
  auto json = Json::array();
  const auto& qps = replay.environment.qps;
  for (std::size_t i = 0; i < qps.size(); ++i)
    json.push_back(
        {{"qpn", qps[i].qpn.value},
         {"transport", name_of(qps[i].transport)},
         {"peer", address_text(qps[i].group.value_or(qps[i].peer))},
         {"peer_qpn", qps[i].peer_qpn.value},
         {"path_mtu", roce::mtu_bytes(qps[i].path_mtu)},
         {"first_psn", qps[i].first_psn.value()},
         {"requests", qps[i].requests.size()},
         {"answers", qps[i].answers.size()},
         {"matched", replay.comparisons[i].matched},
         {"delivered", replay.deliveries[i].matched},
         {"differences", replay.comparisons[i].differences.size() + replay.deliveries[i].differences.size()}});
  return json;
}

Json management_json(const Replay& replay) {
  const auto sent = messages_sent(replay.management);
  auto odd = Json::array();
  for (const auto& each : replay.management.odd)
    odd.push_back({{"frame", each.frame}, {"sent", each.sent}, {"what", each.what}});
  return {{"received", replay.management.messages.size() - sent},
          {"sent", sent},
          {"matched", replay.managed.matched},
          {"no_messages", odd},
          {"differences", replay.managed.differences.size()}};
}

Json requesters_json(const Replay& replay) {
  auto json = Json::array();
  const auto& requesters = replay.environment.requesters;
  for (std::size_t i = 0; i < requesters.size(); ++i) {
    const auto& qp = requesters[i];
    json.push_back(
        {{"qpn", qp.qpn.value},
         {"transport", name_of(qp.transport)},
         {"peer", address_text(qp.peer)},
         {"peer_qpn", qp.peer_qpn.value},
         {"messages", qp.posted.size()},
         {"packets", qp.sent.size()},
         {"matched", replay.requests[i].matched},
         {"went_back",
          {{"nak", qp.count(Cause::nak)}, {"rnr", qp.count(Cause::rnr)}, {"timeout", qp.count(Cause::timeout)}}},
         {"gave_up", qp.gives_up},
         {"differences", replay.requests[i].differences.size()}});
  }
  return json;
}

}  // namespace

std::string report_text(const Replay& replay) {
  auto text = frames_text(replay);
  text += row("bytes read, compared with the written bytes", replay.memory_use.checked);
  text += row("bytes read, known only from the answer", replay.memory_use.learnt);
  text += "equivalences used\n";
  const auto used = replay.equivalences();
  for (std::size_t i = 0; i < used.size(); ++i) text += row(fmt::format("  {}", kEquivalences[i].name), used[i]);
  text += row("differences", replay.differences());
  const auto& [qps, requesters] = std::tie(replay.environment.qps, replay.environment.requesters);
  for (std::size_t i = 0; i < qps.size(); ++i) text += qp_line(qps[i], replay.comparisons[i], replay.deliveries[i]);
  for (std::size_t i = 0; i < requesters.size(); ++i) text += requester_line(requesters[i], replay.requests[i]);
  text += management_line(replay.management, replay.managed);

  std::size_t shown = 0;
  each_difference(replay, [&](const Difference& difference, std::optional<std::uint32_t> qpn, auto&& packets) {
    if (shown++ >= kShownDifferences) return;
    const auto whose =
        qpn ? fmt::format("QP {:#08x}", *qpn) : "a corrupt answer, or an answer of a QP outside of the replay";
    text += '\n' + difference_text(difference, whose, packets());
  });
  if (shown > kShownDifferences) text += fmt::format("\nand {} more differences\n", shown - kShownDifferences);
  return text;
}

Json report_json(const Replay& replay) {
  auto json = results_of_command("replay");
  json["as"] = address_text(replay.environment.address);
  json["engine"] = replay.engine;
  json["frames"] = replay.capture.frames;
  json["roce"] = replay.capture.roce_frames();
  json["parsed"] = replay.capture.packets.size();
  json["icrc_right"] = replay.capture.icrc_right();
  for (const auto& [role, name, meaning] : kRoles) json["packets"][name] = replay.environment.count(role);
  json["bytes_checked"] = replay.memory_use.checked;
  json["bytes_learnt"] = replay.memory_use.learnt;
  const auto used = replay.equivalences();
  for (std::size_t i = 0; i < used.size(); ++i) json["equivalences"][kEquivalences[i].name] = used[i];
  json["qps"] = qps_json(replay);
  json["requesters"] = requesters_json(replay);
  json["management"] = management_json(replay);
  json["differences"] = Json::array();
  each_difference(replay, [&](const Difference& difference, std::optional<std::uint32_t> qpn, auto&&) {
    json["differences"].push_back(difference_json(difference, qpn));
  });
  return json;
}

}  // namespace rnicsim::sim::replay
