// SPDX-License-Identifier: Apache-2.0
// Steps whose shapes are known only at run time. Output shapes are inferred from the inputs at hand, their
// data included; what even that does not tell (NonZero) the program asks memory for while it runs. Programs
// are kept for the shapes that came up last, and memory only grows. Such steps read and write host memory;
// where their backend has memory of its own, everything is copied there and back around the call.
// Long file: one kind of step, from its shapes to its run.
#include <stdio.h>
#include <string.h>

#include "backend/program/resize.h"
#include "backend/registry/context.h"
#include "backend/registry/extensions.h"
#include "base/hash.h"
#include "ops/infer.h"
#include "runtime/build/session_internal.h"

/* A call at work. What the program sees is `inputs` and `outputs`: the step's own, or their copies on a
 * device. */
typedef struct dynamic_call {
  cleave_session_t *session;
  cleave_step_t *step;
  cleave_target_t *target; /* that runs it */
  cleave_tensor_view_t *inputs;
  uint32_t input_count;
  cleave_tensor_view_t *outputs;
  int64_t (*dims)[CLEAVE_MAX_RANK]; /* of outputs on a device whose shape the program tells */
  const cleave_node_type_t *types;  /* of the node's outputs, inferred */
  cleave_resize_refusal_t refusal;
} dynamic_call_t;

/* Gives an owned slot this shape, and memory for it. */
static cleave_status_t resize_slot(cleave_session_t *session, cleave_slot_t *slot, int32_t rank,
                                   const int64_t *dims) {
  int64_t count = 0;
  size_t bytes = 0;
  if (rank < 0 || rank > CLEAVE_MAX_RANK || !cleave_shape_element_count(rank, dims, &count) ||
      !cleave_size_multiply((size_t)count, cleave_dtype_size(slot->view.dtype), &bytes)) {
    return CLEAVE_ERROR_LIMIT;
  }
  if (bytes > slot->capacity || slot->view.data == NULL) {
    size_t wanted = bytes > SIZE_MAX / 2 ? bytes : bytes + bytes / 4;
    void *memory = cleave_allocate_aligned(wanted);
    if (memory == NULL) {
      return CLEAVE_ERROR_OUT_OF_MEMORY;
    }
    session->statistics.dynamic_bytes += wanted - slot->capacity;
    cleave_free((void *)(uintptr_t)slot->view.data);
    slot->view.data = memory;
    slot->capacity = wanted;
  }
  slot->bytes = bytes;
  slot->view.rank = rank;
  if (rank > 0) {
    memmove(slot->dims, dims, (size_t)rank * sizeof *dims);
  }
  return CLEAVE_OK;
}

/* Memory of the device for an output whose shape the program tells. */
static cleave_status_t resize_staged(const dynamic_call_t *call, const cleave_resize_t *wanted,
                                     cleave_error_t *error) {
  uint32_t output = wanted->output;
  cleave_tensor_view_t *view = &call->outputs[output];
  void *memory = NULL;
  CLEAVE_TRY(
      cleave_stage_get(&call->target->stage, call->input_count + output, wanted->bytes, &memory, error));
  if (wanted->rank > 0) {
    memmove(call->dims[output], wanted->dims, (size_t)wanted->rank * sizeof *wanted->dims);
  }
  view->rank = wanted->rank;
  view->dims = call->dims[output];
  view->data = memory;
  return CLEAVE_OK;
}

/* What inference found for an output of the step, or NULL. */
static const cleave_node_type_t *find_type(const cleave_session_t *session, const cleave_step_t *step,
                                           const cleave_node_type_t *types, uint32_t output) {
  uint32_t input_count = cleave_node_input_count(session->graph, step->node);
  const cleave_node_type_t *found = NULL;
  for (uint32_t port = 0; port < cleave_node_output_count(session->graph, step->node); port++) {
    if (step->port_slots[input_count + port] == step->output_slots[output]) {
      found = &types[port];
    }
  }
  return found;
}

/* Against what the graph says of the value, and what inference finds for these inputs. */
static cleave_status_t check_shape(dynamic_call_t *call, const cleave_slot_t *slot, cleave_resize_t *wanted) {
  const cleave_graph_t *graph = call->session->graph;
  const cleave_value_record_t *record = cleave_graph_value(graph, slot->value);
  const cleave_node_type_t *type = find_type(call->session, call->step, call->types, wanted->output);
  cleave_tensor_view_t known = {.dtype = slot->view.dtype, .rank = record->rank, .dims = record->dims};
  CLEAVE_TRY(cleave_resize_check(wanted, &known, graph->dims, SIZE_MAX, &call->refusal));
  known.rank = type->rank;
  known.dims = type->dims;
  return cleave_resize_check(wanted, &known, graph->dims, SIZE_MAX, &call->refusal);
}

