// SPDX-License-Identifier: Apache-2.0
// One of two processors is taken by another process: a region that is cut into many short pieces of work for
// two threads then waits for the late one at each piece, and one thread alone may be faster. After some such
// runs, regions are compiled once more, for one thread; runs are timed both ways and the faster way is taken,
// until the processor is free again. A result does not depend on the load: programs for one thread are used
// only if they gave the same bits as those for two from the inputs at hand.
#include <string.h>

#include "backend/registry/context.h"
#include "runtime/build/session_build.h"
#include "system/clock.h"
#include "system/contention.h"

/* Runs until programs for one thread are compiled, and between two looks at the way that is not taken. */
enum { RUNS_UNTIL_TRIED = 4, RUNS_UNTIL_LOOK = 64 };

/* Those runs must take so long together, because processors that are taken for a moment are not worth it. */
static const uint64_t time_until_tried = 20000000;

/* Longer runs have pieces of work that are long enough for two threads. */
static const uint64_t longest_run = 20000000;

/* Programs for one thread have packed weights of their own. */
static const size_t most_persistent = (size_t)32 << 20;

typedef cleave_status_t (*repeat_fn_t)(cleave_session_t *session);

/* ---- which sessions, which steps ---- */

/* A whole region in host memory, compiled in this process by another backend than `cpu`: the loops of `cpu`
 * notice by themselves that a processor is taken. */
static bool is_region(const cleave_session_t *session, const cleave_step_t *step) {
  const cleave_target_t *target = &session->targets.items[step->target];
  return step->kind == CLEAVE_STEP_PROGRAM && step->region != CLEAVE_INDEX_NONE && step->target != 0 &&
         !cleave_node_exists(step->node) && target->device == NULL && target->handle->isolate == NULL;
}

/* The steps may run a second time from the same inputs, and write the same. */
static bool may_repeat(const cleave_session_t *session) {
  bool may = session->compile_options.threads == 2 && session->plan != NULL && !session->has_streams &&
             !session->profile && !session->has_output_work && !session->has_shared_state &&
             session->fallback_count == 0 && session->statistics.persistent_bytes <= most_persistent;
  for (size_t s = 0; may && s < session->steps.count; s++) {
    const cleave_step_t *step = &session->steps.items[s];
    may = step->kind == CLEAVE_STEP_PROGRAM && !step->program->is_private && step->requests == NULL;
  }
  for (uint32_t k = 0; may && k < session->output_count; k++) {
    may = session->slots.items[session->outputs[k].slot].view.dtype != CLEAVE_DTYPE_STRING;
  }
  return may;
}

/* ---- the two ways ---- */

static void swap_programs(cleave_session_t *session) {
  cleave_single_t *single = &session->single;
  for (uint32_t k = 0; k < single->step_count; k++) {
    cleave_single_step_t *other = &single->steps[k];
    cleave_step_t *step = &session->steps.items[other->step];
    cleave_program_t *program = step->program;
    void *workspace = step->args.workspace;
    step->program = other->program;
    step->args.workspace = other->workspace;
    other->program = program;
    other->workspace = workspace;
  }
  single->is_on = !single->is_on;
}

/* Memory was planned for the pairs of the step's program. */
static bool has_same_pairs(const cleave_program_info_t *a, const cleave_program_info_t *b) {
  bool same = a->inplace_count == b->inplace_count;
  for (uint32_t k = 0; same && k < a->inplace_count; k++) {
    same = a->inplace[k].input == b->inplace[k].input && a->inplace[k].output == b->inplace[k].output;
  }
  return same;
}

static cleave_status_t compile_steps(cleave_build_t *build, bool *out_fit, cleave_error_t *error) {
  cleave_session_t *session = build->session;
  cleave_single_t *single = &session->single;
  size_t workspace_bytes = 1;
  for (uint32_t s = 0; s < session->steps.count; s++) {
    const cleave_step_t *step = &session->steps.items[s];
    if (!is_region(session, step)) {
      continue;
    }
    cleave_view_t view;
    cleave_message_t message = {.text = ""};
    cleave_single_step_t *other = &single->steps[single->step_count];
    other->step = s;
    CLEAVE_TRY(cleave_build_region_view(build, step, &view, error));
    cleave_build_program_t wanted = {.target = step->target, .view = &view, .node = "", .is_single = true};
    size_t before = session->programs.count;
    cleave_status_t status = cleave_build_get_program(build, &wanted, &other->program, &message, error);
    if (status != CLEAVE_OK) {
      return cleave_registry_fail(error, status, step->name, &message);
    }
    const cleave_program_info_t *info = other->program->info;
    if (session->programs.count > before) {
      session->statistics.persistent_bytes += info->persistent_bytes;
    }
    if (!has_same_pairs(info, step->program->info)) {
      *out_fit = false;
      return CLEAVE_OK;
    }
    workspace_bytes = info->workspace_bytes > workspace_bytes ? info->workspace_bytes : workspace_bytes;
    single->step_count++;
    cleave_arena_reset(&build->arena);
  }
  single->workspace = cleave_allocate_aligned(workspace_bytes);
  CLEAVE_TRY_MEMORY(single->workspace, error);
  for (uint32_t k = 0; k < single->step_count; k++) {
    single->steps[k].workspace = single->workspace;
  }
  *out_fit = single->step_count > 0;
  return CLEAVE_OK;
}

