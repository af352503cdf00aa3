// SPDX-License-Identifier: Apache-2.0
/*
 * A copy of a region view that outlives the call it was given to. Constants keep pointing at the host's data,
 * which stays until the program is unloaded.
 */
#ifndef ONEDNN_COPY_H
#define ONEDNN_COPY_H

#include "onednn/library/support.h"

/* All of the view that this backend reads, in `arena`; NULL when memory is out. Tensors in attributes, which
 * no operator of oneDNN has, are left out. */
const cleave_region_view_t *onednn_copy_region(const cleave_region_view_t *region, kernel_arena_t *arena);

#endif /* ONEDNN_COPY_H */
