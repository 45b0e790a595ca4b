// SPDX-License-Identifier: Apache-2.0
#include "rtl/cosim/verilated_engine.h"

#include "rtl/cosim/verilated_top.h"

namespace rnicsim::rtl {

VerilatedEngine::VerilatedEngine(const Options& options)
    : top_(options.checked || !options.waves.empty() ? make_checked_top(options.waves) : make_top()) {
  reset();
}

VerilatedEngine::~VerilatedEngine() = default;

void VerilatedEngine::reset() {
  const auto withdraw = [this]<class Input>(Stream<Input>& stream) {
    stream = {};
    *top_->of(static_cast<const Input*>(nullptr)).valid = 0;
  };
  std::apply([&](auto&... streams) { (withdraw(streams), ...); }, streams_);
  outputs_ = {};
  *top_->rst_n = 0;
  *top_->clk = 0;
  top_->eval();
  clock_edge();
  *top_->rst_n = 1;
  top_->eval();
}

template <class Input>
void VerilatedEngine::offer(const Input& input) {
  auto& stream = std::get<Stream<Input>>(streams_);
  stream.taken.push_back(Input{input});
  stream.offered = true;
  const auto& ports = top_->of(&input);
  *ports.valid = 1;
  pack(input, ports.words);
}
template void VerilatedEngine::offer(const SendControl&);
template void VerilatedEngine::offer(const Post&);
template void VerilatedEngine::offer(const Response&);
template void VerilatedEngine::offer(const SendEvent&);
template void VerilatedEngine::offer(const AnswerControl&);
template void VerilatedEngine::offer(const Request&);
template void VerilatedEngine::offer(const AnswerEvent&);

const VerilatedEngine::Outputs& VerilatedEngine::begin_cycle(std::uint64_t now, bool take_sends, bool take_answers) {
  *top_->now = now;
  *top_->send_record.ready = take_sends;
  *top_->answer_record.ready = take_answers;
  top_->eval();
  outputs_ = {};
  if (*top_->send_record.valid && take_sends) unpack(top_->send_record.words, outputs_.send.emplace());
  if (*top_->answer_record.valid && take_answers) unpack(top_->answer_record.words, outputs_.answer.emplace());
  return outputs_;
}

void VerilatedEngine::end_cycle() {
  // An input stays stable until the edge is over.
  CData* taken[std::tuple_size_v<decltype(streams_)>];
  auto* next = taken;
  const auto take = [&]<class Input>(Stream<Input>& stream) {
    const auto& ports = top_->of(static_cast<const Input*>(nullptr));
    if (!stream.offered || !*ports.ready) return;
    stream.offered = false;
    *next++ = ports.valid;
  };
  std::apply([&](auto&... streams) { (take(streams), ...); }, streams_);
  clock_edge();
  while (next != taken) **--next = 0;
  ++cycles_;
  if (outputs_.send) forget_input(*outputs_.send);
  if (outputs_.answer) forget_input(*outputs_.answer);
}

template <class Input>
void VerilatedEngine::forget() {
  std::get<Stream<Input>>(streams_).taken.pop_front();
}

void VerilatedEngine::forget_input(const SendRecord& record) {
  switch (record.op) {
    case SendOp::control: return forget<SendControl>();
    case SendOp::event: return forget<SendEvent>();
    case SendOp::response: return forget<Response>();
    case SendOp::post: return forget<Post>();
    default: return;
  }
}

void VerilatedEngine::forget_input(const AnswerRecord& record) {
  if (record.op == AnswerOp::control) forget<AnswerControl>();
  if (record.op == AnswerOp::request) forget<Request>();
  if (record.op == AnswerOp::event || record.in_place) forget<AnswerEvent>();
}

void VerilatedEngine::clock_edge() {
  *top_->clk = 1;
  top_->eval();
  top_->dump(time_ps_);
  *top_->clk = 0;
  top_->dump(++time_ps_);
}

bool VerilatedEngine::busy() const { return *top_->busy != 0; }

std::optional<std::uint64_t> VerilatedEngine::wake() const {
  if (!*top_->armed) return std::nullopt;
  return *top_->wake;
}

int VerilatedEngine::failures() const { return top_->failures(); }

}  // namespace rnicsim::rtl
