// SPDX-License-Identifier: Apache-2.0
// Registers memory and then unmaps, replaces, drops, moves or frees the memory: pinned_memory MODE. The queue pairs are
// connected to each other in this process. Prints the data that the device finds.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kPage = 4096, kBytes = 4 * kPage, kDepth = 16 };
enum { kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC };

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp, *target;
static struct ibv_mr *local;
static char *buffer;

static void check(int good, const char *what) {
  if (good) return;
  printf("failed: %s: %s\n", what, strerror(errno));
  fflush(stdout);
  _exit(9);
}

static void connect_to(struct ibv_qp *from, struct ibv_qp *peer) {
  union ibv_gid gid;
  check(ibv_query_gid(context, 1, 1, &gid) == 0, "gid");
  struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = kAll};
  check(ibv_modify_qp(from, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0, "INIT");
  struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer->qp_num,
      .max_dest_rd_atomic = kDepth, .min_rnr_timer = 12,
      .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .sgid_index = 1, .hop_limit = 64}}};
  check(ibv_modify_qp(from, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0, "RTR");
  struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 3, .rnr_retry = 3,
      .max_rd_atomic = kDepth};
  check(ibv_modify_qp(from, &rts, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0, "RTS");
}

static void open_device(void) {
  struct ibv_device **list = ibv_get_device_list(NULL);
  check(list && list[0], "no device");
  context = ibv_open_device(list[0]);
  ibv_free_device_list(list);
  check(context && (pd = ibv_alloc_pd(context)) && (cq = ibv_create_cq(context, 2 * kDepth, NULL, NULL, 0)), "objects");
  struct ibv_qp_init_attr wanted = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
      .cap = {.max_send_wr = kDepth, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
  check((qp = ibv_create_qp(pd, &wanted)) && (target = ibv_create_qp(pd, &wanted)), "queue pairs");
  connect_to(qp, target);
  connect_to(target, qp);
  buffer = aligned_alloc(kPage, kBytes);
  memset(buffer, 0, kBytes);
  check((local = ibv_reg_mr(pd, buffer, kBytes, kAll)) != NULL, "region");
}

static struct ibv_mr *reg(void *memory) {
  struct ibv_mr *mr = ibv_reg_mr(pd, memory, kBytes, kAll);
  check(mr != NULL, "ibv_reg_mr");
  return mr;
}

static void post(enum ibv_wr_opcode opcode, uint64_t to, uint32_t rkey, uint32_t bytes) {
  struct ibv_sge sge = {.addr = (uintptr_t)buffer, .length = bytes, .lkey = local->lkey};
  struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode}, *bad;
  if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    wr.wr.atomic.remote_addr = to;
    wr.wr.atomic.rkey = rkey;
    wr.wr.atomic.compare_add = 1;
  } else {
    wr.wr.rdma.remote_addr = to;
    wr.wr.rdma.rkey = rkey;
  }
  check(ibv_post_send(qp, &wr, &bad) == 0, "post");
}
static enum ibv_wc_status completion(void) {
  struct ibv_wc wc;
  while (ibv_poll_cq(cq, 1, &wc) == 0) continue;
  return wc.status;
}

// Prints the data that the device reads from each page of a region.
static void device_reads(const char *what, const struct ibv_mr *mr) {
  memset(buffer, 'x', kBytes);
  post(IBV_WR_RDMA_READ, (uintptr_t)mr->addr, mr->rkey, kBytes);
  const enum ibv_wc_status status = completion();
  if (status != IBV_WC_SUCCESS)
    printf("%s: the device reads: %s\n", what, ibv_wc_status_str(status));
  else
    printf("%s: the device reads %d %d %d %d\n", what, buffer[0], buffer[kPage], buffer[2 * kPage], buffer[kBytes - 1]);
}
static void device_writes(const char *what, const struct ibv_mr *mr, char value) {
  memset(buffer, value, kBytes);
  post(IBV_WR_RDMA_WRITE, (uintptr_t)mr->addr, mr->rkey, kBytes);
  printf("%s: the device writes %d: %s\n", what, value, ibv_wc_status_str(completion()));
}
static void program_reads(const char *what, const volatile char *memory) {
  printf("%s: the program reads %d %d %d %d\n", what, memory[0], memory[kPage], memory[2 * kPage], memory[kBytes - 1]);
}

