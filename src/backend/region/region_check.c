// SPDX-License-Identifier: Apache-2.0
// What must hold between the parts of a region that was read, each of which is well-formed. After this a
// backend may rely on it as on any view.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "backend/region/region_file.h"
#include "backend/region/view.h"

static cleave_status_t fail(const cleave_region_file_t *region, cleave_error_t *error, const char *format,
                            ...) CLEAVE_PRINTF(3, 4);

static cleave_status_t fail(const cleave_region_file_t *region, cleave_error_t *error, const char *format,
                            ...) {
  char what[384];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "%s: %s", region->place, what);
}

static cleave_status_t check_inputs(const cleave_region_file_t *region, bool *is_there,
                                    cleave_error_t *error) {
  const cleave_region_view_t *view = &region->view;
  for (uint32_t k = 0; k < view->input_count; k++) {
    if (is_there[view->inputs[k]]) {
      return fail(region, error, "inputs[%u]: value %u is listed twice", (unsigned)k,
                  (unsigned)view->inputs[k]);
    }
    is_there[view->inputs[k]] = true;
  }
  for (uint32_t k = 0; k < view->value_count; k++) {
    is_there[k] = is_there[k] || region->is_constant[k];
  }
  return CLEAVE_OK;
}

/* Every value is there before it is read, and made once. */
static cleave_status_t check_nodes(cleave_region_file_t *region, bool *is_there, cleave_error_t *error) {
  const cleave_region_view_t *view = &region->view;
  for (uint32_t n = 0; n < view->node_count; n++) {
    const cleave_node_view_t *node = &region->nodes[n];
    for (uint32_t k = 0; k < node->input_count; k++) {
      if (node->inputs[k] != CLEAVE_INDEX_NONE && !is_there[node->inputs[k]]) {
        return fail(region, error,
                    "nodes[%u].inputs[%u]: value %u is neither an input of the region, nor a constant, nor "
                    "made by an earlier node",
                    (unsigned)n, (unsigned)k, (unsigned)node->inputs[k]);
      }
    }
    for (uint32_t k = 0; k < node->output_count; k++) {
      uint32_t value = node->outputs[k];
      if (value != CLEAVE_INDEX_NONE && is_there[value]) {
        return fail(region, error, "nodes[%u].outputs[%u]: value %u is already made by an earlier node",
                    (unsigned)n, (unsigned)k, (unsigned)value);
      }
      if (value != CLEAVE_INDEX_NONE) {
        is_there[value] = true;
        region->values[value].producer = n;
      }
    }
  }
  for (uint32_t k = 0; k < view->value_count; k++) {
    if (!is_there[k]) {
      return fail(region, error, "values[%u]: neither an input of the region, nor a constant, nor made",
                  (unsigned)k);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t check_outputs(cleave_region_file_t *region, cleave_error_t *error) {
  const cleave_region_view_t *view = &region->view;
  for (uint32_t k = 0; k < view->output_count; k++) {
    cleave_value_view_t *value = &region->values[view->outputs[k]];
    if (value->producer == CLEAVE_INDEX_NONE || value->is_output) {
      return fail(region, error, "outputs[%u]: value %u is %s", (unsigned)k, (unsigned)view->outputs[k],
                  value->is_output ? "there twice" : "not made by a node");
    }
    value->is_output = true;
  }
  return CLEAVE_OK;
}

/* `owner` is per node the fusion whose list has it. */
static cleave_status_t check_fusions(const cleave_region_file_t *region, uint32_t *owner,
                                     cleave_error_t *error) {
  const cleave_region_view_t *view = &region->view;
  memset(owner, 0xff, view->node_count * sizeof *owner);
  for (uint32_t f = 0; f < view->fusion_count; f++) {
    const cleave_fusion_view_t *fusion = &region->fusions[f];
    for (uint32_t k = 0; k < fusion->node_count; k++) {
      if ((k > 0 && fusion->nodes[k - 1] >= fusion->nodes[k]) ||
          owner[fusion->nodes[k]] != CLEAVE_INDEX_NONE) {
        return fail(region, error, "fusions[%u].nodes[%u]: expected ascending nodes of no other fusion",
                    (unsigned)f, (unsigned)k);
      }
      owner[fusion->nodes[k]] = f;
    }
  }
  for (uint32_t n = 0; n < view->node_count; n++) {
    if (region->nodes[n].fusion != owner[n]) {
      return fail(region, error, "nodes[%u].fusion: contradicts the list of fusions", (unsigned)n);
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_region_file_check(cleave_region_file_t *region, uint64_t hash, cleave_error_t *error) {
  cleave_region_view_t *view = &region->view;
  bool *is_there = cleave_allocate_zeroed((size_t)view->value_count + 1, sizeof *is_there);
  uint32_t *owner = cleave_allocate((size_t)view->node_count + 1, sizeof *owner);
  cleave_status_t status = is_there == NULL || owner == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK;
  if (status == CLEAVE_OK && view->node_count == 0) {
    status = fail(region, error, "nodes: a region has at least one");
  }
  CLEAVE_THEN(status, check_inputs(region, is_there, error));
  CLEAVE_THEN(status, check_nodes(region, is_there, error));
  CLEAVE_THEN(status, check_outputs(region, error));
  CLEAVE_THEN(status, check_fusions(region, owner, error));
  cleave_free(is_there);
  cleave_free(owner);
  CLEAVE_TRY(status);
  view->hash = cleave_region_hash(view);
  return view->hash == hash ? CLEAVE_OK
                            : fail(region, error,
                                   "hash: the text says %016" PRIx64 ", its content is %016" PRIx64
                                   ": it was changed, or written by another version",
                                   hash, view->hash);
}

void cleave_region_file_destroy(cleave_region_file_t *region) {
  if (region == NULL) {
    return;
  }
  for (size_t k = 0; k < region->tensor_count; k++) {
    cleave_tensor_release(region->tensors[k]);
  }
  for (size_t k = 0; k < region->others.count; k++) {
    cleave_tensor_release(region->others.items[k]);
  }
  cleave_array_free(&region->others);
  cleave_strings_deinit(&region->symbols);
  cleave_arena_deinit(&region->arena);
  cleave_free(region);
}
