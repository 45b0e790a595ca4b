# SPDX-License-Identifier: Apache-2.0
# `cmake --install build/release --prefix ANYWHERE`: the files of the program, found relative to the program, so that
# the prefix may be moved (docs/install.md).
include(GNUInstallDirs)

# Builds all installed targets, and no tests, before an installation.
add_custom_target(installed)
foreach(target rnicsim guest_agent rnic_rdmav34 os_services ibverbs rdmacm rspreload rnicsim_nic python_core manual
    rtl_checked)
  if(TARGET ${target})
    add_dependencies(installed ${target})
  endif()
endforeach()

set(share ${CMAKE_INSTALL_DATAROOTDIR}/rnicsim)

install(TARGETS rnicsim RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# In a separate folder: only programs of simulated hosts may find these libraries instead of the system's.
install(TARGETS os_services ibverbs rdmacm rspreload LIBRARY DESTINATION lib/rnicsim)
if(TARGET guest_agent)
  install(TARGETS guest_agent RUNTIME DESTINATION lib/rnicsim)
endif()
if(TARGET rnic_rdmav34)
  install(TARGETS rnic_rdmav34 LIBRARY DESTINATION lib/rnicsim/guest)
endif()
if(TARGET rtl_checked)
  install(TARGETS rtl_checked LIBRARY DESTINATION lib/rnicsim)
endif()
install(DIRECTORY sim/nics sim/hosts sim/sweeps sim/topologies sim/workloads DESTINATION ${share}
        FILES_MATCHING PATTERN "*.toml")
install(DIRECTORY sim/report DESTINATION ${share}
  FILES_MATCHING PATTERN "*.html" PATTERN "*.js" PATTERN "*.css" PATTERN "LICENSE*")

install(DIRECTORY sim/guest/image DESTINATION ${share}/guest USE_SOURCE_PERMISSIONS PATTERN "__pycache__" EXCLUDE)
# The Linux driver, which `vm` builds for its guests' kernel.
install(DIRECTORY verbs/linux/kernel DESTINATION ${share}/linux)
install(FILES verbs/linux/rnic_abi.h verbs/linux/README.md DESTINATION ${share}/linux)
install(DIRECTORY model/abi/c/ DESTINATION ${share}/linux/abi FILES_MATCHING PATTERN "*.h")

install(FILES README.md CHANGELOG.md SECURITY.md LICENSE cmake/package/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} USE_SOURCE_PERMISSIONS)
install(FILES traces/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/traces)
install(PROGRAMS tests/apps/remote_shell.py DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)

install(DIRECTORY ${CMAKE_BINARY_DIR}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 FILES_MATCHING PATTERN "*.1.gz")
install(FILES sim/completion/rnicsim.bash DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/bash-completion/completions
  RENAME rnicsim)
install(FILES sim/completion/_rnicsim DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/zsh/vendor-completions)
