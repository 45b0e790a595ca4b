// SPDX-License-Identifier: Apache-2.0
// The command unit: fetches commands from the queue in host memory, executes them one at a time, writes status and
// output back, and raises an interrupt (MSI-X vector 0). A corrupt entry or mailbox results in an error status.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <variant>

#include "model/base/stream.h"
#include "model/base/trace.h"
#include "model/nic/capability_params.h"
#include "model/nic/contexts/context_cache.h"
#include "model/nic/contexts/window_unit.h"
#include "model/nic/packets/gid_table.h"
#include "model/nic/packets/multicast_table.h"
#include "model/nic/packets/receive/flow_table.h"
#include "model/nic/packets/receive/receive_scaling.h"
#include "model/nic/pcie/dma.h"
#include "model/nic/pcie/pcie_endpoint.h"
#include "model/nic/personality/personality.h"
#include "model/nic/queues/command_unit_counters.h"
#include "model/nic/queues/event_writer.h"
#include "model/nic/seam/qp_engine.h"

namespace rnicsim::nic {

// Reasons for refusing a command, except a QP's attributes (CommandResult::syndrome).
enum class CommandSyndrome : std::uint32_t {
  none = 0,
  no_icm = 0x01,
  number_out_of_range = 0x02,
  exists = 0x03,
  no_cq = 0x04,
  no_eq = 0x05,
  bad_uar_page = 0x06,
  bad_size = 0x07,
  bad_alignment = 0x08,
  bad_key = 0x09,
  bad_range = 0x0a,
  in_use = 0x0b,
  bad_vector = 0x0c,
  not_ready = 0x0d,
  no_object = 0x0e,
  bad_table = 0x0f,
  bad_pages = 0x10,
  bad_moderation = 0x11,
  bad_kind = 0x12,
  dead_cq = 0x18,
  no_srq = 0x19,
  not_datagrams = 0x30,
  bad_group = 0x31,
  not_attached = 0x32,
  no_room = 0x33,
  not_raw = 0x40,
  bad_queues = 0x41,
  bad_flow = 0x42,
};

// A command whose execution begins: the entry and its input as read.
struct CommandTaken {
  std::uint32_t index;
  CommandEntry entry;
  std::span<const std::byte> input;  // empty: bad length, or not readable
};

struct CommandExecuted {
  CommandOpcode opcode;
  std::uint32_t object;
  CommandStatus status;
  std::uint32_t syndrome;
};

// Port violation counters of Verbs, since bring-up.
struct PortViolations {
  std::uint64_t pkey = 0;
  std::uint64_t qkey = 0;
};

class CommandUnit {
 public:
  CommandUnit(const Personality& personality, const CapabilityParams& params, ContextCache& contexts,
              WindowUnit& windows, GidTable& gids, MulticastTable& groups, FlowTable& flows, RssTable& scaling,
              Dma& dma, EventWriter& events, PcieEndpoint& pcie)
      : personality_(personality),
        params_(params),
        contexts_(contexts),
        windows_(windows),
        gids_(gids),
        groups_(groups),
        flows_(flows),
        scaling_(scaling),
        dma_(dma),
        events_(events),
        pcie_(pcie) {}

  Output<QpCommand> qp_command;
  Output<Qpn> qp_created;   // the engine has the QP's context
  Output<Qpn> qp_silenced;  // outputs of the QP must stop
  Output<std::uint32_t> cq_destroyed;
  Output<std::uint32_t> cq_moderated;
  Output<CqResize> cq_resize;                         // answered by cq_resized or cq_not_resized
  Output<std::uint32_t, std::uint32_t> srq_modified;  // bits of SrqModification
  Output<std::uint32_t> srq_destroyed;                // before its destruction
  Output<> on_demand;                                 // before the creation of a region on demand
  Output<std::uint16_t, bool> gid_tagged;             // later frames of the GID have a VLAN tag, or have none
  Output<> teardown;
  std::function<void(std::uint32_t pages, std::function<void()> done)> flush;  // flushes the tables of a key
  std::function<bool()> link_up;
  std::function<PortViolations()> violations;
  std::function<PortStatistics()> port_counters;
  trace::Point<CommandTaken> taken;
  trace::Point<CommandExecuted> executed;
  trace::Point<Refusal> refusal;

  void doorbell(std::uint32_t entries);
  void qp_done(const QpCommandDone& done);
  void cq_resized(std::uint32_t producer);
  void cq_not_resized(CommandSyndrome why, CommandStatus status);
  void reset();

  const CommandCounters& counters() const { return counters_; }

 private:
  struct Handler;
  struct Current {
    std::uint32_t index = 0;
    CommandEntry entry;
    Command command;
    CommandOutput output;
  };
  static const Handler& handler_of(CommandOpcode opcode);

  void next();
  void entry_read(std::uint64_t epoch, AccessResult result, const Payload& bytes);
  void input_read(std::uint64_t epoch, AccessResult result, const Payload& bytes);
  void complete(CommandStatus status, std::uint32_t syndrome = 0);
  void complete(CommandStatus status, CommandSyndrome syndrome) {
    complete(status, static_cast<std::uint32_t>(syndrome));
  }
  void refuse(CommandSyndrome why, CommandStatus status = CommandStatus::bad_parameter) { complete(status, why); }
  // Input of the present command.
  template <class Input>
  const Input& input() const {
    return std::get<Input>(current_->command.input);
  }
  std::uint32_t object() const { return current_->command.object; }

  void query_device();
  void initialize();
  void tear_down();
  void map_icm();
  void unmap_icm();
  void query_port();
  void query_port_counters();
  void set_gid();
  void create_eq();
  void destroy_eq();
  void create_cq();
  void destroy_cq();
  void query_cq();
  void modify_cq();
  void resize_cq();
  bool may_moderate(std::uint16_t count, std::uint16_t period) const;
  void create_mpt();
  CommandSyndrome check_entry(std::uint32_t index, const MemoryRegion& entry) const;
  std::uint32_t put_entry(std::uint32_t index, const MemoryRegion& entry);
  std::uint32_t drop_entry(std::uint32_t index);
  void complete_flushed(std::uint32_t pages);
  bool pages_mapped(const MemoryRegion& region) const;
  void destroy_mpt();
  void query_mpt();
  void modify_mpt();
  void create_srq();
  void destroy_srq();
  void query_srq();
  void modify_srq();
  void create_qp();
  void destroy_qp();
  void modify_qp();
  void query_qp();
  void attach_multicast();
  void detach_multicast();
  void create_rss();
  void destroy_rss();
  void create_flow();
  void destroy_flow();
  void create_counter();
  void destroy_counter();
  void query_counter();
  void complete(FlowTable::Result result);
  bool takes_frames(Qpn qpn) const;
  bool in_use(IcmTable table, std::uint32_t first, std::uint32_t count) const;

  const Personality& personality_;
  const CapabilityParams params_;
  ContextCache& contexts_;
  WindowUnit& windows_;
  GidTable& gids_;
  MulticastTable& groups_;
  FlowTable& flows_;
  RssTable& scaling_;
  Dma& dma_;
  EventWriter& events_;
  PcieEndpoint& pcie_;
  std::deque<std::uint32_t> pending_;
  std::optional<Current> current_;
  std::uint64_t epoch_ = 0;  // counts resets: callbacks from before a reset are void
  CommandCounters counters_;
};

}  // namespace rnicsim::nic
