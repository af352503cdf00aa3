// SPDX-License-Identifier: Apache-2.0
/*
 * Weights of Winograd convolutions. oneDNN's own reorder makes them number by number and writes all of them
 * twice, which was most of compiling ResNet-50. This one makes 16 channels at a time, in the same order of
 * operations: the numbers are oneDNN's to the bit, in a tenth of the time. What it does not know is left to
 * oneDNN.
 */
#ifndef ONEDNN_WINOGRAD_H
#define ONEDNN_WINOGRAD_H

#include "onednn/library/layout.h"

/* Are these plain weights of 3x3 windows [outputs, inputs, 3, 3], and a layout for Winograd's algorithm that
 * is known here: one of oneDNN's, or that of kernels/winograd (onednn_layout_panels of [outputs, 16 or 36,
 * inputs])? */
bool onednn_winograd_packs(const onednn_layout_t *plain, const onednn_layout_t *packed);

/* Writes what belongs to the outputs [first, end) into `out`, which is in the layout `packed`, on at most
 * `threads` threads of the host. `first` is a multiple of 16, and so is `end` unless it is their number.
 * `weights` are those of these outputs, [outputs, inputs, 3, 3]. */
void onednn_winograd_pack(const cleave_host_t *host, int32_t threads, const onednn_layout_t *packed,
                          const int64_t outputs[2], const float *weights, float *out);

#endif /* ONEDNN_WINOGRAD_H */
