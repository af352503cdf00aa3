// SPDX-License-Identifier: Apache-2.0
// Candidates against each other. Programs are replayed as CUDA graphs, so that is how candidates are timed;
// the first calls are made one by one, because they load kernels and say which candidates run at all.
#include <stdlib.h>

#include "choices.h"

enum { CALLS = 8, ROUNDS = 5, MIN_ROUNDS = 2 };

/* Milliseconds. A longer call hides its launch; of longer calls those out of the question are left out. */
static const double SHORT = 1.0;
static const double ENOUGH = 100.0; /* for the rounds */
static const double HOPELESS = 2.0;
static const double TIE = 1.02;

typedef struct candidate {
  bool runs;
  int calls;               /* at once */
  cuda_graph_exec_t graph; /* of the calls, or NULL */
  double time;             /* of one call */
} candidate_t;

typedef struct trial {
  cuda_state_t *state;
  const cuda_call_t *call;
  const cuda_choice_t *choices;
  candidate_t candidates[CUDA_MAX_CANDIDATES];
  uint32_t count;
  cuda_address_t memory;
  void *addresses[CUDA_MAX_OPERANDS];
  cuda_stream_t stream;
  cuda_event_t events[2]; /* before and after */
} trial_t;

/* ---- what it needs ---- */

static size_t place_of(size_t used) {
  return (used + CUDA_ALIGNMENT - 1) / CUDA_ALIGNMENT * CUDA_ALIGNMENT;
}

static bool get_memory(trial_t *trial) {
  const cuda_driver_t *driver = &trial->state->libraries.driver;
  const cuda_call_t *call = trial->call;
  cleave_message_t message = {.text = ""};
  size_t offsets[CUDA_MAX_OPERANDS];
  size_t bytes = 0;
  size_t workspace = 0;
  for (uint32_t k = 0; k < trial->count; k++) {
    size_t own = (size_t)trial->choices[k].workspace_bytes;
    workspace = own > workspace ? own : workspace;
  }
  for (uint32_t k = 0; k < CUDA_MAX_OPERANDS; k++) {
    bool is_workspace = k == call->workspace;
    offsets[k] = place_of(bytes) + (is_workspace ? 0 : (size_t)call->operands[k].skew);
    bytes = offsets[k] + (is_workspace ? workspace : (size_t)call->operands[k].bytes);
  }
  if (cuda_memory_alloc(trial->state, call->device, bytes, true, &trial->memory, &message) != CLEAVE_OK) {
    return false;
  }
  for (uint32_t k = 0; k < CUDA_MAX_OPERANDS; k++) {
    bool is_there = k == call->workspace ? workspace > 0 : call->operands[k].bytes > 0;
    trial->addresses[k] = is_there ? (void *)(uintptr_t)(trial->memory + offsets[k]) : NULL;
  }
  return driver->memory_set_async(trial->memory, 0, bytes, trial->stream) == CUDA_SUCCESS_;
}

static bool prepare(trial_t *trial) {
  const cuda_driver_t *driver = &trial->state->libraries.driver;
  return driver->stream_create(&trial->stream, CUDA_STREAM_NON_BLOCKING) == CUDA_SUCCESS_ &&
         driver->event_create(&trial->events[0], 0) == CUDA_SUCCESS_ &&
         driver->event_create(&trial->events[1], 0) == CUDA_SUCCESS_ && get_memory(trial);
}

static void clean_up(trial_t *trial) {
  const cuda_driver_t *driver = &trial->state->libraries.driver;
  if (trial->stream != NULL) {
    (void)driver->stream_wait(trial->stream);
  }
  for (uint32_t k = 0; k < trial->count; k++) {
    if (trial->candidates[k].graph != NULL) {
      (void)driver->graph_exec_destroy(trial->candidates[k].graph);
    }
  }
  for (uint32_t k = 0; k < 2; k++) {
    if (trial->events[k] != NULL) {
      (void)driver->event_destroy(trial->events[k]);
    }
  }
  if (trial->stream != NULL) {
    (void)driver->stream_destroy(trial->stream);
  }
  cuda_memory_free(trial->state, trial->call->device, trial->memory);
}

/* ---- times ---- */

static bool start(const trial_t *trial, uint32_t index) {
  const cuda_call_t *call = trial->call;
  return call->start(call->context, &trial->choices[index], trial->addresses, trial->stream) == 0;
}

/* Its graph once, or one call without a graph; the milliseconds that it takes. */
static bool time_once(const trial_t *trial, uint32_t index, double *out_time) {
  const cuda_driver_t *driver = &trial->state->libraries.driver;
  cuda_graph_exec_t graph = trial->candidates[index].graph;
  float time = 0.0f;
  bool is_done =
      driver->event_record(trial->events[0], trial->stream) == CUDA_SUCCESS_ &&
      (graph != NULL ? driver->graph_launch(graph, trial->stream) == CUDA_SUCCESS_ : start(trial, index)) &&
      driver->event_record(trial->events[1], trial->stream) == CUDA_SUCCESS_ &&
      driver->event_wait(trial->events[1]) == CUDA_SUCCESS_ &&
      driver->event_elapsed(&time, trial->events[0], trial->events[1]) == CUDA_SUCCESS_;
  *out_time = (double)time;
  return is_done;
}

