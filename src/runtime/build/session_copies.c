// SPDX-License-Identifier: Apache-2.0
// Copies between places, as steps. A value that is computed in one place and read in another gets one slot
// there: from a device to the host it is copied right behind the step that computes it, so that the device
// may go on while the host still waits; to a device right before its first reader. Between two devices it
// goes through the host. Constants need no step: their copies are made with the session.
//
// Steps of a target with a stream are put on it and done later. They touch memory of their device, in order,
// and, if they copy, memory of the host: whoever reads what was copied out waits for it first, and what is
// copied in stays until the host has waited for something behind it. Nothing else can be in conflict.

#include "runtime/build/session_internal.h"

typedef struct copies {
  cleave_session_t *session;
  uint32_t slot_count;   /* before the copies */
  uint32_t *there;       /* by place and slot: the value in that place, or NONE */
  bool *is_read_by_host; /* by root slot: copied out as soon as it is there */
  const char **labels;   /* by target, and by target once more: "copy to mirror:0", "copy from mirror:0" */
  CLEAVE_ARRAY(cleave_step_t) steps;
} copies_t;

/* The place where a step reads and writes. */
static uint32_t step_place(const cleave_session_t *session, const cleave_step_t *step) {
  return step->kind == CLEAVE_STEP_DYNAMIC ? CLEAVE_PLACE_HOST : session->targets.items[step->target].place;
}

/* ---- copy steps ---- */

static cleave_status_t add_copy_step(copies_t *copies, uint32_t from, uint32_t to, cleave_error_t *error) {
  cleave_session_t *session = copies->session;
  const cleave_slot_t *slots = session->slots.items;
  bool to_device = slots[to].place != CLEAVE_PLACE_HOST;
  uint32_t target = to_device ? slots[to].place : slots[from].place;
  uint32_t *ports = cleave_arena_allocate(&session->arena, 2, sizeof *ports);
  const char **label = &copies->labels[(size_t)target * 2 + (to_device ? 0 : 1)];
  if (*label == NULL) {
    *label = cleave_arena_format(&session->arena, "copy %s %s", to_device ? "to" : "from",
                                 session->targets.items[target].label);
  }
  CLEAVE_TRY_MEMORY(ports != NULL && *label != NULL, error);
  ports[0] = from;
  ports[1] = to;
  cleave_step_t step = {.kind = CLEAVE_STEP_COPY,
                        .to_device = to_device,
                        .target = target,
                        .input_count = 1,
                        .output_count = 1,
                        .input_slots = ports,
                        .output_slots = ports + 1,
                        .name = cleave_value_name(session->graph, slots[from].value),
                        .op = *label,
                        .backend = session->targets.items[target].handle->backend->name,
                        .region = CLEAVE_INDEX_NONE,
                        .node = CLEAVE_NODE_NONE,
                        .copied_bytes = slots[from].bytes};
  cleave_session_device_t *statistics = &session->targets.items[target].statistics;
  statistics->copied_to_bytes += to_device ? step.copied_bytes : 0;
  statistics->copied_from_bytes += to_device ? 0 : step.copied_bytes;
  CLEAVE_ARRAY_PUSH(&copies->steps, step, error);
  return CLEAVE_OK;
}

/* A slot like `slot`, in another place. */
static cleave_status_t add_slot(cleave_session_t *session, uint32_t slot, uint32_t place,
                                cleave_slot_kind_t kind, uint32_t *out_slot, cleave_error_t *error) {
  cleave_slot_t copy = session->slots.items[slot];
  *out_slot = (uint32_t)session->slots.count;
  copy.kind = kind;
  copy.place = place;
  copy.root = *out_slot;
  copy.view.memory = session->targets.items[place].memory;
  CLEAVE_ARRAY_PUSH(&session->slots, copy, error);
  return CLEAVE_OK;
}

/* The slot of the same value in another place, copied there if it is not yet. */
static cleave_status_t get_slot(copies_t *copies, uint32_t slot, uint32_t place, uint32_t *out_slot,
                                cleave_error_t *error) {
  cleave_session_t *session = copies->session;
  cleave_slot_t original = session->slots.items[slot];
  *out_slot = slot;
  if (original.place == place) {
    return CLEAVE_OK;
  }
  uint32_t *there = &copies->there[(size_t)place * copies->slot_count + slot];
  if (*there == CLEAVE_INDEX_NONE && original.kind == CLEAVE_SLOT_CONSTANT) {
    CLEAVE_TRY(add_slot(session, slot, place, CLEAVE_SLOT_CONSTANT, there, error));
  } else if (*there == CLEAVE_INDEX_NONE && original.kind == CLEAVE_SLOT_ALIAS) {
    uint32_t root = CLEAVE_INDEX_NONE;
    CLEAVE_TRY(get_slot(copies, original.root, place, &root, error));
    CLEAVE_TRY(add_slot(session, slot, place, CLEAVE_SLOT_ALIAS, there, error));
    session->slots.items[*there].root = root;
  } else if (*there == CLEAVE_INDEX_NONE) {
    uint32_t from = slot;
    if (place != CLEAVE_PLACE_HOST) {
      CLEAVE_TRY(get_slot(copies, slot, CLEAVE_PLACE_HOST, &from, error));
    }
    CLEAVE_TRY(add_slot(session, slot, place, CLEAVE_SLOT_BLOCK, there, error));
    CLEAVE_TRY(add_copy_step(copies, from, *there, error));
  }
  *out_slot = *there;
  return CLEAVE_OK;
}

