// SPDX-License-Identifier: Apache-2.0
/*
 * Units: nodes that become one kernel together, a fusion or a single node. Who reads a value, inside its unit
 * and outside.
 */
#ifndef ONEDNN_UNIT_H
#define ONEDNN_UNIT_H

#include "kernels/lower/lower.h"
#include "onednn/units/expand.h"
#include "onednn/units/kernel.h"

typedef struct onednn_analysis {
  const cleave_region_view_t *given;
  const cleave_region_view_t *region; /* expanded */
  onednn_expansion_t expansion;
  kernel_arena_t *arena;
  kernel_lowerer_t *lowerer; /* of `region` */
  cleave_message_t *message;
  const uint32_t *use_starts; /* value_count + 1 offsets into `uses` */
  const uint32_t *uses;       /* nodes, one entry per input slot */
  const uint32_t *unit_of;    /* per node: index of its fusion, or fusion_count + node */
  uint32_t *kernel_of;        /* per unit: its kernel; CLEAVE_INDEX_NONE for one without nodes */
  uint32_t kernel_count;
  onednn_kernel_t *kernels; /* in an order in which they can run */
} onednn_analysis_t;

/* Nodes that belong together: one fusion, or one node. */
typedef struct onednn_unit {
  onednn_analysis_t *analysis;
  uint32_t id; /* as in unit_of */
  uint32_t fusion;
  const uint32_t *nodes; /* in topological order */
  uint32_t count;
  bool *taken; /* per entry of `nodes`: part of the kernel already */
} onednn_unit_t;

/* Number of input slots that read the value. */
uint32_t onednn_use_count(const onednn_analysis_t *analysis, uint32_t value);

/* Entry of unit->nodes that holds `node`, or CLEAVE_INDEX_NONE. */
uint32_t onednn_unit_find(const onednn_unit_t *unit, uint32_t node);

/* Is the value read outside the unit, or an output of the region? */
bool onednn_unit_leaks(const onednn_unit_t *unit, uint32_t value);

/* Does the node only tell how numbers from outside of the unit are stored: in a fusion, DequantizeLinear,
 * UnpackBits, or Cast of weights of float16 or bfloat16? */
bool onednn_unit_borrows(const onednn_unit_t *unit, const cleave_node_view_t *node);

/* Is the node such a Cast, to float32; an UnpackBits? */
bool onednn_casts_weights(const cleave_region_view_t *region, const cleave_node_view_t *node);
bool onednn_unpacks(const cleave_node_view_t *node);

/* Is the value made by a node of the unit, other than those? */
bool onednn_unit_makes(const onednn_unit_t *unit, uint32_t value);

#endif /* ONEDNN_UNIT_H */
