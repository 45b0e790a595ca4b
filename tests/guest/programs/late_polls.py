"""A program with a CQ, from whose guest the driver is taken away: the CQ stays as it was. Its ring is memory that the
kernel has mapped to the program; were the memory replaced by zeros, each entry would be a completion.
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
# The core zaps the mappings before the device's folder goes; what is mapped now stays so.
for _ in range(20):
    count, completions = cq.poll(16)
    assert count == 0, f"{count} completions of nothing: {completions[0]}"
    time.sleep(0.05)
print("no completion", flush=True)
os._exit(0)  # destructors would ask a device that is gone