static void *map(void *address, int flags) {
  void *memory = mmap(address, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  check(memory != MAP_FAILED, "mmap");
  return memory;
}
static char *filled(char *memory, char value) {
  memset(memory, value, kBytes);
  return memory;
}

// The region covers two mappings; the kernel moves one mapping at a time.
static void unmapped(void) {
  char *memory = filled(map(NULL, 0), 7);
  check(mprotect(memory + 3 * kPage, kPage, PROT_READ | PROT_WRITE | PROT_EXEC) == 0, "mprotect");
  struct ibv_mr *old = reg(memory);
  check(munmap(memory, kBytes) == 0, "munmap");
  device_reads("gone", old);
  device_writes("gone", old, 9);
  filled(map(memory, MAP_FIXED), 3);
  struct ibv_mr *new = reg(memory);
  device_reads("gone", old);
  device_reads("new", new);
  device_writes("new", new, 4);
  program_reads("new", memory);
  device_reads("gone", old);
  check(munmap(memory, 2 * kPage) == 0, "munmap");
  device_reads("new", new);
  check(ibv_dereg_mr(old) == 0 && ibv_dereg_mr(new) == 0, "ibv_dereg_mr");
  // No part of the mapping is left.
  char line[512];
  FILE *maps = fopen("/proc/self/maps", "r");
  while (fgets(line, sizeof line, maps))
    if (strtoull(line, NULL, 16) >> 40 == 0x21) printf("left: %s", line);
  fclose(maps);
}

static void replaced(void) {
  char *memory = filled(map(NULL, 0), 7);
  struct ibv_mr *mr = reg(memory);
  filled(map(memory, MAP_FIXED), 3);
  device_writes("replaced", mr, 9);
  program_reads("replaced", memory);
  device_reads("replaced", mr);
}

static void dropped(void) {
  char *memory = filled(map(NULL, 0), 7);
  struct ibv_mr *mr = reg(memory);
  check(madvise(memory, kBytes, MADV_DONTNEED) == 0, "madvise");
  program_reads("dropped", memory);
  device_reads("dropped", mr);
  check(madvise(memory, kBytes, MADV_FREE) == 0, "madvise");
  char *shared = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  mr = reg(filled(shared, 5));
  check(madvise(shared, kBytes, MADV_DONTNEED) == 0, "madvise");
  device_writes("shared", mr, 6);
  program_reads("shared", shared);
}

static void moved(void) {
  char *memory = filled(map(NULL, 0), 7);
  struct ibv_mr *old = reg(memory);
  char *place = map(NULL, 0);
  check(mremap(memory, kBytes, kBytes, MREMAP_MAYMOVE | MREMAP_FIXED, place) == place, "mremap");
  device_writes("moved", old, 8);
  program_reads("moved", place);
  struct ibv_mr *new = reg(place);
  device_writes("new", new, 9);
  device_reads("moved", old);
  check(munmap(place, kBytes) == 0, "munmap");
  device_writes("new", new, 2);
  device_reads("moved", old);
}

static void protected(void) {
  char *memory = filled(map(NULL, 0), 7);
  struct ibv_mr *mr = reg(memory);
  check(mprotect(memory, kBytes, PROT_NONE) == 0, "mprotect");
  device_reads("no rights", mr);
  device_writes("no rights", mr, 8);
  check(mprotect(memory, kBytes, PROT_READ) == 0, "mprotect");
  program_reads("no rights", memory);
}

static void detached(void) {
  const int id = shmget(IPC_PRIVATE, kBytes, 0600);
  char *memory = shmat(id, NULL, 0);
  check(memory != (void *)-1 && shmctl(id, IPC_RMID, NULL) == 0, "shmat");
  struct ibv_mr *mr = reg(filled(memory, 7));
  check(shmdt(memory) == 0, "shmdt");
  device_reads("detached", mr);
}

// The C library unmaps the memory itself.
static void freed(void) {
  enum { kLarge = 1 << 20 };
  char *memory = malloc(kLarge);
  memset(memory, 7, kLarge);
  struct ibv_mr *mr = reg(memory + kPage - (uintptr_t)memory % kPage);
  free(memory);
  device_writes("freed", mr, 8);
  device_writes("freed", mr, 9);
}

// Pages that are write-protected with a userfaultfd that nothing serves.
static void stalled(void) {
  char *memory = filled(map(NULL, 0), 7);
  const int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
  struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP};
  struct uffdio_register wanted = {.range = {(uintptr_t)memory, kBytes}, .mode = UFFDIO_REGISTER_MODE_WP};
  struct uffdio_writeprotect protection = {.range = {(uintptr_t)memory, kBytes}, .mode = UFFDIO_WRITEPROTECT_MODE_WP};
  if (fd < 0 || ioctl(fd, UFFDIO_API, &api) != 0 || ioctl(fd, UFFDIO_REGISTER, &wanted) != 0) {
    printf("no userfaultfd\n");
    return;
  }
  struct ibv_mr *mr = reg(memory);
  check(ioctl(fd, UFFDIO_WRITEPROTECT, &protection) == 0, "UFFDIO_WRITEPROTECT");
  device_writes("stalled", mr, 8);
}

