// SPDX-License-Identifier: Apache-2.0
#include "tests/golden/behaviours.h"

#include <gtest/gtest-spi.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <sstream>
#include <stdexcept>

#include "model/nic/capability_params.h"
#include "sim/recording/recorder.h"
#include "sim/recording/trace_header.h"
#include "sim/trace_file/trace_writer.h"
#include "tests/verbs/xrc_domain.h"

namespace rnicsim::testing {
namespace {

constexpr std::uint32_t kBadKey = 0x00abcd00;
constexpr int kImpossible = 77;  // exit status of the child if the device lacks a capability

EndpointOptions with(void (*change)(EndpointOptions&)) {
  EndpointOptions options;
  change(options);
  return options;
}

void must_post(Endpoint& end, const ibv_send_wr& request) { EXPECT_EQ(end.post(request), 0); }

// Posts one request and waits for the completion.
void transfer(Endpoint& end, ibv_wr_opcode opcode, std::uint32_t length, ibv_wc_status status = IBV_WC_SUCCESS) {
  auto request = end.request(opcode, 0, length, 4096);
  request.imm_data = 0x04030201;
  must_post(end, request);
  EXPECT_EQ(end.completion().status, status);
}

Behaviour::Program receives(int count) {
  return [count](Endpoint& end) {
    for (int i = 0; i < count; ++i) EXPECT_EQ(end.receive(0, 8192), 0);
  };
}

void take(Endpoint& end, int count) {
  for (int i = 0; i < count; ++i) EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
}

void wait_for(Duration time) { sleep_until(now() + time); }

void walk_states(Endpoint& end) {
  for (const auto state : {IBV_QPS_SQD, IBV_QPS_RTS, IBV_QPS_ERR, IBV_QPS_RESET}) {
    ibv_qp_attr attributes{};
    attributes.qp_state = state;
    EXPECT_EQ(ibv_modify_qp(end.qp, &attributes, IBV_QP_STATE), 0) << state;
    EXPECT_EQ(end.state(), state);
  }
  end.to_init();
}

void write_with_a_bad_key(Endpoint& end) {
  auto request = end.request(IBV_WR_RDMA_WRITE, 0, 64);
  request.wr.rdma.rkey = kBadKey;
  must_post(end, request);
  for (int i = 0; i < 2; ++i) must_post(end, end.request(IBV_WR_RDMA_WRITE, 0, 64));
  EXPECT_EQ(end.completion().status, IBV_WC_REM_ACCESS_ERR);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(end.completion().status, IBV_WC_WR_FLUSH_ERR);
}

void wait_for_an_event(Endpoint& end) {
  EXPECT_EQ(ibv_req_notify_cq(end.cq, 0), 0);
  must_post(end, end.request(IBV_WR_RDMA_WRITE, 0, 256));
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  EXPECT_EQ(ibv_get_cq_event(end.channel, &cq, &context), 0);
  ibv_ack_cq_events(end.cq, 1);
  take(end, 1);
}

// UC: a receive whose message lost a packet is used again for the next message.
void send_the_lost_and_the_found(Endpoint& end) {
  transfer(end, IBV_WR_SEND, 3000);
  transfer(end, IBV_WR_SEND, 1500);
  transfer(end, IBV_WR_RDMA_WRITE, 2000);
}

void use_a_shared_queue(Endpoint& end) {
  ibv_srq_attr limit{.max_wr = 0, .max_sge = 0, .srq_limit = 2};
  EXPECT_EQ(ibv_modify_srq(end.srq, &limit, IBV_SRQ_LIMIT), 0);
  EXPECT_EQ(end.receive(0, 8192), 0);
  take(end, 2);
  ibv_async_event event{};
  while (event.event_type != IBV_EVENT_SRQ_LIMIT_REACHED) {
    EXPECT_EQ(ibv_get_async_event(end.context, &event), 0);
    ibv_ack_async_event(&event);
  }
}

constexpr std::uint8_t kWindowTag = 0x5a;

// A window of the responder on the first half of its buffer. The requester can compute its key.
ibv_mw* open_a_window(Endpoint& end) {
  ibv_mw* window = ibv_alloc_mw(end.pd, IBV_MW_TYPE_2);
  ibv_send_wr bind{};
  bind.opcode = IBV_WR_BIND_MW;
  bind.bind_mw.mw = window;
  bind.bind_mw.rkey = kWindowTag;
  bind.bind_mw.bind_info = {end.mr, reinterpret_cast<std::uint64_t>(end.buffer.data()), end.buffer.size() / 2,
                            IBV_ACCESS_REMOTE_WRITE};
  must_post(end, bind);
  take(end, 1);
  return window;
}

// Uses the key that the window must have: the first index after the region's.
void write_through_the_window(Endpoint& end) {
  auto request = end.request(IBV_WR_RDMA_WRITE, 0, 1500);
  request.wr.rdma.rkey = ((request.wr.rdma.rkey >> 8) + 1) << 8 | kWindowTag;
  must_post(end, request);
  EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
  auto invalidation = end.request(IBV_WR_SEND_WITH_INV, 0, 64);
  invalidation.invalidate_rkey = request.wr.rdma.rkey;
  must_post(end, invalidation);
  EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
  must_post(end, request);
  EXPECT_EQ(end.completion().status, IBV_WC_REM_ACCESS_ERR);
}

void write_to_the_same_nic(Endpoint& end) {
  Endpoint other(end.options), own(end.options);
  other.connect(own.address());
  own.connect(other.address());
  transfer(own, IBV_WR_RDMA_WRITE, 3000);
}

// The responder's second SRQ in its domain, with its own CQ, and the numbers that the requester needs.
struct DomainQueues {
  ibv_cq* second_cq = nullptr;
  ibv_srq* second = nullptr;
  std::uint32_t first_number = 0, second_number = 0;
};

void open_queues(Receiver& end, DomainQueues& queues) {
  queues.second_cq = ibv_create_cq(end.context, 4, nullptr, nullptr, 0);
  queues.second = make_xrc_srq(end.pd, end.xrcd, queues.second_cq, 3);
  queues.first_number = number_of(end.srq);
  queues.second_number = number_of(queues.second);
  EXPECT_EQ(end.receive(0, 8192), 0);
  ibv_recv_wr wr{};
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_srq_recv(queues.second, &wr, &bad), 0);
}

void transfer_to(Endpoint& end, std::uint32_t srqn, ibv_wr_opcode opcode, std::uint32_t length) {
  auto request = end.request(opcode, 0, length, 4096);
  request.qp_type.xrc.remote_srqn = srqn;
  request.imm_data = 0x04030201;
  must_post(end, request);
  take(end, 1);
}

// Each receive completes in the CQ of its SRQ.
void use_both_queues(Endpoint& end, DomainQueues& queues) {
  take(end, 1);
  ibv_wc wc{};
  while (ibv_poll_cq(queues.second_cq, 1, &wc) == 0) continue;
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(ibv_destroy_srq(queues.second), 0);
  EXPECT_EQ(ibv_destroy_cq(queues.second_cq), 0);
}

std::vector<Behaviour> make_behaviours() {
  using namespace rnicsim::literals;
  constexpr auto uc = [](EndpointOptions& options) { options.type = IBV_QPT_UC; };
  constexpr auto ud = [](EndpointOptions& options) { options.type = IBV_QPT_UD; };
  const auto window = std::make_shared<ibv_mw*>();
  const auto queues = std::make_shared<DomainQueues>();
  return {
      {.name = "rc_send",
       .title = "SENDs of 0, 100 and 3000 bytes at MTU 1024",
       .prepare = receives(3),
       .work =
           [](Endpoint& end) {
             for (const std::uint32_t length : {0, 100, 3000}) transfer(end, IBV_WR_SEND, length);
           },
       .meanwhile = [](Endpoint& end) { take(end, 3); }},
      {.name = "rc_send_imm",
       .title = "SEND with immediate data, 1500 bytes at MTU 1024",
       .prepare = receives(1),
       .work = [](Endpoint& end) { transfer(end, IBV_WR_SEND_WITH_IMM, 1500); },
       .meanwhile = [](Endpoint& end) { take(end, 1); }},
      {.name = "rc_write",
       .title = "WRITEs of 64 and 8193 bytes at MTU 4096",
       .requester = with([](EndpointOptions& options) { options.mtu = IBV_MTU_4096; }),
       .responder = with([](EndpointOptions& options) { options.mtu = IBV_MTU_4096; }),
       .work =
           [](Endpoint& end) {
             for (const std::uint32_t length : {64, 8193}) transfer(end, IBV_WR_RDMA_WRITE, length);
           }},
      {.name = "rc_write_imm",
       .title = "WRITE with immediate data, 2000 bytes at MTU 1024",
       .prepare = receives(1),
       .work = [](Endpoint& end) { transfer(end, IBV_WR_RDMA_WRITE_WITH_IMM, 2000); },
       .meanwhile = [](Endpoint& end) { take(end, 1); }},
      {.name = "rc_read",
       .title = "READ of 3000 bytes at MTU 1024",
       .work = [](Endpoint& end) { transfer(end, IBV_WR_RDMA_READ, 3000); }},
      {.name = "cq_event",
       .title = "an armed CQ: EQE, interrupt, and an event on the completion channel",
       .requester = with([](EndpointOptions& options) { options.channel = true; }),
       .work = wait_for_an_event},
      {.name = "rnr_retry",
       .title = "SEND before its receive is posted: RNR NAKs, then success",
       .responder = with([](EndpointOptions& options) { options.min_rnr_timer = 12; }),
       .work = [](Endpoint& end) { transfer(end, IBV_WR_SEND, 64); },
       .meanwhile =
           [](Endpoint& end) {
             wait_for(1_ms);
             EXPECT_EQ(end.receive(0, 64), 0);
             take(end, 1);
           }},
      {.name = "ack_timeout",
       .title = "a lost WRITE: the local ACK timeout expires, and it is sent again",
       .requester = with([](EndpointOptions& options) { options.timeout = 8; }),
       .faults = {"drop=1,host=h0,nth=1"},
       .work = [](Endpoint& end) { transfer(end, IBV_WR_RDMA_WRITE, 64); }},
      {.name = "sequence_error",
       .title = "the second of four packets is lost: NAK sequence error, and all from it on are sent again",
       .faults = {"drop=1,host=h0,nth=2"},
       .work = [](Endpoint& end) { transfer(end, IBV_WR_RDMA_WRITE, 4096); }},
      {.name = "retry_exceeded",
       .title = "every packet is lost: transport retry exceeded, and the QP fails",
       .requester = with([](EndpointOptions& options) {
         options.timeout = 8;
         options.retry_count = 2;
       }),
       .faults = {"drop=1,host=h0"},
       .work = [](Endpoint& end) { transfer(end, IBV_WR_RDMA_WRITE, 64, IBV_WC_RETRY_EXC_ERR); }},
      {.name = "access_error",
       .title = "WRITE with a wrong rkey: NAK remote access error, both QPs fail, the rest is flushed",
       .work = write_with_a_bad_key},
      {.name = "qp_states",
       .title = "a QP's way through RESET, INIT, RTR, RTS, SQD, RTS, ERR, RESET, INIT",
       .work = walk_states},
      {.name = "loopback",
       .title = "WRITE of 3000 bytes at MTU 1024 to a QP of the same NIC",
       .work = write_to_the_same_nic},
      {.name = "uc_send",
       .title = "UC: a SEND that loses its second packet, one that arrives, and a WRITE",
       .requester = with(uc),
       .responder = with(uc),
       .faults = {"drop=1,host=h0,nth=2"},
       .prepare = receives(2),
       .work = send_the_lost_and_the_found,
       .meanwhile = [](Endpoint& end) { take(end, 1); },
       .needs = {"nic.capabilities.uc", &nic::CapabilityParams::uc}},
      {.name = "ud_send",
       .title = "UD: a datagram of 1000 bytes with immediate data, and one for which there is no receive",
       .requester = with(ud),
       .responder = with(ud),
       .prepare = receives(1),
       .work =
           [](Endpoint& end) {
             transfer(end, IBV_WR_SEND_WITH_IMM, 1000);
             transfer(end, IBV_WR_SEND, 64);
           },
       .meanwhile = [](Endpoint& end) { take(end, 1); },
       .needs = {"nic.capabilities.ud", &nic::CapabilityParams::ud}},
      {.name = "srq_limit",
       .title = "SENDs into a shared receive queue, until fewer receives are left than its limit",
       .responder = with([](EndpointOptions& options) { options.shared_wr = 7; }),
       .prepare = receives(2),
       .work =
           [](Endpoint& end) {
             for (const std::uint32_t length : {64, 1500}) transfer(end, IBV_WR_SEND, length);
           },
       .meanwhile = use_a_shared_queue,
       .needs = {"nic.capabilities.srq", &nic::CapabilityParams::srq}},
      {.name = "memory_window",
       .title = "a memory window is bound, written through, and invalidated by a SEND: the next WRITE is refused",
       .responder = with([](EndpointOptions& options) { options.mr_access |= IBV_ACCESS_MW_BIND; }),
       .prepare =
           [=](Endpoint& end) {
             *window = open_a_window(end);
             receives(1)(end);
           },
       .work = write_through_the_window,
       .meanwhile =
           [=](Endpoint& end) {
             take(end, 1);
             wait_for(100_us);
             EXPECT_EQ(ibv_dealloc_mw(*window), 0);
           },
       .needs = {"nic.capabilities.windows", &nic::CapabilityParams::windows}},
      {.name = "xrc_send",
       .title = "XRC: a SEND of 1500 bytes to one queue of a domain, a WRITE with immediate data of 2000 to another",
       .requester = with([](EndpointOptions& options) { options.type = IBV_QPT_XRC_SEND; }),
       .make_responder = [](const EndpointOptions& options) { return std::make_shared<Receiver>(-1, true, options); },
       .prepare = [=](Endpoint& end) { open_queues(static_cast<Receiver&>(end), *queues); },
       .work =
           [=](Endpoint& end) {
             transfer_to(end, queues->first_number, IBV_WR_SEND, 1500);
             transfer_to(end, queues->second_number, IBV_WR_RDMA_WRITE_WITH_IMM, 2000);
           },
       .meanwhile = [=](Endpoint& end) { use_both_queues(end, *queues); },
       .needs = {"nic.capabilities.xrc", &nic::CapabilityParams::xrc}},
  };
}

void fill(Endpoint& end) {
  for (std::size_t i = 0; i < end.buffer.size(); ++i) end.buffer[i] = std::uint8_t(i * 7 + 1);
}

}  // namespace

