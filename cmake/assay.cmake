# Build rules shared by every folder: one set of options, one way to add a library and a test.

# What all of Assay's host code is compiled with.  -ffp-contract=off: gcc (gnu17) and clang fuse
# a*b+c silently where the target has fma, and then neither the oracle nor the emulator computes
# what its source says.  -UNDEBUG: assert stays on in every build type, a broken invariant must
# never pass a kernel.
add_library(assay_options INTERFACE)
target_compile_definitions(assay_options INTERFACE _GNU_SOURCE ASSAY_VERSION="${PROJECT_VERSION}")
target_compile_options(assay_options INTERFACE
    -std=c17 -UNDEBUG -ffp-contract=off -fno-math-errno -fno-fast-math
    -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef
    -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=
    # A pragma asks to vectorize; clang says so where it cannot, with checks or for an old target.
    $<$<C_COMPILER_ID:Clang>:-Wno-pass-failed>)
target_include_directories(assay_options INTERFACE ${PROJECT_SOURCE_DIR})
target_link_libraries(assay_options INTERFACE m)
if(ASSAY_SANITIZE)
    target_compile_options(assay_options INTERFACE
        -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(assay_options INTERFACE -fsanitize=address,undefined)
endif()
if(ASSAY_FUZZ)
    if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
        message(FATAL_ERROR "ASSAY_FUZZ needs clang (preset fuzz sets it)")
    endif()
    target_compile_options(assay_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# assay_library(NAME SOURCES... LIBS... PRIVATE_LIBS...): a static library with Assay's options.
function(assay_library name)
    cmake_parse_arguments(ARG "" "" "SOURCES;LIBS;PRIVATE_LIBS" ${ARGN})
    add_library(${name} STATIC ${ARG_SOURCES})
    target_link_libraries(${name} PUBLIC assay_options ${ARG_LIBS} PRIVATE ${ARG_PRIVATE_LIBS})
endfunction()

# assay_test(NAME SOURCES... LIBS... LABELS... [ARGS...] [TIMEOUT s]): a test program and its CTest.
# A test program returns 0 when it passed and 77 when it could not run here.
function(assay_test name)
    cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;LIBS;LABELS;ARGS" ${ARGN})
    add_executable(${name} ${ARG_SOURCES})
    target_link_libraries(${name} PRIVATE ${ARG_LIBS})
    set_target_properties(${name} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    add_test(NAME ${name} COMMAND ${name} ${ARG_ARGS})
    if(NOT ARG_TIMEOUT)
        set(ARG_TIMEOUT 120)
    endif()
    if(ASSAY_SANITIZE) # which costs a factor of 2 to 5
        math(EXPR ARG_TIMEOUT "5 * ${ARG_TIMEOUT}")
    endif()
    set_tests_properties(${name} PROPERTIES
        LABELS "${ARG_LABELS}" SKIP_RETURN_CODE 77 TIMEOUT ${ARG_TIMEOUT})
endfunction()

# assay_sampled(TEST...): under the sanitizers the loops of these are shorter, see tests/times.h.  Not
# for a test that demands a worst case or a share: it would have to see as many as ever.
function(assay_sampled)
    if(ASSAY_SANITIZE)
        set_tests_properties(${ARGN} PROPERTIES ENVIRONMENT ASSAY_TEST_MULT=0.15)
    endif()
endfunction()
