// SPDX-License-Identifier: Apache-2.0
// Recorded traces: arbitrary files, and arbitrary frames in a file whose compression and checksums are valid.
#include <zstd.h>

#include <sstream>

#include "sim/trace_file/cause.h"
#include "sim/trace_file/loose_diff.h"
#include "sim/trace_file/trace_diff.h"
#include "sim/trace_file/trace_reader.h"
#include "sim/trace_file/trace_trailer.h"
#include "sim/trace_file/trace_writer.h"
#include "tests/soak/fuzz/fuzz.h"

namespace rnicsim::fuzz {
namespace {

enum Step : std::uint8_t { as_it_is, frame, kinds };

std::string file_of(Input input) {
  std::string file;
  for (int steps = 0; !input.empty() && steps < 100; ++steps) {
    const auto [kind, body] = input.take_step();
    if (kind % kinds == as_it_is) {
      file.append(body.begin(), body.end());
      continue;
    }
    std::string packed(ZSTD_compressBound(body.size()), '\0');
    packed.resize(ZSTD_compress(packed.data(), packed.size(), body.data(), body.size(), 1));
    file += packed;
  }
  return file;
}

void read(const std::string& file) {
  std::istringstream in(file);
  sim::TraceReader reader(in, "input");
  Duration last;
  while (const auto event = reader.next()) {
    require(event->at >= last, "time runs backward in a trace");
    require(event->host < reader.header().hosts.size(), "an event of an unknown host");
    last = event->at;
    require(!sim::to_text(*event, reader.header().hosts).empty(), "an event without text");
    sim::qp_of(*event);
  }
}

void compare(const std::string& a, const std::string& b) {
  std::istringstream left(a), right(b);
  sim::TraceReader first(left, "a"), second(right, "b");
  const auto difference = sim::compare_traces(first, second);
  require(!sim::to_text(sim::cause_of(difference, first.header().hosts)).empty(), "a difference without a cause");
}

// A trace compared with itself has the same order.
void compare_order(const std::string& a, const std::string& b) {
  std::istringstream left(a), right(b);
  sim::TraceReader first(left, "a"), second(right, "b");
  const auto difference = sim::compare_order(first, second);
  require(difference.equal || a != b, "a trace differs from itself in its order");
}

// Traces that are equal without tolerance must be equal with a tolerance.
void compare_loosely(const std::string& a, const std::string& b) {
  std::istringstream left(a), right(b);
  sim::TraceReader first(left, "a"), second(right, "b");
  const auto difference = sim::compare_traces_loosely(first, second, {Duration{1000}, 0.01});
  require(difference.equal || a != b, "a trace differs from itself");
}

template <class Action>
void attempt(Action&& action) {
  try {
    action();
  } catch (const sim::TraceError& error) {
    require(*error.what() != 0, "a refusal without a message");
  }
}

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

std::vector<sim::TraceEvent> some_events() {
  std::vector<sim::TraceEvent> events;
  for (std::size_t kind = 1; kind < std::size_t(sim::EventKind::count); ++kind) {
    sim::TraceEvent event{{std::int64_t(kind) * 1000}, std::uint32_t(kind % 2), sim::EventKind(kind), {}};
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

// Reads every second block by the index, and the whole trace with a comparison of its index.
void read_by_index(const std::string& file) {
  std::istringstream in(file), again(file);
  sim::TraceReader reader(in, "input"), whole(again, "input");
  if (reader.read_index() != nullptr) reader.read_only([](std::size_t block) { return block % 2 == 0; });
  for (sim::TraceEvent event; reader.next(event);) require(event.host < reader.header().hosts.size(), "a wrong host");
  for (const auto& line : reader.unknown()) require(!line.empty(), "an unknown kind without a name");
  for (sim::TraceEvent event; whole.next(event);) {}
}

// Bytes of an index: its frame and the trailer are valid.
std::string with_index(Input content) {
  const auto file = some_file();
  const auto whole = std::as_bytes(std::span(file));
  auto trailer = sim::TraceTrailer::of(whole.last<sim::TraceTrailer::kBytes>());
  require(trailer.has_value(), "a trace without its trailer");
  std::string bytes = "rnicsim index\n";
  while (!content.empty()) bytes += char(content.take<std::uint8_t>());
  std::string frame(ZSTD_compressBound(bytes.size()), '\0');
  frame.resize(ZSTD_compress(frame.data(), frame.size(), bytes.data(), bytes.size(), 1));
  trailer->bytes = frame.size();
  const auto last = trailer->encoded();
  return file.substr(0, trailer->offset) + frame + std::string(reinterpret_cast<const char*>(last.data()), last.size());
}

}  // namespace

std::vector<Bytes> seeds() {
  std::vector<std::byte> header, events;
  sim::encode_header(some_header(), header);
  sim::EventEncoder encoder;
  for (const auto& event : some_events()) encoder.encode(event, events);
  const auto without_end = events;
  encoder.encode(sim::make_event({1'000'000}, 0, sim::EventKind::end, {some_events().size()}), events);
  const Bytes index{1, 1, 90, 36, 0, 0, 1, 0, 64, 1, 0, 1};
  return {index,
          Script().step(as_it_is,
                        [] {
                          const auto file = some_file();
                          return Bytes(file.begin(), file.end());
                        }()),
          Script().step(frame, header).step(frame, events),
          Script().step(frame, header).step(frame, without_end),
          Script().step(frame, header),
          Script().step(frame, header).step(frame, events).step(as_it_is, Bytes(10)),
          Script().step(frame, header).step(frame).step(frame, events)};
}

}  // namespace rnicsim::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rnicsim::fuzz;
  const auto file = file_of(Input(data, size));
  static const auto good = some_file();
  attempt([&] { read(file); });
  attempt([&] { read_by_index(file); });
  attempt([&] { read_by_index(with_index(Input(data, size))); });
  attempt([&] { compare(file, good); });
  attempt([&] { compare(file, file); });
  attempt([&] { compare_loosely(file, good); });
  attempt([&] { compare_loosely(file, file); });
  attempt([&] { compare_order(file, good); });
  attempt([&] { compare_order(file, file); });
  return 0;
}
