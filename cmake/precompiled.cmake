# SPDX-License-Identifier: Apache-2.0
# Precompiled headers, which nearly every source of a room includes. Sources still include the headers that they use:
# the sanitized build has no precompiled headers.
#
#   rnicsim_precompile(NAME systemc_headers LIBS systemc HEADERS <systemc> ...)
#   rnicsim_use_precompiled(systemc_headers nic host ...)
#
# A target that uses the headers gets the definitions of LIBS, and is compiled as position independent code.
function(rnicsim_precompile)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "LIBS;HEADERS")
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${arg_NAME}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "")
  add_library(${arg_NAME} OBJECT EXCLUDE_FROM_ALL ${source})
  target_link_libraries(${arg_NAME} PRIVATE ${arg_LIBS})
  target_precompile_headers(${arg_NAME} PRIVATE ${arg_HEADERS})
endfunction()

function(rnicsim_use_precompiled headers)
  foreach(target IN LISTS ARGN)
    target_precompile_headers(${target} REUSE_FROM ${headers})
  endforeach()
endfunction()
