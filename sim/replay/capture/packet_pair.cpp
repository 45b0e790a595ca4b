// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/capture/packet_pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace rnicsim::sim::replay {
namespace {

using roce::Aeth;

std::string hex(std::uint64_t value) { return fmt::format("{:#x}", value); }

class Pair {
 public:
  Pair(const SentPacket& ours, const SentPacket& theirs, PairRules rules)
      : ours_(ours), theirs_(theirs), rules_(rules) {}

  PairVerdict validate() {
    const auto& a = ours_.headers;
    const auto& b = theirs_.headers;
    if (rules_.answers && theirs_.frame <= ours_.frame)
      differ("order", fmt::format("requested in frame {}", ours_.frame),
             fmt::format("given in frame {}", theirs_.frame));
    compare_opcode(a.bth.opcode, b.bth.opcode);
    compare_number("psn", a.bth.psn.value(), b.bth.psn.value());
    compare_number("destination", a.bth.destination.value, b.bth.destination.value);
    compare_number("pkey", a.bth.pkey, b.bth.pkey);
    compare_number("solicited", a.bth.solicited, b.bth.solicited);
    compare_ack_request();
    if (a.aeth && b.aeth) {
      if (credits_apart(a.aeth->syndrome, b.aeth->syndrome))
        allow(Equivalence::ack_credits);
      else if (a.aeth->syndrome != b.aeth->syndrome)
        differ("syndrome", hex(a.aeth->syndrome), hex(b.aeth->syndrome));
      compare_number("msn", a.aeth->msn, b.aeth->msn);
    }
    if (a.atomic_ack && b.atomic_ack && a.atomic_ack != b.atomic_ack)
      differ("original", hex(*a.atomic_ack), hex(*b.atomic_ack));
    compare_request();
    compare_payload();
    if (a.bth.migrated != b.bth.migrated) allow(Equivalence::migration_state);
    if (a.bth.fecn != b.bth.fecn || a.bth.becn != b.bth.becn) allow(Equivalence::congestion_marks);
    return std::move(verdict_);
  }

 private:
  static bool credits_apart(std::uint8_t ours, std::uint8_t theirs) {
    const auto ack = [](std::uint8_t syndrome) { return (syndrome & ~Aeth::kValueMask) == Aeth::kAck; };
    return ours != theirs && ack(ours) && ack(theirs);
  }
  void allow(Equivalence freedom) { verdict_.freedoms.push_back(freedom); }
  void differ(const char* field, std::string ours, std::string theirs) {
    verdict_.fields.push_back({field, std::move(ours), std::move(theirs)});
  }
  void compare_number(const char* field, std::uint32_t ours, std::uint32_t theirs) {
    if (ours != theirs) differ(field, std::to_string(ours), std::to_string(theirs));
  }
  void compare_hex(const char* field, std::uint64_t ours, std::uint64_t theirs) {
    if (ours != theirs) differ(field, hex(ours), hex(theirs));
  }
  void compare_opcode(roce::Opcode ours, roce::Opcode theirs) {
    using enum roce::Opcode;
    if (ours == theirs) return;
    const bool goes_on = (ours == read_response_first && theirs == read_response_middle) ||
                         (ours == read_response_only && theirs == read_response_last);
    if (rules_.resumed && goes_on) return allow(Equivalence::read_resumed);
    differ("opcode", roce::info(ours).name, roce::info(theirs).name);
  }
  void compare_ack_request() {
    const auto ours = ours_.headers.bth.ack_request, theirs = theirs_.headers.bth.ack_request;
    if (ours == theirs) return;
    const auto& row = theirs_.row();
    if (!rules_.answers && row.transport == roce::Transport::rc && !row.ends()) return allow(Equivalence::ack_request);
    compare_number("ack_request", ours, theirs);
  }
  // Only requests have these headers; the opcode determines which.
  void compare_request() {
    const auto& a = ours_.headers;
    const auto& b = theirs_.headers;
    if (a.reth && b.reth) {
      compare_hex("address", a.reth->address, b.reth->address);
      compare_hex("rkey", a.reth->rkey.value, b.reth->rkey.value);
      compare_number("length", a.reth->length, b.reth->length);
    }
    if (a.atomic && b.atomic) {
      compare_hex("address", a.atomic->address, b.atomic->address);
      compare_hex("rkey", a.atomic->rkey.value, b.atomic->rkey.value);
      compare_hex("swap_add", a.atomic->swap_add, b.atomic->swap_add);
      compare_hex("compare", a.atomic->compare, b.atomic->compare);
    }
    if (a.deth && b.deth) {
      compare_hex("qkey", a.deth->qkey, b.deth->qkey);
      compare_number("source", a.deth->source.value, b.deth->source.value);
    }
    if (a.immediate && b.immediate) compare_hex("immediate", *a.immediate, *b.immediate);
    if (a.invalidate && b.invalidate) compare_hex("invalidate", a.invalidate->value, b.invalidate->value);
  }
  // Padding is not compared: packet_tx adds the pad later, so an engine's packet has none.
  void compare_payload() {
    const auto ours = ours_.payload.bytes();
    const auto theirs = theirs_.payload.bytes();
    if (ours.size() != theirs.size()) {
      differ("payload", fmt::format("{} bytes", ours.size()), fmt::format("{} bytes", theirs.size()));
    } else if (const auto [a, b] = std::ranges::mismatch(ours, theirs); a != ours.end()) {
      const auto at = a - ours.begin();
      const auto show = [&](std::byte byte) {
        return fmt::format("{:#04x} at byte {}", std::to_integer<int>(byte), at);
      };
      differ("payload", show(*a), show(*b));
    }
    const auto pad = static_cast<std::uint32_t>(-theirs.size() & 3);
    if (theirs_.headers.bth.pad != pad) differ("pad", std::to_string(pad), std::to_string(theirs_.headers.bth.pad));
  }

