// SPDX-License-Identifier: Apache-2.0
// From a region to a program of the cpu backend whose weights lie on the device, and its launch. What a
// region and a single operator differ in is decided when they are compiled; a run sees tables of places only.
#include "program.h"

#include <stdlib.h>
#include <string.h>

#include "stream.h"

/* ---- options ---- */

static cleave_status_t read_options(mirror_t *mirror, const cleave_key_value_t *options, uint32_t count,
                                    uint64_t *latency_ns, cleave_message_t *message) {
  for (uint32_t k = 0; k < count; k++) {
    if (options[k].key == NULL || strcmp(options[k].key, "latency_ns") != 0) {
      return mirror_misuse(mirror, message,
                           "option '%.60s' is unknown: programs have latency_ns, configure has more",
                           options[k].key == NULL ? "" : options[k].key);
    }
    if (!mirror_parse_number(options[k].value, latency_ns)) {
      return mirror_misuse(mirror, message, "option 'latency_ns': expected nanoseconds, found '%.60s'",
                           options[k].value == NULL ? "" : options[k].value);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t read_compile_options(mirror_program_t *program,
                                            const cleave_compile_options_t *options,
                                            cleave_message_t *message) {
  bool has_device = options->size > offsetof(cleave_compile_options_t, options);
  program->device = has_device ? options->device : 0;
  cleave_status_t status = mirror_check_device(program->mirror, program->device, message);
  return status != CLEAVE_OK || !has_device
             ? status
             : read_options(program->mirror, options->options, options->option_count, &program->latency_ns,
                            message);
}

/* ---- compiling ---- */

static cleave_status_t out_of_memory(cleave_message_t *message) {
  return mirror_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, CLEAVE_REASON_NONE, "no memory for the program");
}

/* Copies a constant to the device. */
static cleave_status_t upload(mirror_program_t *program, cleave_value_view_t *value,
                              cleave_message_t *message) {
  mirror_pool_t *pool = &program->mirror->pools[program->device];
  size_t bytes = 0;
  if (!mirror_tensor_bytes(&value->tensor, &bytes)) {
    return mirror_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT, CLEAVE_REASON_SHAPE,
                       "constant '%.100s' is no dense tensor of known shape and dtype", value->name);
  }
  void *memory = NULL;
  cleave_status_t status = mirror_pool_allocate(pool, bytes, true, &memory);
  if (status != CLEAVE_OK) {
    return mirror_fail(message, status, CLEAVE_REASON_DEVICE, "device %u is full: no %zu bytes for '%.100s'",
                       (unsigned)program->device, bytes, value->name);
  }
  program->weights[program->weight_count++] = memory;
  program->weight_bytes += bytes;
  memcpy(memory, value->tensor.data, bytes);
  value->tensor.data = memory;
  return CLEAVE_OK;
}

static cleave_status_t make_arguments(mirror_program_t *program, const cleave_region_view_t *region,
                                      cleave_message_t *message) {
  program->input_count = region->input_count;
  program->output_count = region->output_count;
  program->inputs = calloc((size_t)region->input_count + 1, sizeof *program->inputs);
  program->outputs = calloc((size_t)region->output_count + 1, sizeof *program->outputs);
  program->staged = calloc((size_t)region->input_count + 1, sizeof *program->staged);
  program->extras = calloc((size_t)region->output_count + 1, sizeof *program->extras);
  if (program->inputs == NULL || program->outputs == NULL || program->staged == NULL ||
      program->extras == NULL) {
    return out_of_memory(message);
  }
  for (uint32_t k = 0; k < region->output_count; k++) {
    bool is_known = cleave_view_element_count(&region->values[region->outputs[k]].tensor) >= 0;
    program->has_open_shapes = program->has_open_shapes || !is_known;
  }
  return CLEAVE_OK;
}

/* The region as the cpu backend gets it, into `values`: constants are on the device, or come with every run.
 */
static cleave_status_t translate(mirror_program_t *program, const cleave_region_view_t *region,
                                 cleave_value_view_t *values, cleave_message_t *message) {
  for (uint32_t v = 0; v < region->value_count; v++) {
    values[v] = region->values[v];
  }
  for (uint32_t k = 0; k < region->input_count; k++) {
    values[region->inputs[k]].tensor.data = NULL;
  }
  for (uint32_t v = 0; v < region->value_count; v++) {
    cleave_status_t status = values[v].tensor.data == NULL ? CLEAVE_OK : upload(program, &values[v], message);
    if (status != CLEAVE_OK) {
      return status;
    }
  }
  return make_arguments(program, region, message);
}

static cleave_status_t compile(mirror_program_t *program, const cleave_region_view_t *source,
                               const cleave_compile_options_t *options, cleave_message_t *message) {
  mirror_t *mirror = program->mirror;
  mirror_pool_t *pool = &mirror->pools[program->device];
  cleave_region_view_t region = {0};
  memcpy(&region, source, source->size < sizeof region ? source->size : sizeof region);
  cleave_value_view_t *values = calloc((size_t)source->value_count + 1, sizeof *values);
  program->weights = calloc((size_t)source->value_count + 1, sizeof *program->weights);
  cleave_status_t status = CLEAVE_OK;
  mirror_pool_open(pool);
  if (values == NULL || program->weights == NULL) {
    status = out_of_memory(message);
  }
  if (status == CLEAVE_OK) {
    status = translate(program, &region, values, message);
    region.values = values;
  }
  if (status == CLEAVE_OK) {
    status = mirror->cpu->compile(mirror->cpu_state, &region, options, &program->program, message);
  }
  mirror_pool_close(pool);
  free(values);
  return status;
}

cleave_status_t mirror_program_create(mirror_t *mirror, const cleave_region_view_t *region,
                                      const cleave_compile_options_t *options, bool is_single,
                                      mirror_program_t **out_program, cleave_message_t *message) {
  *out_program = NULL;
  if (is_single && region->node_count != 1) {
    return mirror_misuse(mirror, message, "an executor is for one node, this region has %u",
                         (unsigned)region->node_count);
  }
  mirror_program_t *program = calloc(1, sizeof *program);
  if (program == NULL) {
    return out_of_memory(message);
  }
  program->mirror = mirror;
  program->is_single = is_single;
  program->hash = region->hash;
  program->latency_ns = atomic_load(&mirror->settings.latency_ns);
  cleave_status_t status = read_compile_options(program, options, message);
  if (status == CLEAVE_OK) {
    status = compile(program, region, options, message);
  }
  if (status != CLEAVE_OK) {
    mirror_program_destroy(program);
    return status;
  }
  program->info = *mirror->cpu->info(program->program);
  program->info.persistent_bytes += program->weight_bytes;
  *out_program = program;
  return CLEAVE_OK;
}

void mirror_program_destroy(mirror_program_t *program) {
  if (program == NULL) {
    return;
  }
  mirror_t *mirror = program->mirror;
  if (program->program != NULL) {
    mirror->cpu->unload(program->program);
  }
  for (uint32_t k = 0; k < program->weight_count; k++) {
    (void)mirror_pool_free(&mirror->pools[program->device], program->weights[k], true);
  }
  for (uint32_t k = 0; k < program->input_count && program->staged != NULL; k++) {
    mirror_buffer_free(program, &program->staged[k]);
  }
  for (uint32_t k = 0; k < program->output_count && program->extras != NULL; k++) {
    mirror_buffer_free(program, &program->extras[k].buffer);
    mirror_adder_deinit(program, &program->extras[k].adder);
  }
  mirror_buffer_free(program, &program->workspace);
  free(program->weights);
  free(program->inputs);
  free(program->outputs);
  free(program->staged);
  free(program->extras);
  free(program);
}

/* ---- running ---- */

static bool is_1_1(const cleave_run_args_t *args) {
  return args->size > offsetof(cleave_run_args_t, options);
}

/* All tensors lie on the device and are written to: the cpu program can have the arguments as they are. */
static cleave_status_t inspect(mirror_program_t *program, const cleave_run_args_t *args, bool *out_direct,
                               cleave_message_t *message) {
  bool is_staged = false;
  *out_direct = true;
  for (uint32_t k = 0; k < program->output_count && is_1_1(args) && args->requests != NULL; k++) {
    *out_direct = *out_direct && args->requests[k] == CLEAVE_REQUEST_WRITE;
  }
  for (uint32_t k = 0; k < program->input_count && *out_direct; k++) {
    cleave_status_t status = mirror_place(program, &args->inputs[k], "input", k, &is_staged, message);
    if (status != CLEAVE_OK) {
      return status;
    }
    *out_direct = !is_staged;
  }
  for (uint32_t k = 0; k < program->output_count && *out_direct; k++) {
    if (args->outputs[k].data == NULL) {
      *out_direct = false;
      break;
    }
    cleave_status_t status = mirror_place(program, &args->outputs[k], "output", k, &is_staged, message);
    if (status != CLEAVE_OK) {
      return status;
    }
    *out_direct = !is_staged;
  }
  if (*out_direct && program->info.workspace_bytes > 0) {  // single operators bring their own
    *out_direct = !program->is_single && mirror_pool_holds(&program->mirror->pools[program->device],
                                                           args->workspace, program->info.workspace_bytes);
  }
  return CLEAVE_OK;
}

cleave_status_t mirror_program_execute(mirror_program_t *program, const cleave_run_args_t *args,
                                       cleave_message_t *message) {
  mirror_t *mirror = program->mirror;
  mirror_pool_t *pool = &mirror->pools[program->device];
  uint64_t latency_ns = program->latency_ns;
  bool is_direct = false;
  cleave_status_t status = CLEAVE_OK;
  if (atomic_exchange(&program->is_busy, true)) {
    return mirror_misuse(mirror, message, "the program runs already: one call at a time");
  }
  if (is_1_1(args) && args->option_count > 0) {
    status = read_options(mirror, args->options, args->option_count, &latency_ns, message);
  }
  if (latency_ns > 0) {
    mirror_sleep(latency_ns);
  }
  mirror_count(program->is_single ? &mirror->counters.executions : &mirror->counters.runs, 1);
  mirror_pool_open(pool);
  if (status == CLEAVE_OK) {
    status = inspect(program, args, &is_direct, message);
  }
  if (status == CLEAVE_OK) {
    status = is_direct ? mirror->cpu->run(program->program, args, message)
                       : mirror_program_detour(program, args, message);
  }
  mirror_pool_close(pool);
  atomic_store(&program->is_busy, false);
  return status;
}

cleave_status_t mirror_program_launch(mirror_program_t *program, const cleave_run_args_t *args,
                                      cleave_message_t *message) {
  mirror_t *mirror = program->mirror;
  mirror_stream_t *stream = is_1_1(args) ? args->stream : NULL;
  if (stream == NULL) {
    return mirror_program_execute(program, args, message);
  }
  if (mirror_stream_device(stream) != program->device) {
    return mirror_misuse(mirror, message, "the stream is of device %u, the program of device %u",
                         (unsigned)mirror_stream_device(stream), (unsigned)program->device);
  }
  mirror_count(&mirror->counters.launches_queued, 1);
  // Whoever is asked for memory during the run has to know it when this call returns.
  bool waits = program->has_open_shapes && args->resize_output != NULL;
  return waits ? mirror_stream_run_and_wait(stream, program, args, message)
               : mirror_stream_run(stream, program, args, message);
}
