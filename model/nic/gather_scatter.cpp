#include "model/nic/gather_scatter.h"

#include <algorithm>

namespace rnicsim::nic {

struct GatherScatter::Job {
  Tag tag;
  Qpn qpn;
  bool is_gather;
  AccessRequest access;
  Regions regions;
  Payload payload;
  bool more = false;
  std::vector<Translated> places{};
  std::size_t awaited = 0;
  bool translated = false;
  bool forgotten = false;
  AccessResult result = AccessResult::ok;
};

// The usual request names one region, whose translation is at hand: no job is made for it.
std::optional<Translated> GatherScatter::only_place(const Regions& regions, const AccessRequest& access) {
  if (regions.size() != 1 || regions[0].length == 0) return std::nullopt;
  auto place = translation_.translate_now(access, regions[0]);
  if (place && place->ranges.size() > 1) return std::nullopt;
  return place;
}

void GatherScatter::gather(Gather request) {
  if (const auto place = only_place(request.regions, {request.pd, request.access})) {
    translated({request.tag, request.qpn});
    if (place->result != AccessResult::ok) return gathered({request.tag, place->result, {}});
    return dma_.read(
        place->place(0), request.regions[0].length,
        [this, tag = request.tag](AccessResult result, Payload bytes) { gathered({tag, result, std::move(bytes)}); },
        timing_only_);
  }
  translate(std::make_shared<Job>(Job{.tag = request.tag, .qpn = request.qpn, .is_gather = true,
                                      .access = {request.pd, request.access}, .regions = std::move(request.regions),
                                      .payload = {}}));
}

void GatherScatter::scatter(Scatter request) {
  const AccessRequest access{request.pd, request.access};
  const auto qpn = request.qpn.value;
  if (ordered_.empty() || !ordered_.contains(qpn)) {
    if (const auto place = only_place(request.regions, access)) {
      translated({request.tag, request.qpn});
      if (place->result != AccessResult::ok) return scattered({request.tag, place->result, {}});
      return dma_.write(place->place(0), std::move(request.payload),
                        [this, tag = request.tag](AccessResult result, Payload) { scattered({tag, result, {}}); },
                        {.more = request.more, .discard = timing_only_});
    }
  }
  const auto job = std::make_shared<Job>(Job{.tag = request.tag, .qpn = request.qpn, .is_gather = false,
                                             .access = access, .regions = std::move(request.regions),
                                             .payload = std::move(request.payload), .more = request.more});
  ordered_[qpn].push_back(job);
  translate(job);
}

// Writes what has its translation, and nothing before its turn. An answer may bring the next scatter at once.
void GatherScatter::write_ready(Qpn qpn) {
  for (;;) {
    const auto found = ordered_.find(qpn.value);
    if (found == ordered_.end()) return;
    auto& queue = found->second;
    if (queue.empty()) return void(ordered_.erase(found));
    if (!queue.front()->translated) return;
    const auto job = std::move(queue.front());
    queue.pop_front();
    write(job);
  }
}

void GatherScatter::forget(Qpn qpn) {
  const auto found = ordered_.find(qpn.value);
  if (found == ordered_.end()) return;
  const auto queue = std::move(found->second);
  ordered_.erase(found);
  for (const auto& job : queue) job->forgotten = true;
  for (const auto& job : queue) scattered({job->tag, AccessResult::denied, {}});
}

void GatherScatter::check(AccessCheck request) {
  translation_.check({request.pd, request.access}, request.region,
                     [this, tag = request.tag](AccessResult result) { checked({tag, result, {}}); });
}

void GatherScatter::translate(const JobPtr& job) {
  const auto empty = [](const Region& region) { return region.length == 0; };
  job->regions.erase(std::ranges::remove_if(job->regions, empty).begin(), job->regions.end());
  job->places.resize(job->regions.size());
  job->awaited = job->regions.size() + 1;
  const auto answer = [this, job](AccessResult result) {
    if (job->result == AccessResult::ok) job->result = result;
    if (--job->awaited != 0) return;
    translated({job->tag, job->qpn});
    if (job->is_gather) return read(job);
    job->translated = true;
    if (!job->forgotten) write_ready(job->qpn);
  };
  for (std::size_t i = 0; i < job->regions.size(); ++i)
    translation_.translate(job->access, job->regions[i], [job, i, answer](const Translated& place) {
      job->places[i] = place;
      answer(place.result);
    });
  answer(AccessResult::ok);
}

void GatherScatter::read(const JobPtr& job) {
  if (job->result != AccessResult::ok || job->regions.empty()) return gathered({job->tag, job->result, {}});
  std::uint32_t total = 0;
  for (const auto& region : job->regions) total += region.length;
  job->payload = Payload(total);
  for (const auto& place : job->places) job->awaited += place.ranges.size();
  std::uint32_t offset = 0;
  for (const auto& place : job->places) {
    for (std::size_t range = 0; range < place.ranges.size(); ++range) {
      const auto length = place.ranges[range].length;
      dma_.read(
          place.place(range), length,
          [this, job, offset](AccessResult result, Payload bytes) {
            std::ranges::copy(bytes.bytes(), job->payload.writable().begin() + offset);
            part_done(job, result);
          },
          timing_only_);
      offset += length;
    }
  }
}

void GatherScatter::write(const JobPtr& job) {
  if (job->result != AccessResult::ok || job->regions.empty()) return scattered({job->tag, job->result, {}});
  for (const auto& place : job->places) job->awaited += place.ranges.size();
  std::uint32_t offset = 0;
  for (const auto& place : job->places) {
    for (std::size_t range = 0; range < place.ranges.size(); ++range) {
      const auto length = place.ranges[range].length;
      dma_.write(place.place(range), job->payload.slice(offset, length),
                 [this, job](AccessResult result, Payload) { part_done(job, result); },
                 {.more = job->more, .discard = timing_only_});
      offset += length;
    }
  }
}

void GatherScatter::part_done(const JobPtr& job, AccessResult result) {
  if (job->result == AccessResult::ok) job->result = result;
  if (--job->awaited != 0) return;
  DmaDone done{job->tag, job->result, {}};
  if (job->is_gather) done.payload = std::move(job->payload);
  job->is_gather ? gathered(std::move(done)) : scattered(std::move(done));
}

}  // namespace rnicsim::nic
