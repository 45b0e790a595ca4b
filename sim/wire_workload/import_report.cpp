// SPDX-License-Identifier: Apache-2.0
#include "sim/wire_workload/import_report.h"

#include <fmt/format.h>

#include <filesystem>

#include "sim/config/config_error.h"

namespace rnicsim::sim::wire_workload {
namespace {

constexpr std::size_t kShown = 20;

const char* text_of(roce::Status status) { return ibv_wc_status_str(static_cast<ibv_wc_status>(status)); }

std::string qp_line(const QueuePair& qp, const WireHost& host, std::size_t number) {
  auto text = fmt::format("{} is QP {:#x}: ", name_of(qp), host.objects().qp(number)->qp_num);
  if (!qp.requests.empty()) text += fmt::format("{} requests from PSN {}, ", qp.requests.size(), qp.sq_psn.value());
  return text + fmt::format("{} receives, MTU {}\n", qp.receives.size(), roce::mtu_bytes(qp.path_mtu));
}

// Compares the ends of the run's requests with those in the capture.
class Ends {
 public:
  void add(const QueuePair& qp, const Request& request, const std::optional<Completion>& completion) {
    ++posted_;
    if (!completion) return say(++without_, qp, request, "has no completion");
    if (!request.outcome)
      ++unknown_;
    else if (*request.outcome == completion->status)
      ++same_;
    else
      say(++other_, qp, request,
          fmt::format("ended with: {}; in the capture with: {}", text_of(completion->status),
                      text_of(*request.outcome)));
    if (!completion->same_bytes) say(++other_bytes_, qp, request, "returned other bytes than in the capture");
  }

  std::string text() const {
    auto text = fmt::format("requests: {} posted, {} ended as in the capture, {} differently", posted_, same_, other_);
    if (unknown_ != 0) text += fmt::format(", {} without a known end in the capture", unknown_);
    if (without_ != 0) text += fmt::format(", {} without a completion", without_);
    if (other_bytes_ != 0) text += fmt::format("; {} returned other bytes", other_bytes_);
    return text + '\n' + lines_;
  }

 private:
  void say(std::size_t count, const QueuePair& qp, const Request& request, const std::string& what) {
    if (count <= kShown) lines_ += fmt::format("  {}, the request of frame {}: {}\n", name_of(qp), request.frame, what);
    if (count == kShown + 1) lines_ += "  ... and more like this\n";
  }

  std::size_t posted_ = 0, same_ = 0, other_ = 0, unknown_ = 0, without_ = 0, other_bytes_ = 0;
  std::string lines_;
};

}  // namespace

std::string import_text(const std::string& file, const replay::WireCapture& capture, const Workload& workload,
                        const std::vector<std::unique_ptr<WireHost>>& hosts,
                        const std::vector<Assessment>& assessments) {
  auto text = fmt::format("{}: {} frames, {} of them RoCEv2\n", shown(std::filesystem::path(file).filename().string()),
                          capture.frames, capture.roce_frames());
  for (std::size_t i = 0; i < workload.hosts.size(); ++i)
    text += workload.hosts[i].address == roce::Gid{}
                ? fmt::format("h{} is a member of groups that the capture does not name\n", i)
                : fmt::format("h{} is {}\n", i, replay::address_text(workload.hosts[i].address));
  Ends ends;
  for (std::size_t number = 0; number < workload.qps.size(); ++number) {
    const auto& qp = workload.qps[number];
    text += qp_line(qp, *hosts[qp.host], number);
    for (std::size_t i = 0; i < qp.requests.size(); ++i)
      ends.add(qp, qp.requests[i], hosts[qp.host]->completion(number, i));
  }
  for (const auto& sentence : workload.left_out) text += fmt::format("note: {}\n", sentence);
  text += ends.text();
  for (const auto& assessment : assessments)
    text += fmt::format("answers, compared as by `replay --wire --as {}`: {} packets, {} differences\n",
                        replay::address_text(assessment.address), assessment.compared, assessment.differences);
  return text;
}

}  // namespace rnicsim::sim::wire_workload
