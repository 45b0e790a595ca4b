// SPDX-License-Identifier: Apache-2.0
// Entry point of the rdma-core provider, found by PCI vendor and device; contexts, and verbs that need no rings.
#include <endian.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "model/abi/device.h"
#include "verbs/linux/provider/objects.h"

namespace rnicsim::linux_provider {

namespace {

constexpr std::uint32_t kDriverUnknown = 0;  // RDMA_DRIVER_UNKNOWN: Linux has no number for this driver

// Allocated and zeroed by libibverbs.
struct Shell {
  Context* own;
  verbs_context verbs;
};

Shell& shell_of(ibv_context* context) {
  auto* verbs = reinterpret_cast<char*>(context) - offsetof(verbs_context, context);
  return *reinterpret_cast<Shell*>(verbs - offsetof(Shell, verbs));
}

// A doorbell is a single store of 8 bytes to the page. The fence keeps it behind the stores that it announces.
provider::Mmio doorbells_of(const Mapping& page, std::uint32_t number) {
  auto* words = page.at<volatile std::uint64_t>(0);
  const std::uint32_t base = abi::kUarBase + number * abi::kUarPageSize;
  return [words, base](std::uint32_t offset, std::span<const std::byte> data) {
    std::uint64_t word;
    std::memcpy(&word, data.data(), sizeof word);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    words[(offset - base) / sizeof word] = word;
  };
}

int query_device(ibv_context* context, const ibv_query_device_ex_input* input, ibv_device_attr_ex* attributes,
                 std::size_t bytes) {
  ib_uverbs_ex_query_device_resp answer{};
  std::size_t answer_bytes = sizeof answer;
  const int error = ibv_cmd_query_device_any(context, input, attributes, bytes, &answer, &answer_bytes);
  if (error != 0) return error;
  const std::uint64_t version = answer.base.fw_ver;
  std::snprintf(attributes->orig_attr.fw_ver, sizeof attributes->orig_attr.fw_ver, "%u.%u.%u", unsigned(version >> 32),
                unsigned(version >> 16 & 0xffff), unsigned(version & 0xffff));
  return 0;
}

int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attributes) {
  Command<ib_uverbs_query_port> command;
  return ibv_cmd_query_port(context, port, attributes, &command, sizeof command);
}

ibv_pd* alloc_pd(ibv_context* context) {
  auto* pd = new (std::nothrow) ibv_pd{};
  Command<ib_uverbs_alloc_pd> command;
  ib_uverbs_alloc_pd_resp answer{};
  if (pd == nullptr) return errno = ENOMEM, nullptr;
  const int error = ibv_cmd_alloc_pd(context, pd, &command, sizeof command, &answer, sizeof answer);
  if (error == 0) return pd;
  delete pd;
  return errno = error, nullptr;
}

int dealloc_pd(ibv_pd* pd) {
  const int error = ibv_cmd_dealloc_pd(pd);
  if (error == 0) delete pd;
  return error;
}

ibv_mr* reg_mr(ibv_pd* pd, void* address, std::size_t length, std::uint64_t start, int access) {
  auto* mr = new (std::nothrow) verbs_mr{};
  Command<ib_uverbs_reg_mr> command;
  ib_uverbs_reg_mr_resp answer{};
  if (mr == nullptr) return errno = ENOMEM, nullptr;
  const int error =
      ibv_cmd_reg_mr(pd, address, length, start, access, mr, &command, sizeof command, &answer, sizeof answer);
  if (error == 0) return &mr->mr;
  delete mr;
  return errno = error, nullptr;
}

// The kernel's answer has new keys, which the library stores.
int rereg_mr(verbs_mr* mr, int flags, ibv_pd* pd, void* address, std::size_t length, int access) {
  Command<ib_uverbs_rereg_mr> command;
  ib_uverbs_rereg_mr_resp answer{};
  return ibv_cmd_rereg_mr(mr, static_cast<std::uint32_t>(flags), address, length,
                          reinterpret_cast<std::uintptr_t>(address), access, pd, &command, sizeof command, &answer,
                          sizeof answer);
}

int dereg_mr(verbs_mr* mr) {
  const int error = ibv_cmd_dereg_mr(mr);
  if (error == 0) delete mr;
  return error;
}

void free_context(ibv_context* context) {
  Shell& shell = shell_of(context);
  delete shell.own;
  verbs_uninit_context(&shell.verbs);
  std::free(&shell);
}

constexpr verbs_context_ops kOperations{
    .alloc_mw = alloc_mw,
    .alloc_pd = alloc_pd,
    .async_event = take_event,
    .attach_mcast = ibv_cmd_attach_mcast,
    .bind_mw = bind_mw,
    .cq_event = take_completion_event,
    .create_ah = create_ah,
    .create_cq = create_cq,
    .create_cq_ex = create_cq_ex,
    .create_qp = create_qp,
    .create_qp_ex = create_qp_ex,
    .create_srq = create_srq,
    .dealloc_mw = dealloc_mw,
    .dealloc_pd = dealloc_pd,
    .dereg_mr = dereg_mr,
    .destroy_ah = destroy_ah,
    .destroy_cq = destroy_cq,
    .destroy_qp = destroy_qp,
    .destroy_srq = destroy_srq,
    .detach_mcast = ibv_cmd_detach_mcast,
    .free_context = free_context,
    .modify_cq = modify_cq,
    .modify_qp = modify_qp,
    .modify_srq = modify_srq,
    .poll_cq = poll_cq,
    .post_recv = post_receive,
    .post_send = post_send,
    .post_srq_recv = post_srq_receive,
    .query_device_ex = query_device,
    .query_port = query_port,
    .query_qp = query_qp,
    .query_srq = query_srq,
    .reg_mr = reg_mr,
    .req_notify_cq = request_notification,
    .rereg_mr = rereg_mr,
    .resize_cq = resize_cq,
};

int open_context(Shell& shell, int command_file) {
  Command<ib_uverbs_get_context> command;
  Answer<ib_uverbs_get_context_resp, rnic_alloc_ucontext_resp> answer;
  const int error = ibv_cmd_get_context(&shell.verbs, &command, sizeof command, answer.core(), sizeof answer.bytes);
  if (error != 0) return error;
  return guarded([&] {
    shell.own = new Context(command_file, answer.driver());
    return shell.own->page ? 0 : errno;
  });
}

verbs_context* alloc_context(ibv_device* device, int command_file, void*) {
  auto* offset = reinterpret_cast<verbs_context*>(offsetof(Shell, verbs));
  auto* shell =
      static_cast<Shell*>(_verbs_init_and_alloc_context(device, command_file, sizeof(Shell), offset, kDriverUnknown));
  if (shell == nullptr) return nullptr;
  if (const int error = open_context(*shell, command_file)) {
    delete shell->own;
    verbs_uninit_context(&shell->verbs);
    std::free(shell);
    return errno = error, nullptr;
  }
  verbs_set_ops(&shell->verbs, &kOperations);
  return &shell->verbs;
}

verbs_device* alloc_device(verbs_sysfs_dev*) { return new (std::nothrow) verbs_device{}; }
void uninit_device(verbs_device* device) { delete device; }

constexpr verbs_match_ent kMatches[] = {
    {.vendor = abi::kPciVendorId, .device = abi::kPciDeviceId, .kind = kMatchPci},
    {},
};

constexpr verbs_device_ops kDevice{
    .name = "rnic",
    .least_abi_version = RNIC_ABI_VERSION,
    .greatest_abi_version = RNIC_ABI_VERSION,
    .matches = kMatches,
    .alloc_context = alloc_context,
    .alloc_device = alloc_device,
    .uninit_device = uninit_device,
};

[[gnu::constructor]] void register_provider() { verbs_register_driver_34(&kDevice); }

}  // namespace

Context::Context(int file, const rnic_alloc_ucontext_resp& answer)
    : command_file(file),
      features(answer.features),
      page(file, answer.uar, PROT_WRITE),
      uar(page ? doorbells_of(page, answer.uar_page) : provider::Mmio(), answer.uar_page) {}

Context& Context::of(ibv_context* context) { return *shell_of(context).own; }

}  // namespace rnicsim::linux_provider
