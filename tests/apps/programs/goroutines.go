// SPDX-License-Identifier: Apache-2.0
// Goroutines with verbs (cgo). Each one WRITEs to itself with its own QP, sleeps, and reports over a channel. Go's
// runtime makes system calls with the syscall instruction.
package main

/*
#cgo LDFLAGS: -libverbs
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdlib.h>

struct end {
  struct ibv_mr *mr;
  struct ibv_cq *cq;
  struct ibv_qp *qp;
  char memory[8192];
};

static struct ibv_pd *open_pd(void) {
  struct ibv_device **list = ibv_get_device_list(NULL);
  struct ibv_pd *pd = ibv_alloc_pd(ibv_open_device(list[0]));
  ibv_free_device_list(list);
  return pd;
}

// Creates a queue pair and connects it to itself. Returns 0 or an errno.
static int open_end(struct ibv_pd *pd, struct end *end) {
  const int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  end->mr = ibv_reg_mr(pd, end->memory, sizeof end->memory, rights);
  end->cq = ibv_create_cq(pd->context, 4, NULL, NULL, 0);
  struct ibv_qp_init_attr init = {.send_cq = end->cq, .recv_cq = end->cq, .qp_type = IBV_QPT_RC,
                                  .cap = {.max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
  end->qp = ibv_create_qp(pd, &init);
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = rights};
  int error = ibv_modify_qp(end->qp, &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = end->qp->qp_num;
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = 12;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  error |= ibv_query_gid(pd->context, 1, 1, &attr.ah_attr.grh.dgid);
  attr.ah_attr.grh.sgid_index = 1;
  attr.ah_attr.grh.hop_limit = 64;
  error |= ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 14;
  attr.retry_cnt = attr.rnr_retry = 7;
  attr.max_rd_atomic = 1;
  error |= ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                             IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  return error;
}

// Writes the first half of the memory to the second half.
static int post_write(struct end *end) {
  const uintptr_t memory = (uintptr_t)end->memory;
  struct ibv_sge piece = {memory, 4096, end->mr->lkey};
  struct ibv_send_wr wr = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
                           .send_flags = IBV_SEND_SIGNALED, .wr.rdma = {memory + 4096, end->mr->rkey}};
  struct ibv_send_wr *bad;
  return ibv_post_send(end->qp, &wr, &bad);
}
static int poll(struct end *end) {
  struct ibv_wc wc;
  const int count = ibv_poll_cq(end->cq, 1, &wc);
  return count == 1 && wc.status != IBV_WC_SUCCESS ? -1 : count;
}
*/
import "C"

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
)

const writes = 20

// Sends the duration of each WRITE to `told`.
func write(pd *C.struct_ibv_pd, number int, told chan<- time.Duration) {
	end := (*C.struct_end)(C.calloc(1, C.sizeof_struct_end))
	if C.open_end(pd, end) != 0 {
		panic("no queue pair")
	}
	for i := 0; i < writes; i++ {
		end.memory[0] = C.char(number + i)
		start := time.Now()
		if C.post_write(end) != 0 {
			panic("not posted")
		}
		count := C.int(0)
		for count == 0 {
			count = C.poll(end)
			runtime.Gosched()
		}
		if count < 0 || end.memory[4096] != C.char(number+i) {
			panic("not written")
		}
		told <- time.Since(start)
		time.Sleep(time.Duration(number) * 10 * time.Microsecond)
		_ = make([]byte, 100000) // garbage, so that the collector runs
	}
}

// Uses Go's own name resolver and socket poller.
func say(name string) (string, error) {
	listener, err := net.Listen("tcp", ":0")
	if err != nil {
		return "", err
	}
	go func() {
		if connection, err := listener.Accept(); err == nil {
			time.Sleep(2 * time.Millisecond)
			fmt.Fprint(connection, "from ", connection.LocalAddr().(*net.TCPAddr).IP)
			connection.Close()
		}
	}()
	dialer := net.Dialer{Resolver: &net.Resolver{PreferGo: true}}
	connection, err := dialer.Dial("tcp", fmt.Sprint(name, ":", listener.Addr().(*net.TCPAddr).Port))
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(connection)
	return string(text), err
}

func main() {
	start := time.Now()
	told := make(chan time.Duration)
	pd := C.open_pd()
	var group sync.WaitGroup
	for number := 1; number <= 8; number++ {
		group.Add(1)
		go func(number int) {
			defer group.Done()
			write(pd, number, told)
		}(number)
	}
	go func() {
		group.Wait()
		close(told)
	}()
	var count int
	var sum time.Duration
	for took := range told {
		count++
		sum += took
	}
	fmt.Println("writes", count, "took", sum, "by", time.Since(start))
	select {
	case <-time.After(3 * time.Millisecond):
		fmt.Println("it is", time.Now().UTC().Format(time.RFC3339), "for", os.Getpid())
	}
	name, _ := os.Hostname()
	folder, err := os.MkdirTemp("", "go")
	fmt.Println(name, folder, err)
	said, err := say(name)
	fmt.Println(said, err)
	child, err := exec.Command("sh", "-c", "sleep 10; hostname").Output()
	fmt.Println("a child says", strings.TrimSpace(string(child)), err)
}
