# SPDX-License-Identifier: Apache-2.0
# The version, from git: rnicsim_version(VERSION COMMIT SOURCES PROJECT_VERSION) sets the first two in the caller. A tag
# v1.2.3 gives 1.2.3; later commits give 1.2.3-<commits since>-g<hash>; uncommitted changes add -dirty. Without a tag
# the project's version is the number, and all commits count; without git the version is the project's version.
#
# As a script, `cmake -D SOURCE_DIR= -D PROJECT_VERSION= -D OUTPUT= -P version.cmake` writes version and commit as C++,
# if they changed.
function(rnicsim_version version commit source_dir project_version)
  set(${version} ${project_version} PARENT_SCOPE)
  set(${commit} "unknown" PARENT_SCOPE)
  find_program(git NAMES git)
  if(NOT git)
    return()
  endif()
  # git must not lock the index: a commit may be in progress.
  set(ENV{GIT_OPTIONAL_LOCKS} 0)
  macro(ask out)
    execute_process(COMMAND ${git} ${ARGN} WORKING_DIRECTORY ${source_dir} OUTPUT_VARIABLE ${out} ERROR_QUIET
                    OUTPUT_STRIP_TRAILING_WHITESPACE)
  endmacro()
  ask(top rev-parse --show-toplevel)
  # Sources unpacked inside another project's repository do not belong to that repository. A repository may have no
  # commit yet.
  file(REAL_PATH ${source_dir} source)
  if(NOT top STREQUAL source)
    return()
  endif()
  ask(head rev-parse --verify HEAD)
  if(NOT head)
    return()
  endif()
  ask(described describe --tags --match "v[0-9]*" --dirty)
  if(NOT described)
    ask(count rev-list --count HEAD)
    ask(described describe --always --match "no tag" --dirty)
    set(described "v${project_version}-${count}-g${described}")
  endif()
  string(SUBSTRING "${described}" 1 -1 described)
  if(described MATCHES "-dirty$")
    string(APPEND head ", and changes that are not committed")
  endif()
  set(${version} "${described}" PARENT_SCOPE)
  set(${commit} "${head}" PARENT_SCOPE)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  rnicsim_version(version commit ${SOURCE_DIR} ${PROJECT_VERSION})
  file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
#include "sim/build_facts.h"

namespace rnicsim::sim {

const char kVersion[] = "@version@";
const char kCommit[] = "@commit@";

}  // namespace rnicsim::sim
]])
endif()
