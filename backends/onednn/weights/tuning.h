// SPDX-License-Identifier: Apache-2.0
/*
 * Forms of the kernels of a region as they were measured, as bytes: the last constant of an image (image.h),
 * so that later processes need not measure.
 */
#ifndef ONEDNN_WEIGHTS_TUNING_H
#define ONEDNN_WEIGHTS_TUNING_H

#include "onednn/library/form.h"
#include "onednn/weights/image.h"

/* The tuning as content of an image, which borrows it. */
onednn_packed_t onednn_tuning_packed(const onednn_tuning_t *tuning);

/* The tuning in an image, which may be NULL; or NULL if it has none, or one that makes no sense. */
const onednn_tuning_t *onednn_tuning_find(const onednn_image_t *image);

/* Bytes of a tuning with this number of kernels. */
size_t onednn_tuning_bytes(uint32_t kernel_count);

/* Describes what was tuned, in one line. */
void onednn_tuning_text(const onednn_tuning_t *tuning, char *text, size_t size);

#endif /* ONEDNN_WEIGHTS_TUNING_H */
