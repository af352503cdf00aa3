// SPDX-License-Identifier: Apache-2.0
// The struct through which cleave sees the reference backend. Its state never changes after the backend
// is initialised: every function here is thread-safe.
#include <stdlib.h>
#include <string.h>

#include "cleave/cost.h"
#include "cpu/fused.h"
#include "cpu/program.h"

static void destroy(void *state) {
  cpu_backend_t *backend = state;
  if (backend != NULL) {
    free((void *)backend->kernels);
    kernel_texts_destroy(backend->texts);
    free(backend);
  }
}

static cleave_status_t initialise(const cleave_host_t *host, void **out_state, cleave_message_t *message) {
  cpu_backend_t *backend = calloc(1, sizeof *backend);
  if (backend != NULL) {
    backend->texts = kernel_texts_create();
  }
  if (backend == NULL || backend->texts == NULL ||
      !cpu_kernel_table_make(&backend->kernels, &backend->kernel_count)) {
    destroy(backend);
    return kernel_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, "no memory for the table of kernels");
  }
  backend->host = host;
  *out_state = backend;
  return CLEAVE_OK;
}

static cleave_status_t supports(void *state, const cleave_region_view_t *view, cleave_message_t *reason) {
  kernel_arena_t arena = {0};
  cleave_status_t status = CLEAVE_OK;
  for (uint32_t k = 0; k < view->node_count && status == CLEAVE_OK; k++) {
    const cpu_kernel_t *kernel = NULL;
    void *kernel_state = NULL;
    status = cpu_prepare_node(state, view, k, &arena, &kernel, &kernel_state, reason);
  }
  kernel_lowerer_t *lowerer = NULL;
  if (view->fusion_count > 0 && status == CLEAVE_OK) {
    status = kernel_lowerer_create(view, &arena, &lowerer, reason);
  }
  for (uint32_t f = 0; f < view->fusion_count && status == CLEAVE_OK; f++) {
    if (cpu_fused_says(view, f, "kernel")) {
      status = cpu_fused_check(lowerer, view->fusions[f].node_count, view->fusions[f].nodes, reason);
    }
  }
  kernel_arena_free(&arena);
  return status;
}

static cleave_status_t compile(void *state, const cleave_region_view_t *region,
                               const cleave_compile_options_t *options, void **out_program,
                               cleave_message_t *message) {
  cpu_program_t *program = NULL;
  cleave_status_t status = cpu_program_compile(state, region, options, &program, message);
  *out_program = program;
  return status;
}

static void unload(void *program) {
  cpu_program_destroy(program);
}

static const cleave_program_info_t *info(const void *program) {
  return &((const cpu_program_t *)program)->info;
}

static cleave_status_t run(void *program, const cleave_run_args_t *args, cleave_message_t *message) {
  return cpu_program_run(program, args, message);
}

static uint32_t profile(const void *program, const cleave_step_time_t **out_steps) {
  const cpu_program_t *self = program;
  *out_steps = self->times;
  return self->times == NULL ? 0 : self->time_count;
}

/* Says nothing about itself: texts of kernels are long, and asked for by name. */
static cleave_status_t configure(void *state, const cleave_key_value_t *settings, uint32_t setting_count,
                                 const cleave_key_value_t **out_answers, uint32_t *out_answer_count,
                                 cleave_message_t *message) {
  cpu_backend_t *backend = state;
  *out_answers = &backend->answer;
  *out_answer_count = 0;
  for (uint32_t k = 0; k < setting_count; k++) {
    if (strcmp(settings[k].key, "hint.kernels") == 0) {
      CPU_TRY(kernel_texts_hint(backend->texts, settings[k].value, message));
    } else if (strcmp(settings[k].key, "kernels.text") == 0 && settings[k].value == NULL) {
      backend->answer = (cleave_key_value_t){settings[k].key, kernel_texts_read(backend->texts)};
      *out_answer_count = 1;
    } else if (strncmp(settings[k].key, "hint.", 5) != 0) {
      return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED,
                         "setting '%.60s' is unknown; expected hint.kernels, or kernels.text to read",
                         settings[k].key);
    }
  }
  return CLEAVE_OK;
}

