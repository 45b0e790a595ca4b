// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/comparer.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "sim/replay/capture/alignment.h"

namespace rnicsim::sim::replay {
namespace {

using roce::Aeth;

bool plain_ack(const Answer& answer) {
  return answer.headers.bth.opcode == roce::Opcode::acknowledge && answer.headers.aeth &&
         (answer.headers.aeth->syndrome & ~Aeth::kValueMask) == Aeth::kAck;
}

bool is_rnr_nak(const Answer& answer) {
  return answer.headers.bth.opcode == roce::Opcode::acknowledge && answer.headers.aeth &&
         (answer.headers.aeth->syndrome & ~Aeth::kValueMask) == Aeth::kRnrNak;
}

bool same_place(const Answer& a, const Answer& b) {
  return a.psn() == b.psn() && a.headers.aeth->msn == b.headers.aeth->msn;
}

class Answers : public Alignment {
 public:
  Answers(std::span<const Asked> asked, std::span<const Answer> ours, std::span<const Answer> theirs)
      : Alignment(Subject::answer, ours, theirs), asked_(asked) {
    for (const auto& each : asked)
      if (each.executed && each.ack_request) required_acks_.emplace(each.last.value(), &each);
  }

 private:
  PairRules rules(const SentPacket& ours) const override {
    const auto* asked = asked_in(ours.frame);
    return {.answers = true, .resumed = asked != nullptr && asked->resumed};
  }

  // An ACK of the engine that the real NIC coalesced into a later answer.
  std::optional<Equivalence> excuse_ours() const override {
    if (!plain_ack(ours_[i_])) return std::nullopt;
    const auto& ack = ours_[i_];
    const bool stands = j_ < theirs_.size() && stands_for(theirs_[j_], ack) && credible(j_);
    if (stands) return Equivalence::ack_coalesced;
    if (j_ == 0 || !asked_twice(ack.frame)) return std::nullopt;
    const auto& last = theirs_[j_ - 1];
    const bool covers = last.frame > ack.frame && !before(last.psn(), ack.psn());
    return covers ? std::optional(Equivalence::duplicate_ack) : std::nullopt;
  }

  // An answer of the real NIC that the engine coalesced into a later one, or need not send.
  std::optional<Equivalence> excuse_theirs() const override {
    if (repeats_rnr_nak(j_)) return Equivalence::nak_behind_rnr;
    if (!plain_ack(theirs_[j_])) return std::nullopt;
    const auto& ack = theirs_[j_];
    const bool answered = i_ != 0 && !before(ours_[i_ - 1].psn(), ack.psn());
    const bool later = i_ < ours_.size() && before(ack.psn(), ours_[i_].psn());
    if (later && !answered && was_asked_for(ack) && in_order(j_)) return Equivalence::ack_coalesced;
    return repeats_for_duplicate(j_) ? std::optional(Equivalence::duplicate_ack) : std::nullopt;
  }

  static bool stands_for(const Answer& later, const Answer& ack) {
    if (later.frame <= ack.frame || !before(ack.psn(), later.psn())) return false;
    return !later.headers.aeth ||
           !before(roce::Psn(later.headers.aeth->msn), roce::Psn(ack.headers.aeth->msn));  // MSNs have 24 bits, too
  }

  // True: the real NIC had to send this answer, so it may replace others.
  bool credible(std::size_t j) const {
    const auto& answer = theirs_[j];
    if (plain_ack(answer)) return in_order(j) && was_asked_for(answer);
    for (auto i = i_; i < ours_.size(); ++i)
      if (ours_[i].psn() == answer.psn()) return same(i, j);
    return false;
  }
  bool in_order(std::size_t j) const { return j == 0 || before(theirs_[j - 1].psn(), theirs_[j].psn()); }
  bool was_asked_for(const Answer& ack) const {
    const auto [first, last] = required_acks_.equal_range(ack.psn().value());
    return std::any_of(first, last, [&](const auto& required_ack) {
      return required_ack.second->frame < ack.frame && required_ack.second->msn == ack.headers.aeth->msn;
    });
  }
  const Asked* asked_in(std::uint32_t frame) const {
    const auto asked = std::ranges::lower_bound(asked_, frame, {}, &Asked::frame);
    return asked != asked_.end() && asked->frame == frame ? &*asked : nullptr;
  }
  bool asked_twice(std::uint32_t frame) const {
    const auto* asked = asked_in(frame);
    return asked != nullptr && asked->duplicate;
  }
  // True: an ACK repeated at most once for each duplicate request between the two.
  bool repeats_for_duplicate(std::size_t j) const {
    auto first = j;
    while (first > 0 && plain_ack(theirs_[first - 1]) && same_place(theirs_[first - 1], theirs_[j])) --first;
    const auto from = std::ranges::upper_bound(asked_, theirs_[first].frame, {}, &Asked::frame);
    const auto to = std::ranges::lower_bound(asked_, theirs_[j].frame, {}, &Asked::frame);
    if (first == j || from >= to) return false;
    return static_cast<std::size_t>(std::count_if(from, to, std::mem_fn(&Asked::duplicate))) >= j - first;
  }
  // True: a sequence NAK for the PSN of the preceding RNR NAK, with a later packet received between them. Both sides
  // agree then that the message was refused.
  bool repeats_rnr_nak(std::size_t j) const {
    const auto& nak = theirs_[j];
    const bool sequence = nak.headers.bth.opcode == roce::Opcode::acknowledge && nak.headers.aeth &&
                          nak.headers.aeth->syndrome == Aeth::kSequenceError;
    if (!sequence || i_ == 0 || j == 0) return false;
    const auto& refused = ours_[i_ - 1];
    const auto& behind = theirs_[j - 1];
    if (!is_rnr_nak(refused) || !is_rnr_nak(behind) || !same_place(behind, nak) || !same_place(refused, nak))
      return false;
    const auto from = std::ranges::upper_bound(asked_, refused.frame, {}, &Asked::frame);
    const auto to = std::ranges::lower_bound(asked_, nak.frame, {}, &Asked::frame);
    return from < to && std::any_of(from, to, [&](const Asked& each) { return before(nak.psn(), each.last); });
  }

