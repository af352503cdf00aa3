// SPDX-License-Identifier: Apache-2.0
// The test accelerator: our cpu kernels behind the header, on devices with memory of their own. This file is
// the table that cleave sees; questions about nodes go on to the cpu backend inside of this library, compiled
// from the same sources as the one that is linked into cleave, which knows nothing of this one.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "program.h"

const cleave_backend_t *cleave_backend_cpu(uint32_t abi_major, uint32_t abi_minor, cleave_message_t *message);

/* ---- what the files share ---- */

static void write_line(cleave_message_t *message, cleave_reason_code_t code, const char *format,
                       va_list list) {
  message->code = code;
  (void)vsnprintf(message->text, sizeof message->text, format, list);
}

cleave_status_t mirror_fail(cleave_message_t *message, cleave_status_t status, cleave_reason_code_t code,
                            const char *format, ...) {
  va_list list;
  va_start(list, format);
  write_line(message, code, format, list);
  va_end(list);
  return status;
}

cleave_status_t mirror_misuse(mirror_t *mirror, cleave_message_t *message, const char *format, ...) {
  va_list list;
  va_start(list, format);
  write_line(message, CLEAVE_REASON_NONE, format, list);
  va_end(list);
  mirror_count(&mirror->counters.misuses, 1);
  return CLEAVE_ERROR_INVALID_ARGUMENT;
}

bool mirror_tensor_bytes(const cleave_tensor_view_t *tensor, size_t *out_bytes) {
  int64_t count = tensor->rank > CLEAVE_MAX_RANK ? -1 : cleave_view_element_count(tensor);
  size_t each = cleave_dtype_size(tensor->dtype);
  bool is_dense =
      tensor->size <= offsetof(cleave_tensor_view_t, storage) || tensor->storage == CLEAVE_STORAGE_DENSE;
  *out_bytes = 0;
  if (!is_dense || count < 0 || each == 0 || (uint64_t)count > SIZE_MAX / 2 / each) {
    return false;
  }
  *out_bytes = (size_t)count * each;
  return true;
}

void mirror_sleep(uint64_t nanoseconds) {
  struct timespec left = {.tv_sec = (time_t)(nanoseconds / 1000000000u),
                          .tv_nsec = (long)(nanoseconds % 1000000000u)};
  while (nanosleep(&left, &left) != 0) {
  }
}

bool mirror_parse_number(const char *text, uint64_t *out_number) {
  uint64_t number = 0;
  if (text == NULL || text[0] == '\0' || strspn(text, "0123456789") != strlen(text) || strlen(text) > 18) {
    return false;
  }
  for (const char *digit = text; *digit != '\0'; digit++) {
    number = 10 * number + (uint64_t)(*digit - '0');
  }
  *out_number = number;
  return true;
}

/* ---- starting ---- */

static void destroy(void *state) {
  mirror_t *mirror = state;
  if (mirror == NULL) {
    return;
  }
  if (mirror->cpu != NULL) {
    mirror->cpu->destroy(mirror->cpu_state);
  }
  for (uint32_t d = 0; d < MIRROR_DEVICES; d++) {
    mirror_pool_deinit(&mirror->pools[d]);
  }
  free(mirror);
}

/* Each device has half of the memory of the machine, as far as that is known. */
static size_t device_bytes(void) {
  long pages = sysconf(_SC_PHYS_PAGES);
  long page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? (size_t)pages / 2 * (size_t)page : (size_t)1 << 30;
}

static cleave_status_t initialise(const cleave_host_t *host, void **out_state, cleave_message_t *message) {
  *out_state = NULL;
  mirror_t *mirror = calloc(1, sizeof *mirror);
  if (mirror == NULL) {
    return mirror_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, CLEAVE_REASON_NONE, "no memory for its state");
  }
  mirror->host = host;
  bool has_locks = true;
  for (uint32_t d = 0; d < MIRROR_DEVICES; d++) {
    has_locks = mirror_pool_init(&mirror->pools[d], device_bytes()) && has_locks;
  }
  cleave_status_t status = has_locks ? CLEAVE_OK
                                     : mirror_fail(message, CLEAVE_ERROR_BACKEND, CLEAVE_REASON_DEVICE,
                                                   "no lock for the memory of a device");
  const cleave_backend_t *cpu =
      cleave_backend_cpu(CLEAVE_BACKEND_ABI_MAJOR, CLEAVE_BACKEND_ABI_MINOR, message);
  if (status == CLEAVE_OK) {
    status = cpu == NULL ? CLEAVE_ERROR_UNSUPPORTED : cpu->initialise(host, &mirror->cpu_state, message);
  }
  if (status != CLEAVE_OK) {
    destroy(mirror);
    return status;
  }
  mirror->cpu = cpu;
  *out_state = mirror;
  return CLEAVE_OK;
}

/* ---- questions ---- */

