// SPDX-License-Identifier: Apache-2.0
// Calls of NVRTC. What it says goes to the log line by line, with the text; the message has its first error.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler.h"

enum { MAX_ARCHITECTURES = 64 };

/* The newest one that the device can run: of its generation, not above it. Without one, an instruction set
 * that the driver compiles for the device. */
cleave_status_t cuda_nvrtc_architecture(cuda_state_t *state, int32_t capability, char *out_name, size_t size,
                                        bool *out_ptx, cleave_message_t *message) {
  int known[MAX_ARCHITECTURES];
  int count = 0;
  int real = 0;
  int virtual = 0;
  const cuda_nvrtc_t *nvrtc = &state->libraries.nvrtc;
  if (nvrtc->architecture_count(&count) != 0 || count <= 0 || count > MAX_ARCHITECTURES ||
      nvrtc->architectures(known) != 0) {
    return cuda_fail(message, CLEAVE_ERROR_BACKEND, CLEAVE_REASON_NONE,
                     "NVRTC does not say which architectures it knows");
  }
  for (int k = 0; k < count; k++) {
    bool is_below = known[k] <= capability;
    real = is_below && known[k] / 10 == capability / 10 && known[k] > real ? known[k] : real;
    virtual = is_below && known[k] > virtual ? known[k] : virtual;
  }
  *out_ptx = real == 0;
  if (virtual == 0) {
    return cuda_fail(message, CLEAVE_ERROR_UNSUPPORTED, CLEAVE_REASON_VERSION,
                     "this NVRTC compiles for compute capability %d.%d and newer, the device has %d.%d",
                     known[0] / 10, known[0] % 10, (int)capability / 10, (int)capability % 10);
  }
  (void)snprintf(out_name, size, "%s_%d", *out_ptx ? "compute" : "sm", *out_ptx ? virtual : real);
  return CLEAVE_OK;
}

static void log_lines(const cuda_state_t *state, int32_t level, const char *text) {
  char line[400];
  while (*text != '\0') {
    size_t length = strcspn(text, "\n");
    (void)snprintf(line, sizeof line, "cuda: %.*s", length < 390 ? (int)length : 390, text);
    cuda_log(state, level, line);
    text += length + (text[length] == '\n');
  }
}

/* The line of the log with the first error. */
static void first_error(const char *log, char *out_line, size_t size) {
  const char *at = strstr(log, "error");
  at = at == NULL ? log : at;
  while (at > log && at[-1] != '\n') {
    at--;
  }
  (void)snprintf(out_line, size, "%.*s", (int)strcspn(at, "\n"), at);
}

static cleave_status_t refuse(const cuda_state_t *state, cuda_nvrtc_program_t program, int32_t result,
                              const cuda_source_t *source, cleave_message_t *message) {
  const cuda_nvrtc_t *nvrtc = &state->libraries.nvrtc;
  char line[150] = "";
  size_t size = 0;
  char *log = program != NULL && nvrtc->log_size(program, &size) == 0 && size > 0 ? malloc(size + 1) : NULL;
  if (log != NULL && nvrtc->log(program, log) == 0) {
    log[size] = '\0';
    first_error(log, line, sizeof line);
    log_lines(state, 1, log);
  }
  free(log);
  log_lines(state, 3, source->text);
  bool is_text = result == CUDA_NVRTC_COMPILATION || result == CUDA_NVRTC_INVALID_OPTION;
  return cuda_fail(message, is_text ? CLEAVE_ERROR_UNSUPPORTED : CLEAVE_ERROR_BACKEND, CLEAVE_REASON_NONE,
                   "NVRTC does not compile a kernel: %s%s%s", nvrtc->error_string(result),
                   line[0] == '\0' ? "" : ": ", line);
}

static cleave_status_t take_image(const cuda_nvrtc_t *nvrtc, cuda_nvrtc_program_t program, bool wants_ptx,
                                  cuda_image_t *out_image, cleave_message_t *message) {
  size_t size = 0;
  int32_t result = wants_ptx ? nvrtc->ptx_size(program, &size) : nvrtc->cubin_size(program, &size);
  char *bytes = result == 0 && size > 0 ? malloc(size) : NULL;
  if (bytes != NULL) {
    result = wants_ptx ? nvrtc->ptx(program, bytes) : nvrtc->cubin(program, bytes);
  }
  if (bytes == NULL || result != 0) {
    free(bytes);
    return cuda_fail(message, CLEAVE_ERROR_BACKEND, CLEAVE_REASON_NONE,
                     "NVRTC gives no code for a kernel: %s", nvrtc->error_string(result));
  }
  *out_image = (cuda_image_t){bytes, size};
  return CLEAVE_OK;
}

cleave_status_t cuda_nvrtc_compile(cuda_state_t *state, const cuda_source_t *source, const char *architecture,
                                   bool wants_ptx, cuda_image_t *out_image, cleave_message_t *message) {
  const cuda_nvrtc_t *nvrtc = &state->libraries.nvrtc;
  cuda_nvrtc_program_t program = NULL;
  const char *options[CUDA_MAX_OPTIONS + 1];
  char target[64];
  int32_t count = source->option_count < CUDA_MAX_OPTIONS ? source->option_count : CUDA_MAX_OPTIONS;
  memcpy(options, source->options, (size_t)count * sizeof *options);
  (void)snprintf(target, sizeof target, "--gpu-architecture=%s", architecture);
  options[count] = target;
  int32_t result = nvrtc->create(&program, source->text, "kernel.cu", 0, NULL, NULL);
  if (result != 0) {
    return refuse(state, NULL, result, source, message);
  }
  result = nvrtc->compile(program, count + 1, options);
  cleave_status_t status = result != 0 ? refuse(state, program, result, source, message)
                                       : take_image(nvrtc, program, wants_ptx, out_image, message);
  (void)nvrtc->destroy(&program);
  return status;
}
