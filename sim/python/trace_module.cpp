// SPDX-License-Identifier: Apache-2.0
#include "sim/python/trace_module.h"

#include <pybind11/stl.h>

#include <optional>

#include "sim/python/trace_blocks.h"

namespace rnicsim::sim::python {
namespace {

namespace py = pybind11;

std::unique_ptr<TraceBlocks> open_trace(const std::string& path, std::vector<std::string> hosts,
                                        std::vector<std::string> kinds, std::vector<std::uint32_t> qps,
                                        std::vector<std::uint32_t> psns, std::optional<std::int64_t> from_ps,
                                        std::optional<std::int64_t> to_ps) {
  FilterOptions filter{std::move(hosts), std::move(kinds), std::move(qps), std::move(psns), {}, {}};
  if (from_ps) filter.from = Duration{*from_ps};
  if (to_ps) filter.to = Duration{*to_ps};
  return std::make_unique<TraceBlocks>(path, filter);
}

// Texts of a file need not be UTF-8; invalid bytes become U+FFFD.
py::str text_of(const std::string& text) {
  return py::reinterpret_steal<py::str>(PyUnicode_DecodeUTF8(text.data(), py::ssize_t(text.size()), "replace"));
}

py::list texts_of(const std::vector<std::string>& texts) {
  py::list list;
  for (const auto& text : texts) list.append(text_of(text));
  return list;
}

py::dict header_of(const TraceBlocks& trace) {
  const auto& header = trace.header();
  py::dict configuration;
  for (const auto& [path, value] : header.configuration) configuration[text_of(path)] = text_of(value);
  py::dict out;
  out["program"] = text_of(header.program);
  out["title"] = text_of(header.title);
  out["seed"] = header.seed;
  out["time"] = text_of(header.time);
  out["hosts"] = texts_of(header.hosts);
  out["commands"] = texts_of(header.commands);
  out["configuration"] = std::move(configuration);
  return out;
}

// Rows by kind name, in the order of the kinds' numbers.
py::dict next_block(TraceBlocks& trace, std::size_t most) {
  TraceBlocks::Block block;
  {
    const py::gil_scoped_release others_run;
    block = trace.next(most);
  }
  py::dict out;
  for (std::size_t kind = 0; kind < kEventKinds; ++kind)
    if (block[kind]) out[info(EventKind(kind)).name] = block[kind];
  return out;
}

// Fields of each kind: name, and whether values have names.
py::dict kinds() {
  py::dict out;
  for (std::size_t kind = 1; kind < kEventKinds; ++kind) {
    py::list fields;
    for (const auto& field : info(EventKind(kind)).fields)
      fields.append(py::make_tuple(field.name, !is_plain(field.style)));
    out[info(EventKind(kind)).name] = std::move(fields);
  }
  return out;
}

// The value's name, or the value as `trace show` prints it.
std::string value_text(const std::string& kind_name, const std::string& field_name, std::uint64_t value) {
  const NamedField field(field_name);
  for (std::size_t kind = 1; kind < kEventKinds; ++kind) {
    const auto* found = field.info_in(EventKind(kind));
    if (found != nullptr && kind_name == info(EventKind(kind)).name) return to_text(*found, value);
  }
  throw py::key_error(kind_name + "." + field_name);
}

}  // namespace

void define_traces(py::module_& module) {
  py::register_exception<TraceError>(module, "TraceError", PyExc_ValueError);
  py::class_<EventRows, std::shared_ptr<EventRows>>(module, "EventRows", py::buffer_protocol())
      .def_buffer([](EventRows& self) {
        return py::buffer_info(self.words.data(), static_cast<py::ssize_t>(self.words.size()), false);
      });
  py::class_<TraceBlocks>(module, "TraceBlocks")
      .def(py::init(&open_trace))
      .def("header", &header_of)
      .def("next", &next_block)
      .def("unknown", [](const TraceBlocks& trace) { return texts_of(trace.unknown()); });
  module.def("trace_kinds", &kinds);
  module.def("trace_value_text", &value_text);
}

}  // namespace rnicsim::sim::python
