#include "sim/replay/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "sim/config/config_error.h"

namespace rnicsim::sim::replay {
namespace {

constexpr std::size_t kShownDifferences = 20;
constexpr std::size_t kShownPackets = 4;

std::string syndrome_text(std::uint8_t syndrome) {
  using roce::Aeth;
  const unsigned value = syndrome & Aeth::kValueMask;
  switch (syndrome & Aeth::kClassMask) {
    case Aeth::kAck:
      return fmt::format("ACK, credits {:#x}", value);
    case Aeth::kRnrNak:
      return fmt::format("RNR NAK, timer {}", value);
    case Aeth::kNak:
      break;
    default:
      return fmt::format("reserved {:#04x}", syndrome);
  }
  switch (syndrome) {
    case Aeth::kSequenceError:
      return "NAK, PSN sequence error";
    case Aeth::kInvalidRequest:
      return "NAK, invalid request";
    case Aeth::kRemoteAccessError:
      return "NAK, remote access error";
    case Aeth::kRemoteOperationError:
      return "NAK, remote operational error";
    default:
      return fmt::format("NAK {:#x}", value);
  }
}

// An answer in one line.
std::string decoded(const std::optional<Answer>& answer) {
  if (!answer) return "no answer";
  const auto& headers = answer->headers;
  auto text = fmt::format("{} to QP {:#08x}, PSN {}", roce::info(headers.bth.opcode).name,
                          headers.bth.destination.value, headers.bth.psn.value());
  if (headers.aeth) text += fmt::format(", {}, MSN {}", syndrome_text(headers.aeth->syndrome), headers.aeth->msn);
  if (headers.atomic_ack) text += fmt::format(", original {:#x}", *headers.atomic_ack);
  if (!answer->payload.empty()) text += fmt::format(", {} bytes", answer->payload.size());
  return text;
}

std::string request_line(const WirePacket& packet) {
  const auto& headers = packet.headers;
  auto text = fmt::format("frame {:>6}  -> {} PSN {}{}", packet.frame, packet.row().name, packet.psn().value(),
                          headers.bth.ack_request ? ", asks for an ACK" : "");
  if (headers.reth)
    text += fmt::format(", {:#x} rkey {:#x}, {} bytes", headers.reth->address, headers.reth->rkey.value,
                        headers.reth->length);
  if (headers.atomic) text += fmt::format(", {:#x} rkey {:#x}", headers.atomic->address, headers.atomic->rkey.value);
  return text;
}

// The packets of a QP up to a frame, oldest first.
std::string last_packets(const QpEnvironment& qp, std::uint32_t frame) {
  std::vector<std::pair<std::uint32_t, std::string>> lines;
  for (const auto& request : qp.requests)
    if (request.packet->frame <= frame) lines.emplace_back(request.packet->frame, request_line(*request.packet));
  for (const auto* answer : qp.answers)
    if (answer->frame <= frame)
      lines.emplace_back(answer->frame, fmt::format("frame {:>6}  <- {}", answer->frame,
                                                    decoded(Answer{answer->frame, answer->headers, answer->payload})));
  std::ranges::sort(lines);
  std::string text;
  for (auto i = lines.size() - std::min(lines.size(), kShownPackets); i < lines.size(); ++i)
    text += fmt::format("        {}\n", lines[i].second);
  return text;
}

std::string place(const Difference& difference) {
  return difference.theirs ? fmt::format("frame {}", difference.theirs->frame)
                           : fmt::format("asked for in frame {}", difference.ours->frame);
}

std::string difference_text(const Difference& difference, const QpEnvironment* qp) {
  const auto whose = qp ? fmt::format("QP {:#08x}", qp->qpn.value) : "an answer that is corrupt, or of no QP replayed";
  auto text = fmt::format("difference: {}, {}\n", whose, place(difference));
  text += fmt::format("    ours    {}\n    theirs  {}\n", decoded(difference.ours), decoded(difference.theirs));
  for (const auto& field : difference.fields)
    text += fmt::format("    {:<11} ours {}, theirs {}\n", field.field, field.ours, field.theirs);
  if (!qp) return text;
  return text + "    last packets of this QP:\n" + last_packets(*qp, difference.frame());
}

std::string row(const std::string& name, std::uint64_t value) { return fmt::format("{:<40} {:>8}\n", name, value); }

std::string qp_line(const QpEnvironment& qp, const Comparison& comparison) {
  return fmt::format(
      "QP {:#08x} of {} QP {:#08x}, MTU {}, from PSN {}: {} requests, {} answers, {} matched, {} differences\n",
      qp.qpn.value, address_text(qp.peer), qp.peer_qpn.value, roce::mtu_bytes(qp.path_mtu), qp.first_psn.value(),
      qp.requests.size(), qp.answers.size(), comparison.matched, comparison.differences.size());
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
  return text;
}

nlohmann::ordered_json difference_json(const Difference& difference, const QpEnvironment* qp) {
  nlohmann::ordered_json json;
  if (qp) json["qpn"] = qp->qpn.value;
  json["frame"] = difference.frame();
  if (difference.ours) json["ours"] = decoded(difference.ours);
  if (difference.theirs) json["theirs"] = decoded(difference.theirs);
  json["fields"] = nlohmann::ordered_json::array();
  for (const auto& field : difference.fields)
    json["fields"].push_back({{"field", field.field}, {"ours", field.ours}, {"theirs", field.theirs}});
  return json;
}

}  // namespace

std::string report_text(const Replay& replay) {
  auto text = frames_text(replay);
  text += row("bytes read, checked by what was written", replay.memory_use.checked);
  text += row("bytes read, known by the answer only", replay.memory_use.learnt);
  text += "equivalences used\n";
  const auto used = replay.equivalences();
  for (std::size_t i = 0; i < used.size(); ++i) text += row(fmt::format("  {}", kEquivalences[i].name), used[i]);
  text += row("differences", replay.differences());
  const auto& qps = replay.environment.qps;
  for (std::size_t i = 0; i < qps.size(); ++i) text += qp_line(qps[i], replay.comparisons[i]);

  std::size_t shown = 0;
  const auto show = [&](const Difference& difference, const QpEnvironment* qp) {
    if (shown++ < kShownDifferences) text += '\n' + difference_text(difference, qp);
  };
  for (std::size_t i = 0; i < qps.size(); ++i)
    for (const auto& difference : replay.comparisons[i].differences) show(difference, &qps[i]);
  for (const auto& stray : replay.strays) show(stray, nullptr);
  if (shown > kShownDifferences) text += fmt::format("\nand {} more differences\n", shown - kShownDifferences);
  return text;
}

void write_report(const std::filesystem::path& path, const Replay& replay) {
  const auto& qps = replay.environment.qps;
  nlohmann::ordered_json json;
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
  json["qps"] = json["differences"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < qps.size(); ++i) {
    json["qps"].push_back({{"qpn", qps[i].qpn.value},
                           {"peer", address_text(qps[i].peer)},
                           {"peer_qpn", qps[i].peer_qpn.value},
                           {"path_mtu", roce::mtu_bytes(qps[i].path_mtu)},
                           {"first_psn", qps[i].first_psn.value()},
                           {"requests", qps[i].requests.size()},
                           {"answers", qps[i].answers.size()},
                           {"matched", replay.comparisons[i].matched},
                           {"differences", replay.comparisons[i].differences.size()}});
    for (const auto& difference : replay.comparisons[i].differences)
      json["differences"].push_back(difference_json(difference, &qps[i]));
  }
  for (const auto& stray : replay.strays) json["differences"].push_back(difference_json(stray, nullptr));

  std::ofstream out(path);
  out << json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
  if (!out.flush()) throw ConfigError(fmt::format("{}: cannot be written", shown(path.string())));
}

}  // namespace rnicsim::sim::replay
