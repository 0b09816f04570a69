# Encodes SOURCE, a message of PROTO in protobuf's text format, into OUTPUT. Run by embed_messages.
file(STRINGS ${SOURCE} line REGEX "^# proto-message: " LIMIT_COUNT 1)
string(REGEX REPLACE "^# proto-message: *" "" message "${line}")
if(NOT message)
  message(FATAL_ERROR "${SOURCE}: no line \"# proto-message: ...\"")
endif()
execute_process(COMMAND ${PROTOC} --proto_path=${ROOT} --encode=${message} --deterministic_output ${PROTO}
                INPUT_FILE ${SOURCE} OUTPUT_FILE ${OUTPUT} WORKING_DIRECTORY ${ROOT}
                RESULT_VARIABLE result ERROR_VARIABLE error)
if(NOT result EQUAL 0)
  file(REMOVE ${OUTPUT})
  message(FATAL_ERROR "${SOURCE}: ${error}")
endif()
