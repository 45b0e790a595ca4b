// SPDX-License-Identifier: Apache-2.0
// Tools of `rnicsim trace` on a small trace that is cut and damaged, on arbitrary content with valid compression, and
// on arbitrary events. The target `recording` tests the reader alone.
#include <zstd.h>

#include <memory>
#include <sstream>

#include "sim/config/config_error.h"
#include "sim/trace/export.h"
#include "sim/trace/follow.h"
#include "sim/trace/show.h"
#include "sim/trace/stat.h"
#include "sim/trace_file/trace_writer.h"
#include "tests/soak/fuzz/fuzz.h"

namespace rnicsim::fuzz {
namespace {

enum Step : std::uint8_t { flip_bit, cut, frame, event, choose, kinds };

const sim::TraceHeader& some_header() {
  static const sim::TraceHeader header{.program = "1",
                                       .title = "seed",
                                       .seed = 7,
                                       .time = "sim",
                                       .hosts = {"h0", "h1"},
                                       .commands = {"h0: program"},
                                       .configuration = {{"nic.tx.latency", "170 ns"}}};
  return header;
}

// A WRITE of two packets with acknowledgement and CQE; then an event of each kind.
std::vector<sim::TraceEvent> some_events() {
  using enum sim::EventKind;
  std::vector<sim::TraceEvent> events{sim::make_event({1000}, 0, doorbell, {0x40, 1, 64, 1}),
                                      sim::make_event({2000}, 0, wqe_fetch, {0x40, 0, 64}),
                                      sim::make_event({3000}, 0, wqe, {0x40, 0, 0, 8, 2000, 1}),
                                      sim::make_event({4000}, 0, packet_sent, {0x40, 0x06, 100, 0x50, 0, 0, 1024}),
                                      sim::make_event({5000}, 0, packet_sent, {0x40, 0x08, 101, 0x50, 1, 0, 976}),
                                      sim::make_event({6000}, 1, packet_received, {0x50, 0x06, 100, 0x50, 0, 0, 1024}),
                                      sim::make_event({7000}, 1, packet_received, {0x50, 0x08, 101, 0x50, 1, 0, 976}),
                                      sim::make_event({8000}, 1, packet_sent, {0x50, 0x11, 101, 0x40}),
                                      sim::make_event({9000}, 0, packet_received, {0x40, 0x11, 101, 0x40}),
                                      sim::make_event({10000}, 0, cqe, {0x40, 1, 0, 0, 0, 0, 2000, 8})};
  for (std::size_t kind = 1; kind < std::size_t(sim::EventKind::count); ++kind) {
    sim::TraceEvent event{{10000 + std::int64_t(kind) * 1000}, std::uint32_t(kind % 2), sim::EventKind(kind), {}};
    for (std::size_t i = 0; i < sim::info(event.kind).fields.size(); ++i) event.fields[i] = i + 1;
    events.push_back(event);
  }
  return events;
}

std::string some_file() {
  std::ostringstream out;
  sim::TraceWriter writer(out, some_header());
  for (const auto& event : some_events()) writer.write(event);
  writer.finish({1'000'000});
  return out.str();
}

// A file, and the options of the tools.
struct Case {
  std::string file = some_file();
  bool is_whole = true;  // the file is the small trace, complete
  std::string frames;
  std::vector<sim::TraceEvent> events;
  sim::FilterOptions filter;
  sim::ShowOptions show;
  sim::FollowedWqe followed{"h0", 0x40, 0};
};

std::string packed(std::span<const std::uint8_t> content) {
  std::string frame(ZSTD_compressBound(content.size()), '\0');
  frame.resize(ZSTD_compress(frame.data(), frame.size(), content.data(), content.size(), 1));
  return frame;
}

sim::TraceEvent event_of(Input body, Duration last) {
  const auto kind = 1 + body.take<std::uint8_t>() % (std::uint64_t(sim::EventKind::count) - 1);
  const Duration at{last.ps + body.take<std::uint16_t>()};
  sim::TraceEvent event{at, body.take<std::uint8_t>() % 2u, sim::EventKind(kind), {}};
  for (std::size_t i = 0; i < sim::info(event.kind).fields.size(); ++i) {
    const auto shift = body.take<std::uint8_t>() % 64;
    event.fields[i] = body.take<std::uint64_t>() >> shift;
  }
  return event;
}

// Sets one option; several calls build a filter of several options.
void choose_option(Case& input, Input body) {
  const auto value = [&body] { return body.take<std::uint32_t>() & 0xffffff; };
  switch (body.take<std::uint8_t>() % 8) {
    case 0: input.filter.hosts.push_back(value() % 3 == 0 ? "h1" : "h0"); break;
    case 1: input.filter.kinds.push_back(value() % 2 == 0 ? "packet*" : "cqe"); break;
    case 2: input.filter.qps.push_back(value()); break;
    case 3: input.filter.psns.push_back(value()); break;
    case 4: input.filter.from = Duration{std::int64_t(value())}; break;
    case 5: input.filter.to = Duration{std::int64_t(value())}; break;
    case 6: input.show = {.columns = {"time", "host", "kind", "qp", "psn"}, .most = value()}; break;
    default: input.followed = {value() % 2 == 0 ? "h0" : "h1", value(), value()}; break;
  }
}

Case case_of(Input input) {
  Case made;
  for (int steps = 0; !input.empty() && steps < 100; ++steps) {
    const auto [kind, bytes] = input.take_step();
    Input body(bytes);
    const auto last = made.events.empty() ? Duration{} : made.events.back().at;
    switch (kind % kinds) {
      case flip_bit: {
        const auto bit = body.take<std::uint32_t>() % (8 * made.file.size() + 1);
        if (bit < 8 * made.file.size()) made.file[bit / 8] = char(made.file[bit / 8] ^ (1 << bit % 8));
        made.is_whole = false;
        break;
      }
      case cut:
        made.file.resize(body.take<std::uint32_t>() % (made.file.size() + 1));
        made.is_whole = false;
        break;
      case frame: made.frames += packed(bytes); break;
      case event: made.events.push_back(event_of(body, last)); break;
      default: choose_option(made, body); break;
    }
  }
  return made;
}

std::string file_of(const std::vector<sim::TraceEvent>& events) {
  std::ostringstream out;
  sim::TraceWriter writer(out, some_header());
  for (const auto& event : events) writer.write(event);
  writer.finish(events.empty() ? Duration{} : events.back().at);
  return out.str();
}

// A refusal is one line. `is_good`: no refusal is allowed.
template <class Action>
void attempt(bool is_good, Action&& action) {
  try {
    action();
  } catch (const sim::TraceError& error) {
    require(!is_good, "a trace of ours is refused");
    require(std::strchr(error.what(), '\n') == nullptr, "a refusal of several lines");
  } catch (const sim::ConfigError& error) {
    require(*error.what() != 0, "a refusal without a message");
  }
}

void use(const std::string& file, bool is_good, const Case& asked) {
  static std::FILE* const nowhere = std::fopen("/dev/null", "w");
  const auto open = [&file](const sim::FilterOptions& filter = {}) {
    return sim::TraceSource(std::make_unique<std::istringstream>(file), "input", filter);
  };
  attempt(is_good, [&] {
    auto trace = open(asked.filter);
    sim::show_trace(trace, asked.show, nowhere);
  });
  attempt(is_good, [&] {
    auto trace = open(asked.filter);
    require(!sim::trace_statistics(trace).empty(), "statistics without text");
  });
  for (const auto format : {sim::TraceFormat::jsonl, sim::TraceFormat::csv, sim::TraceFormat::perfetto})
    attempt(is_good, [&] {
      auto trace = open(asked.filter);
      require(sim::export_trace(trace, format, nowhere), "/dev/null is full");
    });
  attempt(is_good, [&] {
    auto trace = open();
    sim::follow_wqe(trace, asked.followed);
  });
}

}  // namespace

std::vector<Bytes> seeds() {
  std::vector<std::byte> header, events;
  sim::encode_header(some_header(), header);
  sim::EventEncoder encoder;
  for (const auto& event : some_events()) encoder.encode(event, events);
  encoder.encode(sim::make_event({1'000'000}, 0, sim::EventKind::end, {some_events().size()}), events);
  Script all_kinds;
  for (std::uint8_t kind = 0; kind + 1 < std::uint8_t(sim::EventKind::count); ++kind)
    all_kinds.step(event, kind, std::uint16_t{100}, kind, Bytes(9 * sim::TraceEvent::kMostFields, 0x1c));
  return {Script().step(flip_bit, std::uint32_t{5000}),
          Script().step(cut, std::uint32_t{400}),
          Script().step(frame, header).step(frame, events),
          Script().step(choose, std::uint8_t{7}, std::uint32_t{0}, std::uint32_t{0x40}, std::uint32_t{0}),
          Script().step(choose, std::uint8_t{1}, std::uint32_t{0}).step(choose, std::uint8_t{2}, std::uint32_t{0x40}),
          Script().step(choose, std::uint8_t{6}, std::uint32_t{50}).step(choose, std::uint8_t{5}, std::uint32_t{9000}),
          all_kinds};
}

}  // namespace rnicsim::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rnicsim::fuzz;
  const auto input = case_of(Input(data, size));
  use(input.file, input.is_whole, input);
  use(input.frames, false, input);
  use(file_of(input.events), true, input);
  return 0;
}