/* Which values of devices somebody reads elsewhere. */
static void find_readers(copies_t *copies) {
  const cleave_session_t *session = copies->session;
  const cleave_slot_t *slots = session->slots.items;
  for (size_t s = 0; s < session->steps.count; s++) {
    const cleave_step_t *step = &session->steps.items[s];
    uint32_t place = step_place(session, step);
    for (uint32_t k = 0; k < step->input_count; k++) {
      const cleave_slot_t *root = &slots[slots[step->input_slots[k]].root];
      bool is_away = root->place != CLEAVE_PLACE_HOST && root->place != place;
      copies->is_read_by_host[root->root] = copies->is_read_by_host[root->root] || is_away;
    }
  }
  for (uint32_t k = 0; k < session->output_count; k++) {
    const cleave_slot_t *root = &slots[slots[session->outputs[k].slot].root];
    copies->is_read_by_host[root->root] = true;
  }
}

static cleave_status_t add_steps(copies_t *copies, cleave_error_t *error) {
  cleave_session_t *session = copies->session;
  uint32_t unused = CLEAVE_INDEX_NONE;
  for (size_t s = 0; s < session->steps.count; s++) {
    cleave_step_t *step = &session->steps.items[s];
    uint32_t place = step_place(session, step);
    for (uint32_t k = 0; k < step->input_count; k++) {
      CLEAVE_TRY(get_slot(copies, step->input_slots[k], place, &step->input_slots[k], error));
    }
    for (uint32_t k = 0; step->port_slots != NULL && k < step->port_count; k++) {
      if (step->port_slots[k] != CLEAVE_INDEX_NONE) {
        CLEAVE_TRY(get_slot(copies, step->port_slots[k], CLEAVE_PLACE_HOST, &step->port_slots[k], error));
      }
    }
    CLEAVE_ARRAY_PUSH(&copies->steps, *step, error);
    for (uint32_t k = 0; k < step->output_count; k++) {
      if (copies->is_read_by_host[step->output_slots[k]]) {
        CLEAVE_TRY(get_slot(copies, step->output_slots[k], CLEAVE_PLACE_HOST, &unused, error));
      }
    }
  }
  for (uint32_t k = 0; k < session->output_count; k++) {
    uint32_t *slot = &session->outputs[k].slot;
    CLEAVE_TRY(get_slot(copies, *slot, CLEAVE_PLACE_HOST, slot, error));
  }
  return CLEAVE_OK;
}

/* ---- waits ---- */

/* The target on whose stream a step is done; 0: on return. */
static uint32_t step_queue(const cleave_session_t *session, const cleave_step_t *step) {
  bool is_put = step->kind != CLEAVE_STEP_DYNAMIC && session->targets.items[step->target].stream != NULL;
  return is_put ? step->target : 0;
}

static cleave_status_t get_event(cleave_session_t *session, uint32_t step, void **out_event,
                                 cleave_error_t *error) {
  cleave_step_t *source = &session->steps.items[step];
  if (source->event == NULL) {
    cleave_device_t *device = session->targets.items[source->target].device;
    CLEAVE_TRY_OR(cleave_device_event_create(device, &source->event, error),
                  session->failed = device->handle);
  }
  *out_event = source->event;
  return CLEAVE_OK;
}

/* Adds what step `index` has to wait for because of one input. `waited` has, for each target, the last step
 * on its stream that the host knows to be done. */
static cleave_status_t add_wait(cleave_session_t *session, uint32_t index, uint32_t writer, uint32_t *waited,
                                cleave_error_t *error) {
  cleave_step_t *step = &session->steps.items[index];
  uint32_t source = step_queue(session, &session->steps.items[writer]);
  uint32_t queue = step_queue(session, step);
  if (source == 0 || source == queue || (waited[source] != CLEAVE_INDEX_NONE && waited[source] >= writer)) {
    return CLEAVE_OK;
  }
  for (uint32_t k = 0; k < step->wait_count; k++) {
    if (step->waits[k].source == source && step->waits[k].step >= writer) {
      return CLEAVE_OK;
    }
  }
  if (step->waits == NULL) {
    step->waits = cleave_arena_allocate(&session->arena, step->input_count, sizeof *step->waits);
    CLEAVE_TRY_MEMORY(step->waits, error);
  }
  const cleave_target_t *targets = session->targets.items;
  cleave_wait_t wait = {.source = source, .waiter = CLEAVE_INDEX_NONE, .step = writer};
  CLEAVE_TRY(get_event(session, writer, &wait.event, error));
  if (queue != 0 && targets[queue].handle == targets[source].handle && wait.event != NULL) {
    wait.waiter = queue;
  } else {
    wait.step = wait.event == NULL ? index - 1 : writer;
    waited[source] = wait.step;
  }
  step->waits[step->wait_count++] = wait;
  return CLEAVE_OK;
}

