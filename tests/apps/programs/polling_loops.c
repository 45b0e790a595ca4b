// SPDX-License-Identifier: Apache-2.0
// Random loops of a polling server: threads poll completion queues, memory slots that the client writes, clocks and
// each other's words, in an order drawn from a seed. Each thread prints its findings and their times. The times do not
// depend on how the simulator executes such loops.
//   polling_loops random SEED [SERVER]
// Or a server of one loop, and a client that prints the least and the longest round trip in ns:
//   polling_loops queues COUNT [SERVER]   requests come to one of COUNT queues, which are polled in turn
//   polling_loops start COUNT [SERVER]    the same with ibv_start_poll
//   polling_loops slots WHAT [SERVER]     requests are written into memory; WHAT is done in each round besides: none,
//                                         poll, yield, clock
// Without SERVER it is the server.
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { kQueues = 6, kMostQueues = 64, kSlots = 8, kThreads = 3, kMessages = 40, kFinds = 400, kSteps = 10 };
enum { kSlotBytes = 4096 };

#define check(x)                                                    \
  do {                                                              \
    if (!(x)) {                                                     \
      fprintf(stderr, "polling_loops.c:%d: %s\n", __LINE__, #x);    \
      exit(1);                                                      \
    }                                                               \
  } while (0)

static unsigned long long seed;
static unsigned below(unsigned long long *state, unsigned n) {
  *state = *state * 6364136223846793005ull + 1442695040888963407ull;
  return (unsigned)(*state >> 33) % n;
}

static long now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000L + now.tv_nsec;
}

struct address {
  uint32_t qpn[kQueues];
  uint32_t rkey;
  uint64_t memory;
  union ibv_gid gid;
};
static struct ibv_cq *queues[kMostQueues];
static struct ibv_qp *qps[kQueues];
static struct ibv_mr *region;
static volatile char *memory;
static volatile int words[kThreads];
static volatile int ended;
static int starts;

static int open_stream(const char *server) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(7471)};
  int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
  if (server == NULL) {
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    check(bind(listener, (struct sockaddr *)&at, sizeof at) == 0 && listen(listener, 1) == 0);
    return accept(listener, NULL, NULL);
  }
  struct hostent *host = gethostbyname(server);
  check(host != NULL);
  memcpy(&at.sin_addr, host->h_addr_list[0], sizeof at.sin_addr);
  while (connect(listener, (struct sockaddr *)&at, sizeof at) != 0) usleep(1000);
  return listener;
}

static void exchange(int stream, const void *ours, void *theirs, size_t bytes) {
  check(write(stream, ours, bytes) == (ssize_t)bytes);
  for (size_t got = 0; got < bytes;) {
    const ssize_t more = read(stream, (char *)theirs + got, bytes - got);
    check(more > 0);
    got += (size_t)more;
  }
}