static void say_registration(const char *what, void *memory, int access) {
  errno = 0;
  struct ibv_mr *mr = ibv_reg_mr(pd, memory, kBytes, access);
  printf("%s: %s\n", what, mr ? "registered" : strerrorname_np(errno));
  if (mr) check(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");
}
static void refused(void) {
  char *memory = map(NULL, 0);
  say_registration("all rights", memory, kAll);
  mprotect(memory + kPage, kPage, PROT_READ);
  say_registration("a page read-only", memory, kAll);
  say_registration("a page read-only, for reading", memory, IBV_ACCESS_REMOTE_READ);
  mprotect(memory + kPage, kPage, PROT_NONE);
  say_registration("a page without rights", memory, 0);
  munmap(memory + kPage, kPage);
  say_registration("a hole", memory, 0);
  const int fd = memfd_create("file", 0);
  check(ftruncate(fd, kPage) == 0, "ftruncate");
  say_registration("beyond a file's end", mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), kAll);
}

// Two processes add to one word. Each has its own mapping and its own region, which begin at different addresses.
static void count(char *page, uint32_t offset) {
  enum { kAdds = 2000 };
  open_device();
  struct ibv_mr *mr = ibv_reg_mr(pd, page + offset, kPage - offset, kAll);
  check(mr != NULL, "ibv_reg_mr");
  struct timespec now = {0};
  while (now.tv_nsec < 100 * 1000 * 1000) {  // both processes start at the same time
    clock_gettime(CLOCK_MONOTONIC, &now);
    usleep(1000);
  }
  for (int sent = 0, done = 0; done < kAdds;) {
    for (; sent < kAdds && sent - done < 8; ++sent)
      post(IBV_WR_ATOMIC_FETCH_AND_ADD, (uintptr_t)page + 512, mr->rkey, 8);
    check(completion() == IBV_WC_SUCCESS, "fetch and add");
    ++done;
  }
}
static void counted(void) {
  char *page = mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const pid_t child = fork();
  if (child == 0) {
    char *again = mremap(page, 0, kPage, MREMAP_MAYMOVE);
    check(again != MAP_FAILED && again != page, "mremap");
    count(again, 64);
    _exit(0);
  }
  count(page, 0);
  int status;
  waitpid(child, &status, 0);
  printf("counted %lu\n", *(uint64_t *)(page + 512));
}

