// SPDX-License-Identifier: Apache-2.0
// Memory over the whole run. A value lives from the step that computes it to the last step that reads it;
// values that never live together share bytes. Steps are walked in order: an output takes over the block of
// an input that dies there, if the program says that it may; otherwise a free range (runtime/lanes/space.h).
// Outputs of the graph have a buffer of their own. Every place, the host and each device, has one block of
// memory, planned by itself. If steps run side by side, a value has an end in each lane that uses it, and
// only steps that start behind all of them may use its bytes.

#include "runtime/build/session_internal.h"
#include "runtime/lanes/space.h"

enum { ALIGNMENT = 64 };

static size_t round_up(size_t bytes) {
  return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* ---- lifetimes and blocks ---- */

/* The last step of each lane that uses a root slot, and a block. There are never more blocks than slots. Both
 * are NULL without lanes. */
typedef struct ends {
  uint32_t lane_count;
  uint32_t *slots;
  uint32_t *blocks;
} ends_t;

static uint32_t *ends_of(const ends_t *ends, uint32_t *rows, uint32_t index) {
  return ends->lane_count == 0 ? NULL : rows + (size_t)index * ends->lane_count;
}

static void use_slot(cleave_session_t *session, const ends_t *ends, uint32_t slot, uint32_t step) {
  uint32_t root = session->slots.items[slot].root;
  session->slots.items[root].last = step;
  if (ends->lane_count > 0) {
    ends_of(ends, ends->slots, root)[session->steps.items[step].lane] = step + 1;
  }
}

static void find_last_uses(cleave_session_t *session, const ends_t *ends) {
  for (uint32_t s = 0; s < session->steps.count; s++) {
    const cleave_step_t *step = &session->steps.items[s];
    for (uint32_t k = 0; k < step->output_count; k++) {
      use_slot(session, ends, step->output_slots[k], s);
    }
    for (uint32_t k = 0; k < step->input_count; k++) {
      use_slot(session, ends, step->input_slots[k], s);
    }
  }
  cleave_session_extend_lifetimes(session);
}

/* Nothing but the step itself uses the block when it runs, or later. */
static bool ends_with(const cleave_session_t *session, const ends_t *ends, uint32_t block, uint32_t index) {
  const uint32_t *known = cleave_session_known(session, index);
  const uint32_t *rows = ends_of(ends, ends->blocks, block);
  bool does = session->blocks.items[block].last == index;
  for (uint32_t lane = 0; lane < ends->lane_count; lane++) {
    does = does && (rows[lane] <= known[lane] || rows[lane] == index + 1);
  }
  return does;
}

/* The block of input `input`, if output `output` may take it over at step `index`: it is planned memory that
 * nothing reads later, of the same size, and that no other input of the step lies in. */
static uint32_t find_block_to_take(const cleave_session_t *session, const ends_t *ends, uint32_t index,
                                   cleave_inplace_pair_t pair) {
  const cleave_slot_t *slots = session->slots.items;
  const cleave_step_t *step = &session->steps.items[index];
  if (pair.input >= step->input_count || pair.output >= step->output_count) {
    return CLEAVE_INDEX_NONE;
  }
  const cleave_slot_t *from = &slots[slots[step->input_slots[pair.input]].root];
  const cleave_slot_t *to = &slots[step->output_slots[pair.output]];
  if (from->kind != CLEAVE_SLOT_BLOCK || to->kind != CLEAVE_SLOT_BLOCK || to->block != CLEAVE_INDEX_NONE ||
      from->bytes != to->bytes || from->bytes == 0 || from->place != to->place) {
    return CLEAVE_INDEX_NONE;
  }
  const cleave_block_t *block = &session->blocks.items[from->block];
  if (!ends_with(session, ends, from->block, index) || block->is_output || block->first == index) {
    return CLEAVE_INDEX_NONE;
  }
  for (uint32_t k = 0; k < step->input_count; k++) {
    if (k != pair.input && slots[slots[step->input_slots[k]].root].block == from->block) {
      return CLEAVE_INDEX_NONE;
    }
  }
  return from->block;
}

static void add_ends(const ends_t *ends, uint32_t block, uint32_t slot) {
  uint32_t *rows = ends_of(ends, ends->blocks, block);
  const uint32_t *others = ends_of(ends, ends->slots, slot);
  for (uint32_t lane = 0; lane < ends->lane_count; lane++) {
    rows[lane] = others[lane] > rows[lane] ? others[lane] : rows[lane];
  }
}

/* A taken block lives on with the output, and must not be taken twice at this step. */
static void take_block(cleave_session_t *session, uint32_t index, uint32_t block_index, cleave_slot_t *slot) {
  cleave_block_t *block = &session->blocks.items[block_index];
  slot->block = block_index;
  block->slots++;
  block->is_output = slot->is_output;
  block->last = slot->last > index ? slot->last : index;
}

static cleave_status_t make_blocks(cleave_session_t *session, const ends_t *ends, cleave_error_t *error) {
  cleave_slot_t *slots = session->slots.items;
  for (uint32_t s = 0; s < session->steps.count; s++) {
    const cleave_step_t *step = &session->steps.items[s];
    /* A backend that fails half-way must leave whole what `cpu` then reads. */
    bool is_safe = step->target == 0 || !session->fallback;
    const cleave_program_info_t *info = step->program == NULL || !is_safe ? NULL : step->program->info;
    for (uint32_t k = 0; info != NULL && k < info->inplace_count; k++) {
      cleave_inplace_pair_t pair = info->inplace[k];
      uint32_t block = find_block_to_take(session, ends, s, pair);
      bool is_free = block != CLEAVE_INDEX_NONE;
      for (uint32_t o = 0; o < step->output_count && is_free; o++) {
        is_free = slots[step->output_slots[o]].block != block;
      }
      if (is_free) {
        take_block(session, s, block, &slots[step->output_slots[pair.output]]);
        add_ends(ends, block, step->output_slots[pair.output]);
      }
    }
    for (uint32_t k = 0; k < step->output_count; k++) {
      cleave_slot_t *slot = &slots[step->output_slots[k]];
      if (slot->kind == CLEAVE_SLOT_BLOCK && slot->block == CLEAVE_INDEX_NONE) {
        slot->block = (uint32_t)session->blocks.count;
        cleave_block_t block = {.place = slot->place,
                                .bytes = slot->bytes,
                                .first = s,
                                .last = slot->last,
                                .is_output = slot->is_output,
                                .patch = CLEAVE_INDEX_NONE,
                                .slots = 1};
        CLEAVE_ARRAY_PUSH(&session->blocks, block, error);
        add_ends(ends, slot->block, step->output_slots[k]);
      }
      if (slot->kind == CLEAVE_SLOT_BLOCK && !slot->is_output) {
        size_t *unshared = slot->place == CLEAVE_PLACE_HOST
                               ? &session->statistics.unshared_bytes
                               : &session->targets.items[slot->place].statistics.unshared_bytes;
        *unshared += round_up(slot->bytes);
      }
    }
  }
  return CLEAVE_OK;
}

/* ---- placement ---- */

/* The state of placing blocks in one place, with chains of the blocks that die at the same step. */
typedef struct placement {
  const ends_t *ends;
  uint32_t place;
  cleave_space_t space;
  size_t outputs_end;
  uint32_t *first_dying; /* by step; the last: with the run */
  uint32_t *next_dying;  /* by block */
} placement_t;

static cleave_status_t place_block(cleave_session_t *session, placement_t *placement, uint32_t index,
                                   cleave_error_t *error) {
  cleave_block_t *block = &session->blocks.items[index];
  size_t bytes = round_up(block->bytes);
  size_t limit = SIZE_MAX / 4;
  if (placement->space.end > limit || placement->outputs_end > limit) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "the values of a run need too much memory");
  }
  if (block->is_output) {
    block->offset = placement->outputs_end;
    placement->outputs_end += bytes;
  } else if (bytes > 0) {
    block->offset = cleave_space_take(&placement->space, bytes, cleave_session_known(session, block->first));
    placement->next_dying[index] = placement->first_dying[block->last];
    placement->first_dying[block->last] = index;
  }
  return CLEAVE_OK;
}

