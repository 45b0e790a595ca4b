// SPDX-License-Identifier: Apache-2.0
#include "sim/trace/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <unordered_map>

#include "sim/trace/event_members.h"
#include "sim/trace/queue_pair_events.h"
#include "sim/trace/text_output.h"
#include "sim/waterfall/timeline_lines.h"

namespace rnicsim::sim {
namespace {

constexpr std::uint32_t kDeviceThread = 1, kFirstQpThread = 2;

struct Request {
  std::uint64_t number;  // unique in the timeline
  std::uint64_t index;   // index of its WQE
  std::string name;      // quoted
};

struct QueuePair {
  std::deque<Request> requests;  // taken by the engine and not completed
  std::string counter;           // name of the pair's counter track, quoted
};

class TimelineWriter {
 public:
  TimelineWriter(const TraceHeader& header, std::FILE* file) : out_(file), named_devices_(header.hosts.size()) {
    out_.text() += timeline::kBegin;
    for (std::size_t host = 0; host < header.hosts.size(); ++host)
      timeline::append_process_name(lines_, std::uint32_t(host + 1), header.hosts[host]);
    put_lines();
  }

  void add(const TraceEvent& event) {
    const auto qp = qp_of(event);
    const auto thread = qp ? kFirstQpThread + *qp : kDeviceThread;
    auto* pair = qp ? &pair_of(event.host, *qp) : nullptr;
    if (pair == nullptr) name_device(event.host);
    add_instant(event, thread);
    if (event.kind == EventKind::wqe && is_send_queue(event)) begin_request(event, thread, *pair);
    if (event.kind == EventKind::cqe && is_requesters(event)) end_requests(event, thread, *pair);
    if (is_reset(event)) drop_requests(event, *pair);
    put_lines();
  }

  bool finish() {
    out_.text() += timeline::kEnd;
    return out_.flush();
  }

 private:
  QueuePair& pair_of(std::uint32_t host, std::uint32_t qp) {
    const auto [found, is_new] = pairs_.try_emplace(std::uint64_t{host} << 32 | qp);
    if (is_new) {
      timeline::append_thread_name(lines_, host + 1, kFirstQpThread + qp, fmt::format("QP {:#x}", qp));
      found->second.counter = timeline::quoted(fmt::format("QP {:#x} outstanding", qp));
    }
    return found->second;
  }

  void name_device(std::uint32_t host) {
    if (named_devices_[host]) return;
    named_devices_[host] = true;
    timeline::append_thread_name(lines_, host + 1, kDeviceThread, "device");
  }

  void add_instant(const TraceEvent& event, std::uint32_t thread) {
    std::string name = info(event.kind).name;
    if (const auto* opcode = field::opcode.info_in(event.kind))
      append_text(name += ' ', *opcode, value_of(event, field::opcode));
    fmt::format_to(std::back_inserter(lines_), R"({{"ph":"i","s":"t","name":"{}",{},"args":{{"time_ps":{})", name,
                   place(event, thread), event.at.ps);
    append_members(lines_, event);
    lines_ += "}},\n";
  }

  void begin_request(const TraceEvent& event, std::uint32_t thread, QueuePair& pair) {
    std::string name;
    append_text(name, *field::opcode.info_in(event.kind), value_of(event, field::opcode));
    name = timeline::quoted(fmt::format("{} {} B", name, value_of(event, field::bytes)));
    if (pair.requests.size() == kMostWqes) pair.requests.pop_front();
    pair.requests.push_back({requests_++, value_of(event, field::index), std::move(name)});
    add_request_end('b', pair.requests.back(), event, thread);
    add_depth(event, pair);
  }

  // A CQE also completes the unsignaled requests before its own.
  void end_requests(const TraceEvent& event, std::uint32_t thread, QueuePair& pair) {
    auto& requests = pair.requests;
    const auto found = std::ranges::find(requests, value_of(event, field::wqe_counter), &Request::index);
    if (found == requests.end()) return;
    for (auto request = requests.begin(); request != found + 1; ++request)
      add_request_end('e', *request, event, thread);
    requests.erase(requests.begin(), found + 1);
    add_depth(event, pair);
  }

  void drop_requests(const TraceEvent& event, QueuePair& pair) {
    if (pair.requests.empty()) return;
    pair.requests.clear();
    add_depth(event, pair);
  }

  void add_request_end(char phase, const Request& request, const TraceEvent& event, std::uint32_t thread) {
    fmt::format_to(std::back_inserter(lines_), R"({{"ph":"{}","cat":"request","id":{},"name":{},{}}},)", phase,
                   request.number, request.name, place(event, thread));
    lines_ += '\n';
  }

  void add_depth(const TraceEvent& event, const QueuePair& pair) {
    timeline::append_sample(lines_, event.host + 1, pair.counter, "\"WQEs\"", event.at, double(pair.requests.size()));
  }

  static std::string place(const TraceEvent& event, std::uint32_t thread) {
    return fmt::format(R"("pid":{},"tid":{},"ts":{})", event.host + 1, thread, timeline::microseconds(event.at));
  }

  // JSON: a comma separates lines, so the last line of the file has none.
  void put_lines() {
    if (lines_.empty()) return;
    if (has_lines_) {
      out_.text() += ',';
      out_.end_line();
    }
    out_.text().append(lines_, 0, lines_.size() - 2);
    has_lines_ = true;
    lines_.clear();
  }

  TextOutput out_;
  std::string lines_;
  bool has_lines_ = false;
  std::vector<bool> named_devices_;
  std::unordered_map<std::uint64_t, QueuePair> pairs_;  // host, queue pair: 32 bits each
  std::uint64_t requests_ = 0;
};

}  // namespace

bool export_timeline(TraceSource& trace, std::FILE* file) {
  TimelineWriter timeline(trace.header(), file);
  try {
    for (TraceEvent event; trace.next(event);) timeline.add(event);
  } catch (const TraceError&) {
    timeline.finish();
    throw;
  }
  return timeline.finish();
}

}  // namespace rnicsim::sim
