// SPDX-License-Identifier: Apache-2.0
// Opening and closing a device.
#include <infiniband/verbs.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "verbs/ibverbs/boundary.h"
#include "verbs/ibverbs/context_options.h"
#include "verbs/ibverbs/device.h"
#include "verbs/ibverbs/objects.h"

namespace rnicsim::verbs {

namespace {

// RNICSIM_SHUT_UP_BF and RNICSIM_SCATTER_TO_CQE, named after mlx5's MLX5_SHUT_UP_BF and MLX5_SCATTER_TO_CQE.
bool is_on(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && std::strcmp(value, "0") != 0;
}

// Makes a context without cmd_fd.
int make_context(ibv_device* device, std::unique_ptr<Context>& made) {
  DevicePort* port = device_port(Device::of(device).number);
  if (port == nullptr) return errno != 0 ? errno : ENODEV;
  std::uint32_t page = 0;
  if (const int error = port->alloc_uar(page)) return error;
  auto context = std::make_unique<Context>(*port, page);
  if (const int error = query_capabilities(*context)) return error;
  if (is_on("RNICSIM_SCATTER_TO_CQE")) context->inline_receive = context->capabilities.max_inline_receive;
  if (const int error = context->events.open()) return error;
  if (const int error = port->bind_events(context->events.number())) return error;
  context->context.device = device;
  context->context.async_fd = context->events.fd();
  made = std::move(context);
  return 0;
}

// The file is empty. A process that gets the descriptor may import the context.
int open_context(ibv_device* device, ibv_context*& opened) {
  std::unique_ptr<Context> context;
  if (const int error = make_context(device, context)) return error;
  int& fd = context->context.cmd_fd;
  fd = ::memfd_create("rnicsim-context", MFD_CLOEXEC);
  if (fd < 0) return errno;
  if (const int error = context->port.open_context(fd, context->number)) return error;
  opened = &context.release()->context;
  return 0;
}

// EINVAL: `fd` does not belong to a context of this device.
int import_context(Device& device, int fd, ibv_context*& imported) {
  std::unique_ptr<Context> context;
  if (const int error = make_context(&device.device, context)) return error;
  if (const int error = context->port.import_context(fd, context->number)) return error;
  context->context.cmd_fd = fd;
  imported = &context.release()->context;
  return 0;
}

int import_context(int fd, ibv_context*& imported) {
  int error = ENODEV;
  std::uint32_t number = 0;
  for (Device* device; (device = find_device(number)) != nullptr; ++number) {
    error = import_context(*device, fd, imported);
    if (error != EINVAL) return error;
  }
  return error;
}

// Destroys all objects that the program left, in the order of their dependencies, as the kernel does.
void destroy_leftovers(Context& context) {
  while (auto flow = context.flows.take_any()) release_flow(*flow);
  while (auto counters = context.counters.take_any()) release_counters(*counters);
  while (auto qp = context.qps.take_any()) {
    leave_groups(*qp);
    release_qp(*qp);
  }
  while (context.tables.take_any()) {}
  while (auto wq = context.wqs.take_any()) release_qp(*wq->queue);
  while (auto srq = context.srqs.take_any()) release_srq(*srq);
  while (auto xrcd = context.xrcds.take_any()) context.port.close_xrcd(xrcd->number);
  while (auto cq = context.cqs.take_any()) release_cq(*cq);
  while (auto mw = context.mws.take_any()) release_mw(*mw);
  while (auto mr = context.mrs.take_any()) release_mr(*mr);
  while (auto dm = context.dms.take_any()) dm->port.free_dm(dm->handle);
  while (context.ahs.take_any()) {}
  while (context.pds.parents.take_any()) {}
  while (auto td = context.thread_domains.take_any()) {
    if (td->page != nullptr) context.pages.give_back(*td->page);
  }
  while (auto pd = context.pds.take_any()) context.port.dealloc_pd(pd->handle);
  while (context.channels.take_any()) {}
}

}  // namespace

Context::Context(DevicePort& carrier, std::uint32_t uar_page)
    : verbs_context{},
      port(carrier),
      blue_flame(!is_on("RNICSIM_SHUT_UP_BF")),
      pages(carrier, uar_page, DoorbellPages::limits_from_environment()),
      events(carrier) {
  fill_context_operations(context.ops);
  fill_extended_operations(*this);
  declare_looks(port);
  sz = sizeof(verbs_context);
  context.cmd_fd = -1;
  context.num_comp_vectors = int(carrier.completion_vectors());
  context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  pthread_mutex_init(&context.mutex, nullptr);
}

Context::~Context() {
  events.close();
  if (number != 0) port.close_context(number);
  if (context.cmd_fd >= 0) ::close(context.cmd_fd);
  pthread_mutex_destroy(&context.mutex);
}

void use_blue_flame(ibv_context* context, bool use) { Context::of(context).blue_flame = use; }

void use_inline_receive(ibv_context* handle, std::uint32_t bytes) {
  Context& context = Context::of(handle);
  context.inline_receive = std::min<std::uint32_t>(bytes, context.capabilities.max_inline_receive);
}

}  // namespace rnicsim::verbs

using namespace rnicsim::verbs;

extern "C" {

ibv_context* ibv_open_device(ibv_device* device) {
  return guarded_object<ibv_context>([&](ibv_context*& opened) { return open_context(device, opened); });
}

ibv_context* ibv_import_device(int cmd_fd) {
  return guarded_object<ibv_context>([&](ibv_context*& imported) { return import_context(cmd_fd, imported); });
}

int ibv_close_device(ibv_context* context) {
  return guarded([&] {
    const std::unique_ptr<Context> closing(&Context::of(context));
    destroy_leftovers(*closing);
    return 0;
  });
}

}  // extern "C"
