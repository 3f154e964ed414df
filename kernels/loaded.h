/* kernels/loaded.h - a kernel whose image is on a device. */
#ifndef KERNELS_LOADED_H
#define KERNELS_LOADED_H

#include "kernels/kernel.h"

struct loaded_kernel {
    const struct kernel *kernel;
    struct device *dev;
    struct dev_image *image;
    unsigned ambiguous;
};

#endif
