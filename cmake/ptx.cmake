# How CUDA C becomes PTX, for the kernels and for tests that need their device code.

# -fmad=false -lineinfo: contraction is written, never guessed, and a fault has a source line.
set(ASSAY_NVCC_FLAGS -ptx -O3 -fmad=false -lineinfo
    -I${PROJECT_SOURCE_DIR})

# A second build of the same source, with other options for C, need not make the same PTX again.
set(ASSAY_PTX_FROM "" CACHE PATH "A build folder of this source: take the PTX from there")

# assay_ptx(IMAGE SOURCE [ARCH]): a rule that makes the file IMAGE from SOURCE, as seen from the root,
# for ARCH and later; compute_80 if none is named.
function(assay_ptx image source)
    set(arch compute_80)
    if(ARGC GREATER 2)
        set(arch ${ARGV2})
    endif()
    set(tidy ${PROJECT_SOURCE_DIR}/kernels/same_everywhere.cmake)
    if(ASSAY_PTX_FROM)
        file(RELATIVE_PATH name ${CMAKE_BINARY_DIR} ${image})
        add_custom_command(OUTPUT ${image}
            COMMAND ${CMAKE_COMMAND} -E copy ${ASSAY_PTX_FROM}/${name} ${image}
            DEPENDS ${ASSAY_PTX_FROM}/${name} VERBATIM)
        return()
    endif()
    add_custom_command(OUTPUT ${image}
        COMMAND ${ASSAY_NVCC} ${ASSAY_NVCC_FLAGS} -arch=${arch} -MD -MF ${image}.d -MT ${image}
                -o ${image} ${PROJECT_SOURCE_DIR}/${source}
        COMMAND ${CMAKE_COMMAND} -DPTX=${image} -DROOT=${PROJECT_SOURCE_DIR} -P ${tidy}
        DEPENDS ${PROJECT_SOURCE_DIR}/${source} ${tidy}
        DEPFILE ${image}.d
        COMMENT "nvcc ${source}" VERBATIM)
endfunction()
