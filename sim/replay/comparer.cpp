#include "sim/replay/comparer.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

namespace rnicsim::sim::replay {
namespace {

using roce::Aeth;

// One pair of answers: what differs, and which freedoms it needs.
struct PairVerdict {
  std::vector<FieldDifference> fields;
  std::vector<Equivalence> freedoms;
  bool same() const { return fields.empty(); }
};

std::string hex(std::uint64_t value) { return fmt::format("{:#x}", value); }

class Pair {
 public:
  Pair(const Answer& ours, const Answer& theirs) : ours_(ours), theirs_(theirs) {}

  PairVerdict judge() {
    const auto& a = ours_.headers;
    const auto& b = theirs_.headers;
    if (theirs_.frame <= ours_.frame)
      differ("order", fmt::format("asked for in frame {}", ours_.frame),
             fmt::format("given in frame {}", theirs_.frame));
    compare_text("opcode", roce::info(a.bth.opcode).name, roce::info(b.bth.opcode).name);
    compare_number("psn", a.bth.psn.value(), b.bth.psn.value());
    compare_number("destination", a.bth.destination.value, b.bth.destination.value);
    compare_number("pkey", a.bth.pkey, b.bth.pkey);
    compare_number("solicited", a.bth.solicited, b.bth.solicited);
    compare_number("ack_request", a.bth.ack_request, b.bth.ack_request);
    if (a.aeth && b.aeth) {
      if (credits_apart(a.aeth->syndrome, b.aeth->syndrome))
        allow(Equivalence::ack_credits);
      else if (a.aeth->syndrome != b.aeth->syndrome)
        differ("syndrome", hex(a.aeth->syndrome), hex(b.aeth->syndrome));
      compare_number("msn", a.aeth->msn, b.aeth->msn);
    }
    if (a.atomic_ack && b.atomic_ack && a.atomic_ack != b.atomic_ack)
      differ("original", hex(*a.atomic_ack), hex(*b.atomic_ack));
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
  void compare_text(const char* field, const char* ours, const char* theirs) {
    if (std::string_view(ours) != theirs) differ(field, ours, theirs);
  }
  // The pad is packet_tx's: an engine's answer has none yet.
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

  const Answer& ours_;
  const Answer& theirs_;
  PairVerdict verdict_;
};

bool plain_ack(const Answer& answer) {
  return answer.headers.bth.opcode == roce::Opcode::acknowledge && answer.headers.aeth &&
         (answer.headers.aeth->syndrome & ~Aeth::kValueMask) == Aeth::kAck;
}

roce::Psn psn(const Answer& answer) { return answer.headers.bth.psn; }

// Walks both lists together.
class Alignment {
 public:
  Alignment(std::span<const Asked> asked, std::span<const Answer> ours, std::span<const Answer> theirs)
      : asked_(asked), ours_(ours), theirs_(theirs) {
    for (const auto& each : asked)
      if (each.executed && each.ack_request) owed_.emplace(each.last.value(), &each);
  }

  Comparison run() {
    while (i_ < ours_.size() || j_ < theirs_.size()) {
      if (match() || excuse_ours() || excuse_theirs()) continue;
      differ();
    }
    return std::move(result_);
  }

 private:
  bool have(std::size_t i, std::size_t j) const { return i < ours_.size() && j < theirs_.size(); }
  bool same(std::size_t i, std::size_t j) const { return have(i, j) && Pair(ours_[i], theirs_[j]).judge().same(); }
  void use(Equivalence freedom) { ++result_.equivalences[static_cast<std::size_t>(freedom)]; }

  bool match() {
    if (!have(i_, j_)) return false;
    const auto verdict = Pair(ours_[i_], theirs_[j_]).judge();
    if (!verdict.same()) return false;
    for (const auto freedom : verdict.freedoms) use(freedom);
    ++result_.matched, ++i_, ++j_;
    return true;
  }

  // An ACK of the engine's that the real NIC left to a later answer.
  bool excuse_ours() {
    if (i_ == ours_.size() || !plain_ack(ours_[i_])) return false;
    const auto& ack = ours_[i_];
    const bool stands = j_ < theirs_.size() && stands_for(theirs_[j_], ack) && credible(j_);
    if (stands) return excuse(i_, Equivalence::ack_coalesced);
    if (j_ == 0 || !asked_twice(ack.frame)) return false;
    const auto& last = theirs_[j_ - 1];
    const bool covers = last.frame > ack.frame && !before(psn(last), psn(ack));
    return covers && excuse(i_, Equivalence::duplicate_ack);
  }

