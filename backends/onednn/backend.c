// SPDX-License-Identifier: Apache-2.0
// The oneDNN backend as cleave sees it. The state is one CPU engine; analysis and compilation keep
// everything else to themselves, so that calls from several threads do not meet.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleave/cost.h"
#include "kernels/instructions.h"
#include "onednn/analysis/analysis.h"
#include "onednn/analysis/precision.h"
#include "onednn/library/types.h"
#include "onednn/program/parted.h"
#include "onednn/tune/tune.h"

typedef struct state {
  onednn_base_t base;
  onednn_tunings_t *tunings;
  char spare_text[24];  // of an answer
  cleave_key_value_t answers[2];
} state_t;

static void destroy(void *opaque) {
  state_t *state = opaque;
  if (state != NULL) {
    if (state->base.engine != NULL) {
      (void)dnnl_engine_destroy(state->base.engine);
    }
    onednn_store_destroy(state->base.store);
    onednn_tunings_destroy(state->tunings);
    kernel_texts_destroy(state->base.texts);
    free(state);
  }
}

static cleave_status_t initialise(const cleave_host_t *host, void **out_state, cleave_message_t *message) {
  *out_state = NULL;
  state_t *state = calloc(1, sizeof(*state));
  if (state == NULL) {
    return kernel_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, "out of memory while starting oneDNN");
  }
  state->base.host = host;
  state->base.store = onednn_store_create();
  state->base.texts = kernel_texts_create();
  state->tunings = onednn_tunings_create();
  cleave_status_t status =
      state->base.store == NULL || state->tunings == NULL || state->base.texts == NULL
          ? kernel_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, "out of memory while starting oneDNN")
          : onednn_check(dnnl_engine_create(&state->base.engine, dnnl_cpu, 0), "an engine", message);
  if (status != CLEAVE_OK) {
    destroy(state);
    return status;
  }
  *out_state = state;
  return CLEAVE_OK;
}

static cleave_status_t supports(void *opaque, const cleave_region_view_t *view, cleave_message_t *reason) {
  (void)opaque;
  _Alignas(64) unsigned char first[6144]; /* so that a question about one node allocates nothing */
  kernel_arena_t arena = {.at = first, .left = sizeof first};
  onednn_analysis_t analysis;
  cleave_status_t status = onednn_analyse(view, &arena, reason, &analysis);
  kernel_arena_free(&arena);
  return status;
}

// A region that asks for a precision that this processor has no instructions for is refused, so that a rule
// behind it may ask for another one.
static cleave_status_t review(void *opaque, const cleave_region_view_t *region, bool *keep,
                              cleave_message_t *reason) {
  (void)opaque;
  (void)keep;
  dnnl_data_type_t type = dnnl_f32;
  ONEDNN_TRY(onednn_precision_of(region, &type, reason));
  const char *missing = onednn_type_missing(type);
  return missing == NULL ? CLEAVE_OK
                         : kernel_fail(reason, CLEAVE_ERROR_UNSUPPORTED, "precision %s: %s",
                                       onednn_type_name(type), missing);
}

// `image` may be NULL.
static cleave_status_t make(const state_t *state, const onednn_image_t *image,
                            const cleave_region_view_t *region, const cleave_compile_options_t *options,
                            void **out_program, cleave_message_t *message) {
  int32_t threads = options->threads < 1 ? 1 : options->threads;
  onednn_known_t known = {.image = image};
  onednn_parted_t *program = NULL;
  kernel_arena_t arena = {0};
  onednn_parts_t parts;
  *out_program = NULL;
  cleave_status_t status = onednn_parts_of(region, threads, &arena, &parts, message);
  if (status == CLEAVE_OK) {
    status = onednn_tune(state->tunings, &state->base, image, parts.region, threads, &known.tuning, message);
  }
  if (status == CLEAVE_OK) {
    status = onednn_parted_create(&state->base, &known, &parts, options, &program, message);
  }
  kernel_arena_free(&arena);
  *out_program = program;
  return status;
}

