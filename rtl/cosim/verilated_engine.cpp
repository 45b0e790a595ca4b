// The only file that sees the Verilated model's header: that and <systemc> do not compile in one translation unit.
#include "rtl/cosim/verilated_engine.h"

#include <Vqp_engine.h>
#include <verilated.h>
#if VM_TRACE
#include <verilated_fst_c.h>
#endif

namespace rnicsim::rtl {
namespace {

// A port of a packed struct: up to 32 bits, up to 64, or words.
template <class Port>
std::uint32_t* words_of(Port& port) {
  return reinterpret_cast<std::uint32_t*>(&port);
}

}  // namespace

struct VerilatedEngine::Impl {
  // A stream in: its ports, and whether something is offered.
  struct Ports {
    CData* valid;
    CData* ready;
    std::uint32_t* words;
  };

  VerilatedContext context;
  std::unique_ptr<Vqp_engine> top = std::make_unique<Vqp_engine>(&context);
  std::uint64_t time = 0;
#if VM_TRACE
  std::unique_ptr<VerilatedFstC> waves;
#endif

  Ports ports(const SendControl*) {
    return {&top->send_control_valid_i, &top->send_control_ready_o, words_of(top->send_control_i)};
  }
  Ports ports(const Post*) { return {&top->post_valid_i, &top->post_ready_o, words_of(top->post_i)}; }
  Ports ports(const Response*) { return {&top->response_valid_i, &top->response_ready_o, words_of(top->response_i)}; }
  Ports ports(const SendEvent*) {
    return {&top->send_event_valid_i, &top->send_event_ready_o, words_of(top->send_event_i)};
  }
  Ports ports(const AnswerControl*) {
    return {&top->answer_control_valid_i, &top->answer_control_ready_o, words_of(top->answer_control_i)};
  }
  Ports ports(const Request*) { return {&top->request_valid_i, &top->request_ready_o, words_of(top->request_i)}; }
  Ports ports(const AnswerEvent*) {
    return {&top->answer_event_valid_i, &top->answer_event_ready_o, words_of(top->answer_event_i)};
  }

  void dump() {
#if VM_TRACE
    if (waves) waves->dump(time);
#endif
  }
  void clock_edge() {
    top->clk_i = 1;
    top->eval();
    dump();
    ++time;
    top->clk_i = 0;
  }
};

VerilatedEngine::VerilatedEngine(const std::string& waves) : impl_(std::make_unique<Impl>()) {
  impl_->context.fatalOnError(false);
#if VM_TRACE
  if (!waves.empty()) {
    impl_->context.traceEverOn(true);
    impl_->waves = std::make_unique<VerilatedFstC>();
    impl_->top->trace(impl_->waves.get(), 99);
    impl_->waves->open(waves.c_str());
  }
#else
  (void)waves;
#endif
  reset();
}

VerilatedEngine::~VerilatedEngine() {
  // A model's end looks for its scopes in the thread's context, which is another engine's by now.
  Verilated::threadContextp(&impl_->context);
  impl_->top->final();
}

void VerilatedEngine::reset() {
  auto& top = *impl_->top;
  const auto withdraw = [this]<class Input>(Stream<Input>& stream) {
    stream = {};
    *impl_->ports(static_cast<const Input*>(nullptr)).valid = 0;
  };
  std::apply([&](auto&... streams) { (withdraw(streams), ...); }, streams_);
  top.rst_ni = 0;
  top.clk_i = 0;
  top.eval();
  impl_->clock_edge();
  top.rst_ni = 1;
  top.eval();
}

template <class Input>
void VerilatedEngine::offer(const Input& input) {
  auto& stream = std::get<Stream<Input>>(streams_);
  stream.taken.push_back(Input{input});
  stream.offered = true;
  const auto ports = impl_->ports(&input);
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
  auto& top = *impl_->top;
  top.now_i = now;
  top.send_record_ready_i = take_sends;
  top.answer_record_ready_i = take_answers;
  top.eval();
  impl_->dump();
  ++impl_->time;
  outputs_ = {};
  if (top.send_record_valid_o && take_sends) unpack(words_of(top.send_record_o), outputs_.send.emplace());
  if (top.answer_record_valid_o && take_answers) unpack(words_of(top.answer_record_o), outputs_.answer.emplace());
  return outputs_;
}

void VerilatedEngine::end_cycle() {
  // An input stands until the edge is over.
  CData* taken[std::tuple_size_v<decltype(streams_)>];
  auto* next = taken;
  const auto take = [&]<class Input>(Stream<Input>& stream) {
    const auto ports = impl_->ports(static_cast<const Input*>(nullptr));
    if (!stream.offered || !*ports.ready) return;
    stream.offered = false;
    *next++ = ports.valid;
  };
  std::apply([&](auto&... streams) { (take(streams), ...); }, streams_);
  impl_->clock_edge();
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

bool VerilatedEngine::busy() const { return impl_->top->busy_o != 0; }

std::optional<std::uint64_t> VerilatedEngine::wake() const {
  if (!impl_->top->armed_o) return std::nullopt;
  return impl_->top->wake_o;
}

int VerilatedEngine::failures() const { return impl_->context.errorCount(); }

}  // namespace rnicsim::rtl