  // An ACK of the real NIC's that the engine left to a later answer.
  bool excuse_theirs() {
    if (j_ == theirs_.size() || !plain_ack(theirs_[j_])) return false;
    const auto& ack = theirs_[j_];
    const bool answered = i_ != 0 && !before(psn(ours_[i_ - 1]), psn(ack));
    const bool later = i_ < ours_.size() && before(psn(ack), psn(ours_[i_]));
    if (later && !answered && was_asked_for(ack) && in_order(j_)) return excuse(j_, Equivalence::ack_coalesced);
    return repeats_for_duplicate(j_) && excuse(j_, Equivalence::duplicate_ack);
  }

  bool excuse(std::size_t& index, Equivalence freedom) {
    use(freedom);
    ++index;
    return true;
  }

  static bool stands_for(const Answer& later, const Answer& ack) {
    if (later.frame <= ack.frame || !before(psn(ack), psn(later))) return false;
    return !later.headers.aeth ||
           !before(roce::Psn(later.headers.aeth->msn), roce::Psn(ack.headers.aeth->msn));  // 24 bits both
  }

  // The real NIC's answer is one that it owed: it may stand for others.
  bool credible(std::size_t j) const {
    const auto& answer = theirs_[j];
    if (plain_ack(answer)) return in_order(j) && was_asked_for(answer);
    for (auto i = i_; i < ours_.size(); ++i)
      if (psn(ours_[i]) == psn(answer)) return same(i, j);
    return false;
  }
  bool in_order(std::size_t j) const { return j == 0 || before(psn(theirs_[j - 1]), psn(theirs_[j])); }
  bool was_asked_for(const Answer& ack) const {
    const auto [first, last] = owed_.equal_range(psn(ack).value());
    return std::any_of(first, last, [&](const auto& owed) {
      return owed.second->frame < ack.frame && owed.second->msn == ack.headers.aeth->msn;
    });
  }
  bool asked_twice(std::uint32_t frame) const {
    const auto asked = std::ranges::lower_bound(asked_, frame, {}, &Asked::frame);
    return asked != asked_.end() && asked->frame == frame && asked->duplicate;
  }
  // The same ACK again, and not more often than duplicates came in between.
  bool repeats_for_duplicate(std::size_t j) const {
    auto first = j;
    while (first > 0 && plain_ack(theirs_[first - 1]) && psn(theirs_[first - 1]) == psn(theirs_[j]) &&
           theirs_[first - 1].headers.aeth->msn == theirs_[j].headers.aeth->msn)
      --first;
    const auto from = std::ranges::upper_bound(asked_, theirs_[first].frame, {}, &Asked::frame);
    const auto to = std::ranges::lower_bound(asked_, theirs_[j].frame, {}, &Asked::frame);
    if (first == j || from >= to) return false;
    return static_cast<std::size_t>(std::count_if(from, to, std::mem_fn(&Asked::duplicate))) >= j - first;
  }

  // What is paired, and what stands alone, so that one fault shows once.
  void differ() {
    if (i_ == ours_.size()) return only_theirs();
    if (j_ == theirs_.size()) return only_ours();
    if (psn(ours_[i_]) == psn(theirs_[j_])) return both();
    if (same(i_ + 1, j_)) return only_ours();
    if (same(i_, j_ + 1)) return only_theirs();
    const bool last = i_ + 1 == ours_.size() && j_ + 1 == theirs_.size();
    if (last || same(i_ + 1, j_ + 1)) return both();
    before(psn(ours_[i_]), psn(theirs_[j_])) ? only_ours() : only_theirs();
  }
  void both() {
    auto fields = Pair(ours_[i_], theirs_[j_]).judge().fields;
    result_.differences.push_back({ours_[i_++], theirs_[j_++], std::move(fields)});
  }
  void only_ours() { result_.differences.push_back({ours_[i_++], std::nullopt, {}}); }
  void only_theirs() { result_.differences.push_back({std::nullopt, theirs_[j_++], {}}); }

  std::span<const Asked> asked_;
  std::multimap<std::uint32_t, const Asked*> owed_;  // an ACK, by PSN
  std::span<const Answer> ours_;
  std::span<const Answer> theirs_;
  std::size_t i_ = 0;
  std::size_t j_ = 0;
  Comparison result_;
};

}  // namespace

Comparison compare(std::span<const Asked> asked, std::span<const Answer> ours, std::span<const Answer> theirs) {
  return Alignment(asked, ours, theirs).run();
}

}  // namespace rnicsim::sim::replay