std::span<const Behaviour> behaviours() {
  static const std::vector<Behaviour> all = [] {
    auto made = make_behaviours();
    for (auto& connection : connections()) made.push_back(std::move(connection));
    return made;
  }();
  return all;
}

std::string BehaviourRun::record() {
  std::ostringstream file;
  auto header = sim::trace_header(system(), 1, sim::TimeMode::simulated);
  header.title = behaviour_.title;
  sim::TraceWriter writer(file, header);
  const sim::Recorder recorder(system(), writer);
  run_behaviour();
  writer.finish(now());
  return file.str();
}

void BehaviourRun::run_behaviour() {
  if (behaviour_.connects) {
    constexpr Duration kMost{60'000'000'000'000};
    const auto program = [this](std::size_t host, const auto& body) {
      return [this, host, &body] {
        CmProgram program(process(host));
        body(program);
      };
    };
    return run(program(0, behaviour_.connects), program(1, behaviour_.listens), kMost);
  }
  Exchange<EndpointAddress> addresses;
  run(
      [&] {
        Endpoint end(behaviour_.requester);
        fill(end);
        end.connect(addresses.swap(0, end.address()));
        meet(0);
        behaviour_.work(end);
        meet(0);
      },
      [&] {
        const auto responder = behaviour_.make_responder ? behaviour_.make_responder(behaviour_.responder)
                                                         : std::make_shared<Endpoint>(behaviour_.responder);
        Endpoint& end = *responder;
        fill(end);
        end.connect(addresses.swap(1, end.address()));
        if (behaviour_.prepare) behaviour_.prepare(end);
        meet(1);
        if (behaviour_.meanwhile) behaviour_.meanwhile(end);
        meet(1);
      });
}

