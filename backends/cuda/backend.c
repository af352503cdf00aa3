// SPDX-License-Identifier: Apache-2.0
// The CUDA backend as cleave sees it. Questions about nodes are dry plans, which need no device.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleave/cost.h"
#include "cuda/program/program.h"

static void destroy(void *opaque) {
  cuda_state_t *state = opaque;
  if (state != NULL) {
    cuda_choices_destroy(state->choices);
    cuda_compiler_destroy(state->compiler);
    cuda_state_stop(state);
    cuda_libraries_deinit(&state->libraries);
    free(state);
  }
}

static cleave_status_t initialise(const cleave_host_t *host, void **out_state, cleave_message_t *message) {
  *out_state = NULL;
  cuda_state_t *state = calloc(1, sizeof *state);
  if (state == NULL || !cuda_libraries_init(&state->libraries)) {
    free(state);
    return cuda_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, CLEAVE_REASON_NONE, "no memory for its state");
  }
  state->host = host;
  cleave_status_t status = cuda_state_start(state, message);
  status = status == CLEAVE_OK ? cuda_compiler_create(state, &state->compiler, message) : status;
  status = status == CLEAVE_OK ? cuda_choices_create(state, &state->choices, message) : status;
  if (status != CLEAVE_OK) {
    destroy(state);
    return status;
  }
  *out_state = state;
  return CLEAVE_OK;
}

/* ---- questions ---- */

static bool is_open(const cleave_region_view_t *view) {
  for (uint32_t v = 0; v < view->value_count; v++) {
    if (cleave_view_element_count(&view->values[v].tensor) < 0) {
      return true;
    }
  }
  return false;
}

static cleave_status_t supports(void *state, const cleave_region_view_t *view, cleave_message_t *reason) {
  cuda_plan_t plan;
  (void)state;
  if (is_open(view)) {
    return cuda_emit_guess(view, reason);
  }
  const cuda_plan_options_t options = {.is_dry = true, .has_blas = true, .has_dnn = true, .has_whole = true};
  cleave_status_t status = cuda_plan_init(&plan, view, options, reason);
  status = status == CLEAVE_OK ? cuda_emit_region(&plan) : status;
  cuda_plan_deinit(&plan);
  return status == CLEAVE_OK || status == CLEAVE_ERROR_OUT_OF_MEMORY ? status : CLEAVE_ERROR_UNSUPPORTED;
}

/* About an H100: what is measured of kernels and products; boundaries of regions are copies over the bus. */
static const cleave_cost_rates_t rates = {.region_ns = 20000.0,
                                          .kernel_ns = 2000.0,
                                          .product = 40000.0,
                                          .grouped = 2000.0,
                                          .function = 20000.0,
                                          .reduction = 2000.0,
                                          .pointwise = 20000.0,
                                          .bandwidth = 2500.0,
                                          .boundary_moves = 100.0,
                                          .fuses = true};

static cleave_status_t cost(void *state, const cleave_region_view_t *view, double *out_nanoseconds,
                            cleave_message_t *message) {
  (void)state;
  return cleave_cost_estimate(&rates, view, out_nanoseconds, message);
}

/* ---- settings: all of them are only asked ---- */

typedef struct answering {
  cuda_state_t *state;
  uint32_t count;
} answering_t;

static char *next_text(answering_t *answering, const char *key) {
  cuda_state_t *state = answering->state;
  char *text = state->answer_texts[answering->count];
  state->answers[answering->count++] = (cleave_key_value_t){.key = key, .value = text};
  return text;
}

static void answer_library(answering_t *answering, cuda_library_id_t id) {
  cuda_state_t *state = answering->state;
  const cuda_libraries_t *libraries = &state->libraries;
  char *text = next_text(answering, cuda_library_name(id));
  size_t size = sizeof state->answer_texts[0];
  int major = 0;
  int minor = 0;
  if (!cuda_library_open(&state->libraries, id)) {
    (void)snprintf(text, size, "missing: %s", libraries->items[id].reason);
    return;
  }
  switch (id) {
    case CUDA_LIBRARY_DRIVER:
      (void)snprintf(text, size, "CUDA %d.%d", state->driver_version / 1000,
                     state->driver_version % 1000 / 10);
      break;
    case CUDA_LIBRARY_NVRTC:
      (void)libraries->nvrtc.version(&major, &minor);
      (void)snprintf(text, size, "%d.%d", major, minor);
      break;
    case CUDA_LIBRARY_BLAS: (void)snprintf(text, size, "%zu", libraries->blas.version()); break;
    default: (void)snprintf(text, size, "%zu", libraries->dnn.version()); break;
  }
}

static const char *const keys[] = {"libcuda",       "libnvrtc",         "libcublasLt",
                                   "libcudnn",      "kernels.compiled", "kernels.disk",
                                   "choices.timed", "choices.disk",     "kernels.text"};
enum { KEY_COUNT = sizeof keys / sizeof keys[0], TEXT_KEY = KEY_COUNT - 1 /* long: asked for alone */ };