/* One kernel per node, and per fusion that asks for it, measured once on one core of a server processor with
 * AVX-512: 3x3 convolutions and matrix products through OpenBLAS, depthwise convolutions, Erf and Softmax,
 * additions in cache. */
static const cleave_cost_rates_t rates = {.region_ns = 500.0,
                                          .kernel_ns = 1500.0,
                                          .product = 80.0,
                                          .grouped = 10.0,
                                          .function = 0.9,
                                          .reduction = 5.0,
                                          .pointwise = 10.0,
                                          .bandwidth = 45.0};

/* Nanoseconds that a kernel takes beside its functions and what it moves: per element for its tiles, a link
 * of a chain per operator, and reductions; per row, if rows are short. Measured on one core of an EPYC with
 * AVX2, over 301,056 floats, which stay in the caches: there two operators of a kernel take longer than their
 * nodes, and four take less. */
static double kernel_work(const cleave_region_view_t *view, const cleave_fusion_view_t *fusion) {
  enum { SHORT_ROW = 512 };
  const double tile_ns = 0.25;
  const double link_ns = 0.05;
  const double reduction_ns = 0.25;
  const double row_ns = 40.0;
  double elements = 0;
  double rows = 0;
  double per_element = tile_ns;
  for (uint32_t k = 0; k < fusion->node_count; k++) {
    const cleave_node_view_t *node = &view->nodes[fusion->nodes[k]];
    cleave_cost_class_t kind = cleave_cost_class(node->op);
    const cleave_value_view_t *x = cleave_view_input(view, node, 0);
    double count = x == NULL ? 0 : (double)cleave_view_element_count(&x->tensor);
    elements = count > elements ? count : elements;
    per_element += kind == CLEAVE_COST_POINTWISE ? link_ns : kind == CLEAVE_COST_REDUCTION ? reduction_ns : 0;
    int64_t length = x != NULL && x->tensor.rank > 0 ? x->tensor.dims[x->tensor.rank - 1] : 0;
    if (kind == CLEAVE_COST_REDUCTION && length > 0 && length < SHORT_ROW) {
      rows = count / (double)length;
    }
  }
  return elements * per_element + rows * row_ns;
}

static cleave_status_t cost(void *state, const cleave_region_view_t *view, double *out_nanoseconds,
                            cleave_message_t *message) {
  (void)state;
  cleave_cost_rates_t own = rates;
  double work = 0;
  for (uint32_t f = 0; f < view->fusion_count; f++) {
    if (cpu_fused_says(view, f, "kernel")) {
      own.fuses = true;
      work += kernel_work(view, &view->fusions[f]);
    }
  }
  cleave_status_t status = cleave_cost_estimate(&own, view, out_nanoseconds, message);
  if (status == CLEAVE_OK) {
    *out_nanoseconds += work;
  }
  return status;
}

static const cleave_backend_t cpu_backend = {
    .size = sizeof(cleave_backend_t),
    .abi_major = CLEAVE_BACKEND_ABI_MAJOR,
    .abi_minor = CLEAVE_BACKEND_ABI_MINOR,
    .name = "cpu",
    .version = CLEAVE_VERSION,
    .description = "reference backend: every operator, plain C with OpenBLAS for matrix products",
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
};

const cleave_backend_t *cleave_backend_cpu(uint32_t abi_major, uint32_t abi_minor, cleave_message_t *message);

const cleave_backend_t *cleave_backend_cpu(uint32_t abi_major, uint32_t abi_minor,
                                           cleave_message_t *message) {
  if (abi_major != CLEAVE_BACKEND_ABI_MAJOR) {
    cleave_status_t status =
        kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "cpu: interface version %u.%u, expected %u.%u",
                    (unsigned)abi_major, (unsigned)abi_minor, (unsigned)CLEAVE_BACKEND_ABI_MAJOR,
                    (unsigned)CLEAVE_BACKEND_ABI_MINOR);
    return status == CLEAVE_OK ? &cpu_backend : NULL;
  }
  return &cpu_backend;
}