/* Blocks are in the order of their first step. */
static cleave_status_t place_blocks(cleave_session_t *session, placement_t *placement,
                                    cleave_error_t *error) {
  uint32_t next = 0;
  for (uint32_t s = 0; s <= session->steps.count; s++) {
    placement->first_dying[s] = CLEAVE_INDEX_NONE;
  }
  for (uint32_t s = 0; s < session->steps.count; s++) {
    for (; next < session->blocks.count && session->blocks.items[next].first == s; next++) {
      if (session->blocks.items[next].place == placement->place) {
        CLEAVE_TRY(place_block(session, placement, next, error));
      }
    }
    for (uint32_t k = placement->first_dying[s]; k != CLEAVE_INDEX_NONE; k = placement->next_dying[k]) {
      const cleave_block_t *block = &session->blocks.items[k];
      CLEAVE_TRY(cleave_space_give(&placement->space, block->offset, round_up(block->bytes),
                                   ends_of(placement->ends, placement->ends->blocks, k), error));
    }
  }
  return CLEAVE_OK;
}

static bool is_place(const cleave_session_t *session, uint32_t target) {
  return target == CLEAVE_PLACE_HOST || session->targets.items[target].place == target;
}

static cleave_status_t place(cleave_session_t *session, const ends_t *ends, cleave_error_t *error) {
  placement_t placement = {
      .ends = ends,
      .space = {.lane_count = ends->lane_count},
      .first_dying = cleave_allocate(session->steps.count + 1, sizeof *placement.first_dying),
      .next_dying = cleave_allocate(session->blocks.count, sizeof *placement.next_dying)};
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY_MEMORY_CLEANUP(placement.first_dying != NULL && placement.next_dying != NULL, error);
  for (uint32_t k = 0; k < session->targets.count; k++) {
    if (!is_place(session, k)) {
      continue;
    }
    placement.place = k;
    placement.space.end = 0;
    placement.space.holes.count = 0;
    CLEAVE_TRY_CLEANUP(place_blocks(session, &placement, error));
    if (k == CLEAVE_PLACE_HOST) {
      session->statistics.values_bytes = placement.space.end;
    } else {
      session->targets.items[k].statistics.values_bytes = placement.space.end;
    }
  }
  session->statistics.outputs_bytes = placement.outputs_end;
cleanup:
  cleave_array_free(&placement.space.holes);
  cleave_free(placement.first_dying);
  cleave_free(placement.next_dying);
  return status;
}

