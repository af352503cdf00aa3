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

#include "backend/region/region_json.h"
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
  double bytes;        /* of inputs and outputs */
} measured_t;

static void need(const device_t *device, cleave_status_t status, const char *what) {
  if (status != CLEAVE_OK) {
    fprintf(stderr, "%s: %s\n", what, device->message.text);
    exit(EXIT_FAILURE);
  }
}

static size_t bytes_of(const cleave_tensor_view_t *tensor) {
  int64_t count = cleave_view_element_count(tensor);
  return count < 0 ? 0 : (size_t)count * cleave_dtype_size(tensor->dtype);
}

static void allocate(device_t *device, cleave_tensor_view_t *tensor) {
  void *memory = NULL;
  need(device, device->backend->devices->alloc(device->state, 0, bytes_of(tensor), &memory, &device->message),
       "memory");
  tensor->data = memory;
  tensor->memory = 1;
}

/* Small numbers, in every dtype that is not an index; indices are 0. */
static void fill(device_t *device, const cleave_tensor_view_t *tensor) {
  size_t bytes = bytes_of(tensor);
  unsigned char *data = calloc(bytes > 0 ? bytes : 1, 1);
  cleave_tensor_view_t host = *tensor;
  if (data == NULL) {
    need(device, CLEAVE_ERROR_OUT_OF_MEMORY, "memory of the host");
  }
  for (size_t k = 0; tensor->dtype == CLEAVE_DTYPE_F32 && k < bytes / 4; k++) {
    ((float *)(void *)data)[k] = (float)(k * 37 % 101) / 101.0f - 0.5f;
  }
  for (size_t k = 0; tensor->dtype == CLEAVE_DTYPE_F16 && k < bytes / 2; k++) {
    ((uint16_t *)(void *)data)[k] = (uint16_t)(0x3000u + k * 37 % 1024);
  }
  host.data = data;
  host.memory = CLEAVE_MEMORY_HOST;
  need(device, device->backend->devices->copy_to(device->state, 0, tensor, &host, NULL, &device->message),
       "copy");
  free(data);
}

static int by_size(const void *a, const void *b) {
  double left = *(const double *)a;
  double right = *(const double *)b;
  return (left > right) - (left < right);
}

/* The median of batches of runs. */
static double time_runs(device_t *device, void *program, const cleave_run_args_t *args, int runs) {
  double times[BATCHES];
  for (int k = 0; k < WARM_RUNS; k++) {
    need(device, device->backend->run(program, args, &device->message), "run");
  }
  need(device, device->backend->devices->stream_wait(device->state, device->stream, &device->message),
       "wait");
  for (int batch = 0; batch < BATCHES; batch++) {
    uint64_t start = cleave_clock_now();
    for (int k = 0; k < runs; k++) {
      need(device, device->backend->run(program, args, &device->message), "run");
    }
    need(device, device->backend->devices->stream_wait(device->state, device->stream, &device->message),
         "wait");
    times[batch] = cleave_clock_ms(start, cleave_clock_now()) * 1e3 / runs;
  }
  qsort(times, BATCHES, sizeof times[0], by_size);
  return times[BATCHES / 2];
}

static measured_t measure(device_t *device, const cleave_region_view_t *region, int runs) {
  static cleave_tensor_view_t inputs[MAX_TENSORS];
  static cleave_tensor_view_t outputs[MAX_TENSORS];
  measured_t measured = {0};
  void *program = NULL;
  void *workspace = NULL;
  const cleave_compile_options_t options = {.size = sizeof options, .threads = 1};
  need(device, device->backend->compile(device->state, region, &options, &program, &device->message),
       "compile");
  for (uint32_t k = 0; k < region->input_count; k++) {
    inputs[k] = region->values[region->inputs[k]].tensor;
    allocate(device, &inputs[k]);
    fill(device, &inputs[k]);
    measured.bytes += (double)bytes_of(&inputs[k]);
  }
  for (uint32_t k = 0; k < region->output_count; k++) {
    outputs[k] = region->values[region->outputs[k]].tensor;
    allocate(device, &outputs[k]);
    measured.bytes += (double)bytes_of(&outputs[k]);
  }
  size_t needed = device->backend->info(program)->workspace_bytes;
  need(device, device->backend->devices->alloc(device->state, 0, needed, &workspace, &device->message),
       "memory");
  const cleave_run_args_t args = {.size = sizeof args,
                                  .inputs = inputs,
                                  .outputs = outputs,
                                  .workspace = workspace,
                                  .stream = device->stream};
  measured.microseconds = time_runs(device, program, &args, runs);
  device->backend->unload(program);
  device->backend->devices->free(device->state, 0, workspace);
  for (uint32_t k = 0; k < region->input_count; k++) {
    device->backend->devices->free(device->state, 0, (void *)(uintptr_t)inputs[k].data);
  }
  for (uint32_t k = 0; k < region->output_count; k++) {
    device->backend->devices->free(device->state, 0, (void *)(uintptr_t)outputs[k].data);
  }
  return measured;
}

int main(int argc, char **argv) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  const cleave_backend_handle_t *handle = NULL;
  double copy = 0;
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
  need(&device, device.backend->devices->stream_create(device.state, 0, &device.stream, &device.message),
       "stream");
  printf("%-32s %12s %12s %10s %8s\n", "region", "us", "MiB", "GB/s", "of copy");
  for (int k = 2; k < argc; k++) {
    cleave_region_file_t *file = NULL;
    char *path = strchr(argv[k], '=');
    if (path == NULL || cleave_region_json_open(path + 1, &file, &error) != CLEAVE_OK) {
      printf("%s: %s\n", argv[k], path == NULL ? "expected NAME=FILE" : error.message);
      return EXIT_FAILURE;
    }
    *path = '\0';
    const cleave_region_view_t *region = cleave_region_file_view(file);
    if (region->input_count <= MAX_TENSORS && region->output_count <= MAX_TENSORS) {
      measured_t measured = measure(&device, region, runs);
      double rate = measured.bytes / measured.microseconds * 1e-3;
      copy = k == 2 ? rate : copy;
      printf("%-32s %12.2f %12.2f %10.1f %7.1f%%\n", argv[k], measured.microseconds,
             measured.bytes / 1048576.0, rate, copy > 0 ? 100.0 * rate / copy : 0.0);
      (void)fflush(stdout);
    }
    cleave_region_file_destroy(file);
  }
  device.backend->devices->stream_destroy(device.state, device.stream);
  return EXIT_SUCCESS;
}