std::optional<std::string> BehaviourRun::record_here(const Behaviour& behaviour, const std::vector<std::string>& sets) {
  BehaviourRun run(behaviour, sets);
  return run.possible() ? std::optional(run.record()) : std::nullopt;
}

void BehaviourRun::record_software(const Behaviour& behaviour, const std::filesystem::path& file) {
  BehaviourRun run(behaviour);
  sim::Recording recording(run.system(), sim::trace_header(run.system(), 1, sim::TimeMode::simulated), file,
                           {.software = true});
  run.run_behaviour();
  recording.finish();
}

std::optional<std::string> BehaviourRun::record_apart(const Behaviour& behaviour,
                                                      const std::vector<std::string>& sets) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("pipe");
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    // Failures of the parent do not belong to this run.
    ::testing::TestPartResultArray failures;
    const ::testing::ScopedFakeTestPartResultReporter reporter(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &failures);
    const auto trace = record_here(behaviour, sets);
    if (!trace) ::_exit(kImpossible);
    for (int i = 0; i < failures.size(); ++i)
      std::fprintf(stderr, "%s:%d: %s\n", failures.GetTestPartResult(i).file_name(),
                   failures.GetTestPartResult(i).line_number(), failures.GetTestPartResult(i).message());
    const bool written = ::write(ends[1], trace->data(), trace->size()) == ssize_t(trace->size());
    std::fflush(nullptr);
    ::_exit(written && failures.size() == 0 ? 0 : 1);
  }
  ::close(ends[1]);
  std::string trace;
  char buffer[4096];
  for (ssize_t got; (got = ::read(ends[0], buffer, sizeof buffer)) > 0;) trace.append(buffer, std::size_t(got));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kImpossible) return std::nullopt;
  if (status != 0) ADD_FAILURE() << behaviour.name << ": it went wrong itself";
  return trace;
}

}  // namespace rnicsim::testing