/* ---- memory and pointers ---- */

static void *block_memory(const cleave_session_t *session, const cleave_block_t *block) {
  if (block->place != CLEAVE_PLACE_HOST) {
    return session->targets.items[block->place].memory_blocks + block->offset;
  }
  return (block->is_output ? session->output_memory : session->memory) + block->offset;
}

static void fill_views(cleave_session_t *session) {
  cleave_slot_t *slots = session->slots.items;
  for (uint32_t k = 0; k < session->slots.count; k++) {
    cleave_slot_t *slot = &slots[k];
    slot->view.dims = slot->dims;
    if (slot->kind == CLEAVE_SLOT_BLOCK) {
      slot->view.data = block_memory(session, &session->blocks.items[slot->block]);
    }
  }
  for (uint32_t k = 0; k < session->slots.count; k++) {
    if (slots[k].kind == CLEAVE_SLOT_ALIAS) {
      slots[k].view.data = slots[slots[k].root].view.data;
    }
  }
}

/* The chain of views that have to follow when the memory of the slot becomes another one: that of a user's
 * input, or of an output. NULL: it never does. */
static uint32_t *find_patches(cleave_session_t *session, uint32_t slot) {
  uint32_t root = session->slots.items[slot].root;
  const cleave_slot_t *owner = &session->slots.items[root];
  if (owner->kind == CLEAVE_SLOT_USER) {
    return &session->slot_patch[root];
  }
  if (owner->kind == CLEAVE_SLOT_BLOCK && session->blocks.items[owner->block].is_output) {
    return &session->blocks.items[owner->block].patch;
  }
  return NULL;
}

static cleave_status_t add_patch(cleave_session_t *session, uint32_t slot, cleave_tensor_view_t *view,
                                 cleave_error_t *error) {
  uint32_t *first = find_patches(session, slot);
  if (first == NULL) {
    return CLEAVE_OK;
  }
  cleave_patch_t patch = {.next = *first, .slot = slot, .view = view};
  CLEAVE_ARRAY_PUSH(&session->patches, patch, error);
  *first = (uint32_t)session->patches.count - 1;
  return CLEAVE_OK;
}

static void *workspace_memory(const cleave_session_t *session, const cleave_step_t *step) {
  const cleave_target_t *target = &session->targets.items[step->target];
  size_t offset = session->lanes == NULL ? 0 : session->lanes->workspaces[step->lane];
  return offset + (target->place == CLEAVE_PLACE_HOST
                       ? session->memory + session->statistics.values_bytes
                       : target->memory_blocks + target->statistics.values_bytes);
}