// --- On-demand regions: the device sees the program's data at any physical address.
static struct ibv_mr *reg_on_demand(void *memory, size_t bytes) {
  struct ibv_mr *mr = ibv_reg_mr(pd, memory, bytes, kAll | IBV_ACCESS_ON_DEMAND);
  check(mr != NULL, "ibv_reg_mr");
  return mr;
}
static void on_demand(void) {
  char *memory = map(NULL, 0);
  struct ibv_mr *mr = reg_on_demand(memory, kBytes);
  filled(memory, 7);
  device_reads("there", mr);
  check(munmap(memory, kBytes) == 0, "munmap");
  filled(map(memory, MAP_FIXED), 3);
  device_reads("again", mr);
  device_writes("again", mr, 4);
  program_reads("again", memory);
  check(madvise(memory, kBytes, MADV_DONTNEED) == 0, "madvise");
  device_reads("dropped", mr);
  device_writes("dropped", mr, 5);
  filled(map(memory, MAP_FIXED), 6);
  device_reads("replaced", mr);
  check(munmap(memory + kPage, kPage) == 0, "munmap");
  device_reads("gone", mr);
}
// A page that another region pins stays pinned for that region.
static void on_demand_and_pinned(void) {
  char *memory = filled(map(NULL, 0), 7);
  struct ibv_mr *mr = reg_on_demand(memory, kBytes), *pinned = reg(memory);
  device_reads("both", mr);
  device_writes("both", pinned, 8);
  device_reads("both", mr);
  filled(map(memory, MAP_FIXED), 3);
  device_reads("pinned", pinned);
  device_reads("on demand", mr);
  device_writes("on demand", mr, 4);
  program_reads("on demand", memory);
  device_reads("pinned", pinned);
  check(ibv_dereg_mr(pinned) == 0, "ibv_dereg_mr");
  device_reads("on demand", mr);
}
static void on_demand_moved(void) {
  struct ibv_mr *all = reg_on_demand(NULL, SIZE_MAX);
  char *memory = filled(map(NULL, 0), 7);
  struct ibv_mr at = *all;
  at.addr = memory;
  device_reads("before", &at);
  char *to = map(NULL, 0);
  check(mremap(memory, kBytes, kBytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to, "mremap");
  at.addr = to;
  device_reads("behind", &at);
  device_writes("behind", &at, 8);
  program_reads("behind", to);
  at.addr = memory;
  device_reads("gone", &at);
}
static void on_demand_forked(void) {
  char *memory = filled(map(NULL, 0), 7);
  struct ibv_mr *mr = reg_on_demand(memory, kBytes);
  device_reads("alone", mr);
  const pid_t child = fork();
  if (child == 0) {
    filled(memory, 9);
    _exit(0);
  }
  int status;
  waitpid(child, &status, 0);
  device_reads("the child's writes are its own", mr);
  filled(memory, 8);
  device_reads("the parent's are not", mr);
  device_writes("the parent's", mr, 6);
  program_reads("the parent's", memory);
}
static void on_demand_file(void) {
  const int file = memfd_create("file", 0);
  check(file >= 0 && ftruncate(file, kBytes) == 0, "file");
  char *memory = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), byte = 0;
  check(memory != MAP_FAILED, "mmap");
  struct ibv_mr *mr = reg_on_demand(memory, kBytes);
  device_writes("file", mr, 5);
  check(pread(file, &byte, 1, 2 * kPage) == 1, "pread");
  printf("file: its byte is %d\n", byte);
  check(munmap(memory, kBytes) == 0, "munmap");
  check(mmap(memory, kBytes, PROT_READ, MAP_SHARED | MAP_FIXED, file, 0) == memory, "mmap");
  device_reads("for reading", mr);
  device_writes("for reading", mr, 6);
}

int main(int argc, char **argv) {
  static const struct { const char *name; void (*run)(void); } kModes[] = {
      {"unmapped", unmapped}, {"replaced", replaced}, {"dropped", dropped}, {"moved", moved}, {"protected", protected},
      {"detached", detached}, {"freed", freed}, {"stalled", stalled}, {"refused", refused},
      {"on_demand", on_demand}, {"on_demand_and_pinned", on_demand_and_pinned}, {"on_demand_moved", on_demand_moved},
      {"on_demand_forked", on_demand_forked}, {"on_demand_file", on_demand_file}};
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (argc < 2) return 2;
  if (strcmp(argv[1], "counted") == 0) return counted(), 0;
  open_device();
  for (size_t i = 0; i < sizeof kModes / sizeof *kModes; ++i)
    if (strcmp(argv[1], kModes[i].name) == 0) return kModes[i].run(), 0;
  return 2;
}
