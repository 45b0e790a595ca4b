# SPDX-License-Identifier: Apache-2.0
"""The driver check from Python: no findings for a correct driver, and the findings of an incorrect one."""

import pytest
import rnicsim
from driver import Driver
from rnicsim import abi

ACCESS = abi.access.kLocalWrite | abi.access.kRemoteWrite


@pytest.fixture(scope="module")
def drivers():
    # This folder's driver does not wait after its reset.
    devices = rnicsim.pair("cx5-100g", check=rnicsim.Check(reset_window_ms=0))
    return [Driver(device, number + 1).bring_up() for number, device in enumerate(devices)]


@pytest.fixture(scope="module")
def ends(drivers):
    ends = [(driver.create_qp(0xb, driver.create_cq(1)), driver.register(3, 8192, ACCESS)) for driver in drivers]
    (a, _), (b, _) = ends
    a.connect(b)
    b.connect(a)
    return ends


def write(end, target, laps=1):
    qp, region = end
    for _ in range(laps * qp.send.size):
        qp.send.post(abi.SendOpcode.write, target.remote(), region.segment(100))
        qp.send.ring(qp.driver.device)
        rnicsim.run(us=10)
        assert qp.cq.poll().syndrome == abi.CqeSyndrome.success


def test_right_driver_hears_nothing(ends):
    write(ends[0], ends[1][1], laps=3)
    assert ends[0][0].driver.device.findings() == []
    assert ends[1][0].driver.device.findings() == []


def test_wrong_width(drivers):
    device = drivers[0].device
    with pytest.raises(rnicsim.RegisterError):
        device.read64(abi.reg.kStatus)
    finding, = device.findings()
    assert finding.kind == "wrong_width" and finding.section == "The register page"
    assert "kStatus has 32 bits" in finding.text and finding.time == device.now
    assert finding.accesses[-1].endswith("read of 8 bytes of BAR0 + 0x024 (kStatus): refused")


def test_stale_wqe(ends):
    qp = ends[0][0]
    qp.send.producer += 1  # without writing a WQE
    qp.send.ring(qp.driver.device)
    finding = qp.driver.device.findings()[-1]
    assert finding.kind == "stale_wqe" and "the older WQE" in finding.text


def test_unmapped_memory(drivers):
    driver = drivers[1]
    cq = driver.create_cq(2)
    qp = driver.create_qp(0xc, cq)
    qp.connect(drivers[0].create_qp(0xc, drivers[0].create_cq(2)))
    driver.memory.unmap(qp.send.iova)
    rnicsim.run(us=4)
    qp.send.producer += 1
    qp.send.ring(driver.device)
    rnicsim.run(us=10)
    finding, = driver.device.findings()
    assert finding.kind == "unmapped" and "send ring of queue pair 12" in finding.text


def test_burndown(drivers):
    text = drivers[0].device.burndown()
    assert "registers refused: kStatus 1" in text
    assert "commands never used: teardown" in text
