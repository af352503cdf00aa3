// SPDX-License-Identifier: Apache-2.0
/*
 * Packed weights of a program as bytes, for later processes. Compiling is deterministic, so weights are known
 * by their place in the order in which they are packed, together with what they are packed from and to.
 *
 *   bytes   what
 *   0-7     "DNNLPACK"
 *   8-11    version of this format: 1
 *   12-15   instruction set that oneDNN uses
 *   16-23   digest of oneDNN's version
 *   24-31   number of constants
 *   32-     three words of 64 bits for each: identity, where it begins, bytes (0: nobody reads it)
 *   ...     the constants, each at a multiple of 64
 */
#ifndef ONEDNN_IMAGE_H
#define ONEDNN_IMAGE_H

#include "onednn/library/support.h"

typedef struct onednn_image_entry {
  uint64_t identity;
  uint64_t offset;
  uint64_t bytes;
} onednn_image_entry_t;

/* An image in memory that is somebody else's. */
typedef struct onednn_image {
  const unsigned char *data;
  const onednn_image_entry_t *entries;
  uint64_t count;
} onednn_image_t;

/* One constant to be written. */
typedef struct onednn_packed {
  uint64_t identity;
  const void *data; /* NULL: nobody reads it */
  size_t bytes;
} onednn_packed_t;

/* CLEAVE_ERROR_UNSUPPORTED if it is of another oneDNN or processor, or not whole. `data` is aligned to 64. */
CLEAVE_MUST_USE cleave_status_t onednn_image_open(const void *data, size_t bytes, onednn_image_t *out,
                                                  cleave_message_t *message);

/* Constant `place` of the order, if it is this one; else NULL. `image` may be NULL. */
const void *onednn_image_find(const onednn_image_t *image, uint64_t place, uint64_t identity, size_t bytes);

CLEAVE_MUST_USE cleave_status_t onednn_image_write(const onednn_packed_t *packed, uint64_t count,
                                                   cleave_status_t (*write)(void *context, const void *data,
                                                                            size_t bytes),
                                                   void *context);

#endif /* ONEDNN_IMAGE_H */
