# A relocatable prefix: bin, lib, lib/fornix, include/fornix, share/fornix.
install(TARGETS fornix fornix_mrd_headers EXPORT fornix LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS fornix_cli RUNTIME DESTINATION bin)
if(FORNIX_GADGET_TARGETS)
	install(TARGETS ${FORNIX_GADGET_TARGETS} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/fornix)
endif()
install(DIRECTORY include/fornix DESTINATION include FILES_MATCHING PATTERN "*.h")
install(DIRECTORY pipelines DESTINATION share/fornix FILES_MATCHING PATTERN "*.xml")
configure_file(cmake/fornix.pc.in fornix.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/fornix.pc DESTINATION lib/pkgconfig)

# find_package(fornix) for gadgets that are built elsewhere: link fornix::fornix.
install(EXPORT fornix NAMESPACE fornix:: DESTINATION lib/cmake/fornix FILE fornixTargets.cmake)
include(CMakePackageConfigHelpers)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/fornixConfigVersion.cmake COMPATIBILITY SameMinorVersion)
file(WRITE ${PROJECT_BINARY_DIR}/fornixConfig.cmake "include(\"\${CMAKE_CURRENT_LIST_DIR}/fornixTargets.cmake\")\n")
install(FILES ${PROJECT_BINARY_DIR}/fornixConfig.cmake ${PROJECT_BINARY_DIR}/fornixConfigVersion.cmake
	DESTINATION lib/cmake/fornix)

# The server as a service: the unit where systemd looks for those of /usr and /usr/local, a map of names to begin with.
install(FILES packaging/fornix.service DESTINATION lib/systemd/system)
install(FILES packaging/names.conf DESTINATION share/fornix)
