# SPDX-License-Identifier: Apache-2.0
include(GoogleTest)

# Environment of every test's process. SystemC's coroutines need fake stacks off under ASan, and the leak check cannot
# walk their stacks.
set(RNICSIM_TEST_ENVIRONMENT
    SYSTEMC_DISABLE_COPYRIGHT_MESSAGE=1
    ASAN_OPTIONS=detect_stack_use_after_return=0:abort_on_error=1
    LSAN_OPTIONS=use_stacks=0
    UBSAN_OPTIONS=print_stacktrace=1
    PYTHONDONTWRITEBYTECODE=1)

# No optimization: most code of a test runs once, and optimization takes a fifth of the compile time. PIC like the
# libraries, for their precompiled headers.
# The compiler's heap of unoptimized units stays below 1 GB: no garbage collection.
set(RNICSIM_TEST_OPTIONS $<$<CONFIG:Release>:-O0> -fPIC
                         $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1000000>)

# Tests by GoogleTest; each TEST becomes a ctest test `<rung>.<name>.<Suite>.<Test>`, in a separate process.
#
#   rnicsim_test(NAME event_queue RUNG unit [PROGRAM queues] [LABELS quick] [SYSTEMC] [ATTACHES] [SERIAL]
#                [TIMEOUT 1200] SOURCES event_queue_test.cpp ... [LIBS base ...])
#
# PROGRAM: the executable `<rung>_<program>`, shared by all tests with this PROGRAM; by default an executable for each
# test. The headers of a test take a compiler many seconds, the test itself few, so the release build joins a program's
# sources (cmake/unity.cmake). Join tests with the same headers, eight or fewer: a change of one compiles all. Either
# all tests of a program have SYSTEMC or none.
# SYSTEMC: links SystemC, whose library defines main and calls sc_main: tests/support/sc_main.cpp defines sc_main.
# ATTACHES: starts programs that load the project's libraries, which fails with sanitizers: not run under sanitizers.
# SERIAL: measures wall time, and therefore runs without other tests.
function(rnicsim_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "SYSTEMC;ATTACHES;SERIAL" "NAME;RUNG;PROGRAM;TIMEOUT" "LABELS;SOURCES;LIBS")
  rnicsim_check_arguments()
  if(NOT arg_PROGRAM)
    set(arg_PROGRAM ${arg_NAME})
  endif()
  set(target ${arg_RUNG}_${arg_PROGRAM})
  # tests/support/run_tests.cpp expands `@source`.
  set(tests)
  foreach(source IN LISTS arg_SOURCES)
    cmake_path(GET source FILENAME file)
    list(APPEND tests @${file})
  endforeach()
  list(JOIN tests ":" tests)
  rnicsim_test_program(${target} ${arg_SYSTEMC})
  target_sources(${target} PRIVATE ${arg_SOURCES})
  get_target_property(linked ${target} LINK_LIBRARIES)
  list(REMOVE_ITEM arg_LIBS ${linked})
  target_link_libraries(${target} PRIVATE ${arg_LIBS})
  # Used by rnicsim_test_again.
  set_property(GLOBAL PROPERTY RNICSIM_PROGRAM_OF_${arg_RUNG}_${arg_NAME} ${target})
  set_property(GLOBAL PROPERTY RNICSIM_TESTS_OF_${arg_RUNG}_${arg_NAME} "${tests}")
  if(NOT arg_ATTACHES)
    list(APPEND arg_LABELS in-process)
  endif()
  set(properties "LABELS \"${arg_RUNG};${arg_LABELS}\" TIMEOUT ${arg_TIMEOUT}")
  string(APPEND properties " ENVIRONMENT \"${RNICSIM_TEST_ENVIRONMENT}\"")
  if(arg_SERIAL)
    string(APPEND properties " RUN_SERIAL TRUE")
  endif()
  rnicsim_discover("" "" "${properties}")
endfunction()

