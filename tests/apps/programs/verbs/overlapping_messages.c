// SPDX-License-Identifier: Apache-2.0
/* Messages of one queue pair to the same bytes: each must be in memory before the next, whatever translations the
 * device has cached. Argument: the seed. */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { kBytes = 2 << 20, kKeys = 3, kMost = 12, kParts = 8 };
enum { kRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE };

static uint64_t state;
static uint64_t up_to(uint64_t most) {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return (state * 0x2545f4914f6cdd1d >> 11) % (most + 1);
}
static void check(int right, const char *what) {
  if (right) return;
  printf("%s\n", what);
  exit(1);
}

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_mr *from[kKeys], *to[kKeys];
static unsigned char *source, *target, *expected;

static struct ibv_qp *make_qp(struct ibv_cq *cq) {
  struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
                                  .cap = {kMost, kMost, kParts, kParts, 0}};
  struct ibv_qp *qp = ibv_create_qp(pd, &init);
  check(qp != NULL, "ibv_create_qp");
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = kRights};
  check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");
  return qp;
}
static void connect_qp(struct ibv_qp *qp, uint32_t peer) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer,
                             .max_dest_rd_atomic = 1, .min_rnr_timer = 12};
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  check(!ibv_query_gid(context, 1, 1, &attr.ah_attr.grh.dgid), "ibv_query_gid");
  attr.ah_attr.grh.sgid_index = 1;
  check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), "RTR");
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 14;
  attr.retry_cnt = attr.rnr_retry = 7;
  attr.max_rd_atomic = 1;
  check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC), "RTS");
}

/* Cuts `bytes` into pieces: anywhere for a source, one behind the other for a target. The key of each piece is
 * drawn. */
static int cut(struct ibv_sge *parts, size_t bytes, size_t room, unsigned char *base, struct ibv_mr **keys, size_t at) {
  const int count = bytes < kParts || up_to(1) ? 1 : 1 + (int)up_to(kParts - 1);
  for (int i = 0; i < count; ++i) {
    const size_t left = (size_t)(count - 1 - i);
    const size_t part = left == 0 ? bytes : 1 + up_to(bytes - left - 1);
    const size_t begin = keys == from ? up_to(room - part) : at;
    parts[i] = (struct ibv_sge){(uintptr_t)(base + begin), (uint32_t)part, keys[up_to(kKeys - 1)]->lkey};
    bytes -= part;
    at += part;
  }
  return count;
}

/* Returns the number of completions to expect. */
static int post(struct ibv_qp *sender, struct ibv_qp *receiver, size_t room, enum ibv_wr_opcode opcode) {
  static const size_t kLengths[] = {16, 300, 4112, 9000, 70000, 400000};
  size_t bytes = 1 + up_to(kLengths[up_to(5)]);
  if (bytes > room) bytes = room;
  struct ibv_sge parts[kParts], places[kParts];
  const size_t at = up_to(room - bytes);
  struct ibv_send_wr wr = {.sg_list = parts, .send_flags = IBV_SEND_SIGNALED}, *bad;
  wr.num_sge = cut(parts, bytes, room, source, from, 0);
  wr.opcode = opcode;
  size_t done = at;
  for (int i = 0; i < wr.num_sge; done += parts[i++].length)
    memcpy(expected + done, (void *)(uintptr_t)parts[i].addr, parts[i].length);
  wr.wr.rdma.remote_addr = (uintptr_t)(target + at);
  wr.wr.rdma.rkey = to[up_to(kKeys - 1)]->rkey;
  struct ibv_recv_wr receive = {.sg_list = places}, *bad_receive;
  if (wr.opcode == IBV_WR_SEND) {
    receive.num_sge = cut(places, bytes, room, target, to, at);
    check(!ibv_post_recv(receiver, &receive, &bad_receive), "ibv_post_recv");
  }
  check(!ibv_post_send(sender, &wr, &bad), "ibv_post_send");
  return wr.opcode == IBV_WR_SEND ? 2 : 1;
}

static void poll(struct ibv_cq *cq, int count) {
  struct ibv_wc wc;
  while (count > 0) {
    const int got = ibv_poll_cq(cq, 1, &wc);
    if (got == 0) continue;
    check(got == 1 && wc.status == IBV_WC_SUCCESS, "a completion");
    --count;
  }
}

int main(int count, char **arguments) {
  state = (uint64_t)atoi(count > 1 ? arguments[1] : "1") * 7919 + 12345;
  struct ibv_device **list = ibv_get_device_list(NULL);
  context = ibv_open_device(list[0]);
  pd = ibv_alloc_pd(context);
  source = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  target = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  expected = calloc(1, kBytes);
  for (size_t i = 0; i < kBytes; ++i) source[i] = (unsigned char)up_to(255);
  for (int i = 0; i < kKeys; ++i) {
    from[i] = ibv_reg_mr(pd, source, kBytes, kRights);
    to[i] = ibv_reg_mr(pd, target, kBytes, kRights);
  }
  struct ibv_cq *cq = ibv_create_cq(context, 4 * kMost, NULL, NULL, 0);
  struct ibv_qp *sender = make_qp(cq), *receiver = make_qp(cq);
  connect_qp(sender, receiver->qp_num);
  connect_qp(receiver, sender->qp_num);
  for (int round = 0; round < 200; ++round) {
    const size_t room = up_to(2) ? 64 + up_to(20000) : kBytes;
    const int messages = 1 + (int)up_to(kMost - 1);
    int completions = 0;
    for (int i = 1; i < messages; ++i)
      completions += post(sender, receiver, room, up_to(1) ? IBV_WR_SEND : IBV_WR_RDMA_WRITE);
    /* The receive of this SEND completes when all messages before it are in memory. */
    completions += post(sender, receiver, room, IBV_WR_SEND);
    poll(cq, completions);
    if (memcmp(target, expected, kBytes) == 0) continue;
    size_t first = 0;
    while (target[first] == expected[first]) ++first;
    printf("round %d: wrong from %zu on\n", round, first);
    return 1;
  }
  puts("in order");
  return 0;
}
