// SPDX-License-Identifier: Apache-2.0
// Memory of a host in Python: buffers, and the mappings of IOVAs by PASID.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "model/host/memory/address_space.h"

namespace rnicsim::sim::python {

// Physically contiguous memory of the host. `number` serves as inode number, by which the IOMMU recognises the same
// page under different IOVAs.
struct Buffer {
  std::uint64_t number;
  std::vector<std::byte> bytes;
};

// IOVA mappings of one PASID. Ranges do not overlap.
class IovaSpace : public host::AddressSpace {
 public:
  // False: part of the range is mapped already.
  bool map(std::uint64_t iova, std::shared_ptr<Buffer> buffer, bool writable);
  // Removes the mapping that begins at `iova` and returns it; nullopt: no mapping begins there.
  struct Mapping {
    std::shared_ptr<Buffer> buffer;
    bool writable;
  };
  std::optional<Mapping> unmap(std::uint64_t iova);
  // True: the whole range is mapped, and writable if `writing`.
  bool covers(std::uint64_t address, std::size_t bytes, bool writing) const;

  bool read(std::uint64_t address, std::span<std::byte> bytes) override;
  bool write(std::uint64_t address, std::span<const std::byte> bytes) override;
  int admit(std::uint64_t, std::uint64_t, bool) override { return 0; }
  std::optional<host::SharedPage> shared_page(std::uint64_t address) const override;

 private:
  using Mappings = std::map<std::uint64_t, Mapping>;

  // Mapping that contains `address`; end: none.
  Mappings::const_iterator find(std::uint64_t address) const;
  // Calls `move(memory, offset in the access)` for each part; false: the range is not mapped completely.
  template <class Move>
  bool each_piece(std::uint64_t address, std::size_t bytes, Move move);

  Mappings mappings_;
};

}  // namespace rnicsim::sim::python