static cleave_status_t add_waits(cleave_session_t *session, cleave_error_t *error) {
  cleave_slot_t *slots = session->slots.items;
  uint32_t *waited = cleave_arena_allocate(&session->arena, session->targets.count, sizeof *waited);
  CLEAVE_TRY_MEMORY(waited, error);
  for (size_t k = 0; k < session->targets.count; k++) {
    waited[k] = CLEAVE_INDEX_NONE;
  }
  for (uint32_t s = 0; s < session->steps.count; s++) {
    const cleave_step_t *step = &session->steps.items[s];
    for (uint32_t k = 0; k < step->input_count; k++) {
      uint32_t writer = slots[slots[step->input_slots[k]].root].writer;
      if (writer != CLEAVE_INDEX_NONE) {
        CLEAVE_TRY(add_wait(session, s, writer, waited, error));
      }
    }
  }
  return CLEAVE_OK;
}

void cleave_session_extend_lifetimes(cleave_session_t *session) {
  cleave_slot_t *slots = session->slots.items;
  uint32_t count = (uint32_t)session->steps.count;
  for (uint32_t s = 0; session->has_streams && session->lanes == NULL && s < count; s++) {
    const cleave_step_t *step = &session->steps.items[s];
    uint32_t queue = step_queue(session, step);
    if (step->kind != CLEAVE_STEP_COPY || !step->to_device || queue == 0) {
      continue;
    }
    uint32_t end = count; /* of the run, if all streams are waited for */
    for (uint32_t later = s + 1; later < end; later++) {
      const cleave_step_t *reader = &session->steps.items[later];
      for (uint32_t k = 0; k < reader->wait_count; k++) {
        const cleave_wait_t *wait = &reader->waits[k];
        if (wait->source == queue && wait->waiter == CLEAVE_INDEX_NONE && wait->step > s) {
          end = later;
        }
      }
    }
    cleave_slot_t *root = &slots[slots[step->input_slots[0]].root];
    root->last = root->last > end ? root->last : end;
  }
}

/* ---- the whole ---- */

static bool has_devices(const cleave_session_t *session) {
  for (size_t k = 0; k < session->targets.count; k++) {
    if (session->targets.items[k].place != CLEAVE_PLACE_HOST) {
      return true;
    }
  }
  return false;
}

static cleave_status_t add_copies(copies_t *copies, cleave_error_t *error) {
  cleave_session_t *session = copies->session;
  size_t place_count = session->targets.count;
  size_t entries = 0;
  if (!cleave_size_multiply(place_count, copies->slot_count, &entries)) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "too many values for %zu devices", place_count);
  }
  copies->there = cleave_allocate(entries, sizeof *copies->there);
  copies->is_read_by_host = cleave_allocate_zeroed(copies->slot_count, sizeof *copies->is_read_by_host);
  copies->labels = cleave_allocate_zeroed(place_count * 2, sizeof *copies->labels);
  CLEAVE_TRY_MEMORY(copies->there != NULL && copies->is_read_by_host != NULL && copies->labels != NULL,
                    error);
  for (size_t k = 0; k < entries; k++) {
    copies->there[k] = CLEAVE_INDEX_NONE;
  }
  find_readers(copies);
  return add_steps(copies, error);
}

static void find_writers(cleave_session_t *session) {
  for (uint32_t s = 0; s < session->steps.count; s++) {
    const cleave_step_t *step = &session->steps.items[s];
    for (uint32_t k = 0; k < step->output_count; k++) {
      session->slots.items[step->output_slots[k]].writer = s;
    }
  }
}

cleave_status_t cleave_session_add_copies(cleave_session_t *session, cleave_error_t *error) {
  cleave_status_t status = CLEAVE_OK;
  if (has_devices(session)) {
    copies_t copies = {.session = session, .slot_count = (uint32_t)session->slots.count};
    status = add_copies(&copies, error);
    if (status == CLEAVE_OK) {
      cleave_step_t *before = session->steps.items;
      session->steps.items = copies.steps.items;
      session->steps.count = copies.steps.count;
      session->steps.capacity = copies.steps.capacity;
      copies.steps.items = before;
    }
    cleave_array_free(&copies.steps);
    cleave_free(copies.there);
    cleave_free(copies.is_read_by_host);
    cleave_free((void *)copies.labels);
  }
  find_writers(session);
  CLEAVE_THEN(status, cleave_session_make_lanes(session, error));
  return status == CLEAVE_OK && session->has_streams && session->lanes == NULL ? add_waits(session, error)
                                                                               : status;
}
