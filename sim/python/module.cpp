// SPDX-License-Identifier: Apache-2.0
// rnicsim._core: the extension module that the package rnicsim (rnicsim/__init__.py) wraps and documents.
#include <fmt/format.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>

#include "sim/config/data_files.h"
#include "sim/config/nic_profile.h"
#include "sim/python/running.h"
#include "sim/python/station.h"
#include "sim/python/trace_module.h"

// SystemC's library needs this symbol, but never calls it here.
extern "C" __attribute__((visibility("default"))) int sc_main(int, char*[]) { return 1; }

namespace rnicsim::sim::python {
namespace {

namespace py = pybind11;

struct SimulationError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Never destroyed: SystemC elaborates once, and its objects must exist until the process ends.
std::vector<std::unique_ptr<Station>>& stations() {
  static auto* all = new std::vector<std::unique_ptr<Station>>;
  return *all;
}

// None: no check; else a dict that the package built from the user's choices.
std::optional<driver_check::CheckParams> check_params(const py::object& check) {
  if (check.is_none()) return std::nullopt;
  const auto given = check.cast<py::dict>();
  driver_check::CheckParams params;
  params.reset_window = {given["reset_window_ps"].cast<std::int64_t>()};
  params.poison = given["poison"].cast<bool>();
  params.owner_delay = {given["owner_delay_ps"].cast<std::int64_t>()};
  return params;
}

std::vector<Station*> make(std::uint32_t count, const std::string& profile, const std::vector<std::string>& sets,
                           std::int64_t latency_ps, const py::object& check) {
  if (!stations().empty())
    throw SimulationError(
        "this process already has a simulation: SystemC allows one for each process; start another process");
  const auto params = load_nic_profile(profile.empty() ? "" : find_data(DataKind::nic, profile), sets);
  const auto validate = check_params(check);
  std::vector<Station*> made;
  for (std::uint32_t i = 0; i < count; ++i)
    made.push_back(stations()
                       .emplace_back(std::make_unique<Station>(fmt::format("device{}", i).c_str(), i, params,
                                                               validate ? &*validate : nullptr))
                       .get());
  if (count == 2) {
    made[0]->connect(*made[1], Duration{latency_ps});
    made[1]->connect(*made[0], Duration{latency_ps});
  }
  sc_core::sc_start(sc_core::SC_ZERO_TIME);
  return made;
}

void run(std::int64_t ps) {
  if (stations().empty()) throw SimulationError("there is no device yet");
  const Duration end = now() + Duration{ps};
  do run_for_a_while(end);
  while (now() < end);
}

py::bytes to_python(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::byte> from_python(const py::bytes& bytes) {
  const std::string_view view = bytes;
  const auto* begin = reinterpret_cast<const std::byte*>(view.data());
  return {begin, begin + view.size()};
}

py::dict to_python(const TraceEvent& event) {
  const auto& kind = info(event.kind);
  py::dict out;
  out["time"] = event.at.ps;
  out["device"] = event.host;
  out["kind"] = kind.name;
  for (std::size_t i = 0; i < kind.fields.size(); ++i) {
    const auto& field = kind.fields[i];
    out[field.name] =
        is_plain(field.style) ? py::object(py::int_(event.fields[i])) : py::str(to_text(field, event.fields[i]));
  }
  return out;
}

template <class Call>
void define_accesses(py::class_<Station, std::unique_ptr<Station, py::nodelete>>& station, const char* read,
                     const char* write, Call space) {
  station.def(read, [space](Station& self, std::uint64_t offset, std::size_t bytes) -> py::object {
    const auto data = self.read(space(), offset, bytes);
    return data ? py::object(to_python(*data)) : py::none();
  });
  station.def(write, [space](Station& self, std::uint64_t offset, const py::bytes& bytes) {
    auto data = from_python(bytes);
    return self.write(space(), offset, data);
  });
}

void define_memory(py::module_& module) {
  py::class_<Buffer, std::shared_ptr<Buffer>>(module, "Buffer", py::buffer_protocol())
      .def("__len__", [](const Buffer& self) { return self.bytes.size(); })
      .def_buffer([](Buffer& self) {
        return py::buffer_info(reinterpret_cast<std::uint8_t*>(self.bytes.data()),
                               static_cast<py::ssize_t>(self.bytes.size()), false);
      });
}

void define_station(py::module_& module) {
  py::class_<Station, std::unique_ptr<Station, py::nodelete>> station(module, "Station");
  define_accesses(station, "config_read", "config_write", [] { return Space::config; });
  define_accesses(station, "bar_read", "bar_write", [] { return Space::bar; });
  station.def("allocate", &Station::allocate)
      .def("map", &Station::map)
      .def("unmap", &Station::unmap)
      .def("load",
           [](Station& self, std::uint64_t iova, Pasid pasid, std::size_t bytes) -> py::object {
             const auto data = self.load(iova, pasid, bytes);
             return data ? py::object(to_python(*data)) : py::none();
           })
      .def("store", [](Station& self, std::uint64_t iova, Pasid pasid,
                       const py::bytes& bytes) { return self.store(iova, pasid, from_python(bytes)); })
      .def("next_interrupt",
           [](Station& self, std::optional<std::uint32_t> vector, std::int64_t limit_ps) {
             const auto taken = self.next_interrupt(vector, Duration{limit_ps});
             return taken ? std::optional(std::pair(taken->first.ps, taken->second)) : std::nullopt;
           })
      .def("inject", [](Station& self, const py::bytes& frame) { self.inject(from_python(frame)); })
      .def("take_frames",
           [](Station& self) {
             py::list frames;
             for (const auto& [at, bytes] : self.take_frames()) frames.append(py::make_tuple(at.ps, to_python(bytes)));
             return frames;
           })
      .def("counters",
           [](const Station& self) {
             py::dict counters;
             for (const auto& entry : self.counters()) counters[py::str(entry.path)] = entry.value;
             return counters;
           })
      .def("findings",
           [](Station& self) {
             py::list findings;
             if (self.check() == nullptr) return findings;
             for (const auto& finding : self.check()->findings())
               findings.append(
                   py::make_tuple(finding.name(), finding.at.ps, finding.text, finding.section(), finding.accesses));
             return findings;
           })
      .def("finish_check",
           [](Station& self) {
             if (self.check() != nullptr) self.check()->finish();
           })
      .def("burndown", [](Station& self) { return self.check() != nullptr ? self.check()->burndown() : std::string(); })
      .def("record", &Station::record)
      .def("log", &Station::log)
      .def("take_trace", [](Station& self) {
        py::list events;
        for (const auto& event : self.take_trace()) events.append(to_python(event));
        return events;
      });
}

PYBIND11_MODULE(_core, module) {
  ::setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 0);
  spdlog::set_level(spdlog::level::off);  // errors are reported by exceptions, counters and trace events
  // No warning of SystemC for run(us=0).
  sc_core::sc_report_handler::set_actions(sc_core::SC_ID_NO_SC_START_ACTIVITY_, sc_core::SC_DO_NOTHING);
  py::register_exception<SimulationError>(module, "SimulationError");
  py::register_exception<ConfigError>(module, "ConfigError", PyExc_ValueError);
  define_memory(module);
  define_station(module);
  define_traces(module);
  module.def("make", &make, py::return_value_policy::reference);
  module.def("run", &run);
  module.def("now", [] { return now().ps; });
}

}  // namespace
}  // namespace rnicsim::sim::python
