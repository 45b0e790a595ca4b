# SPDX-License-Identifier: Apache-2.0
# librnicsim: the NIC for other virtual platforms, with headers, a CMake package and a pkg-config file.
# `cmake --install build/release --component library`; docs/library.md.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# A single shared library of the rooms that a NIC needs: its users do not link the libraries with which the rooms are
# built.
set(RNICSIM_LIBRARY_ROOMS base port_disciplines roce congestion_controls nic nic_policies device
    driver_check parameters json_value transactor)
add_library(rnicsim_nic SHARED)
get_target_property(joined nic RNICSIM_WITH)
foreach(room IN LISTS RNICSIM_LIBRARY_ROOMS)
  if(room IN_LIST joined)
    continue()
  endif()
  target_sources(rnicsim_nic PRIVATE $<TARGET_OBJECTS:${room}>)
endforeach()
set_target_properties(rnicsim_nic PROPERTIES
  OUTPUT_NAME rnicsim EXPORT_NAME nic LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
target_compile_features(rnicsim_nic INTERFACE cxx_std_20)
target_compile_definitions(rnicsim_nic INTERFACE SC_CPLUSPLUS=201703L SC_INCLUDE_DYNAMIC_PROCESSES)
target_include_directories(rnicsim_nic INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                                 $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/rnicsim>)
target_link_libraries(rnicsim_nic
  PUBLIC $<BUILD_INTERFACE:PkgConfig::SYSTEMC> $<INSTALL_INTERFACE:PkgConfig::RNICSIM_SYSTEMC> Boost::headers
  PRIVATE $<BUILD_INTERFACE:PkgConfig::ISAL> $<BUILD_INTERFACE:fmt::fmt> $<BUILD_INTERFACE:PkgConfig::TOMLPLUSPLUS>)
target_link_options(rnicsim_nic PRIVATE ${RNICSIM_SANITIZER_FLAGS})

install(TARGETS rnicsim_nic EXPORT rnicsimTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
foreach(room abi base roce nic device driver_check)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/model/${room} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rnicsim/model
    COMPONENT library FILES_MATCHING PATTERN *.h PATTERN c EXCLUDE)
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/sim/guest/transactor
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rnicsim/sim/guest COMPONENT library FILES_MATCHING PATTERN *.h)
install(FILES ${PROJECT_SOURCE_DIR}/sim/os/descriptor.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rnicsim/sim/os
  COMPONENT library)
install(FILES ${PROJECT_SOURCE_DIR}/sim/config/nic_profile.h ${PROJECT_SOURCE_DIR}/sim/config/config_error.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rnicsim/sim/config COMPONENT library)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/model/abi/c/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rnicsim/abi
  COMPONENT library FILES_MATCHING PATTERN *.h)
# Separate profiles, so that the library has them without the program.
set(RNICSIM_INSTALL_PROFILES ${CMAKE_INSTALL_DATADIR}/rnicsim/nics)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/sim/nics ${PROJECT_SOURCE_DIR}/sim/hosts
  DESTINATION ${CMAKE_INSTALL_DATADIR}/rnicsim COMPONENT library FILES_MATCHING PATTERN *.toml)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/rnicsim)
install(EXPORT rnicsimTargets NAMESPACE rnicsim:: DESTINATION ${package} COMPONENT library)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/rnicsimConfig.cmake.in
  ${CMAKE_BINARY_DIR}/rnicsimConfig.cmake INSTALL_DESTINATION ${package} PATH_VARS RNICSIM_INSTALL_PROFILES)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/rnicsimConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/rnicsimConfig.cmake ${CMAKE_BINARY_DIR}/rnicsimConfigVersion.cmake
  DESTINATION ${package} COMPONENT library)

# The prefix is relative to the file's folder, as in the CMake package: both may be moved.
file(RELATIVE_PATH RNICSIM_PKGCONFIG_TO_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(${CMAKE_CURRENT_LIST_DIR}/rnicsim.pc.in ${CMAKE_BINARY_DIR}/rnicsim.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/rnicsim.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)