static cleave_status_t fill_step(cleave_session_t *session, cleave_step_t *step, cleave_error_t *error) {
  step->inputs = cleave_arena_allocate(&session->arena, step->input_count, sizeof *step->inputs);
  step->outputs = cleave_arena_allocate(&session->arena, step->output_count, sizeof *step->outputs);
  CLEAVE_TRY_MEMORY(step->inputs != NULL && step->outputs != NULL, error);
  for (uint32_t k = 0; k < step->input_count; k++) {
    step->inputs[k] = session->slots.items[step->input_slots[k]].view;
    CLEAVE_TRY(add_patch(session, step->input_slots[k], &step->inputs[k], error));
  }
  for (uint32_t k = 0; k < step->output_count; k++) {
    step->outputs[k] = session->slots.items[step->output_slots[k]].view;
    CLEAVE_TRY(add_patch(session, step->output_slots[k], &step->outputs[k], error));
  }
  const cleave_target_t *target = &session->targets.items[step->target];
  step->args = (cleave_run_args_t){.size = sizeof step->args,
                                   .inputs = step->inputs,
                                   .outputs = step->outputs,
                                   .workspace = workspace_memory(session, step),
                                   .stream = step->kind == CLEAVE_STEP_DYNAMIC ? NULL : target->stream};
  return CLEAVE_OK;
}

static cleave_status_t fill_steps(cleave_session_t *session, cleave_error_t *error) {
  session->slot_patch = cleave_arena_allocate(&session->arena, session->slots.count, sizeof(uint32_t));
  CLEAVE_TRY_MEMORY(session->slot_patch, error);
  for (size_t k = 0; k < session->slots.count; k++) {
    session->slot_patch[k] = CLEAVE_INDEX_NONE;
  }
  fill_views(session);
  for (size_t s = 0; s < session->steps.count; s++) {
    CLEAVE_TRY(fill_step(session, &session->steps.items[s], error));
  }
  /* The user reads outputs by the views of their slots, which no step has. */
  for (uint32_t k = 0; k < session->output_count; k++) {
    uint32_t slot = session->outputs[k].slot;
    CLEAVE_TRY(add_patch(session, slot, &session->slots.items[slot].view, error));
  }
  return CLEAVE_OK;
}

static void follow_patches(cleave_session_t *session, uint32_t first, const void *memory) {
  for (uint32_t k = first; k != CLEAVE_INDEX_NONE; k = session->patches.items[k].next) {
    const cleave_patch_t *patch = &session->patches.items[k];
    session->slots.items[patch->slot].view.data = memory;
    patch->view->data = memory;
  }
}

void cleave_session_patch(cleave_session_t *session, uint32_t root) {
  follow_patches(session, session->slot_patch[root], session->slots.items[root].view.data);
}

void cleave_session_patch_block(cleave_session_t *session, uint32_t block, void *memory) {
  const cleave_block_t *owner = &session->blocks.items[block];
  follow_patches(session, owner->patch, memory != NULL ? memory : block_memory(session, owner));
}

/* ---- what is to be allocated ---- */

/* Most workspace of any program that runs in this place, in the lane if there are lanes. */
static size_t find_workspace(const cleave_session_t *session, uint32_t place, uint32_t lane) {
  size_t most = 0;
  for (size_t s = 0; s < session->steps.count; s++) {
    const cleave_step_t *step = &session->steps.items[s];
    if (step->kind == CLEAVE_STEP_PROGRAM && session->targets.items[step->target].place == place &&
        (session->lanes == NULL || step->lane == lane)) {
      size_t bytes = step->program->info->workspace_bytes;
      most = bytes > most ? bytes : most;
    }
  }
  return most;
}

/* Room for workspace behind the values of a place: one, or one for each lane. */
static cleave_status_t add_workspace(const cleave_session_t *session, uint32_t place, size_t values_bytes,
                                     size_t *out_workspace, size_t *out_total, cleave_error_t *error) {
  uint32_t lane_count = cleave_session_lane_count(session);
  *out_workspace = 0;
  *out_total = values_bytes;
  for (uint32_t lane = 0; lane == 0 || lane < lane_count; lane++) {
    size_t bytes = find_workspace(session, place, lane);
    if (lane_count > 0 && bytes > 0) {
      session->lanes->workspaces[lane] = *out_workspace;
      bytes = round_up(bytes);
    }
    if (!cleave_size_add(*out_total, bytes, out_total)) {
      return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "the values of a run need too much memory");
    }
    *out_workspace += bytes;
  }
  return CLEAVE_OK;
}