static struct address connect_all(int stream) {
  int count;
  struct ibv_device **devices = ibv_get_device_list(&count);
  struct ibv_context *context = ibv_open_device(devices[0]);
  struct ibv_pd *pd = ibv_alloc_pd(context);
  memory = aligned_alloc(kSlotBytes, kSlots * kSlotBytes);
  memset((void *)memory, 0, kSlots * kSlotBytes);
  region = ibv_reg_mr(pd, (void *)memory, kSlots * kSlotBytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  check(region != NULL);
  struct address ours = {.rkey = region->rkey, .memory = (uintptr_t)memory}, theirs;
  check(ibv_query_gid(context, 1, 1, &ours.gid) == 0);
  struct ibv_cq_init_attr_ex extended = {.cqe = 256};
  for (int i = 0; i < kMostQueues; ++i)
    queues[i] = starts ? ibv_cq_ex_to_cq(ibv_create_cq_ex(context, &extended))
                       : ibv_create_cq(context, 256, NULL, NULL, 0);
  for (int i = 0; i < kQueues; ++i) {
    struct ibv_qp_init_attr attributes = {.send_cq = queues[i], .recv_cq = queues[i], .qp_type = IBV_QPT_RC,
                                          .cap = {64, 128, 1, 1, 64}};
    qps[i] = ibv_create_qp(pd, &attributes);
    check(qps[i] != NULL);
    ours.qpn[i] = qps[i]->qp_num;
  }
  exchange(stream, &ours, &theirs, sizeof ours);
  for (int i = 0; i < kQueues; ++i) {
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    check(ibv_modify_qp(qps[i], &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = theirs.qpn[i],
                              .max_dest_rd_atomic = 1, .min_rnr_timer = 12,
                              .ah_attr = {.is_global = 1, .port_num = 1,
                                          .grh = {.dgid = theirs.gid, .sgid_index = 1, .hop_limit = 64}}};
    check(ibv_modify_qp(qps[i], &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0);
    struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
                              .max_rd_atomic = 1};
    check(ibv_modify_qp(qps[i], &rts, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                          IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC) == 0);
  }
  return theirs;
}

// --- The server: a thread serves the queues and slots whose number modulo kThreads is the thread's number.
struct thread {
  int number;
  unsigned long long dice;
  int finds;
  struct { char what; int which; long at; } found[kFinds];
};

static void note(struct thread *me, char what, int which) {
  if (me->finds == kFinds) return;
  me->found[me->finds].what = what;
  me->found[me->finds].which = which;
  me->found[me->finds++].at = now_ns();
}

static void take(struct thread *me, int queue) {
  struct ibv_wc completion;
  if (ibv_poll_cq(queues[queue], 1, &completion) != 1) return;
  note(me, 'q', queue);
  struct ibv_recv_wr receive = {0}, *bad;
  check(ibv_post_recv(qps[queue], &receive, &bad) == 0);
  if (below(&me->dice, 3) == 0) ++words[below(&me->dice, kThreads)];
}

static void *serve(void *argument) {
  struct thread *me = argument;
  while (!ended) {
    // One loop: runs until something is found, or, for some loops, for a number of rounds or a time.
    int steps = 1 + (int)below(&me->dice, kSteps), kinds[kSteps], which[kSteps];
    for (int i = 0; i < steps; ++i) {
      kinds[i] = (int)below(&me->dice, 12);
      which[i] = (int)below(&me->dice, 8);
    }
    const int rounds = below(&me->dice, 3) == 0 ? 1 + (int)below(&me->dice, 300) : 0;
    const long lasts = below(&me->dice, 4) == 0 ? 1000 * (1 + (long)below(&me->dice, 40)) : 0;
    const long began = lasts != 0 ? now_ns() : 0;
    const int before = me->finds, word = words[me->number];
    for (int round = 0; me->finds == before && !ended; ) {
      if (rounds != 0 && ++round > rounds) break;
      if (lasts != 0 && now_ns() - began > lasts) break;
      for (int q = me->number; q < kQueues; q += kThreads) take(me, q);
      for (int i = 0; i < steps; ++i) {
        const int slot = (which[i] / kThreads * kThreads + me->number) % kSlots;
        if (kinds[i] < 4) {
          take(me, (which[i] / kThreads * kThreads + me->number) % kQueues);
        } else if (kinds[i] < 8 && slot % kThreads == me->number && memory[slot * kSlotBytes] != 0) {
          memory[slot * kSlotBytes] = 0;
          note(me, 's', slot);
        } else if (kinds[i] == 8) {
          sched_yield();
        } else if (kinds[i] == 9 && words[me->number] != word) {
          note(me, 'w', words[me->number]);
        }
      }
    }
    if (me->finds == before) note(me, rounds != 0 ? 'r' : 't', 0);
  }
  return NULL;
}

static void run_server(void) {
  pthread_t handles[kThreads];
  static struct thread threads[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    threads[i].number = i;
    threads[i].dice = seed * 977 + (unsigned long long)i;
    check(pthread_create(&handles[i], NULL, serve, &threads[i]) == 0);
  }
  usleep(3000);
  ended = 1;
  for (int i = 0; i < kThreads; ++i) pthread_join(handles[i], NULL);
  for (int i = 0; i < kThreads; ++i)
    for (int k = 0; k < threads[i].finds; ++k)
      printf("thread %d: %c %d at %ld\n", i, threads[i].found[k].what, threads[i].found[k].which,
             threads[i].found[k].at);
}

// --- The client: sends to a random queue or writes to a random slot at random times.
static void run_client(const struct address *server) {
  unsigned long long dice = seed;
  for (int i = 0; i < kMessages; ++i) {
    if (below(&dice, 3) != 0) usleep(1 + below(&dice, 60));
    const int queue = (int)below(&dice, kQueues);
    const int writes = below(&dice, 2) == 0;
    *memory = 1;
    struct ibv_sge source = {(uintptr_t)memory, 1, region->lkey};
    struct ibv_send_wr send = {.sg_list = &source, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED,
                               .opcode = IBV_WR_SEND},
                       *bad;
    if (writes) {
      send.opcode = IBV_WR_RDMA_WRITE;
      send.wr.rdma.remote_addr = server->memory + below(&dice, kSlots) * kSlotBytes;
      send.wr.rdma.rkey = server->rkey;
    } else {
      send.num_sge = 0;
    }
    check(ibv_post_send(qps[queue], &send, &bad) == 0);
    struct ibv_wc completion;
    const int looks_elsewhere = (int)below(&dice, 3);
    while (ibv_poll_cq(queues[queue], 1, &completion) == 0)
      for (int k = 0; k < looks_elsewhere; ++k) ibv_poll_cq(queues[(queue + 1 + k) % kQueues], 1, &completion);
    check(completion.status == IBV_WC_SUCCESS);
    printf("sent at %ld\n", now_ns());
  }
}

// --- Servers of one loop.
enum { kRoundTrips = 16, kBusy = 3 };

static void post(int queue, struct ibv_send_wr send) {
  struct ibv_send_wr *bad;
  check(ibv_post_send(qps[queue], &send, &bad) == 0);
}

static int poll_one(int queue) {
  if (!starts) {
    struct ibv_wc completion;
    return ibv_poll_cq(queues[queue], 1, &completion);
  }
  struct ibv_cq_ex *extended = (struct ibv_cq_ex *)queues[queue];
  struct ibv_poll_cq_attr attributes = {0};
  if (ibv_start_poll(extended, &attributes) != 0) return 0;
  ibv_end_poll(extended);
  return 1;
}

static void serve_queues(int count) {
  for (int done = 0; done < kRoundTrips;)
    for (int i = 0; i < count; ++i)
      if (poll_one(i) == 1) {
        post(kBusy % count, (struct ibv_send_wr){.opcode = IBV_WR_SEND});
        ++done;
      }
}

static void write_slot(const struct address *to, int slot) {
  static char one = 1;
  struct ibv_sge source = {(uintptr_t)&one, 1, 0};
  post(0, (struct ibv_send_wr){.sg_list = &source, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
                               .send_flags = IBV_SEND_INLINE,
                               .wr.rdma = {to->memory + slot * kSlotBytes, to->rkey}});
}

static void serve_slots(const struct address *client, const char *what) {
  for (int done = 0; done < kRoundTrips;) {
    for (int i = 0; i < kSlots; ++i)
      if (memory[i * kSlotBytes] != 0) {
        memory[i * kSlotBytes] = 0;
        write_slot(client, i);
        ++done;
      }
    if (what[0] == 'p') poll_one(0);
    if (what[0] == 'y') sched_yield();
    if (what[0] == 'c') now_ns();
  }
}

static void measure(const struct address *server, int slots, int count) {
  long least = -1, longest = 0;
  for (int i = 0; i < kRoundTrips; ++i) {
    usleep(500 + 7 * i);
    const long began = now_ns();
    if (slots) {
      write_slot(server, i % kSlots);
      while (memory[i % kSlots * kSlotBytes] == 0) {}
      memory[i % kSlots * kSlotBytes] = 0;
    } else {
      post(kBusy % count, (struct ibv_send_wr){.opcode = IBV_WR_SEND});
      while (poll_one(kBusy % count) == 0) {}
    }
    const long took = now_ns() - began;
    if (i == 0) continue;  // not measured: contexts and translations are not resident yet
    if (least < 0 || took < least) least = took;
    if (took > longest) longest = took;
  }
  printf("%ld to %ld ns\n", least, longest);
}

int main(int count, char **arguments) {
  check(count >= 3);
  const char *mode = arguments[1];
  const int random = strcmp(mode, "random") == 0, slots = strcmp(mode, "slots") == 0, serves = count == 3;
  seed = strtoull(arguments[2], NULL, 0);
  starts = strcmp(mode, "start") == 0;
  const int stream = open_stream(serves ? NULL : arguments[3]);
  const struct address peer = connect_all(stream);
  if (serves || !random)
    for (int i = 0; i < kQueues; ++i)
      for (int k = 0; k < 64; ++k) {
        struct ibv_recv_wr receive = {0}, *bad;
        check(ibv_post_recv(qps[i], &receive, &bad) == 0);
      }
  char ready = 1, other;
  exchange(stream, &ready, &other, 1);
  if (random && serves) run_server();
  if (random && !serves) run_client(&peer);
  if (!random && !serves) measure(&peer, slots, (int)seed);
  if (slots && serves) serve_slots(&peer, arguments[2]);
  if (!random && !slots && serves) serve_queues((int)seed);
  exchange(stream, &ready, &other, 1);
  return 0;
}