static cleave_status_t compile(void *opaque, const cleave_region_view_t *region,
                               const cleave_compile_options_t *options, void **out_program,
                               cleave_message_t *message) {
  return make(opaque, NULL, region, options, out_program, message);
}

static void unload(void *program) {
  onednn_parted_destroy(program);
}

static const cleave_program_info_t *info(const void *program) {
  return onednn_parted_info(program);
}

static cleave_status_t run(void *program, const cleave_run_args_t *args, cleave_message_t *message) {
  return onednn_parted_run(program, args, message);
}

static uint32_t profile(const void *program, const cleave_step_time_t **out_steps) {
  return onednn_parted_profile(program, out_steps);
}

static cleave_status_t save(const void *program,
                            cleave_status_t (*write)(void *context, const void *data, size_t bytes),
                            void *context, cleave_message_t *message) {
  return onednn_parted_save(program, write, context, message);
}

static cleave_status_t check(void *state, uint32_t device, const void *data, size_t bytes,
                             cleave_message_t *message) {
  (void)state;
  (void)device;
  onednn_image_t image;
  return onednn_image_open(data, bytes, &image, message);
}

// Primitives are made again; packed weights are read where the blob is.
static cleave_status_t load(void *opaque, const cleave_region_view_t *region,
                            const cleave_compile_options_t *options, const void *data, size_t bytes,
                            void **out_program, cleave_message_t *message) {
  onednn_image_t image;
  *out_program = NULL;
  ONEDNN_TRY(onednn_image_open(data, bytes, &image, message));
  return make(opaque, &image, region, options, out_program, message);
}

static const cleave_backend_blobs_t blobs = {
    .size = sizeof(cleave_backend_blobs_t), .save = save, .check = check, .load = load};

/* Measured once on one core of a server processor with AVX-512: products with their post-ops, depthwise
 * convolutions, activations, reorders to and from blocked layouts at the boundaries. */
static const cleave_cost_rates_t rates = {.region_ns = 3000.0,
                                          .kernel_ns = 2000.0,
                                          .product = 110.0,
                                          .grouped = 40.0,
                                          .function = 2.0,
                                          .reduction = 8.0,
                                          .pointwise = 10.0,
                                          .bandwidth = 45.0,
                                          .boundary_moves = 2.0,
                                          .fuses = true};

static cleave_status_t cost(void *state, const cleave_region_view_t *view, double *out_nanoseconds,
                            cleave_message_t *message) {
  (void)state;
  return cleave_cost_estimate(&rates, view, out_nanoseconds, message);
}

static cleave_status_t check_setting(const cleave_key_value_t *setting, cleave_message_t *message) {
  const char *value = setting->value;
  if (strcmp(setting->key, "hint.recompiles") == 0) {
    return value == NULL || strcmp(value, "0") == 0 || strcmp(value, "1") == 0
               ? CLEAVE_OK
               : kernel_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT,
                             "hint.recompiles: expected 0 or 1, found '%.60s'", value);
  }
  bool is_known = strcmp(setting->key, "hint.kernels") == 0 ||
                  (value == NULL &&
                   (strcmp(setting->key, "spare_bytes") == 0 || strcmp(setting->key, "kernels.text") == 0));
  return is_known ? CLEAVE_OK
                  : kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED,
                                "setting '%.60s' is unknown; expected hint.recompiles or hint.kernels, or "
                                "spare_bytes or kernels.text to read",
                                setting->key);
}

