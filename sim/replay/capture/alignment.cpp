// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/capture/alignment.h"

namespace rnicsim::sim::replay {
namespace {

// Largest number of packets, of both sides together, that are skipped to find the next agreement.
constexpr std::size_t kHorizon = 64;

}  // namespace

Comparison Alignment::run() {
  while (i_ < ours_.size() || j_ < theirs_.size()) {
    if (match()) continue;
    if (const auto freedom = i_ < ours_.size() ? excuse_ours() : std::nullopt) {
      result_.use(*freedom);
      ++i_;
    } else if (const auto other = j_ < theirs_.size() ? excuse_theirs() : std::nullopt) {
      result_.use(*other);
      ++j_;
    } else {
      differ();
    }
  }
  return std::move(result_);
}

bool Alignment::same(std::size_t i, std::size_t j) const {
  return have(i, j) && same_kind(ours_[i], theirs_[j]) && validate(ours_[i], theirs_[j], rules(ours_[i])).same();
}

bool Alignment::match() {
  if (!have(i_, j_)) return false;
  const auto verdict = validate(ours_[i_], theirs_[j_], rules(ours_[i_]));
  if (!verdict.same()) return false;
  for (const auto freedom : verdict.freedoms) result_.use(freedom);
  ++result_.matched, ++i_, ++j_;
  return true;
}

// Finds the nearest place where both sides agree again, and skips one packet towards it.
void Alignment::differ() {
  if (i_ == ours_.size()) return only_theirs();
  if (j_ == theirs_.size()) return only_ours();
  const bool belong_together = same_kind(ours_[i_], theirs_[j_]);
  // An answer before its request is probably a surplus one, if the right answer follows.
  const bool early = rules(ours_[i_]).answers && theirs_[j_].frame <= ours_[i_].frame;
  if (belong_together && !early) return both();
  for (std::size_t apart = 1; apart <= kHorizon; ++apart)
    for (std::size_t skipped = 0; skipped <= apart; ++skipped) {
      if (!same(i_ + skipped, j_ + apart - skipped)) continue;
      if (2 * skipped == apart) return both();
      return 2 * skipped > apart ? only_ours() : only_theirs();
    }
  const bool last = i_ + 1 == ours_.size() && j_ + 1 == theirs_.size();
  if (last || belong_together || ours_[i_].psn() == theirs_[j_].psn()) return both();
  before(ours_[i_].psn(), theirs_[j_].psn()) ? only_ours() : only_theirs();
}

void Alignment::both() {
  const auto& ours = ours_[i_++];
  const auto& theirs = theirs_[j_++];
  result_.differences.push_back(
      {subject_, theirs.frame, decoded(ours), decoded(theirs), validate(ours, theirs, rules(ours)).fields});
}

void Alignment::only_ours() {
  const auto& ours = ours_[i_++];
  result_.differences.push_back({subject_, ours.frame, decoded(ours), std::nullopt, {}});
}

void Alignment::only_theirs() {
  const auto& theirs = theirs_[j_++];
  result_.differences.push_back({subject_, theirs.frame, std::nullopt, decoded(theirs), {}});
}

}  // namespace rnicsim::sim::replay