static cleave_status_t supports(void *state, const cleave_region_view_t *view, cleave_message_t *reason) {
  mirror_t *mirror = state;
  for (uint32_t v = 0; v < view->value_count; v++) {
    if (view->values[v].tensor.dtype == CLEAVE_DTYPE_STRING) {
      return mirror_fail(reason, CLEAVE_ERROR_UNSUPPORTED, CLEAVE_REASON_DTYPE,
                         "'%.100s': texts do not lie in memory of a device", view->values[v].name);
    }
  }
  return mirror->cpu->supports(mirror->cpu_state, view, reason);
}

/* The weights of a region have to find room on a device. */
static cleave_status_t review(void *state, const cleave_region_view_t *region, bool *keep,
                              cleave_message_t *message) {
  mirror_t *mirror = state;
  size_t total = 0;
  (void)keep;
  for (uint32_t v = 0; v < region->value_count; v++) {
    size_t bytes = 0;
    if (region->values[v].tensor.data != NULL && mirror_tensor_bytes(&region->values[v].tensor, &bytes)) {
      total = bytes > SIZE_MAX - total ? SIZE_MAX : total + bytes;
    }
  }
  return total <= mirror->pools[0].capacity
             ? CLEAVE_OK
             : mirror_fail(message, CLEAVE_ERROR_UNSUPPORTED, CLEAVE_REASON_DEVICE,
                           "its weights have %zu bytes, a device has %zu", total, mirror->pools[0].capacity);
}

/* What the kernels take on cpu, a launch, and the border's way to the device and back. */
static cleave_status_t cost(void *state, const cleave_region_view_t *view, double *out_nanoseconds,
                            cleave_message_t *message) {
  static const double LAUNCH_NS = 1000.0;
  static const double BYTES_PER_NS = 8.0;
  mirror_t *mirror = state;
  double bytes = 0.0;
  cleave_status_t status = mirror->cpu->cost(mirror->cpu_state, view, out_nanoseconds, message);
  if (status != CLEAVE_OK) {
    return status;
  }
  for (uint32_t k = 0; k < view->input_count + view->output_count; k++) {
    uint32_t value = k < view->input_count ? view->inputs[k] : view->outputs[k - view->input_count];
    size_t own = 0;
    if (mirror_tensor_bytes(&view->values[value].tensor, &own)) {
      bytes += (double)own;
    }
  }
  *out_nanoseconds += LAUNCH_NS + bytes / BYTES_PER_NS;
  return CLEAVE_OK;
}

/* ---- regions ---- */

static cleave_status_t compile(void *state, const cleave_region_view_t *region,
                               const cleave_compile_options_t *options, void **out_program,
                               cleave_message_t *message) {
  mirror_t *mirror = state;
  mirror_program_t *program = NULL;
  cleave_status_t status = mirror_program_create(mirror, region, options, false, &program, message);
  mirror_count(&mirror->counters.compiled, status == CLEAVE_OK);
  *out_program = program;
  return status;
}

static void unload(void *program) {
  mirror_program_destroy(program);
}

static const cleave_program_info_t *info(const void *program) {
  return &((const mirror_program_t *)program)->info;
}

static cleave_status_t run(void *program, const cleave_run_args_t *args, cleave_message_t *message) {
  return mirror_program_launch(program, args, message);
}

static uint32_t profile(const void *program, const cleave_step_time_t **out_steps) {
  const mirror_program_t *self = program;
  return self->mirror->cpu->profile(self->program, out_steps);
}

/* ---- the table ---- */

static const char *const rule_files[] = {"mirror.lua"};

static const cleave_backend_extensions_t extensions = {
    .size = sizeof extensions,
    .rule_files = rule_files,
    .rule_file_count = sizeof rule_files / sizeof rule_files[0]};

static const char *const option_keys[] = {"latency_ns"};

static const cleave_backend_t backend = {
    .size = sizeof backend,
    .abi_major = CLEAVE_BACKEND_ABI_MAJOR,
    .abi_minor = CLEAVE_BACKEND_ABI_MINOR,
    .name = "mirror",
    .version = MIRROR_VERSION,
    .description =
        "test accelerator: the cpu kernels behind the header, on two devices with memory of their own",
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
    .configure = mirror_configure,
    .adds = true,
    .devices = &mirror_devices,
    .imperative = &mirror_imperative,
    .blobs = &mirror_blobs,
    .extensions = &extensions,
    .option_keys = option_keys,
    .option_key_count = sizeof option_keys / sizeof option_keys[0]};

const cleave_backend_t *cleave_backend_entry(uint32_t abi_major, uint32_t abi_minor,
                                             cleave_message_t *message);
const cleave_backend_t *cleave_backend_entry(uint32_t abi_major, uint32_t abi_minor,
                                             cleave_message_t *message) {
  (void)abi_minor;
  if (abi_major != CLEAVE_BACKEND_ABI_MAJOR) {
    cleave_status_t status = mirror_fail(message, CLEAVE_ERROR_UNSUPPORTED, CLEAVE_REASON_VERSION,
                                         "made for interface version %u, this is version %u",
                                         CLEAVE_BACKEND_ABI_MAJOR, (unsigned)abi_major);
    return status == CLEAVE_OK ? &backend : NULL;
  }
  return &backend;
}
