# SPDX-License-Identifier: Apache-2.0
"""
Polls a CQ after the driver was removed from the guest: the CQ's contents stay. The ring is kernel memory that is mapped
to the program; if zeros replaced the memory, each entry would look like a completion.
"""
import os
import time

from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.pd import PD
from pyverbs.qp import QP, QPCap, QPInitAttr
import pyverbs.enums as enums

context = Context(name="rnic0")
pd, cq = PD(context), CQ(context, 64)
queue_pairs = [QP(pd, QPInitAttr(qp_type=enums.IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap(16, 16, 1, 1)))
               for _ in range(4)]
open("polls", "w").close()
while os.path.exists("/sys/class/infiniband/rnic0"):
    assert cq.poll(16)[0] == 0
    time.sleep(0.05)
# The kernel's RDMA core removes mappings before the device's sysfs folder: the present mapping is final.
for _ in range(20):
    count, completions = cq.poll(16)
    assert count == 0, f"{count} completions of nothing: {completions[0]}"
    time.sleep(0.05)
print("no completion", flush=True)
os._exit(0)  # without destructors, which would call the removed device