static cleave_status_t resize_output(void *context, uint32_t output, int32_t rank, const int64_t *dims) {
  dynamic_call_t *call = context;
  cleave_slot_t *slot = output >= call->step->output_count
                            ? NULL
                            : &call->session->slots.items[call->step->output_slots[output]];
  if (slot == NULL || slot->kind != CLEAVE_SLOT_OWNED) {
    return cleave_resize_refuse_output(&call->refusal, output);
  }
  cleave_resize_t wanted = {.output = output, .rank = rank, .dims = dims};
  CLEAVE_TRY(check_shape(call, slot, &wanted));
  cleave_error_t reason = CLEAVE_ERROR_INIT;
  cleave_status_t status = CLEAVE_OK;
  if (call->target->place != CLEAVE_PLACE_HOST) {
    status = resize_staged(call, &wanted, &reason);
  } else {
    status = resize_slot(call->session, slot, rank, dims);
    call->outputs[output] = status == CLEAVE_OK ? slot->view : call->outputs[output];
  }
  return status == CLEAVE_OK ? CLEAVE_OK
                             : cleave_resize_refuse(
                                   &call->refusal, status, "output %u: %.400s", (unsigned)output,
                                   reason.status == CLEAVE_OK ? "there is no memory for it" : reason.message);
}

/* Types of the node's inputs, with their data, as inference wants them. */
static cleave_status_t infer_outputs(cleave_session_t *session, const cleave_step_t *step,
                                     cleave_node_type_t **out_outputs, cleave_error_t *error) {
  cleave_arena_t *arena = &session->dynamic_arena;
  uint32_t input_count = cleave_node_input_count(session->graph, step->node);
  uint32_t output_count = cleave_node_output_count(session->graph, step->node);
  cleave_node_type_t *types = cleave_arena_allocate(arena, input_count, sizeof *types);
  cleave_tensor_t *tensors = cleave_arena_allocate(arena, input_count, sizeof *tensors);
  const cleave_node_type_t **inputs = cleave_arena_allocate(arena, input_count, sizeof *inputs);
  cleave_node_type_t *outputs = cleave_arena_allocate(arena, output_count, sizeof *outputs);
  CLEAVE_TRY_MEMORY(types != NULL && tensors != NULL && inputs != NULL && outputs != NULL, error);
  for (uint32_t k = 0; k < input_count; k++) {
    if (step->port_slots[k] == CLEAVE_INDEX_NONE) {
      continue;
    }
    const cleave_slot_t *slot = &session->slots.items[step->port_slots[k]];
    types[k] = (cleave_node_type_t){.dtype = slot->view.dtype, .rank = slot->view.rank};
    tensors[k] = (cleave_tensor_t){.dtype = slot->view.dtype,
                                   .rank = slot->view.rank,
                                   .count = cleave_view_element_count(&slot->view),
                                   .bytes = slot->bytes,
                                   .data = (void *)(uintptr_t)slot->view.data,
                                   .references = 1};
    for (int32_t d = 0; d < slot->view.rank; d++) {
      types[k].dims[d] = slot->dims[d];
      tensors[k].dims[d] = slot->dims[d];
    }
    types[k].tensor = &tensors[k];
    inputs[k] = &types[k];
  }
  for (uint32_t k = 0; k < output_count; k++) {
    outputs[k].rank = -1;
  }
  *out_outputs = outputs;
  return cleave_node_infer(session->graph, step->node, inputs, input_count, outputs, output_count, error);
}

static bool is_known(const cleave_node_type_t *type) {
  int64_t count = 0;
  return cleave_shape_element_count(type->rank, type->dims, &count);
}

