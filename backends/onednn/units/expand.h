// SPDX-License-Identifier: Apache-2.0
/*
 * Operators that are several primitives of oneDNN, spelled out before analysis: RMSNormalization, and
 * Attention unless it is a loop of our own (over long sequences or with grouped heads, in float32). The
 * region has nodes, values and fusions in their place. So they get what the same model gets if an exporter
 * spelled them out: transposed and strided operands, post-ops, memory that is shared.
 */
#ifndef ONEDNN_EXPAND_H
#define ONEDNN_EXPAND_H

#include "onednn/library/values.h"

/* Attribute of a Softmax that Attention became: rows of nothing but minus infinity give 0, not NaN. */
#define ONEDNN_MASKED "masked"

typedef struct onednn_expansion {
  const cleave_region_view_t *region; /* the one given, if there is nothing to expand */
  const uint32_t *node_of;            /* per node: the node of the region given that it stands for */
  const uint32_t *fusion_of;          /* per fusion, likewise; CLEAVE_INDEX_NONE: of no fusion there */
  uint32_t given_values;              /* constants from this value on live only as long as the arena */
} onednn_expansion_t;

/* Does the rule of this fusion (or CLEAVE_INDEX_NONE) say so? "kernel": a program of kernels/, whose nodes
 * stay; "fast_math": its functions have fewer digits; "integers": it reads constant integers as weights of
 * float32 data. */
bool onednn_fusion_says(const cleave_region_view_t *region, uint32_t fusion, const char *name);

/* Values of the region given keep their numbers; new ones follow. All memory comes from `arena`. What cannot
 * be spelled out (bool masks, past keys, fewer heads of keys than of queries, unknown head sizes) is
 * CLEAVE_ERROR_UNSUPPORTED with the reason in `message`. Ids of the region have been checked. */
CLEAVE_MUST_USE cleave_status_t onednn_expand(const cleave_region_view_t *region, kernel_arena_t *arena,
                                              cleave_message_t *message, onednn_expansion_t *out);

#endif /* ONEDNN_EXPAND_H */
