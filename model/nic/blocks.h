// SPDX-License-Identifier: Apache-2.0
// The NIC's blocks, for subscribers to their trace points: doorbell.rung, wqe_fetch.requested, tx.sent, raw.dropped,
// rx.received, port.sent, loopback.sent, completion.written, events.written, command_unit.executed, and those of
// engine.trace(). Each block's own header declares its trace points.
#pragma once

namespace rnicsim::nic {

class AtomicUnit;
class CommandUnit;
class Completion;
class ContextCache;
class DeviceMemory;
class Dma;
class Doorbell;
class EventWriter;
class GatherScatter;
class Loopback;
class NotificationPoint;
class PacketRx;
class PacketTx;
class PayloadMemory;
class PcieEndpoint;
class Port;
class ProcessingUnits;
class QpContexts;
class QpEngine;
class RawRx;
class ReceiveBuffer;
class SendWqeCache;
class SharedReceives;
class Steering;
class TimerUnit;
class Translation;
class TranslationCache;
class WindowUnit;
class WqeFetcher;

struct NicBlocks {
  ReceiveBuffer& receive_buffer;
  PcieEndpoint& pcie;
  Dma& dma_unit;
  DeviceMemory& device_memory;
  PayloadMemory& payload_memory;
  ContextCache& contexts;
  QpContexts& qp_contexts;
  TranslationCache& translation_cache;
  Translation& translation;
  WindowUnit& windows;
  GatherScatter& gather_scatter;
  AtomicUnit& atomic_unit;
  WqeFetcher& wqe_fetch;
  EventWriter& events;
  SharedReceives& shared_receives;
  Completion& completion;
  Doorbell& doorbell;
  CommandUnit& command_unit;
  TimerUnit& timers;
  ProcessingUnits& units;
  SendWqeCache& send_wqes;
  NotificationPoint& notification;
  PacketTx& tx;
  Steering& steering;
  PacketRx& rx;
  RawRx& raw;
  Port& port;
  Loopback& loopback;
  QpEngine& engine;
};

}  // namespace rnicsim::nic
