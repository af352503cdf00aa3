// SPDX-License-Identifier: Apache-2.0
// Constants from what inference found out. Integers and bools fold whatever made them: they are shapes and
// indices. Floats fold only as the few numbers that shape arithmetic needs (scales of a Resize, a size's
// square root), so that weights stay tensors of their own, with versions.

#include "ops/infer/fold.h"

enum { FLOAT_FOLD_LIMIT = 8 };

/* The content as a tensor, or NULL in *out_tensor if it is not all known. */
static cleave_status_t tensor_of_fact(const cleave_fact_t *fact, cleave_tensor_t **out_tensor,
                                      cleave_error_t *error) {
  int64_t count = cleave_fact_count(fact);
  bool is_float = cleave_dtype_is_float((cleave_dtype_t)fact->dtype);
  *out_tensor = NULL;
  if (fact->elements == NULL || count < 0 || count > (is_float ? FLOAT_FOLD_LIMIT : CLEAVE_ELEMENT_LIMIT)) {
    return CLEAVE_OK;
  }
  for (int64_t k = 0; k < count; k++) {
    if (fact->elements[k].kind != CLEAVE_ELEMENT_INT && fact->elements[k].kind != CLEAVE_ELEMENT_FLOAT) {
      return CLEAVE_OK;
    }
  }
  CLEAVE_TRY(cleave_tensor_create((cleave_dtype_t)fact->dtype, fact->rank, fact->dims, out_tensor, error));
  for (int64_t k = 0; k < count; k++) {
    const cleave_element_t *element = &fact->elements[k];
    if (fact->dtype == CLEAVE_DTYPE_I64) { /* a double would not hold them all */
      ((int64_t *)(*out_tensor)->data)[k] = element->i;
    } else {
      cleave_tensor_set_float(*out_tensor, k,
                              element->kind == CLEAVE_ELEMENT_INT ? (double)element->i : element->f);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t fold_value(cleave_graph_t *graph, cleave_value_t value, const cleave_fact_t *fact,
                                  uint32_t *count, cleave_error_t *error) {
  cleave_tensor_t *tensor = NULL;
  if (cleave_graph_value(graph, value)->use_count == 0) {
    return CLEAVE_OK;
  }
  if (fact->tensor != NULL) { /* a Constant node */
    tensor = cleave_tensor_retain((cleave_tensor_t *)(uintptr_t)fact->tensor);
  } else {
    CLEAVE_TRY(tensor_of_fact(fact, &tensor, error));
  }
  if (tensor == NULL) {
    return CLEAVE_OK;
  }
  cleave_status_t status = cleave_graph_replace_with_constant(graph, value, tensor, error);
  cleave_tensor_release(tensor);
  *count += status == CLEAVE_OK ? 1 : 0;
  return status;
}

cleave_status_t cleave_fold_facts(cleave_graph_t *graph, const cleave_node_t *order,
                                  const cleave_fact_t *facts, uint32_t *out_count, cleave_error_t *error) {
  *out_count = 0;
  for (size_t k = 0; cleave_node_exists(order[k]); k++) {
    cleave_node_t node = order[k];
    for (uint32_t o = 0; o < cleave_node_output_count(graph, node); o++) {
      cleave_value_t value = cleave_node_output(graph, node, o);
      CLEAVE_TRY(fold_value(graph, value, &facts[value.index], out_count, error));
    }
  }
  return *out_count > 0 ? cleave_graph_remove_dead(graph, NULL, error) : CLEAVE_OK;
}
