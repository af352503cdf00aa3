// SPDX-License-Identifier: Apache-2.0
// Regions on a device, without copies over the bus: time per run, bytes read and written per second, and the
// ratio to the first region, which should be a copy. Arguments: runs, then NAME=FILE of regions (cleave
// partition --regions).
//
// A run is put on a stream many times before it is waited for, so that what is measured is the device, or,
// for small regions, launching.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/region/region_file.h"
#include "backend/registry/registry.h"
#include "system/clock.h"

enum { MAX_TENSORS = 256, BATCHES = 9, WARM_RUNS = 4 };

typedef struct device {
  const cleave_backend_t *backend;
  void *state;
  void *stream;
  cleave_message_t message;
} device_t;

typedef struct measured {
  double microseconds; /* per run */
  double compile_ms;
  double bytes; /* of inputs and outputs */
} measured_t;

/* Says what failed. */
static bool works(const device_t *device, cleave_status_t status, const char *what) {
  if (status != CLEAVE_OK) {
    printf("%s failed: %s\n", what, device->message.text);
  }
  return status == CLEAVE_OK;
}

static size_t bytes_of(const cleave_tensor_view_t *tensor) {
  int64_t count = cleave_view_element_count(tensor);
  return count < 0 ? 0 : (size_t)count * cleave_dtype_size(tensor->dtype);
}

static bool allocate(device_t *device, size_t bytes, void **out_memory) {
  return works(device, device->backend->devices->alloc(device->state, 0, bytes, out_memory, &device->message),
               "memory");
}

/* Small numbers, in every dtype that is not an index; indices are 0. */
static bool fill(device_t *device, const cleave_tensor_view_t *tensor) {
  size_t bytes = bytes_of(tensor);
  unsigned char *data = calloc(bytes > 0 ? bytes : 1, 1);
  cleave_tensor_view_t host = *tensor;
  for (size_t k = 0; data != NULL && tensor->dtype == CLEAVE_DTYPE_F32 && k < bytes / 4; k++) {
    ((float *)(void *)data)[k] = (float)(k * 37 % 101) / 101.0f - 0.5f;
  }
  for (size_t k = 0; data != NULL && tensor->dtype == CLEAVE_DTYPE_F16 && k < bytes / 2; k++) {
    ((uint16_t *)(void *)data)[k] = (uint16_t)(0x3000u + k * 37 % 1024);
  }
  host.data = data;
  host.memory = CLEAVE_MEMORY_HOST;
  cleave_status_t status = data == NULL ? CLEAVE_ERROR_OUT_OF_MEMORY
                                        : device->backend->devices->copy_to(device->state, 0, tensor, &host,
                                                                            NULL, &device->message);
  free(data);
  return works(device, status, "copy");
}

static int by_size(const void *a, const void *b) {
  double left = *(const double *)a;
  double right = *(const double *)b;
  return (left > right) - (left < right);
}

static bool run_often(device_t *device, void *program, const cleave_run_args_t *args, int runs) {
  bool is_well = true;
  for (int k = 0; k < runs && is_well; k++) {
    is_well = works(device, device->backend->run(program, args, &device->message), "run");
  }
  return is_well &&
         works(device, device->backend->devices->stream_wait(device->state, device->stream, &device->message),
               "wait");
}

/* The median of batches of runs, in microseconds per run; below 0 if one failed. */
static double time_runs(device_t *device, void *program, const cleave_run_args_t *args, int runs) {
  double times[BATCHES];
  if (!run_often(device, program, args, WARM_RUNS)) {
    return -1.0;
  }
  for (int batch = 0; batch < BATCHES; batch++) {
    uint64_t start = cleave_clock_now();
    if (!run_often(device, program, args, runs)) {
      return -1.0;
    }
    times[batch] = cleave_clock_ms(start, cleave_clock_now()) * 1e3 / runs;
  }
  qsort(times, BATCHES, sizeof times[0], by_size);
  return times[BATCHES / 2];
}

static bool place(device_t *device, cleave_tensor_view_t *tensor, double *bytes) {
  void *memory = NULL;
  bool is_well = allocate(device, bytes_of(tensor), &memory);
  tensor->data = memory;
  tensor->memory = 1;
  *bytes += (double)bytes_of(tensor);
  return is_well;
}