static void answer(answering_t *answering, uint32_t key) {
  cuda_state_t *state = answering->state;
  if (key < CUDA_LIBRARY_COUNT) {
    answer_library(answering, (cuda_library_id_t)key);
    return;
  }
  if (key == TEXT_KEY) {
    state->answers[answering->count++] = (cleave_key_value_t){
        .key = keys[key], .value = kernel_texts_read(cuda_compiler_texts(state->compiler))};
    return;
  }
  cuda_compiler_counts_t kernels = cuda_compiler_count(state->compiler);
  cuda_choices_counts_t choices = cuda_choices_count(state->choices);
  const uint64_t counts[] = {kernels.compiled, kernels.from_disk, choices.timed, choices.from_disk};
  char *text = next_text(answering, keys[key]);
  (void)snprintf(text, sizeof state->answer_texts[0], "%" PRIu64, counts[key - CUDA_LIBRARY_COUNT]);
}

static cleave_status_t configure(void *opaque, const cleave_key_value_t *settings, uint32_t setting_count,
                                 const cleave_key_value_t **out_answers, uint32_t *out_answer_count,
                                 cleave_message_t *message) {
  cuda_state_t *state = opaque;
  answering_t answering = {.state = state};
  for (uint32_t k = 0; k < setting_count && answering.count < KEY_COUNT; k++) {
    uint32_t key = 0;
    if (strcmp(settings[k].key, "hint.kernels") == 0) {
      CUDA_TRY(kernel_texts_hint(cuda_compiler_texts(state->compiler), settings[k].value, message));
    }
    if (strncmp(settings[k].key, "hint.", 5) == 0) {
      continue;
    }
    while (key < KEY_COUNT && strcmp(settings[k].key, keys[key]) != 0) {
      key++;
    }
    if (key == KEY_COUNT || settings[k].value != NULL) {
      return cuda_fail(message, CLEAVE_ERROR_UNSUPPORTED, CLEAVE_REASON_NONE,
                       "setting '%.60s': there are hint.kernels, and to be asked libcuda, libnvrtc, "
                       "libcublasLt, libcudnn, kernels.compiled, kernels.disk, kernels.text, choices.timed, "
                       "choices.disk",
                       settings[k].key);
    }
    answer(&answering, key);
  }
  for (uint32_t k = 0; k < TEXT_KEY && setting_count == 0; k++) {
    answer(&answering, k);
  }
  *out_answers = state->answers;
  *out_answer_count = answering.count;
  return CLEAVE_OK;
}

/* ---- programs ---- */

static cleave_status_t compile(void *state, const cleave_region_view_t *region,
                               const cleave_compile_options_t *options, void **out_program,
                               cleave_message_t *message) {
  cuda_program_t *program = NULL;
  cleave_status_t status = cuda_program_create(state, region, options, &program, message);
  *out_program = program;
  return status;
}

static void unload(void *program) {
  cuda_program_destroy(program);
}

static const cleave_program_info_t *info(const void *program) {
  return &((const cuda_program_t *)program)->info;
}

static cleave_status_t run(void *program, const cleave_run_args_t *args, cleave_message_t *message) {
  return cuda_program_run(program, args, message);
}

static uint32_t profile(const void *opaque, const cleave_step_time_t **out_steps) {
  const cuda_program_t *program = opaque;
  *out_steps = program->times;
  return program->profiles ? program->plan.step_count : 0;
}

static const char *const option_keys[] = {"tf32",  "fast_math",     "graphs", "cublaslt",
                                          "cudnn", "channels_last", "tune"};

static const cleave_backend_t backend = {
    .size = sizeof backend,
    .abi_major = CLEAVE_BACKEND_ABI_MAJOR,
    .abi_minor = CLEAVE_BACKEND_ABI_MINOR,
    .name = "cuda",
    .version = CLEAVE_VERSION,
    .description = "NVIDIA GPUs: generated kernels through NVRTC, cuBLASLt and cuDNN, CUDA graphs",
    .initialise = initialise,
    .destroy = destroy,
    .supports = supports,
    .compile = compile,
    .unload = unload,
    .info = info,
    .run = run,
    .profile = profile,
    .cost = cost,
    .configure = configure,
    .devices = &cuda_devices,
    .option_keys = option_keys,
    .option_key_count = sizeof option_keys / sizeof option_keys[0]};

const cleave_backend_t *cleave_backend_cuda(uint32_t abi_major, uint32_t abi_minor,
                                            cleave_message_t *message);
const cleave_backend_t *cleave_backend_cuda(uint32_t abi_major, uint32_t abi_minor,
                                            cleave_message_t *message) {
  (void)abi_minor;
  if (abi_major != CLEAVE_BACKEND_ABI_MAJOR) {
    cleave_status_t status = cuda_fail(message, CLEAVE_ERROR_UNSUPPORTED, CLEAVE_REASON_VERSION,
                                       "made for interface version %u, this is version %u",
                                       CLEAVE_BACKEND_ABI_MAJOR, (unsigned)abi_major);
    return status == CLEAVE_OK ? &backend : NULL;
  }
  return &backend;
}
