// SPDX-License-Identifier: Apache-2.0
#include "sim/waterfall/journey.h"

namespace rnicsim::sim {

const char* to_string(Stage stage) {
  switch (stage) {
    case Stage::turnaround: return "turnaround";
    case Stage::post: return "post";
    case Stage::doorbell: return "doorbell";
    case Stage::context: return "context";
    case Stage::fetch: return "fetch";
    case Stage::unit: return "unit";
    case Stage::retry: return "retry";
    case Stage::packets: return "packets";
    case Stage::translation: return "translation";
    case Stage::dma: return "dma";
    case Stage::tx: return "tx";
    case Stage::wire: return "wire";
    case Stage::rx: return "rx";
    case Stage::placement: return "remote dma";
    case Stage::answer_tx: return "answer tx";
    case Stage::answer_wire: return "answer wire";
    case Stage::answer_rx: return "answer rx";
    case Stage::scatter: return "scatter";
    case Stage::cqe: return "cqe";
    case Stage::poll: return "poll";
  }
  return "?";
}

const char* to_string(nic::SendOpcode opcode) {
  using enum nic::SendOpcode;
  switch (opcode) {
    case nop: return "NOP";
    case write: return "WRITE";
    case write_with_imm: return "WRITE_WITH_IMM";
    case send: return "SEND";
    case send_with_imm: return "SEND_WITH_IMM";
    case send_with_inv: return "SEND_WITH_INV";
    case tso: return "TSO";
    case read: return "READ";
    case compare_swap: return "COMPARE_SWAP";
    case fetch_add: return "FETCH_ADD";
    case atomic_write: return "ATOMIC_WRITE";
    case bind_window: return "BIND_WINDOW";
    case fast_register: return "FAST_REGISTER";
    case local_inv: return "LOCAL_INV";
  }
  return "?";
}

}  // namespace rnicsim::sim
