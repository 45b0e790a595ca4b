// A Verilated QP engine, whichever way it was Verilated: with its assertions, and signals that can be written as waves;
// or without and faster.
#pragma once

#include <verilated.h>

#include <cstdint>
#include <memory>
#include <string>

#include "rtl/cosim/coverage.h"
#include "rtl/cosim/transactions.h"

namespace rnicsim::rtl {

class VerilatedTop {
 public:
  struct Ports {
    CData* valid = nullptr;
    CData* ready = nullptr;
    std::uint32_t* words = nullptr;
  };

  virtual ~VerilatedTop() = default;
  virtual void eval() = 0;
  virtual void dump(std::uint64_t time) = 0;
  // Assertions of the RTL that failed.
  virtual int failures() const = 0;

  CData* clk = nullptr;
  CData* rst_n = nullptr;
  QData* now = nullptr;
  CData* busy = nullptr;
  CData* armed = nullptr;
  QData* wake = nullptr;
  Ports send_control, post, response, send_event, answer_control, request, answer_event;  // in
  Ports send_record, answer_record;                                                       // out

  const Ports& of(const SendControl*) const { return send_control; }
  const Ports& of(const Post*) const { return post; }
  const Ports& of(const Response*) const { return response; }
  const Ports& of(const SendEvent*) const { return send_event; }
  const Ports& of(const AnswerControl*) const { return answer_control; }
  const Ports& of(const Request*) const { return request; }
  const Ports& of(const AnswerEvent*) const { return answer_event; }
};

std::unique_ptr<VerilatedTop> make_top();
// `waves`: where its signals are written (FST); empty: nowhere. std::runtime_error: it was not built.
std::unique_ptr<VerilatedTop> make_checked_top(const std::string& waves);

// `Module`: the class that Verilator made.
template <class Module>
class VerilatedTopOf : public VerilatedTop {
 public:
  VerilatedTopOf() {
    context_.fatalOnError(false);
    auto& top = *module_;
    clk = &top.clk_i;
    rst_n = &top.rst_ni;
    now = &top.now_i;
    busy = &top.busy_o;
    armed = &top.armed_o;
    wake = &top.wake_o;
    send_control = {&top.send_control_valid_i, &top.send_control_ready_o, words_of(top.send_control_i)};
    post = {&top.post_valid_i, &top.post_ready_o, words_of(top.post_i)};
    response = {&top.response_valid_i, &top.response_ready_o, words_of(top.response_i)};
    send_event = {&top.send_event_valid_i, &top.send_event_ready_o, words_of(top.send_event_i)};
    answer_control = {&top.answer_control_valid_i, &top.answer_control_ready_o, words_of(top.answer_control_i)};
    request = {&top.request_valid_i, &top.request_ready_o, words_of(top.request_i)};
    answer_event = {&top.answer_event_valid_i, &top.answer_event_ready_o, words_of(top.answer_event_i)};
    send_record = {&top.send_record_valid_o, &top.send_record_ready_i, words_of(top.send_record_o)};
    answer_record = {&top.answer_record_valid_o, &top.answer_record_ready_i, words_of(top.answer_record_o)};
  }
  ~VerilatedTopOf() override {
    // A module's end looks for its scopes in the thread's context, which is another engine's by now.
    Verilated::threadContextp(&context_);
    module_->final();
    write_coverage(context_);
    module_.reset();
  }
  void eval() override { module_->eval(); }
  void dump(std::uint64_t) override {}
  int failures() const override { return context_.errorCount(); }

 protected:
  VerilatedContext& context() { return context_; }
  Module& module() { return *module_; }

 private:
  // A port of a packed struct: up to 64 bits, or words.
  template <class Port>
  static std::uint32_t* words_of(Port& port) {
    return reinterpret_cast<std::uint32_t*>(&port);
  }

  VerilatedContext context_;
  std::unique_ptr<Module> module_ = std::make_unique<Module>(&context_);
};

}  // namespace rnicsim::rtl