/* False if something failed, which is then printed. */
static bool measure(device_t *device, const cleave_region_view_t *region, int runs,
                    measured_t *out_measured) {
  static cleave_tensor_view_t inputs[MAX_TENSORS];
  static cleave_tensor_view_t outputs[MAX_TENSORS];
  measured_t measured = {0};
  void *program = NULL;
  void *workspace = NULL;
  const cleave_compile_options_t options = {.size = sizeof options, .threads = 1};
  uint64_t start = cleave_clock_now();
  if (!works(device, device->backend->compile(device->state, region, &options, &program, &device->message),
             "compile")) {
    return false;
  }
  measured.compile_ms = cleave_clock_ms(start, cleave_clock_now());
  bool is_well = true;
  memset(inputs, 0, sizeof inputs);
  memset(outputs, 0, sizeof outputs);
  for (uint32_t k = 0; k < region->input_count && is_well; k++) {
    inputs[k] = region->values[region->inputs[k]].tensor;
    is_well = place(device, &inputs[k], &measured.bytes) && fill(device, &inputs[k]);
  }
  for (uint32_t k = 0; k < region->output_count && is_well; k++) {
    outputs[k] = region->values[region->outputs[k]].tensor;
    is_well = place(device, &outputs[k], &measured.bytes);
  }
  is_well = is_well && allocate(device, device->backend->info(program)->workspace_bytes, &workspace);
  if (is_well) {
    const cleave_run_args_t args = {.size = sizeof args,
                                    .inputs = inputs,
                                    .outputs = outputs,
                                    .workspace = workspace,
                                    .stream = device->stream};
    measured.microseconds = time_runs(device, program, &args, runs);
    is_well = measured.microseconds > 0;
  }
  device->backend->unload(program);
  device->backend->devices->free(device->state, 0, workspace);
  for (uint32_t k = 0; k < MAX_TENSORS; k++) {
    device->backend->devices->free(device->state, 0, (void *)(uintptr_t)inputs[k].data);
    device->backend->devices->free(device->state, 0, (void *)(uintptr_t)outputs[k].data);
  }
  *out_measured = measured;
  return is_well;
}

int main(int argc, char **argv) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  const cleave_backend_handle_t *handle = NULL;
  double copy = 0;
  int failed = 0;
  int runs = argc > 2 ? atoi(argv[1]) : 0;
  if (runs < 1) {
    printf("usage: %s RUNS NAME=REGION.json...\n", argv[0]);
    return EXIT_FAILURE;
  }
  if (cleave_registry_find(NULL, "cuda", &handle, &error) != CLEAVE_OK) {
    printf("%s\n", error.message);
    return EXIT_FAILURE;
  }
  device_t device = {.backend = handle->backend, .state = handle->state};
  if (!works(&device,
             device.backend->devices->stream_create(device.state, 0, &device.stream, &device.message),
             "stream")) {
    return EXIT_FAILURE;
  }
  printf("%-32s %12s %12s %10s %8s %12s\n", "region", "us", "MiB", "GB/s", "of copy", "compiled ms");
  for (int k = 2; k < argc; k++) {
    cleave_region_file_t *file = NULL;
    measured_t measured = {0};
    char *path = strchr(argv[k], '=');
    if (path == NULL || cleave_region_json_open(path + 1, &file, &error) != CLEAVE_OK) {
      printf("%s: %s\n", argv[k], path == NULL ? "expected NAME=FILE" : error.message);
      return EXIT_FAILURE;
    }
    *path = '\0';
    const cleave_region_view_t *region = &file->view;
    printf("%-32s ", argv[k]);
    if (region->input_count > MAX_TENSORS || region->output_count > MAX_TENSORS) {
      printf("has more than %d inputs or outputs\n", MAX_TENSORS);
      failed++;
    } else if (measure(&device, region, runs, &measured)) {
      double rate = measured.bytes / measured.microseconds * 1e-3;
      copy = k == 2 ? rate : copy;
      printf("%12.2f %12.2f %10.1f %7.1f%% %12.1f\n", measured.microseconds, measured.bytes / 1048576.0, rate,
             copy > 0 ? 100.0 * rate / copy : 0.0, measured.compile_ms);
    } else {
      failed++;
    }
    (void)fflush(stdout);
    cleave_region_file_destroy(file);
  }
  device.backend->devices->stream_destroy(device.state, device.stream);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