static cleave_status_t allocate_host(cleave_session_t *session, cleave_error_t *error) {
  cleave_session_memory_t *statistics = &session->statistics;
  size_t total = 0;
  CLEAVE_TRY(add_workspace(session, CLEAVE_PLACE_HOST, statistics->values_bytes, &statistics->workspace_bytes,
                           &total, error));
  for (size_t k = 0; k < session->programs.count; k++) {
    statistics->persistent_bytes += session->programs.items[k]->info->persistent_bytes;
  }
  session->memory = cleave_allocate_aligned(total);
  session->output_memory = cleave_allocate_aligned(statistics->outputs_bytes);
  if (session->memory == NULL || session->output_memory == NULL) {
    return cleave_error_set(error, CLEAVE_ERROR_OUT_OF_MEMORY,
                            "no memory left: a run needs %zu byte%s, and %zu for its outputs", total,
                            CLEAVE_PLURAL(total), statistics->outputs_bytes);
  }
  return CLEAVE_OK;
}

/* Copies of constants that single operators read: made once. */
static cleave_status_t copy_constants(cleave_session_t *session, uint32_t place, cleave_error_t *error) {
  cleave_target_t *target = &session->targets.items[place];
  size_t total = 0;
  for (size_t k = 0; k < session->slots.count; k++) {
    const cleave_slot_t *slot = &session->slots.items[k];
    if (slot->kind == CLEAVE_SLOT_CONSTANT && slot->place == place &&
        !cleave_size_add(total, round_up(slot->bytes), &total)) {
      return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "the constants on %s need too much memory",
                              target->label);
    }
  }
  target->statistics.constants_bytes = total;
  if (total == 0) {
    return CLEAVE_OK;
  }
  void *memory = NULL;
  CLEAVE_TRY(cleave_device_alloc(target->device, total, &memory, error));
  target->constants = memory;
  size_t offset = 0;
  for (size_t k = 0; k < session->slots.count; k++) {
    cleave_slot_t *slot = &session->slots.items[k];
    if (slot->kind == CLEAVE_SLOT_CONSTANT && slot->place == place) {
      cleave_tensor_view_t from = slot->view;
      slot->view.dims = slot->dims;
      from.dims = slot->dims;
      from.memory = CLEAVE_MEMORY_HOST;
      slot->view.data = target->constants + offset;
      offset += round_up(slot->bytes);
      CLEAVE_TRY(cleave_device_copy(target->device, true, &slot->view, &from, slot->bytes, NULL, error));
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t allocate_device(cleave_session_t *session, uint32_t place, cleave_error_t *error) {
  cleave_target_t *target = &session->targets.items[place];
  cleave_session_device_t *statistics = &target->statistics;
  size_t total = 0;
  void *memory = NULL;
  CLEAVE_TRY(
      add_workspace(session, place, statistics->values_bytes, &statistics->workspace_bytes, &total, error));
  CLEAVE_TRY(cleave_device_alloc(target->device, total, &memory, error));
  target->memory_blocks = memory;
  return copy_constants(session, place, error);
}

static cleave_status_t plan(cleave_session_t *session, cleave_error_t *error) {
  ends_t ends = {.lane_count = cleave_session_lane_count(session)};
  cleave_status_t status = CLEAVE_OK;
  size_t cells = 0;
  if (!cleave_size_multiply(session->slots.count, ends.lane_count, &cells)) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "too many values for %u lanes", ends.lane_count);
  }
  if (ends.lane_count > 0) {
    ends.slots = cleave_allocate_zeroed(cells, sizeof *ends.slots);
    ends.blocks = cleave_allocate_zeroed(cells, sizeof *ends.blocks);
    status = ends.slots == NULL || ends.blocks == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK;
  }
  if (status == CLEAVE_OK) {
    find_last_uses(session, &ends);
    status = make_blocks(session, &ends, error);
  }
  CLEAVE_THEN(status, place(session, &ends, error));
  cleave_free(ends.slots);
  cleave_free(ends.blocks);
  return status;
}

cleave_status_t cleave_session_plan_memory(cleave_session_t *session, cleave_error_t *error) {
  CLEAVE_TRY(plan(session, error));
  CLEAVE_TRY(allocate_host(session, error));
  for (uint32_t k = 1; k < session->targets.count; k++) {
    if (is_place(session, k)) {
      CLEAVE_TRY_OR(allocate_device(session, k, error), session->failed = session->targets.items[k].handle);
    }
  }
  return fill_steps(session, error);
}
