// SPDX-License-Identifier: Apache-2.0
/*
 * XNNPACK as an accelerator library of cleave: the functions of cleave/backend.h. float32 in host memory,
 * inference, shapes known when a region is compiled. A program is compiled once and runs on its own buffers.
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include "cleave/backend.h"

#include <pthread.h>
#include <pthreadpool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "builder.h"
#include "cleave/cost.h"
#include "memory.h"
#include "operators.h"
#include "stages.h"

#define MAX_THREADS 64

/* Thread pools by number of threads, made when a program first asks for one, shared by all programs:
 * XNNPACK's pools let one run at a time in. */
typedef struct state {
  pthread_mutex_t lock;
  pthreadpool_t pools[MAX_THREADS + 1];
} state_t;

static cleave_status_t initialise(const cleave_host_t *host, void **out_state, cleave_message_t *message) {
  (void)host;
  cleave_status_t status =
      xnnpack_status(xnn_initialize(xnnpack_memory_allocator()), "initialisation", "xnnpack", message);
  if (status != CLEAVE_OK) {
    return status;
  }
  state_t *state = calloc(1, sizeof *state);
  if (state == NULL || pthread_mutex_init(&state->lock, NULL) != 0) {
    free(state);
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  *out_state = state;
  return CLEAVE_OK;
}

static void destroy(void *memory) {
  state_t *state = memory;
  for (int k = 0; k <= MAX_THREADS; k++) {
    if (state->pools[k] != NULL) {
      pthreadpool_destroy(state->pools[k]);
    }
  }
  (void)pthread_mutex_destroy(&state->lock);
  free(state);
  (void)xnn_deinitialize();
}

/* NULL for one thread: XNNPACK then computes on the caller's. */
static pthreadpool_t find_pool(state_t *state, int32_t threads) {
  if (threads <= 1) {
    return NULL;
  }
  threads = threads > MAX_THREADS ? MAX_THREADS : threads;
  (void)pthread_mutex_lock(&state->lock);
  if (state->pools[threads] == NULL) {
    state->pools[threads] = pthreadpool_create((size_t)threads);
  }
  pthreadpool_t pool = state->pools[threads];
  (void)pthread_mutex_unlock(&state->lock);
  return pool;
}

static cleave_status_t supports(void *state, const cleave_region_view_t *view, cleave_message_t *reason) {
  (void)state;
  unit_t unit;
  uint32_t first = 0;
  if (view->fusion_count == 1) {
    return xnnpack_unit_read(view, view->fusions[0].nodes, view->fusions[0].node_count, true, &unit, reason);
  }
  return xnnpack_unit_read(view, &first, 1, true, &unit, reason);
}

/* ---- compile and unload ---- */

static void unload(void *memory) {
  program_t *program = memory;
  for (uint32_t k = 0; k < program->stage_count; k++) {
    if (program->stages[k] != NULL) {
      (void)xnn_delete_runtime(program->stages[k]);
    }
  }
  for (size_t k = 0; k < program->buffer_count; k++) {
    xnnpack_memory_free(program->buffers[k]);
  }
  for (size_t k = 0; k < program->static_count; k++) {
    xnnpack_memory_free(program->statics[k]);
  }
  free(program->stages);
  free(program->conversions);
  free(program->buffers);
  free(program->statics);
  free(program->steps);
  free(program->labels);
  free(program);
}

/* Nodes alone and fusions, each at the place of its first node: what is folded reads constants besides. */
static cleave_status_t read_units(const cleave_region_view_t *region, unit_t *units, uint32_t *out_count,
                                  cleave_message_t *message) {
  cleave_status_t status = CLEAVE_OK;
  *out_count = 0;
  for (uint32_t k = 0; status == CLEAVE_OK && k < region->node_count; k++) {
    uint32_t fusion = region->nodes[k].fusion;
    if (fusion == CLEAVE_INDEX_NONE) {
      status = xnnpack_unit_read(region, &k, 1, false, &units[(*out_count)++], message);
    } else if (region->fusions[fusion].nodes[0] == k) {
      const cleave_fusion_view_t *view = &region->fusions[fusion];
      status =
          xnnpack_unit_read(region, view->nodes, view->node_count, false, &units[(*out_count)++], message);
    }
  }
  return status;
}

/* A step for the conversions of inputs, one per stage and what is converted after it, one for the outputs. */
static cleave_status_t prepare_profile(program_t *program) {
  uint32_t count = program->stage_count + 2;
  program->steps = calloc(count, sizeof *program->steps);
  program->labels = calloc(count, sizeof *program->labels);
  if (program->steps == NULL || program->labels == NULL) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  for (uint32_t k = 0; k < count; k++) {
    const char *text = k == 0 ? "inputs to nhwc" : k + 1 == count ? "outputs to nchw" : "xnnpack";
    (void)snprintf(program->labels[k], sizeof program->labels[k],
                   k == 0 || k + 1 == count ? "%s" : "%s stage %u", text, k);
    program->steps[k] = (cleave_step_time_t){.size = sizeof program->steps[k],
                                             .label = program->labels[k],
                                             .node = CLEAVE_INDEX_NONE,
                                             .fusion = CLEAVE_INDEX_NONE};
  }
  return CLEAVE_OK;
}

static cleave_status_t compile(void *state, const cleave_region_view_t *region,
                               const cleave_compile_options_t *options, void **out_program,
                               cleave_message_t *message) {
  size_t bytes = 0;
  uint32_t unit_count = 0;
  unit_t *units = calloc((size_t)region->node_count + 1, sizeof *units);
  program_t *program = calloc(1, sizeof *program);
  cleave_status_t status = CLEAVE_ERROR_OUT_OF_MEMORY;
  if (units != NULL && program != NULL) {
    program->info.size = sizeof program->info;
    program->profile = options->profile;
    status = read_units(region, units, &unit_count, message);
  }
  if (status == CLEAVE_OK) {
    pthreadpool_t pool = find_pool(state, options->threads);
    xnnpack_memory_count(&bytes);
    status = xnnpack_build(region, units, unit_count, pool, program, message);
    xnnpack_memory_count(NULL);
  }
  if (status == CLEAVE_OK && options->profile) {
    status = prepare_profile(program);
  }
  free(units);
  if (status != CLEAVE_OK) {
    if (program != NULL) {
      unload(program);
    }
    return status;
  }
  program->info.persistent_bytes = bytes;
  *out_program = program;
  return CLEAVE_OK;
}

static const cleave_program_info_t *info(const void *program) {
  return &((const program_t *)program)->info;
}

/* ---- run ---- */

static uint64_t now(void) {
  struct timespec time = {0};
  (void)clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Conversions of one place, from *next on. */
static void convert(program_t *program, const cleave_run_args_t *args, conversion_place_t place,
                    int32_t stage, size_t *next) {
  for (; *next < program->conversion_count; (*next)++) {
    const conversion_t *conversion = &program->conversions[*next];
    if (conversion->place != place || (place == PLACE_STAGE && conversion->stage != stage)) {
      return;
    }
    const void *from =
        place == PLACE_INPUT ? args->inputs[conversion->index].data : program->buffers[conversion->index];
    void *to = place == PLACE_OUTPUT ? (void *)(uintptr_t)args->outputs[conversion->to].data
                                     : program->buffers[conversion->to];
    xnnpack_shuffle(&conversion->shuffle, from, to);
  }
}

static void note(program_t *program, uint32_t step, uint64_t *since) {
  if (program->profile) {
    program->steps[step].start_ns = *since;
    *since = program->steps[step].end_ns = now();
  }
}

static cleave_status_t run(void *memory, const cleave_run_args_t *args, cleave_message_t *message) {
  program_t *program = memory;
  size_t next = 0;
  uint64_t since = program->profile ? now() : 0;
  convert(program, args, PLACE_INPUT, 0, &next);
  note(program, 0, &since);
  for (uint32_t k = 0; k < program->stage_count; k++) {
    enum xnn_status result = xnn_invoke_runtime(program->stages[k]);
    if (result != xnn_status_success) {
      return xnnpack_status(result, "run", "xnnpack", message);
    }
    convert(program, args, PLACE_STAGE, (int32_t)k, &next);
    note(program, k + 1, &since);
  }
  convert(program, args, PLACE_OUTPUT, 0, &next);
  note(program, program->stage_count + 1, &since);
  return CLEAVE_OK;
}

static uint32_t profile(const void *memory, const cleave_step_time_t **out_steps) {
  const program_t *program = memory;
  *out_steps = program->steps;
  return program->steps == NULL ? 0 : program->stage_count + 2;
}

/* Measured once on one core of a server processor with AVX-512: convolutions 3x3 and 1x1, depthwise ones,
 * sums and sigmoids of images, transposes at the boundaries. */
static const cleave_cost_rates_t rates = {.region_ns = 100.0,
                                          .kernel_ns = 50.0,
                                          .product = 100.0,
                                          .grouped = 18.0,
                                          .function = 3.5,
                                          .reduction = 4.0,
                                          .pointwise = 10.0,
                                          .bandwidth = 40.0,
                                          .boundary_moves = 6.0,
                                          .fuses = true};

static cleave_status_t cost(void *state, const cleave_region_view_t *view, double *out_nanoseconds,
                            cleave_message_t *message) {
  (void)state;
  return cleave_cost_estimate(&rates, view, out_nanoseconds, message);
}

static const char *const rule_files[] = {"xnnpack.lua"};
static const cleave_backend_extensions_t extensions = {
    .size = sizeof extensions, .rule_files = rule_files, .rule_file_count = 1};

static const cleave_backend_t backend = {
    .size = sizeof backend,
    .abi_major = CLEAVE_BACKEND_ABI_MAJOR,
    .abi_minor = CLEAVE_BACKEND_ABI_MINOR,
    .name = "xnnpack",
    .version = "1.0 (git 2022-02-16)",
    .description = "XNNPACK: float32 inference on processors, channels last",
    .initialise = initialise,
    .destroy = destroy,
    .supports = supports,
    .compile = compile,
    .unload = unload,
    .info = info,
    .run = run,
    .profile = profile,
    .cost = cost,
    .extensions = &extensions};

const cleave_backend_t *cleave_backend_entry(uint32_t abi_major, uint32_t abi_minor,
                                             cleave_message_t *message);
const cleave_backend_t *cleave_backend_entry(uint32_t abi_major, uint32_t abi_minor,
                                             cleave_message_t *message) {
  (void)abi_minor;
  if (abi_major != CLEAVE_BACKEND_ABI_MAJOR) {
    (void)snprintf(message->text, sizeof message->text, "built for interface %u", CLEAVE_BACKEND_ABI_MAJOR);
    return NULL;
  }
  return &backend;
}
