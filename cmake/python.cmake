# The Python module ascend_fuse._core, and the package around it as build/python/ascend_fuse: the files of
# tools/python/ascend_fuse by links, the module beside them. In a wheel (SKBUILD) the same by installation.
if(NOT SKBUILD AND NOT DEFINED Python_EXECUTABLE AND EXISTS ${CMAKE_SOURCE_DIR}/.venv/bin/python)
  set(Python_EXECUTABLE ${CMAKE_SOURCE_DIR}/.venv/bin/python)
endif()
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_STRIP_TRAILING_WHITESPACE
                OUTPUT_VARIABLE nanobind_ROOT RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "the Python package needs nanobind: ${Python_EXECUTABLE} -m pip install nanobind, or -DASCEND_FUSE_PYTHON=OFF")
endif()
find_package(nanobind CONFIG REQUIRED)

nanobind_add_module(_core NB_STATIC tools/python/core/module.cc tools/python/core/graph_view.cc)
target_link_libraries(_core PRIVATE af_passes)
set(PACKAGE ${CMAKE_BINARY_DIR}/python/ascend_fuse)
set_target_properties(_core PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PACKAGE})
file(MAKE_DIRECTORY ${PACKAGE})
file(GLOB PACKAGE_FILES CONFIGURE_DEPENDS tools/python/ascend_fuse/*.py tools/python/ascend_fuse/*.pyi
     tools/python/ascend_fuse/py.typed)
foreach(file IN LISTS PACKAGE_FILES)
  get_filename_component(name ${file} NAME)
  file(CREATE_LINK ${file} ${PACKAGE}/${name} SYMBOLIC)
endforeach()

if(SKBUILD)
  install(TARGETS _core LIBRARY DESTINATION ascend_fuse COMPONENT python)
  install(FILES ${PACKAGE_FILES} DESTINATION ascend_fuse COMPONENT python)
  install(TARGETS ascend-fuse RUNTIME DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT python)
endif()