/* Output slots get the shapes that were inferred. A slot of planned memory has its shape already. */
static cleave_status_t prepare_outputs(cleave_session_t *session, cleave_step_t *step,
                                       const cleave_node_type_t *types, cleave_error_t *error) {
  for (uint32_t k = 0; k < step->output_count; k++) {
    cleave_slot_t *slot = &session->slots.items[step->output_slots[k]];
    const cleave_node_type_t *type = find_type(session, step, types, k);
    if (type == NULL) {
      return cleave_error_set(error, CLEAVE_ERROR_INTERNAL, "step '%s': output %u has no port", step->name,
                              (unsigned)k);
    }
    if (slot->kind == CLEAVE_SLOT_BLOCK) {
      bool agrees =
          !is_known(type) ||
          (type->rank == slot->view.rank &&
           (type->rank == 0 || memcmp(type->dims, slot->dims, (size_t)type->rank * sizeof(int64_t)) == 0));
      if (!agrees) {
        return cleave_error_set(error, CLEAVE_ERROR_SHAPE,
                                "operator '%s' (node '%s'): output '%s' has another shape than planned",
                                step->op, step->name, cleave_value_name(session->graph, slot->value));
      }
      step->outputs[k] = slot->view;
      continue;
    }
    if (slot->view.dtype == CLEAVE_DTYPE_UNKNOWN) {
      slot->view.dtype = type->dtype;
    }
    if (is_known(type)) {
      cleave_status_t status = resize_slot(session, slot, type->rank, type->dims);
      if (status != CLEAVE_OK) {
        return cleave_error_set(error, status, "operator '%s' (node '%s'): no memory for output '%s'",
                                step->op, step->name, cleave_value_name(session->graph, slot->value));
      }
      step->outputs[k] = slot->view;
    } else {
      step->outputs[k] =
          (cleave_tensor_view_t){.size = sizeof(cleave_tensor_view_t), .dtype = slot->view.dtype, .rank = -1};
    }
  }
  return CLEAVE_OK;
}

static uint64_t hash_view(uint64_t hash, const cleave_tensor_view_t *view) {
  hash = cleave_hash_combine(hash, (uint64_t)(uint32_t)view->dtype << 32 | (uint32_t)view->rank);
  for (int32_t d = 0; d < view->rank; d++) {
    hash = cleave_hash_combine(hash, (uint64_t)view->dims[d]);
  }
  return hash;
}

/* ---- programs ---- */

static bool has_text(const cleave_step_t *step) {
  bool found = false;
  for (uint32_t k = 0; k < step->input_count; k++) {
    found = found || step->inputs[k].dtype == CLEAVE_DTYPE_STRING;
  }
  for (uint32_t k = 0; k < step->output_count; k++) {
    found = found || step->outputs[k].dtype == CLEAVE_DTYPE_STRING;
  }
  return found;
}

/* A program that keeps something between runs is the only one of its step: it is compiled for the graph's
 * types, sizes open, not for those of a run. */
static bool keeps_state(const cleave_session_t *session, const cleave_step_t *step) {
  return cleave_extensions_keep_state(session->graph, &step->node, 1);
}

static cleave_status_t make_view(cleave_session_t *session, const cleave_step_t *step,
                                 const cleave_backend_t *backend, bool is_executor, cleave_view_t *out_view,
                                 cleave_error_t *error) {
  cleave_arena_t *arena = &session->dynamic_arena;
  uint32_t type_count = step->input_count + step->output_count;
  cleave_view_type_t *types = cleave_arena_allocate(arena, type_count, sizeof *types);
  CLEAVE_TRY_MEMORY(types, error);
  const cleave_slot_t *slots = session->slots.items;
  for (uint32_t k = 0; k < step->input_count; k++) {
    types[k] = (cleave_view_type_t){.value = slots[step->input_slots[k]].value, .type = step->inputs[k]};
    types[k].type.data = NULL;
  }
  for (uint32_t k = 0; k < step->output_count; k++) {
    types[step->input_count + k] =
        (cleave_view_type_t){.value = slots[step->output_slots[k]].value, .type = step->outputs[k]};
    types[step->input_count + k].type.data = NULL;
  }
  cleave_view_request_t request = {.name = step->name,
                                   .nodes = &step->node,
                                   .node_count = 1,
                                   .types = types,
                                   .type_count = keeps_state(session, step) ? 0 : type_count,
                                   .takes_sparse = backend->takes_sparse && !is_executor,
                                   .has_constant_inputs = is_executor};
  if (step->region != CLEAVE_INDEX_NONE) {
    const cleave_plan_region_t *region = &session->plan->regions[step->region];
    request.rule = session->plan->rules[region->rule].name;
    request.attributes = region->attributes;
    request.attribute_count = region->attribute_count;
  }
  cleave_view_builder_t builder;
  cleave_view_builder_init(&builder, session->graph);
  cleave_status_t status = cleave_view_build(&builder, &request, arena, out_view, error);
  cleave_view_builder_deinit(&builder);
  return status;
}