static cleave_status_t compile(cleave_session_t *session, bool *out_fit, cleave_error_t *error) {
  cleave_build_t build = {.session = session, .graph = session->graph};
  session->single.steps =
      cleave_arena_allocate(&session->arena, session->steps.count, sizeof *session->single.steps);
  CLEAVE_TRY_MEMORY(session->single.steps, error);
  cleave_view_builder_init(&build.views, session->graph);
  cleave_status_t status = compile_steps(&build, out_fit, error);
  cleave_view_builder_deinit(&build.views);
  cleave_arena_deinit(&build.arena);
  return status;
}

/* ---- the first run on one thread ---- */

static size_t output_bytes(const cleave_session_t *session) {
  size_t bytes = 0;
  for (uint32_t k = 0; k < session->output_count; k++) {
    const cleave_slot_t *slot = &session->slots.items[session->outputs[k].slot];
    bytes += session->outputs[k].request == CLEAVE_REQUEST_NONE ? 0 : slot->bytes;
  }
  return bytes;
}

typedef enum copy_kind { COPY_SAVE, COPY_RESTORE } copy_kind_t;

/* Saves the outputs in `copy`, or restores those that differ; whether all were the same before. An output
 * that is an input or a constant never differs: its memory may be read-only. */
static bool copy_outputs(const cleave_session_t *session, unsigned char *copy, copy_kind_t kind) {
  bool same = true;
  for (uint32_t k = 0; k < session->output_count; k++) {
    const cleave_slot_t *slot = &session->slots.items[session->outputs[k].slot];
    if (session->outputs[k].request == CLEAVE_REQUEST_NONE || slot->bytes == 0) {
      continue;
    }
    void *output = (void *)(uintptr_t)slot->view.data;
    if (memcmp(output, copy, slot->bytes) != 0) {
      memcpy(kind == COPY_SAVE ? copy : output, kind == COPY_SAVE ? output : copy, slot->bytes);
      same = false;
    }
    copy += slot->bytes;
  }
  return same;
}

/* Repeats the run at hand on one thread. The outputs stay those of two threads. */
static bool gives_same(cleave_session_t *session, repeat_fn_t repeat) {
  unsigned char *copy = cleave_allocate_zeroed(output_bytes(session) + 1, 1);
  if (copy == NULL) {
    return false;
  }
  (void)copy_outputs(session, copy, COPY_SAVE);
  swap_programs(session);
  uint64_t start = cleave_clock_now();
  bool has_run = repeat(session) == CLEAVE_OK;
  session->single.ns[1] = cleave_clock_now() - start;
  bool same = copy_outputs(session, copy, COPY_RESTORE);
  swap_programs(session);
  cleave_free(copy);
  return has_run && same;
}

/* Forgets programs that are not used: those of the session from number `first` on are for one thread. */
static void drop_programs(cleave_session_t *session, size_t first) {
  cleave_single_t *single = &session->single;
  while (session->programs.count > first) {
    cleave_program_t *program = session->programs.items[--session->programs.count];
    session->statistics.persistent_bytes -= program->info->persistent_bytes;
    cleave_program_release(program);
  }
  cleave_free(single->workspace);
  single->workspace = NULL;
  single->step_count = 0;
}

static void try_single(cleave_session_t *session, repeat_fn_t repeat) {
  size_t first = session->programs.count;
  bool fits = false;
  const char *refused = NULL;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  if (compile(session, &fits, &error) != CLEAVE_OK) {
    refused = error.message;
  } else if (!fits) {
    refused = "no region can be compiled for it";
  } else if (!gives_same(session, repeat)) {
    refused = "it does not compute the same bits";
  }
  session->single.state = refused == NULL ? CLEAVE_SINGLE_READY : CLEAVE_SINGLE_REFUSED;
  if (refused != NULL) {
    drop_programs(session, first);
  }
  cleave_log(cleave_context_log(session->graph->context), CLEAVE_LOG_INFORMATION,
             "processors are taken: runs %s%s",
             refused == NULL ? "use one thread while that is faster" : "stay on two threads, not one: ",
             refused == NULL ? "" : refused);
}

/* ---- around a run ---- */

uint64_t cleave_session_choose_threads(cleave_session_t *session) {
  cleave_single_t *single = &session->single;
  if (single->state == CLEAVE_SINGLE_REFUSED || session->compile_options.threads != 2 ||
      !cleave_contention_found()) {
    if (single->is_on) {
      swap_programs(session);
    }
    return 0;
  }
  if (single->state == CLEAVE_SINGLE_READY) {
    bool is_wanted = single->ns[1] < single->ns[0];
    bool looks = single->runs % RUNS_UNTIL_LOOK == 0;
    if ((is_wanted != looks) != single->is_on) {
      swap_programs(session);
    }
  }
  if (single->is_on) {
    cleave_contention_run_alone();
  }
  single->runs++;
  return cleave_clock_now();
}

void cleave_session_judge_threads(cleave_session_t *session, uint64_t start, repeat_fn_t repeat) {
  cleave_single_t *single = &session->single;
  uint64_t now = cleave_clock_now();
  uint64_t *smoothed = &single->ns[single->is_on ? 1 : 0];
  *smoothed = *smoothed == 0 ? now - start : *smoothed - *smoothed / 4 + (now - start) / 4;
  if (single->state != CLEAVE_SINGLE_UNTRIED || single->runs < RUNS_UNTIL_TRIED ||
      single->runs * *smoothed < time_until_tried) {
    return;
  }
  if (*smoothed > longest_run || !may_repeat(session)) {
    single->runs = 0;
    return;
  }
  try_single(session, repeat);
}
