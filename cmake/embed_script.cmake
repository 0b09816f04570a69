# Writes SYMBOL.h and SYMBOL.cc from FILES (separated by |), relative to ROOT. Run by embed_files.
string(REPLACE "|" ";" FILES "${FILES}")
file(WRITE ${DIRECTORY}/${SYMBOL}.h "#pragma once
#include <cstddef>
#include <string_view>
namespace ascend_fuse::embedded {
#ifndef ASCEND_FUSE_EMBEDDED_FILE
#define ASCEND_FUSE_EMBEDDED_FILE
struct File {
  std::string_view path;
  std::string_view text;
};
#endif
extern const File ${SYMBOL}[];
extern const size_t ${SYMBOL}_count;
}  // namespace ascend_fuse::embedded
")
set(text "#include \"embedded/${SYMBOL}.h\"\nnamespace ascend_fuse::embedded {\nconst File ${SYMBOL}[] = {\n")
list(LENGTH FILES count)
foreach(file IN LISTS FILES)
  set(from ${ROOT}/${file})
  if(MESSAGE)
    set(from ${DIRECTORY}/${SYMBOL}.binpb)
    execute_process(COMMAND ${PROTOC} --encode=${MESSAGE} -I ${ROOT} ${ROOT}/${PROTO} INPUT_FILE ${ROOT}/${file}
                    OUTPUT_FILE ${from} RESULT_VARIABLE failed)
    if(failed)
      message(FATAL_ERROR "${file} is no ${MESSAGE} of ${PROTO}")
    endif()
  endif()
  file(READ ${from} hex HEX)
  string(LENGTH "${hex}" length)
  math(EXPR size "${length} / 2")
  # String literals of at most 64 KB each would be needed for portability; g++ and clang take any length.
  string(REGEX REPLACE "(..)" "\\\\x\\1" escaped "${hex}")
  string(APPEND text "    {\"${file}\", {\"${escaped}\", ${size}}},\n")
endforeach()
string(APPEND text "    {\"\", \"\"},\n};\nconst size_t ${SYMBOL}_count = ${count};\n}  // namespace ascend_fuse::embedded\n")
file(WRITE ${DIRECTORY}/${SYMBOL}.cc "${text}")
