// SPDX-License-Identifier: Apache-2.0
/*
 * Tensors of a plan: where the values of the region are, in which layout, and memory for results. Each
 * function adds the steps that it takes.
 */
#ifndef ONEDNN_TENSORS_H
#define ONEDNN_TENSORS_H

#include "onednn/plan/plan.h"

/* Finds the value as float32: a copy if it is stored in another type. Constants become plain tensors. */
CLEAVE_MUST_USE cleave_status_t onednn_plan_fetch(onednn_plan_t *plan, uint32_t value, onednn_tensor_t *out);

/* Finds the value in the type in which it is stored. */
CLEAVE_MUST_USE cleave_status_t onednn_plan_stored(onednn_plan_t *plan, uint32_t value, onednn_tensor_t *out);

/* The tensor with elements of a type, in the same layout. */
CLEAVE_MUST_USE cleave_status_t onednn_plan_typed(onednn_plan_t *plan, const onednn_tensor_t *tensor,
                                                  dnnl_data_type_t type, onednn_tensor_t *out);

/* The tensor in this layout: itself, an earlier copy, or a new reorder step (constants: reordered now). */
CLEAVE_MUST_USE cleave_status_t onednn_plan_convert(onednn_plan_t *plan, const onednn_tensor_t *tensor,
                                                    const onednn_layout_t *layout, onednn_tensor_t *out);
/* Source, weights and bias (or NULL) of a primitive, in its layouts: its first arguments, and how many. */
CLEAVE_MUST_USE cleave_status_t onednn_plan_operands(onednn_plan_t *plan,
                                                     const_dnnl_primitive_desc_t description,
                                                     const onednn_tensor_t *const operands[3],
                                                     onednn_argument_t *out, uint32_t *out_count);
CLEAVE_MUST_USE cleave_status_t onednn_plan_plain(onednn_plan_t *plan, const onednn_tensor_t *tensor,
                                                  onednn_tensor_t *out);

/* The tensor under another shape with as many elements: a view if the layout allows it, else of a plain
 * copy. */
CLEAVE_MUST_USE cleave_status_t onednn_plan_reshape(onednn_plan_t *plan, const onednn_tensor_t *tensor,
                                                    const onednn_shape_t *shape, onednn_tensor_t *out);

/* Does the value (or CLEAVE_INDEX_NONE) belong into an output or into the result of a Concat? */
bool onednn_plan_has_place(const onednn_plan_t *plan, uint32_t value);

/* Memory for a result. `value` (or CLEAVE_INDEX_NONE: a temporary) may have a home in an output. */
CLEAVE_MUST_USE cleave_status_t onednn_plan_make(onednn_plan_t *plan, uint32_t value,
                                                 const onednn_layout_t *layout, onednn_tensor_t *out);

/* A step that copies, whatever the layouts. */
CLEAVE_MUST_USE cleave_status_t onednn_plan_copy(onednn_plan_t *plan, const onednn_tensor_t *from,
                                                 const onednn_tensor_t *to);

/* The layout that the readers of `value` prefer: plain, or with the axes in an order. */
onednn_layout_t onednn_plan_wanted(const onednn_plan_t *plan, uint32_t value);

/* May the current kernel write over the tensor? Then onednn_plan_overwrite says that it will. */
bool onednn_plan_is_free(const onednn_plan_t *plan, const onednn_tensor_t *tensor);
void onednn_plan_overwrite(onednn_plan_t *plan, const onednn_tensor_t *tensor);

/* The tensor is the value from now on. Copies it if the value is an output that lives elsewhere. */
CLEAVE_MUST_USE cleave_status_t onednn_plan_bind(onednn_plan_t *plan, uint32_t value,
                                                 const onednn_tensor_t *tensor);

#endif /* ONEDNN_TENSORS_H */