/* One way to run the step: on entry->target, by an executor or as a region of one node. *out_status and
 * `message` are the backend's answer. */
static cleave_status_t try_compile(cleave_session_t *session, const cleave_step_t *step, bool is_executor,
                                   cleave_dynamic_program_t *entry, cleave_status_t *out_status,
                                   cleave_message_t *message, cleave_error_t *error) {
  const cleave_target_t *runner = &session->targets.items[entry->target];
  cleave_view_t view;
  CLEAVE_TRY(make_view(session, step, runner->handle->backend, is_executor, &view, error));
  cleave_program_request_t wanted = {.handle = runner->handle,
                                     .view = &view,
                                     .options = &runner->compile_options,
                                     .name = step->name,
                                     .is_executor = is_executor,
                                     .is_private = keeps_state(session, step),
                                     .blobs = session->blobs};
  *out_status = cleave_program_compile(&wanted, &entry->program, message);
  session->loaded_count += *out_status == CLEAVE_OK && entry->program->is_loaded ? 1 : 0;
  return *out_status == CLEAVE_ERROR_OUT_OF_MEMORY
             ? cleave_session_fail_node(session->graph, step->node, runner->label, *out_status, message,
                                        error)
             : CLEAVE_OK;
}

/* The backend of a region's node refuses it with these shapes: said once. */
static cleave_status_t note_refusal(cleave_session_t *session, cleave_step_t *step, const char *reason,
                                    cleave_error_t *error) {
  char note[768];
  if (step->is_refused) {
    return CLEAVE_OK;
  }
  step->is_refused = true;
  (void)snprintf(note, sizeof note, "region '%s': node '%s' runs on %s, not on %s: %.384s",
                 session->plan->regions[step->region].name, step->name,
                 session->targets.items[step->alone].label, session->targets.items[step->target].label,
                 reason[0] == '\0' ? "no reason given" : reason);
  return cleave_session_add_note(session, note, error);
}

static cleave_status_t compile(cleave_session_t *session, cleave_step_t *step,
                               cleave_dynamic_program_t *entry, cleave_error_t *error) {
  const cleave_target_t *target = &session->targets.items[step->target];
  cleave_message_t message = {.text = ""};
  cleave_status_t status = CLEAVE_ERROR_UNSUPPORTED;
  entry->target = step->target;
  if (target->place != CLEAVE_PLACE_HOST && has_text(step)) {
    (void)snprintf(message.text, sizeof message.text, "tensors of strings are not copied to a device");
  } else if (!step->has_failed) {
    if (step->region != CLEAVE_INDEX_NONE && target->handle->backend->imperative != NULL) {
      CLEAVE_TRY(try_compile(session, step, true, entry, &status, &message, error));
    }
    if (status != CLEAVE_OK) {
      CLEAVE_TRY(try_compile(session, step, false, entry, &status, &message, error));
    }
  }
  bool may_move = step->region != CLEAVE_INDEX_NONE && step->target != 0 && !session->strict &&
                  !cleave_session_is_lost(session, step->target);
  if (status != CLEAVE_OK && may_move) {
    CLEAVE_TRY(note_refusal(session, step, message.text, error));
    entry->target = step->alone;
    CLEAVE_TRY(try_compile(session, step, false, entry, &status, &message, error));
  }
  if (status != CLEAVE_OK) {
    const char *label = session->targets.items[may_move ? step->alone : step->target].label;
    return cleave_session_fail_node(session->graph, step->node, label, status, &message, error);
  }
  session->dynamic_program_count++;
  return CLEAVE_OK;
}

/* The program for the shapes at hand: kept from an earlier run, or compiled in place of the one that was not
 * used for the longest time. */
