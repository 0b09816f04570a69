# The Python package as build/python/ascend_fuse: the files of tools/python/ascend_fuse by links, and the shared library beside
# them, which they call by its interface in C. No header of Python is needed, and one package serves all versions. In a wheel
# (SKBUILD) the same by installation.
set(PACKAGE ${CMAKE_BINARY_DIR}/python/ascend_fuse)
file(MAKE_DIRECTORY ${PACKAGE})
file(GLOB PACKAGE_FILES CONFIGURE_DEPENDS tools/python/ascend_fuse/*.py tools/python/ascend_fuse/py.typed)
foreach(file IN LISTS PACKAGE_FILES)
  get_filename_component(name ${file} NAME)
  file(CREATE_LINK ${file} ${PACKAGE}/${name} SYMBOLIC)
endforeach()
file(CREATE_LINK ${CMAKE_BINARY_DIR}/libascend_fuse.so ${PACKAGE}/libascend_fuse.so SYMBOLIC)

include(cmake/bundle_libraries.cmake)
# The library of the build tree, which a wheel may take; an installation strips this off.
set_target_properties(ascend_fuse PROPERTIES BUILD_RPATH "$ORIGIN/lib")
target_link_options(ascend_fuse PRIVATE LINKER:--disable-new-dtags)
find_package(Python 3.8 REQUIRED COMPONENTS Interpreter)
set(beside lib/python${Python_VERSION_MAJOR}.${Python_VERSION_MINOR})
searches_bundle(ascend-fuse "$ORIGIN/../${beside}/site-packages/ascend_fuse/lib;$ORIGIN/../${beside}/dist-packages/ascend_fuse/lib")
if(SKBUILD)
  install_bundle($<TARGET_FILE:ascend_fuse>)
  target_link_options(ascend_fuse PRIVATE LINKER:--strip-all)
  install(PROGRAMS $<TARGET_FILE:ascend_fuse> DESTINATION ascend_fuse RENAME libascend_fuse.so COMPONENT python)
  install(FILES ${PACKAGE_FILES} DESTINATION ascend_fuse COMPONENT python)
  install(TARGETS ascend-fuse RUNTIME DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT python)
endif()
