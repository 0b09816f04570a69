# embed_files(TARGET SYMBOL [ENCODE PROTO MESSAGE] GLOBS...): the files that match, as an array of {path, text} named
# ascend_fuse::embedded::SYMBOL, declared in the generated header "embedded/SYMBOL.h". With ENCODE they are messages in
# protobuf's text format and become its binary one, which is read ten times faster.
function(embed_files target symbol)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" ENCODE)
  set(globs ${arg_UNPARSED_ARGUMENTS})
  set(encode)
  set(protoc)
  if(arg_ENCODE)
    list(POP_FRONT arg_ENCODE proto message)
    list(APPEND globs ${arg_ENCODE})
    set(encode -DPROTOC=$<TARGET_FILE:protobuf::protoc> -DPROTO=${proto} -DMESSAGE=${message})
    set(protoc ${CMAKE_SOURCE_DIR}/${proto})
  endif()
  file(GLOB files CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR} ${globs})
  set(paths)
  foreach(file IN LISTS files)
    list(APPEND paths ${CMAKE_SOURCE_DIR}/${file})
  endforeach()
  set(directory ${CMAKE_BINARY_DIR}/generated/embedded)
  file(MAKE_DIRECTORY ${directory})
  string(REPLACE ";" "|" joined "${files}")
  add_custom_command(
    OUTPUT ${directory}/${symbol}.cc ${directory}/${symbol}.h
    COMMAND ${CMAKE_COMMAND} -DROOT=${CMAKE_SOURCE_DIR} "-DFILES=${joined}" -DSYMBOL=${symbol}
            -DDIRECTORY=${directory} ${encode} -P ${CMAKE_SOURCE_DIR}/cmake/embed_script.cmake
    DEPENDS ${paths} ${protoc} ${CMAKE_SOURCE_DIR}/cmake/embed_script.cmake
    VERBATIM)
  target_sources(${target} PRIVATE ${directory}/${symbol}.cc ${directory}/${symbol}.h)
  target_include_directories(${target} PRIVATE ${CMAKE_BINARY_DIR}/generated)
endfunction()
