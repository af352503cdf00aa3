// SPDX-License-Identifier: Apache-2.0
/*
 * Weights in panels of 16 outputs (onednn_layout_panels). oneDNN has only its slow reorder for them.
 */
#ifndef ONEDNN_PANELS_H
#define ONEDNN_PANELS_H

#include "onednn/library/layout.h"

/* Are these float32 weights of rank 3 without blocks, and panels of them? */
bool onednn_panels_pack_from(const onednn_layout_t *weights, const onednn_layout_t *panels);

/* Writes all of `out`, zeros behind the last output too, on at most `threads` threads of the host. `from` may
 * have any alignment. */
void onednn_panels_pack(const cleave_host_t *host, int32_t threads, const onednn_layout_t *weights,
                        const void *from, float *out);

#endif /* ONEDNN_PANELS_H */
