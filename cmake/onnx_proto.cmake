# C++ classes for ONNX files: protobuf's compiler run on the onnx.proto that the `onnx` package of
# requirements/build.txt carries. The file is not ours to commit; WEIGHTMILL_ONNX_PROTO names another copy.
set(WEIGHTMILL_ONNX_PROTO "" CACHE FILEPATH "onnx.proto of the onnx package; empty: look for it in the Python environment")

# Sets `result` to the onnx.proto of the Python environment that builds us: that of the caller, else .venv, else the
# system's.
function(weightmill_find_onnx_proto result)
  foreach(python IN ITEMS "${Python_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/.venv/bin/python" python3)
    if(NOT python)
      continue()
    endif()
    execute_process(
      COMMAND "${python}" -c
              "import importlib.util as u; print(u.find_spec('onnx').submodule_search_locations[0] + '/onnx.proto')"
      OUTPUT_VARIABLE proto OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    if(NOT failed AND EXISTS "${proto}")
      set(${result} "${proto}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "onnx.proto not found: run `make setup`, or pass -DWEIGHTMILL_ONNX_PROTO=…/onnx.proto")
endfunction()

# Makes the static library `weightmill_onnx_proto` with the header <onnx_file.pb.h>.
function(weightmill_onnx_proto)
  find_package(Protobuf 3.21 REQUIRED)
  set(proto "${WEIGHTMILL_ONNX_PROTO}")
  if(NOT proto)
    weightmill_find_onnx_proto(proto)
  endif()
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/onnx_proto")
  # A package name of our own: another ONNX reader may live in the same process, and two onnx::ModelProto must not meet.
  file(READ "${proto}" text)
  string(REPLACE "package onnx;" "package weightmill.onnx_file;" text "${text}")
  file(CONFIGURE OUTPUT "${folder}/onnx_file.proto" CONTENT "${text}" @ONLY)
  add_custom_command(
    OUTPUT "${folder}/onnx_file.pb.cc" "${folder}/onnx_file.pb.h"
    COMMAND protobuf::protoc "--cpp_out=${folder}" "--proto_path=${folder}" "${folder}/onnx_file.proto"
    DEPENDS "${folder}/onnx_file.proto" VERBATIM)
  add_library(weightmill_onnx_proto STATIC "${folder}/onnx_file.pb.cc")
  target_include_directories(weightmill_onnx_proto SYSTEM PUBLIC "${folder}")
  target_link_libraries(weightmill_onnx_proto PUBLIC protobuf::libprotobuf-lite)
endfunction()
