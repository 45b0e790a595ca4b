#include "model/nic/gather_scatter.h"

#include <algorithm>

namespace rnicsim::nic {

struct GatherScatter::Job {
  Tag tag;
  bool is_gather;
  AccessRequest access;
  Regions regions;
  Payload payload;
  bool more = false;
  std::vector<Translated> places{};
  std::size_t awaited = 0;
  AccessResult result = AccessResult::ok;
};

// The usual request names one region, which is resident: no job is made for it.
std::optional<Translated> GatherScatter::only_place(const Regions& regions, const AccessRequest& access) {
  if (regions.size() != 1 || regions[0].length == 0) return std::nullopt;
  return translation_.translate_now(access, regions[0]);
}

void GatherScatter::gather(Gather request) {
  if (const auto place = only_place(request.regions, {request.pd, request.access})) {
    if (place->result != AccessResult::ok) return gathered({request.tag, place->result, {}});
    return dma_.read(place->pasid, place->address, request.regions[0].length,
                     [this, tag = request.tag](AccessResult result, Payload bytes) {
                       gathered({tag, result, std::move(bytes)});
                     });
  }
  translate(std::make_shared<Job>(Job{.tag = request.tag, .is_gather = true, .access = {request.pd, request.access},
                                      .regions = std::move(request.regions), .payload = {}}));
}

void GatherScatter::scatter(Scatter request) {
  if (const auto place = only_place(request.regions, {request.pd, request.access})) {
    if (place->result != AccessResult::ok) return scattered({request.tag, place->result, {}});
    return dma_.write(place->pasid, place->address, std::move(request.payload),
                      [this, tag = request.tag](AccessResult result, Payload) { scattered({tag, result, {}}); },
                      {.more = request.more});
  }
  translate(std::make_shared<Job>(Job{.tag = request.tag, .is_gather = false, .access = {request.pd, request.access},
                                      .regions = std::move(request.regions), .payload = std::move(request.payload),
                                      .more = request.more}));
}

void GatherScatter::check(AccessCheck request) {
  translation_.translate({request.pd, request.access}, request.region,
                         [this, tag = request.tag](const Translated& place) { checked({tag, place.result, {}}); });
}

void GatherScatter::translate(const JobPtr& job) {
  const auto empty = [](const Region& region) { return region.length == 0; };
  job->regions.erase(std::ranges::remove_if(job->regions, empty).begin(), job->regions.end());
  job->places.resize(job->regions.size());
  job->awaited = job->regions.size() + 1;
  const auto answer = [this, job](AccessResult result) {
    if (job->result == AccessResult::ok) job->result = result;
    if (--job->awaited != 0) return;
    job->is_gather ? read(job) : write(job);
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
  job->awaited = job->regions.size();
  std::uint32_t offset = 0;
  for (std::size_t i = 0; i < job->regions.size(); ++i) {
    dma_.read(job->places[i].pasid, job->places[i].address, job->regions[i].length,
              [this, job, offset](AccessResult result, Payload bytes) {
                std::ranges::copy(bytes.bytes(), job->payload.writable().begin() + offset);
                part_done(job, result);
              });
    offset += job->regions[i].length;
  }
}

void GatherScatter::write(const JobPtr& job) {
  if (job->result != AccessResult::ok || job->regions.empty()) return scattered({job->tag, job->result, {}});
  job->awaited = job->regions.size();
  std::uint32_t offset = 0;
  for (std::size_t i = 0; i < job->regions.size(); ++i) {
    const auto length = job->regions[i].length;
    dma_.write(job->places[i].pasid, job->places[i].address, job->payload.slice(offset, length),
               [this, job](AccessResult result, Payload) { part_done(job, result); }, {.more = job->more});
    offset += length;
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
