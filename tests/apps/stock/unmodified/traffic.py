# SPDX-License-Identifier: Apache-2.0
"""Threads, asyncio with streams, child processes and signals, with concurrent RDMA traffic by pyverbs."""
import asyncio
import multiprocessing
import os
import queue
import random
import signal
import threading
import time

import pyverbs.enums as e
from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import RecvWR, SGE, SendWR

PORT = 7000


def threads():
    told = queue.Queue()

    def work(number):
        for i in range(20):
            time.sleep(0.0001 * (number + 1))
            told.put((number, i))

    workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    order = [told.get() for _ in range(80)]
    for worker in workers:
        worker.join()
    print("threads", hash(tuple(order)), time.time())


class End:
    """A queue pair that is connected to itself."""

    def __init__(self, context):
        rights = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE
        self.pd = PD(context)
        self.cq = CQ(context, 16)
        self.mr = MR(self.pd, 4096, rights)
        init = QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=QPCap(16, 16, 1, 1))
        self.qp = QP(self.pd, init, QPAttr())
        attr = QPAttr(port_num=1)
        attr.qp_access_flags = rights
        self.qp.to_init(attr)
        route = GlobalRoute(dgid=context.query_gid(1, 1), sgid_index=1)
        attr = QPAttr()
        attr.ah_attr = AHAttr(port_num=1, is_global=1, gr=route)
        attr.dest_qp_num = self.qp.qp_num
        attr.path_mtu = e.IBV_MTU_1024
        attr.min_rnr_timer, attr.timeout, attr.retry_cnt, attr.rnr_retry = 12, 14, 7, 7
        attr.max_rd_atomic = attr.max_dest_rd_atomic = 1
        self.qp.to_rtr(attr)
        self.qp.to_rts(attr)

    async def send_to_itself(self, times):
        piece = SGE(self.mr.buf, 512, self.mr.lkey)
        for i in range(times):
            self.qp.post_recv(RecvWR(2 * i, 1, [SGE(self.mr.buf + 2048, 512, self.mr.lkey)]))
            self.qp.post_send(SendWR(2 * i + 1, num_sge=1, sg=[piece], opcode=e.IBV_WR_SEND,
                                     send_flags=e.IBV_SEND_SIGNALED))
            done = 0
            while done < 2:
                count, completions = self.cq.poll(1)
                done += count
                if count and completions[0].status != e.IBV_WC_SUCCESS:
                    raise RuntimeError(f"status {completions[0].status}")
                await asyncio.sleep(0.000005)
        print("sent", times)


async def shout(reader, writer):
    while line := await reader.readline():
        writer.write(line.upper())
        await writer.drain()
    writer.close()


async def client(number):
    reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
    for i in range(5):
        writer.write(b"m%d %d\n" % (number, i))
        print((await reader.readline()).decode().strip())
        await asyncio.sleep(0.001 * random.random())
    writer.close()


async def play():
    server = await asyncio.start_server(shout, "127.0.0.1", PORT)
    end = End(Context(name="rnic0"))
    await asyncio.gather(end.send_to_itself(20), *(client(number) for number in range(3)))
    server.close()
    child = await asyncio.create_subprocess_shell("echo child; sleep 0.01; exit 3", stdout=asyncio.subprocess.PIPE)
    print(await child.communicate(), child.returncode)
    heard = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, lambda: heard.set_result("heard"))
    os.kill(os.getpid(), signal.SIGUSR1)
    print(await heard, await asyncio.to_thread(time.monotonic))


def square(number):
    return number * number


def main():
    threads()
    asyncio.run(play())
    with multiprocessing.get_context("fork").Pool(3) as pool:
        print("pool", pool.map(square, range(10)), time.time())


if __name__ == "__main__":
    main()
