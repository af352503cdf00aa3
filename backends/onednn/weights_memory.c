// SPDX-License-Identifier: Apache-2.0
// Where packed weights end up: one block after another in memory that asks for large pages. Each block is
// freed as soon as it has been copied, so that hardly more than the weights themselves is in use at a time.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "plan.h"

static const size_t large_page = (size_t)2 << 20;

static bool owns(const onednn_plan_t *plan, const onednn_buffer_t *buffer, uint32_t *block) {
  if (buffer->place != ONEDNN_CONSTANT || buffer->data == NULL) {
    return false;
  }
  for (uint32_t k = 0; k < plan->block_count; k++) {
    if (plan->blocks[k] == buffer->data) {
      *block = k;
      return true;
    }
  }
  return false;
}

// Frees constants that no step reads.
static void drop_unread(onednn_plan_t *plan) {
  for (uint32_t b = 0; b < plan->buffer_count; b++) {
    onednn_buffer_t *buffer = &plan->buffers[b];
    uint32_t block = 0;
    if (buffer->first_step == CLEAVE_INDEX_NONE && owns(plan, buffer, &block)) {
      free(plan->blocks[block]);
      plan->blocks[block] = plan->blocks[--plan->block_count];
      plan->persistent_bytes -= onednn_round_up(buffer->bytes);
      buffer->data = NULL;
    }
  }
}

cleave_status_t onednn_plan_gather(onednn_plan_t *plan) {
  drop_unread(plan);
  if (plan->persistent_bytes < large_page) {
    return CLEAVE_OK;
  }
  size_t bytes = (plan->persistent_bytes + large_page - 1) / large_page * large_page;
  unsigned char *slab = aligned_alloc(large_page, bytes);
  if (slab == NULL) {
    return CLEAVE_OK;  // The blocks serve as well, a little slower.
  }
#ifdef MADV_HUGEPAGE
  (void)madvise(slab, bytes, MADV_HUGEPAGE);
#endif
  size_t used = 0;
  for (uint32_t b = 0; b < plan->buffer_count; b++) {
    onednn_buffer_t *buffer = &plan->buffers[b];
    uint32_t block = 0;
    if (!owns(plan, buffer, &block)) {
      continue;
    }
    memcpy(slab + used, buffer->data, buffer->bytes);
    free(plan->blocks[block]);
    plan->blocks[block] = plan->blocks[--plan->block_count];
    buffer->data = slab + used;
    used += onednn_round_up(buffer->bytes);
  }
  // Every block has gone, so that there is room for the one that holds them all.
  plan->blocks[plan->block_count++] = slab;
  return CLEAVE_OK;
}