// Settings say whether programs will be compiled again, and whether texts of kernels are kept. To be asked
// are the memory that is ready for programs, and, by name, the texts.
static cleave_status_t configure(void *opaque, const cleave_key_value_t *settings, uint32_t setting_count,
                                 const cleave_key_value_t **out_answers, uint32_t *out_answer_count,
                                 cleave_message_t *message) {
  state_t *state = opaque;
  const char *recompiles = NULL;
  uint32_t count = 0;
  for (uint32_t k = 0; k < setting_count; k++) {
    ONEDNN_TRY(check_setting(&settings[k], message));
    if (strcmp(settings[k].key, "hint.kernels") == 0) {
      ONEDNN_TRY(kernel_texts_hint(state->base.texts, settings[k].value, message));
    } else if (strcmp(settings[k].key, "hint.recompiles") == 0 && settings[k].value != NULL) {
      recompiles = settings[k].value;
    } else if (strcmp(settings[k].key, "kernels.text") == 0 && count == 0) {
      state->answers[count++] = (cleave_key_value_t){"kernels.text", kernel_texts_read(state->base.texts)};
    }
  }
  if (recompiles != NULL) {
    onednn_store_prepare(state->base.store, strcmp(recompiles, "1") == 0);
  }
  (void)snprintf(state->spare_text, sizeof(state->spare_text), "%zu", onednn_store_spare(state->base.store));
  state->answers[count++] = (cleave_key_value_t){.key = "spare_bytes", .value = state->spare_text};
  *out_answers = state->answers;
  *out_answer_count = count;
  return CLEAVE_OK;
}

static char library_version[32] = "";
static char description[256] = "";

static const cleave_backend_t backend = {
    .size = sizeof(cleave_backend_t),
    .abi_major = CLEAVE_BACKEND_ABI_MAJOR,
    .abi_minor = CLEAVE_BACKEND_ABI_MINOR,
    .name = "onednn",
    .version = library_version,
    .description = description,
    .initialise = initialise,
    .destroy = destroy,
    .supports = supports,
    .compile = compile,
    .unload = unload,
    .info = info,
    .run = run,
    .profile = profile,
    .cost = cost,
    .review = review,
    .configure = configure,
    .blobs = &blobs,
};

// Describes the backend, and the precisions in which this processor multiplies.
static void describe_precisions(void) {
  static const dnnl_data_type_t types[] = {dnnl_bf16, dnnl_f16};
  int used = snprintf(description, sizeof(description),
                      "oneDNN on the CPU: one primitive per fusion, blocked layouts inside regions; float32");
  for (size_t k = 0; k < sizeof(types) / sizeof(types[0]); k++) {
    const char *missing = onednn_type_missing(types[k]);
    if (used > 0 && (size_t)used < sizeof(description)) {
      used += snprintf(description + used, sizeof(description) - (size_t)used, ", %s%s%s",
                       onednn_type_name(types[k]), missing != NULL ? " not: " : "",
                       missing != NULL ? missing : "");
    }
  }
}

// oneDNN keeps to what our kernels are allowed. Once it was asked for anything it refuses: then it has the
// limit of an earlier call, or what the program chose.
static void limit_instructions(void) {
  switch (kernel_instructions_allowed()) {
    case KERNEL_PLAIN: (void)dnnl_set_max_cpu_isa(dnnl_cpu_isa_sse41); break;
    case KERNEL_AVX2: (void)dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2); break;
    case KERNEL_AVX512: (void)dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx512_core_bf16); break;
    default: break;
  }
}

const cleave_backend_t *cleave_backend_onednn(uint32_t abi_major, uint32_t abi_minor,
                                              cleave_message_t *message);

const cleave_backend_t *cleave_backend_onednn(uint32_t abi_major, uint32_t abi_minor,
                                              cleave_message_t *message) {
  (void)abi_minor;
  if (abi_major != CLEAVE_BACKEND_ABI_MAJOR) {
    (void)kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "backend interface %u, expected %u",
                      (unsigned)abi_major, (unsigned)CLEAVE_BACKEND_ABI_MAJOR);
    return NULL;
  }
  limit_instructions();
  const dnnl_version_t *version = dnnl_version();
  (void)snprintf(library_version, sizeof(library_version), "%d.%d.%d", version->major, version->minor,
                 version->patch);
  describe_precisions();
  return &backend;
}