static cleave_status_t get_program(cleave_session_t *session, cleave_step_t *step,
                                   cleave_dynamic_program_t **out_entry, cleave_error_t *error) {
  uint64_t key = CLEAVE_HASH_SEED;
  bool has_shapes = !keeps_state(session, step);
  for (uint32_t k = 0; has_shapes && k < step->input_count; k++) {
    key = hash_view(key, &step->inputs[k]);
  }
  for (uint32_t k = 0; has_shapes && k < step->output_count; k++) {
    key = hash_view(key, &step->outputs[k]);
  }
  cleave_dynamic_program_t *oldest = &step->programs[0];
  for (uint32_t k = 0; k < CLEAVE_DYNAMIC_PROGRAMS; k++) {
    cleave_dynamic_program_t *entry = &step->programs[k];
    if (entry->program != NULL && entry->key == key) {
      entry->used = session->run_number;
      *out_entry = entry;
      return CLEAVE_OK;
    }
    oldest = entry->used < oldest->used ? entry : oldest;
  }
  cleave_program_release(oldest->program);
  *oldest = (cleave_dynamic_program_t){.key = key};
  CLEAVE_TRY(compile(session, step, oldest, error));
  oldest->used = session->run_number;
  *out_entry = oldest;
  return CLEAVE_OK;
}

/* ---- running ---- */

static cleave_status_t get_workspace(cleave_session_t *session, size_t bytes, cleave_error_t *error) {
  if (bytes <= session->dynamic_workspace_bytes && session->dynamic_workspace != NULL) {
    return CLEAVE_OK;
  }
  cleave_free(session->dynamic_workspace);
  session->dynamic_workspace_bytes = 0;
  session->dynamic_workspace = cleave_allocate_aligned(bytes);
  CLEAVE_TRY_MEMORY(session->dynamic_workspace, error);
  session->dynamic_workspace_bytes = bytes;
  return CLEAVE_OK;
}

/* Lists what the program reads and writes. Only executors have constants among their inputs. */
static cleave_status_t prepare_call(dynamic_call_t *call, const cleave_program_t *program,
                                    cleave_error_t *error) {
  cleave_session_t *session = call->session;
  const cleave_step_t *step = call->step;
  cleave_arena_t *arena = &session->dynamic_arena;
  cleave_stage_t *stage = call->target->place == CLEAVE_PLACE_HOST ? NULL : &call->target->stage;
  call->inputs = cleave_arena_allocate(arena, step->input_count, sizeof *call->inputs);
  call->outputs = cleave_arena_allocate(arena, step->output_count, sizeof *call->outputs);
  call->dims = cleave_arena_allocate(arena, step->output_count, sizeof *call->dims);
  CLEAVE_TRY_MEMORY(call->inputs != NULL && call->outputs != NULL && call->dims != NULL, error);
  for (uint32_t k = 0; k < step->input_count; k++) {
    const cleave_slot_t *slot = &session->slots.items[step->input_slots[k]];
    if (slot->kind == CLEAVE_SLOT_CONSTANT && !program->is_executor) {
      continue;
    }
    cleave_tensor_view_t *view = &call->inputs[call->input_count++];
    *view = step->inputs[k];
    if (stage != NULL) {
      CLEAVE_TRY(cleave_stage_in(stage, call->input_count - 1, &step->inputs[k], slot->bytes, view, error));
    }
  }
  for (uint32_t k = 0; k < step->output_count; k++) {
    const cleave_slot_t *slot = &session->slots.items[step->output_slots[k]];
    call->outputs[k] = step->outputs[k];
    if (stage == NULL) {
      continue;
    }
    call->outputs[k].memory = call->target->memory;
    if (step->outputs[k].data != NULL) {
      void *memory = NULL;
      CLEAVE_TRY(cleave_stage_get(stage, call->input_count + k, slot->bytes, &memory, error));
      call->outputs[k].data = memory;
    }
  }
  return CLEAVE_OK;
}

/* Workspace on the device is the buffer behind those of inputs and outputs. */
static cleave_status_t prepare_workspace(dynamic_call_t *call, const cleave_program_t *program,
                                         void **out_workspace, cleave_error_t *error) {
  cleave_session_t *session = call->session;
  size_t bytes = program->info->workspace_bytes;
  if (call->target->place != CLEAVE_PLACE_HOST) {
    return cleave_stage_get(&call->target->stage, call->input_count + call->step->output_count, bytes,
                            out_workspace, error);
  }
  CLEAVE_TRY(get_workspace(session, bytes, error));
  *out_workspace = session->dynamic_workspace;
  return CLEAVE_OK;
}