# The executable of a program, without sources, unless it exists.
function(rnicsim_test_program target systemc)
  if(TARGET ${target})
    return()
  endif()
  add_executable(${target})
  rnicsim_join(TARGETS ${target})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_compile_definitions(${target} PRIVATE RNICSIM_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                               RNICSIM_BINARY_DIR="${CMAKE_BINARY_DIR}")
  target_compile_options(${target} PRIVATE ${RNICSIM_TEST_OPTIONS} ${RNICSIM_SANITIZER_FLAGS})
  target_link_options(${target} PRIVATE ${RNICSIM_SANITIZER_FLAGS})
  if(systemc)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:systemc_test_main>)
    rnicsim_use_precompiled(test_headers ${target})
    target_link_libraries(${target} PRIVATE systemc fmt::fmt GTest::gtest GTest::gmock)
  else()
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:test_main>)
    rnicsim_use_precompiled(plain_test_headers ${target})
    target_link_libraries(${target} PRIVATE fmt::fmt GTest::gtest GTest::gmock)
  endif()
endfunction()

# Registers the tests of `arg_NAME` that match GoogleTest's `filter`, with `properties`; `variant` becomes a part of
# their names, or is empty.
function(rnicsim_discover variant filter properties)
  get_property(program GLOBAL PROPERTY RNICSIM_PROGRAM_OF_${arg_RUNG}_${arg_NAME})
  get_property(tests GLOBAL PROPERTY RNICSIM_TESTS_OF_${arg_RUNG}_${arg_NAME})
  set(name ${arg_RUNG}_${arg_NAME})
  set(prefix ${arg_RUNG}.${arg_NAME}.)
  if(variant)
    string(APPEND name _${variant})
    string(APPEND prefix ${variant}.)
  endif()
  # gtest_discover_tests accepts no lists as property values: ctest reads the properties from a file after its own.
  gtest_discover_tests(${program} TEST_PREFIX ${prefix} TEST_LIST ${name}_TESTS TEST_FILTER "${tests}${filter}"
                       DISCOVERY_TIMEOUT 60 WORKING_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  set(file ${CMAKE_CURRENT_BINARY_DIR}/${name}_properties.cmake)
  file(WRITE ${file} "if(${name}_TESTS)\n"
                     "  set_tests_properties(\${${name}_TESTS} PROPERTIES ${properties})\n"
                     "endif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${file})
endfunction()

# Registers the tests of a program again as `<rung>.<name>.<variant>...`, with additional environment variables.
#
#   rnicsim_test_again(NAME rc RUNG verbs VARIANT tiny_caches [LABELS quick] [TIMEOUT 1200] [FILTER -Suite.*]
#                      ENVIRONMENT NAME=value ... [NO_SKIPS])
#
# FILTER: GoogleTest's filter, without tests of the behaviour that the variant changes. NO_SKIPS: a test that skips
# itself fails.
function(rnicsim_test_again)
  cmake_parse_arguments(PARSE_ARGV 0 arg "NO_SKIPS" "NAME;RUNG;VARIANT;TIMEOUT;FILTER" "LABELS;ENVIRONMENT")
  rnicsim_check_arguments()
  set(properties "LABELS \"${arg_RUNG};${arg_LABELS};in-process\" TIMEOUT ${arg_TIMEOUT}")
  string(APPEND properties " ENVIRONMENT \"${RNICSIM_TEST_ENVIRONMENT};${arg_ENVIRONMENT}\"")
  if(arg_NO_SKIPS)
    string(APPEND properties " SKIP_REGULAR_EXPRESSION \"\" FAIL_REGULAR_EXPRESSION \"\\\\[  SKIPPED\"")
  endif()
  rnicsim_discover("${arg_VARIANT}" "${arg_FILTER}" "${properties}")
endfunction()

# A device with one-entry context caches: contexts are loaded and evicted all the time.
set(sets)
foreach(cache qpc cqc srqc mpt mtt)
  string(APPEND sets "nic.contexts.${cache}.l0_entries=0,nic.contexts.${cache}.l1_entries=1,")
endforeach()
set(RNICSIM_TINY_CACHES "RNICSIM_TEST_SETS=${sets}")
string(REPLACE "l1_entries=1," "l1_entries=0," sets "${sets}")
set(RNICSIM_NO_CACHES "RNICSIM_TEST_SETS=${sets}")

# A QP engine with random delays, which reorders transactions (docs/architecture.md).
set(RNICSIM_JITTER "RNICSIM_TEST_SETS=nic.jitter.delay=300ns")

# Runs the tests on the engine of rtl/ in lockstep with its reference, as the variant `lockstep`, except those of
# tests/rtl/skipped.txt.
#
#   rnicsim_test_in_lockstep(NAME rc RUNG verbs [LABELS quick] [TIMEOUT 1200] [ENVIRONMENT NAME=value ...])
function(rnicsim_test_in_lockstep)
  cmake_parse_arguments(PARSE_ARGV 0 lockstep "" "NAME;RUNG" "ENVIRONMENT")
  if(NOT TARGET cosim)
    return()
  endif()
  file(STRINGS ${PROJECT_SOURCE_DIR}/tests/rtl/skipped.txt lines REGEX "^${lockstep_RUNG}_${lockstep_NAME} ")
  set(filter)
  foreach(line ${lines})
    string(REGEX REPLACE "^[^ ]+ ([^ ]+) .*" "\\1" skipped "${line}")
    string(APPEND filter ":${skipped}")
  endforeach()
  string(REGEX REPLACE "^:" "-" filter "${filter}")
  rnicsim_test_again(NAME ${lockstep_NAME} RUNG ${lockstep_RUNG} VARIANT lockstep FILTER "${filter}" NO_SKIPS
    ENVIRONMENT RNICSIM_TEST_ENGINE=lockstep ${lockstep_ENVIRONMENT} ${lockstep_UNPARSED_ARGUMENTS})
endfunction()

# A test by any other command: exit status 0 passes, 77 skips. Not run under sanitizers. Commands may name tools that
# only tests need (python3, tshark). CMake does not look for these tools, because a build for `./rnicsim run` is
# configured without them.
#
#   rnicsim_script_test(NAME layering RUNG unit [LABELS quick] [SERIAL] [TIMEOUT 1200] [SECONDS 30]
#                       COMMAND python3 script arguments...)
#
# SECONDS: approximate duration of a test of 10 s or more; not a limit. ctest starts the longest tests first, because
# other processors would wait for them at the end.
function(rnicsim_script_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "SERIAL" "NAME;RUNG;TIMEOUT;SECONDS" "LABELS;COMMAND")
  rnicsim_check_arguments()
  if(NOT arg_SECONDS)
    set(arg_SECONDS 1)
  endif()
  set(test ${arg_RUNG}.${arg_NAME})
  add_test(NAME ${test} COMMAND ${arg_COMMAND} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${test} PROPERTIES LABELS "${arg_RUNG};${arg_LABELS}" TIMEOUT ${arg_TIMEOUT} COST ${arg_SECONDS}
                                          ENVIRONMENT "${RNICSIM_TEST_ENVIRONMENT}" SKIP_RETURN_CODE 77)
  if(arg_SERIAL)
    set_tests_properties(${test} PROPERTIES RUN_SERIAL TRUE)
  endif()
endfunction()

macro(rnicsim_check_arguments)
  if(arg_UNPARSED_ARGUMENTS OR arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "test ${arg_NAME}: not understood: ${arg_UNPARSED_ARGUMENTS} ${arg_KEYWORDS_MISSING_VALUES}")
  endif()
  if(NOT arg_RUNG MATCHES "^(unit|rtl|verbs|protocol|timing|golden|apps|guest|soak)$")
    message(FATAL_ERROR "test ${arg_NAME}: no rung is called '${arg_RUNG}'")
  endif()
  foreach(label IN LISTS arg_LABELS)
    if(NOT label MATCHES "^(quick|full)$")
      message(FATAL_ERROR "test ${arg_NAME}: no label is called '${label}': quick or full")
    endif()
  endforeach()
  # Large enough that only a test that hangs reaches the limit, on a slow machine too.
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 1200)
  endif()
endmacro()