  std::span<const Asked> asked_;
  std::multimap<std::uint32_t, const Asked*> required_acks_;  // required ACKs by PSN
};

class Requests : public Alignment {
 public:
  Requests(std::span<const SentPacket> ours, std::span<const SentPacket> theirs)
      : Alignment(Subject::request, ours, theirs) {}

 private:
  PairRules rules(const SentPacket&) const override { return {.answers = false}; }
};

std::string hex_or_none(const std::optional<std::uint32_t>& number) {
  return number ? fmt::format("{:#x}", *number) : "none";
}

std::string text_of(const Delivery& delivery) {
  auto text = fmt::format("{} of {} bytes", delivery.is_write ? "WRITE" : "SEND", delivery.bytes.size());
  if (delivery.immediate) text += fmt::format(", immediate {:#x}", *delivery.immediate);
  return text;
}

std::vector<FieldDifference> unlike_fields(const Delivery& ours, const Delivery& theirs) {
  std::vector<FieldDifference> fields;
  const auto number = [&](const char* field, const auto& a, const auto& b) {
    if (a != b) fields.push_back({field, hex_or_none(a), hex_or_none(b)});
  };
  if (ours.is_write != theirs.is_write) fields.push_back({"kind", text_of(ours), text_of(theirs)});
  number("immediate", ours.immediate, theirs.immediate);
  number("invalidate", ours.invalidate, theirs.invalidate);
  number("source", ours.source, theirs.source);
  if (ours.bytes.size() != theirs.bytes.size()) {
    fields.push_back({"bytes", std::to_string(ours.bytes.size()), std::to_string(theirs.bytes.size())});
  } else if (const auto [a, b] = std::ranges::mismatch(ours.bytes, theirs.bytes); a != ours.bytes.end()) {
    const auto at = a - ours.bytes.begin();
    const auto show = [&](std::byte byte) { return fmt::format("{:#04x} at byte {}", std::to_integer<int>(byte), at); };
    fields.push_back({"bytes", show(*a), show(*b)});
  }
  return fields;
}

}  // namespace

Comparison compare(std::span<const Asked> asked, std::span<const Answer> ours, std::span<const Answer> theirs) {
  return Answers(asked, ours, theirs).run();
}

Comparison compare_requests(std::span<const SentPacket> ours, std::span<const SentPacket> theirs) {
  return Requests(ours, theirs).run();
}

Comparison compare_deliveries(std::span<const Delivery> ours, std::span<const Delivery> theirs) {
  Comparison result;
  std::size_t i = 0, j = 0;
  while (i < ours.size() || j < theirs.size()) {
    const bool only_ours = j == theirs.size() || (i < ours.size() && ours[i].frame < theirs[j].frame);
    const bool only_theirs = i == ours.size() || (j < theirs.size() && theirs[j].frame < ours[i].frame);
    if (only_ours) {
      result.differences.push_back({Subject::delivery, ours[i].frame, text_of(ours[i]), std::nullopt, {}});
    } else if (only_theirs) {
      result.differences.push_back({Subject::delivery, theirs[j].frame, std::nullopt, text_of(theirs[j]), {}});
    } else if (auto fields = unlike_fields(ours[i], theirs[j]); fields.empty()) {
      ++result.matched;
    } else {
      result.differences.push_back(
          {Subject::delivery, theirs[j].frame, text_of(ours[i]), text_of(theirs[j]), std::move(fields)});
    }
    i += !only_theirs, j += !only_ours;
  }
  return result;
}

}  // namespace rnicsim::sim::replay