  const SentPacket& ours_;
  const SentPacket& theirs_;
  const PairRules rules_;
  PairVerdict verdict_;
};

std::string syndrome_text(std::uint8_t syndrome) {
  const unsigned value = syndrome & Aeth::kValueMask;
  switch (syndrome & Aeth::kClassMask) {
    case Aeth::kAck: return fmt::format("ACK, credits {:#x}", value);
    case Aeth::kRnrNak: return fmt::format("RNR NAK, timer {}", value);
    case Aeth::kNak: break;
    default: return fmt::format("reserved {:#04x}", syndrome);
  }
  switch (syndrome) {
    case Aeth::kSequenceError: return "NAK, PSN sequence error";
    case Aeth::kInvalidRequest: return "NAK, invalid request";
    case Aeth::kRemoteAccessError: return "NAK, remote access error";
    case Aeth::kRemoteOperationError: return "NAK, remote operational error";
    default: return fmt::format("NAK {:#x}", value);
  }
}

enum class Kind : std::uint8_t { acknowledge, nak, rnr_nak, other };

Kind kind_of(const SentPacket& packet) {
  if (packet.row().operation != roce::Operation::acknowledge || !packet.headers.aeth) return Kind::other;
  switch (packet.headers.aeth->syndrome & Aeth::kClassMask) {
    case Aeth::kAck: return Kind::acknowledge;
    case Aeth::kRnrNak: return Kind::rnr_nak;
    default: return Kind::nak;
  }
}

}  // namespace

std::string decoded(const SentPacket& packet) {
  const auto& headers = packet.headers;
  auto text = fmt::format("{} to QP {:#08x}, PSN {}", packet.row().name, headers.bth.destination.value,
                          headers.bth.psn.value());
  if (headers.bth.ack_request) text += ", asks for an ACK";
  if (headers.reth)
    text += fmt::format(", {:#x} rkey {:#x}, {} bytes", headers.reth->address, headers.reth->rkey.value,
                        headers.reth->length);
  if (headers.atomic) text += fmt::format(", {:#x} rkey {:#x}", headers.atomic->address, headers.atomic->rkey.value);
  if (headers.deth) text += fmt::format(", Q_Key {:#x}", headers.deth->qkey);
  if (headers.aeth) text += fmt::format(", {}, MSN {}", syndrome_text(headers.aeth->syndrome), headers.aeth->msn);
  if (headers.atomic_ack) text += fmt::format(", original {:#x}", *headers.atomic_ack);
  if (!packet.payload.empty()) text += fmt::format(", payload of {} bytes", packet.payload.size());
  return text;
}

PairVerdict validate(const SentPacket& ours, const SentPacket& theirs, PairRules rules) {
  return Pair(ours, theirs, rules).validate();
}

bool same_kind(const SentPacket& a, const SentPacket& b) {
  return a.psn() == b.psn() && a.row().operation == b.row().operation && kind_of(a) == kind_of(b);
}

}  // namespace rnicsim::sim::replay
