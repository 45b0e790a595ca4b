// Memory of a host in Python: buffers, and what a PASID's IOVAs mean.
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

// Memory of the host, physically contiguous. Its number is that of its "inode", so that the IOMMU knows its pages
// by whichever IOVA.
struct Buffer {
  std::uint64_t number;
  std::vector<std::byte> bytes;
};

// One PASID's IOVAs. Ranges do not overlap.
class IovaSpace : public host::AddressSpace {
 public:
  // False: some of it is mapped already.
  bool map(std::uint64_t iova, std::shared_ptr<Buffer> buffer, bool writable);
  // What was mapped at `iova`, which is a mapping's first; nullopt: none begins there.
  struct Mapping {
    std::shared_ptr<Buffer> buffer;
    bool writable;
  };
  std::optional<Mapping> unmap(std::uint64_t iova);
  // All of it is mapped; for writing, if that is wanted.
  bool covers(std::uint64_t address, std::size_t bytes, bool writing) const;

  bool read(std::uint64_t address, std::span<std::byte> bytes) override;
  bool write(std::uint64_t address, std::span<const std::byte> bytes) override;
  int admit(std::uint64_t, std::uint64_t, bool) override { return 0; }
  std::optional<host::SharedPage> shared_page(std::uint64_t address) const override;

 private:
  using Mappings = std::map<std::uint64_t, Mapping>;

  // That which holds `address`.
  Mappings::const_iterator find(std::uint64_t address) const;
  // Calls `move(memory, offset in the access)` for each piece; false: not all of it is mapped.
  template <class Move>
  bool each_piece(std::uint64_t address, std::size_t bytes, Move move);

  Mappings mappings_;
};

}  // namespace rnicsim::sim::python
