// SPDX-License-Identifier: Apache-2.0
#include "sim/waterfall/counter_track.h"

#include <algorithm>
#include <array>
#include <span>

#include "sim/waterfall/timeline_lines.h"

namespace rnicsim::sim {
namespace {

using Samples = std::vector<CounterTrack::Sample>;

constexpr std::size_t kFewest = 4;  // samples that thinning always leaves

// Keeps the first, smallest, largest and last sample of one interval.
void keep_outline(std::span<const CounterTrack::Sample> samples, Samples& kept) {
  const auto by_value = [](const auto& one, const auto& other) { return one.value < other.value; };
  const auto [least, most] = std::minmax_element(samples.begin(), samples.end(), by_value);
  std::array picked{samples.begin(), least, most, samples.end() - 1};
  std::ranges::sort(picked);
  for (const auto sample : picked)
    if (kept.empty() || (kept.back().at != sample->at && kept.back().value != sample->value)) kept.push_back(*sample);
}

}  // namespace

void CounterTrack::add(Duration at, double value) {
  if (!samples_.empty() && samples_.back().at == at) samples_.pop_back();
  if (samples_.empty() || samples_.back().value != value) samples_.push_back({at, value});
}

void CounterTrack::thin(std::size_t most) {
  while (samples_.size() > std::max(most, kFewest)) {
    const auto span = samples_.back().at - samples_.front().at;
    stretch_ps_ = std::max(2 * stretch_ps_, span.ps / static_cast<std::int64_t>(samples_.size()));
    const auto stretch_of = [this](const Sample& sample) { return (sample.at - samples_.front().at).ps / stretch_ps_; };
    Samples kept;
    for (auto begin = samples_.begin(); begin != samples_.end();) {
      const auto end = std::find_if(begin, samples_.end(),
                                    [&](const Sample& sample) { return stretch_of(sample) != stretch_of(*begin); });
      keep_outline({begin, end}, kept);
      begin = end;
    }
    samples_ = std::move(kept);
  }
}

void CounterTrack::append_to(std::string& text) const {
  const auto name = timeline::quoted(name_), unit = timeline::quoted(unit_);
  for (const auto& [at, value] : samples_) timeline::append_sample(text, process_, name, unit, at, value);
}

void CounterTracks::add(CounterTrack& track, Duration at, double value) {
  const auto before = track.samples().size();
  track.add(at, value);
  samples_ += track.samples().size() - before;
  if (samples_ > limit_) thin();
}

void CounterTracks::thin() {
  const auto share = limit_ / 2 / tracks_.size();
  samples_ = 0;
  for (auto& track : tracks_) {
    track.thin(share);
    samples_ += track.samples().size();
  }
  // With very many tracks, each keeps more than its share; without this line every new sample would cause thinning.
  limit_ = std::max(limit_, 2 * samples_);
}

}  // namespace rnicsim::sim