/* Twice: the first call loads kernels. */
static void try_alone(trial_t *trial) {
  for (uint32_t k = 0; k < trial->count; k++) {
    candidate_t *own = &trial->candidates[k];
    own->runs = time_once(trial, k, &own->time) && time_once(trial, k, &own->time);
    own->calls = own->time < SHORT ? CALLS : 1;
  }
}

/* The shortest time of those that run; below 0: none does. */
static double shortest(const trial_t *trial) {
  double time = -1.0;
  for (uint32_t k = 0; k < trial->count; k++) {
    const candidate_t *own = &trial->candidates[k];
    time = own->runs && (time < 0.0 || own->time < time) ? own->time : time;
  }
  return time;
}

/* How many are left. */
static uint32_t leave_out_hopeless(trial_t *trial) {
  double limit = shortest(trial) * HOPELESS;
  uint32_t left = 0;
  for (uint32_t k = 0; k < trial->count; k++) {
    candidate_t *own = &trial->candidates[k];
    own->runs = own->runs && (own->time < SHORT || own->time <= limit);
    left += own->runs;
  }
  return left;
}

static cuda_graph_exec_t capture(const trial_t *trial, uint32_t index) {
  const cuda_driver_t *driver = &trial->state->libraries.driver;
  cuda_graph_t graph = NULL;
  cuda_graph_exec_t exec = NULL;
  if (driver->stream_begin_capture(trial->stream, CUDA_CAPTURE_RELAXED) != CUDA_SUCCESS_) {
    return NULL;
  }
  bool is_whole = true;
  for (int k = 0; k < trial->candidates[index].calls && is_whole; k++) {
    is_whole = start(trial, index);
  }
  is_whole = driver->stream_end_capture(trial->stream, &graph) == CUDA_SUCCESS_ && graph != NULL && is_whole;
  if (is_whole && driver->graph_instantiate(&exec, graph, 0) != CUDA_SUCCESS_) {
    exec = NULL;
  }
  if (graph != NULL) {
    (void)driver->graph_destroy(graph);
  }
  return exec;
}

/* A candidate that cannot be captured would keep its program from being a graph: it is left out, unless all
 * are like that. */
static void capture_all(trial_t *trial) {
  bool has_graphs = false;
  for (uint32_t k = 0; k < trial->count; k++) {
    candidate_t *own = &trial->candidates[k];
    own->graph = own->runs ? capture(trial, k) : NULL;
    has_graphs = has_graphs || own->graph != NULL;
  }
  for (uint32_t k = 0; k < trial->count && has_graphs; k++) {
    trial->candidates[k].runs = trial->candidates[k].graph != NULL;
  }
}

/* Times the candidates in turn, because clocks go up and down. */
static void compare(trial_t *trial) {
  double total = 0.0;
  for (int round = 0; round < ROUNDS && (round < MIN_ROUNDS || total < ENOUGH); round++) {
    for (uint32_t k = 0; k < trial->count; k++) {
      candidate_t *own = &trial->candidates[k];
      double time = 0.0;
      if (own->runs) {
        own->runs = time_once(trial, k, &time);
        total += time;
        time /= own->graph != NULL ? own->calls : 1;
        own->time = round == 0 || time < own->time ? time : own->time;
      }
    }
  }
}

cuda_trial_result_t cuda_trial(cuda_state_t *state, const cuda_call_t *call, const cuda_choice_t *candidates,
                               uint32_t count, uint32_t *out_best, double *out_gain) {
  trial_t trial = {.state = state, .call = call, .choices = candidates, .count = count};
  cuda_trial_result_t result = prepare(&trial) ? CUDA_TRIAL_NONE : CUDA_TRIAL_NO_ROOM;
  if (result == CUDA_TRIAL_NONE) {
    try_alone(&trial);
    double first = trial.candidates[0].runs ? trial.candidates[0].time : 0.0;
    if (leave_out_hopeless(&trial) > 1) {
      capture_all(&trial);
      compare(&trial);
      first = trial.candidates[0].runs ? trial.candidates[0].time : first;
    }
    double limit = shortest(&trial) * TIE;
    for (uint32_t k = count; k-- > 0;) {
      const candidate_t *own = &trial.candidates[k];
      if (own->runs && own->time <= limit) {
        *out_best = k;
        *out_gain = first > 0.0 ? own->time / first : 0.0;
        result = CUDA_TRIAL_DONE;
      }
    }
  }
  clean_up(&trial);
  return result;
}
