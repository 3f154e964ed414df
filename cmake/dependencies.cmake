# What Assay is built with besides the C compiler: libraries, and nvcc for the kernels' PTX.

# Modules of pkg-config as imported targets PkgConfig::NAME.
pkg_check_modules(MPFR REQUIRED IMPORTED_TARGET mpfr)
pkg_check_modules(GMP REQUIRED IMPORTED_TARGET gmp)
pkg_check_modules(CYAML REQUIRED IMPORTED_TARGET libcyaml)
pkg_check_modules(YAML REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(MD REQUIRED IMPORTED_TARGET libmd)
pkg_check_modules(MUPARSER REQUIRED IMPORTED_TARGET muparser)
if(ASSAY_PORTABLE)
    # An archive does not say what it needs itself, as a shared library does.
    target_link_libraries(PkgConfig::CYAML INTERFACE PkgConfig::YAML)
    target_link_libraries(PkgConfig::MPFR INTERFACE PkgConfig::GMP)
else()
    pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
    # Arb, the tests' second opinion: inside FLINT from version 3 on, a library of its own before.
    find_library(FLINT flint REQUIRED)
    find_library(FLINT_ARB NAMES flint-arb arb)
    set(ASSAY_ARB ${FLINT})
    if(FLINT_ARB)
        set(ASSAY_ARB ${FLINT_ARB} ${FLINT})
    endif()
endif()

# ./run gives one that works; the last of these folders is where it installs one itself.
find_program(ASSAY_NVCC nvcc
    HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin /opt/cuda/bin /usr/lib/nvidia-cuda-toolkit/bin
          ${PROJECT_SOURCE_DIR}/build/nvcc/cuda/bin
    DOC "NVIDIA's compiler, CUDA 13 or later"
    REQUIRED)