/* Moves the program's outputs to the slots. */
static cleave_status_t take_outputs(const dynamic_call_t *call, cleave_error_t *error) {
  cleave_session_t *session = call->session;
  const cleave_step_t *step = call->step;
  for (uint32_t k = 0; k < step->output_count; k++) {
    const cleave_tensor_view_t *found = &call->outputs[k];
    cleave_slot_t *slot = &session->slots.items[step->output_slots[k]];
    if (found->data == NULL && cleave_view_element_count(found) != 0) {
      bool was_refused = call->refusal.status != CLEAVE_OK;
      return cleave_error_set(error, CLEAVE_ERROR_BACKEND,
                              "operator '%s' (node '%s'): %s gave no shape for output %u%s%s", step->op,
                              step->name, call->target->label, (unsigned)k, was_refused ? ": " : "",
                              was_refused ? call->refusal.reason.text : "");
    }
    if (call->target->place == CLEAVE_PLACE_HOST) {
      step->outputs[k] = *found;
      continue;
    }
    if (step->outputs[k].data == NULL) {
      cleave_status_t status = resize_slot(session, slot, found->rank, found->dims);
      if (status != CLEAVE_OK) {
        return cleave_error_set(error, status, "operator '%s' (node '%s'): no memory for output '%s'",
                                step->op, step->name, cleave_value_name(session->graph, slot->value));
      }
      step->outputs[k] = slot->view;
    }
    CLEAVE_TRY(
        cleave_device_copy(call->target->device, false, &step->outputs[k], found, slot->bytes, NULL, error));
  }
  return CLEAVE_OK;
}

static void forget_programs(cleave_step_t *step) {
  for (uint32_t k = 0; k < CLEAVE_DYNAMIC_PROGRAMS; k++) {
    cleave_program_release(step->programs[k].program);
    step->programs[k] = (cleave_dynamic_program_t){0};
  }
}

static cleave_status_t run_entry(cleave_session_t *session, cleave_step_t *step,
                                 const cleave_node_type_t *types, const cleave_dynamic_program_t *entry,
                                 cleave_error_t *error) {
  dynamic_call_t call = {
      .session = session, .step = step, .target = &session->targets.items[entry->target], .types = types};
  CLEAVE_TRY(prepare_call(&call, entry->program, error));
  cleave_message_t message = {.text = ""};
  cleave_run_args_t args = {.size = sizeof args,
                            .inputs = call.inputs,
                            .outputs = call.outputs,
                            .resize_output = resize_output,
                            .session = &call,
                            .option_count = (uint32_t)call.target->run_options.count,
                            .options = call.target->run_options.items};
  CLEAVE_TRY(prepare_workspace(&call, entry->program, &args.workspace, error));
  cleave_status_t status = cleave_program_run(entry->program, &args, &message);
  message.text[sizeof message.text - 1] = '\0';
  if (status != CLEAVE_OK) {
    cleave_resize_explain(&call.refusal, status, &message);
    return cleave_session_fail_node(session->graph, step->node, call.target->label, status, &message, error);
  }
  status = take_outputs(&call, error);
  call.target->statistics.dynamic_bytes = call.target->stage.bytes;
  return status;
}

static cleave_status_t run(cleave_session_t *session, cleave_step_t *step, cleave_error_t *error) {
  cleave_node_type_t *types = NULL;
  cleave_dynamic_program_t *entry = NULL;
  cleave_error_t reason = CLEAVE_ERROR_INIT;
  for (uint32_t k = 0; k < step->input_count; k++) {
    step->inputs[k] = session->slots.items[step->input_slots[k]].view;
  }
  CLEAVE_TRY(infer_outputs(session, step, &types, error));
  CLEAVE_TRY(prepare_outputs(session, step, types, error));
  CLEAVE_TRY(get_program(session, step, &entry, error));
  cleave_status_t status = run_entry(session, step, types, entry, &reason);
  bool may_move = step->region != CLEAVE_INDEX_NONE && entry->target == step->target && !step->has_failed;
  if (status != CLEAVE_OK && may_move && cleave_session_falls_back(session, entry->target)) {
    step->has_failed = true;
    cleave_log(cleave_context_log(session->graph->context), CLEAVE_LOG_WARNING, "%s", reason.message);
    CLEAVE_TRY(note_refusal(session, step, reason.message, error));
    forget_programs(step);
    return run(session, step, error); /* the backend is not asked any more */
  }
  return status == CLEAVE_OK ? CLEAVE_OK : cleave_error_take(error, &reason);
}

cleave_status_t cleave_session_run_dynamic(cleave_session_t *session, cleave_step_t *step,
                                           cleave_error_t *error) {
  cleave_status_t status = run(session, step, error);
  cleave_arena_reset(&session->dynamic_arena);
  return status;
}
