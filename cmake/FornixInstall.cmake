# A relocatable prefix: bin, lib, lib/fornix, include/fornix, share/fornix.
install(TARGETS fornix EXPORT fornix LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS fornix_cli RUNTIME DESTINATION bin)
if(FORNIX_GADGET_TARGETS)
	install(TARGETS ${FORNIX_GADGET_TARGETS} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/fornix)
endif()
install(DIRECTORY include/fornix DESTINATION include FILES_MATCHING PATTERN "*.h")
install(DIRECTORY pipelines DESTINATION share/fornix FILES_MATCHING PATTERN "*.xml")
