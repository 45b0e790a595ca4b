// SPDX-License-Identifier: Apache-2.0
// Devices and contexts.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "model/abi/command.h"
#include "verbs/ibverbs/doorbell_pages.h"
#include "verbs/ibverbs/registry.h"
#include "verbs/port/device_port.h"
#include "verbs/port/event_pipe.h"
#include "verbs/provider/commands.h"

namespace rnicsim::verbs {

struct Pd;
struct Td;
struct Mr;
struct Ah;
struct Mw;
struct Dm;
struct Channel;
struct Cq;
struct Srq;
struct Qp;
struct Xrcd;
struct Wq;
struct IndirectionTable;
struct Counters;
struct Flow;

// Beginning of rdma-core's private struct verbs_device. mlx5dv and efadv compare `ops` to recognise their devices.
struct VerbsDevice {
  ibv_device device{};
  const void* ops = nullptr;
  void* driver_private[8] = {};
};
static_assert(offsetof(VerbsDevice, ops) == sizeof(ibv_device));

struct Device : VerbsDevice {
  std::uint32_t number = 0;  // among the devices of the process's host
  std::uint64_t guid = 0;    // in CPU order
  std::atomic<std::uint32_t> next_tag{1};

  // Low byte of the next key. Never 0, so that no key equals abi::kInvalidLkey.
  std::uint32_t take_tag() { return next_tag.fetch_add(1, std::memory_order_relaxed) % 255 + 1; }
  static Device& of(ibv_device* device) { return *static_cast<Device*>(reinterpret_cast<VerbsDevice*>(device)); }
};

// A device of the calling process's host. nullptr: no device has this number, or there is no simulator.
Device* find_device(std::uint32_t number);

// PDs by handle. A parent domain has the handle of its PD and may stand for it in every call.
class Pds : public ImportableRegistry<Pd> {
 public:
  bool holds(std::uint32_t handle, const Pd* pd) const;

  Registry<Pd> parents;  // by Pd::Parent::number
};

struct Context : verbs_context {
  Context(DevicePort& carrier, std::uint32_t uar_page);
  ~Context();

  static Context& of(ibv_context* context) { return *static_cast<Context*>(verbs_get_ctx(context)); }

  // Executes a command. Returns 0, or an errno of the kernel or the device.
  template <class Output, class Input>
  int execute(const Input& input, Output& output);
  template <class Input>
  int execute(const Input& input);

  bool has_port(std::uint32_t number) const { return number >= 1 && number <= capabilities.ports; }
  bool has_feature(std::uint64_t feature) const { return (capabilities.features & feature) != 0; }

  DevicePort& port;
  bool blue_flame;                   // QPs created from now on may use BlueFlame
  std::uint32_t inline_receive = 0;  // most bytes of a SEND in a receive's CQE, for QPs created from now on
  DoorbellPages pages;
  EventPipe events;
  std::uint32_t number = 0;  // the kernel's number of the context, behind cmd_fd; 0: none yet
  abi::DeviceCapabilities capabilities;
  Pds pds;
  Registry<Td> thread_domains;
  std::atomic<std::uint32_t> next_domain{1};  // numbers parent and thread domains, which the kernel does not know
  ImportableRegistry<Mr> mrs;
  Registry<Ah> ahs;
  std::atomic<std::uint32_t> next_ah{1};  // handle of the next AH
  std::atomic<std::uint32_t> address_handles{0};
  Registry<Mw> mws;
  ImportableRegistry<Dm> dms;
  Registry<Channel> channels;
  Registry<Cq> cqs;
  Registry<Srq> srqs;
  Registry<Qp> qps;
  Registry<Xrcd> xrcds;
  // Next handle of an XRC domain or receiving QP; both may be open several times.
  std::atomic<std::uint32_t> next_xrc{1};
  Registry<Wq> wqs;
  Registry<IndirectionTable> tables;
  std::atomic<std::uint32_t> next_table{1};  // next number of a table; neither kernel nor device know tables
  Registry<Counters> counters;
  Registry<Flow> flows;
};

template <class Output, class Input>
int Context::execute(const Input& input, Output& output) {
  const int refused =
      port.command(events.number(), provider::encode(input), std::as_writable_bytes(std::span(&output, 1)));
  if (refused != 0) return refused;
  if constexpr (requires { output.result; }) {
    return provider::to_errno(output.result.status);
  } else {
    return provider::to_errno(output.status);
  }
}

template <class Input>
int Context::execute(const Input& input) {
  abi::CommandResult result;
  return execute(input, result);
}

// --- Filled in by the object families when a context is opened.
void fill_context_operations(ibv_context_ops& operations);
void fill_extended_operations(verbs_context& operations);

int query_capabilities(Context& context);
// Work requests that a queue of any QP can hold, for all numbers of segments and inline bytes.
std::uint32_t most_work_requests(const abi::DeviceCapabilities& limits);
std::string firmware_text(std::uint64_t version);
int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input, ibv_device_attr_ex* attributes,
                    std::size_t size);
int query_rt_values(ibv_context* context, ibv_values_ex* values);
int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attributes, std::size_t size);
int query_gid_entry(Context& context, std::uint32_t port, std::uint32_t index, abi::GidEntry& entry);

}  // namespace rnicsim::verbs
