// SPDX-License-Identifier: Apache-2.0
// Kernels by key. An image is kept for other devices of the same architecture.
#include "compiler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct kernel {
  cuda_entry_t entry; /* of the image and the device */
  uint32_t device;
  cuda_module_t module;
  cuda_function_t function;
} kernel_t;

typedef struct architecture {
  char name[24];
  bool wants_ptx;
  bool is_known;
} architecture_t;

struct cuda_compiler {
  cuda_state_t *state;
  pthread_mutex_t lock;
  cuda_table_t kernels;
  char folder[CUDA_STORE_MAX_FOLDER]; /* "": none */
  architecture_t architectures[CUDA_MAX_DEVICES];
  int major;
  int minor;
  cuda_compiler_counts_t counts;
  kernel_texts_t *texts;
};

cleave_status_t cuda_compiler_create(cuda_state_t *state, cuda_compiler_t **out_compiler,
                                     cleave_message_t *message) {
  *out_compiler = NULL;
  cuda_compiler_t *compiler = calloc(1, sizeof *compiler);
  kernel_texts_t *texts = kernel_texts_create();
  if (compiler == NULL || texts == NULL || pthread_mutex_init(&compiler->lock, NULL) != 0) {
    kernel_texts_destroy(texts);
    free(compiler);
    return cuda_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, CLEAVE_REASON_NONE, "no memory for a compiler");
  }
  compiler->state = state;
  compiler->texts = texts;
  (void)state->libraries.nvrtc.version(&compiler->major, &compiler->minor);
  if (!cuda_store_folder(compiler->folder, sizeof compiler->folder)) {
    compiler->folder[0] = '\0';
  }
  *out_compiler = compiler;
  return CLEAVE_OK;
}

void cuda_compiler_destroy(cuda_compiler_t *compiler) {
  cleave_message_t message = {.text = ""};
  if (compiler == NULL) {
    return;
  }
  for (cuda_entry_t *entry = cuda_table_take(&compiler->kernels); entry != NULL;
       entry = cuda_table_take(&compiler->kernels)) {
    kernel_t *kernel = (kernel_t *)entry;
    if (cuda_enter(compiler->state, kernel->device, &message) == CLEAVE_OK) {
      (void)compiler->state->libraries.driver.module_unload(kernel->module);
      cuda_leave(compiler->state);
    }
    free(kernel);
  }
  (void)pthread_mutex_destroy(&compiler->lock);
  kernel_texts_destroy(compiler->texts);
  free(compiler);
}

kernel_texts_t *cuda_compiler_texts(cuda_compiler_t *compiler) {
  return compiler->texts;
}

cuda_compiler_counts_t cuda_compiler_count(cuda_compiler_t *compiler) {
  (void)pthread_mutex_lock(&compiler->lock);
  cuda_compiler_counts_t counts = compiler->counts;
  (void)pthread_mutex_unlock(&compiler->lock);
  return counts;
}

static cuda_key_t key_of(const cuda_compiler_t *compiler, const cuda_source_t *source,
                         const architecture_t *architecture) {
  char version[32];
  int length = snprintf(version, sizeof version, "nvrtc %d.%d", compiler->major, compiler->minor);
  cuda_key_t key = {{0, 0}};
  key = cuda_key_add(key, source->text, strlen(source->text) + 1);
  for (int32_t k = 0; k < source->option_count; k++) {
    key = cuda_key_add(key, source->options[k], strlen(source->options[k]) + 1);
  }
  key = cuda_key_add(key, architecture->name, strlen(architecture->name) + 1);
  return cuda_key_add(key, version, (size_t)length);
}

static cleave_status_t load(cuda_compiler_t *compiler, kernel_t *kernel, const char *image, const char *name,
                            cleave_message_t *message) {
  const cuda_driver_t *driver = &compiler->state->libraries.driver;
  CUDA_TRY(
      cuda_check(compiler->state, driver->module_load(&kernel->module, image), "load a kernel", message));
  cleave_status_t status =
      cuda_check(compiler->state, driver->module_function(&kernel->function, kernel->module, name),
                 "find a kernel in its module", message);
  if (status != CLEAVE_OK) {
    (void)driver->module_unload(kernel->module);
  }
  return status;
}

/* An order of a kernel, with the key of its image. */
typedef struct order {
  const cuda_source_t *source;
  const architecture_t *architecture;
  cuda_key_t image;
} order_t;

/* Makes the kernel from disk, if it loads; otherwise by NVRTC. */
static cleave_status_t make(cuda_compiler_t *compiler, const order_t *order, kernel_t *kernel,
                            cleave_message_t *message) {
  const architecture_t *architecture = order->architecture;
  const char *name = order->source->entry;
  cuda_image_t image = {NULL, 0};
  bool has_folder = compiler->folder[0] != '\0';
  if (has_folder && cuda_store_read(compiler->folder, CUDA_STORE_CUBIN, order->image, &image)) {
    cleave_status_t status = load(compiler, kernel, image.bytes, name, message);
    free(image.bytes);
    if (status == CLEAVE_OK) {
      compiler->counts.from_disk++;
      return CLEAVE_OK;
    }
  }
  CUDA_TRY(cuda_nvrtc_compile(compiler->state, order->source, architecture->name, architecture->wants_ptx,
                              &image, message));
  compiler->counts.compiled++;
  cleave_status_t status = load(compiler, kernel, image.bytes, name, message);
  if (status == CLEAVE_OK && has_folder) {
    cuda_store_write(compiler->folder, CUDA_STORE_CUBIN, order->image, image);
  }
  free(image.bytes);
  return status;
}

static cleave_status_t get(cuda_compiler_t *compiler, uint32_t device, const cuda_source_t *source,
                           cuda_function_t *out_function, cleave_message_t *message) {
  architecture_t *architecture = &compiler->architectures[device];
  if (!architecture->is_known) {
    CUDA_TRY(cuda_nvrtc_architecture(compiler->state, compiler->state->devices[device].capability,
                                     architecture->name, sizeof architecture->name, &architecture->wants_ptx,
                                     message));
    architecture->is_known = true;
  }
  const order_t order = {source, architecture, key_of(compiler, source, architecture)};
  cuda_key_t key = cuda_key_add(order.image, &device, sizeof device);
  const kernel_t *found = (const kernel_t *)cuda_table_find(&compiler->kernels, key);
  if (found != NULL) {
    compiler->counts.in_memory++;
    *out_function = found->function;
    return CLEAVE_OK;
  }
  kernel_t *kernel = calloc(1, sizeof *kernel);
  if (kernel == NULL) {
    return cuda_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, CLEAVE_REASON_NONE, "no memory for a kernel");
  }
  kernel->entry.key = key;
  kernel->device = device;
  cleave_status_t status = make(compiler, &order, kernel, message);
  if (status == CLEAVE_OK && !cuda_table_add(&compiler->kernels, &kernel->entry)) {
    (void)compiler->state->libraries.driver.module_unload(kernel->module);
    status = cuda_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, CLEAVE_REASON_NONE, "no memory for a kernel");
  }
  if (status != CLEAVE_OK) {
    free(kernel);
    return status;
  }
  *out_function = kernel->function;
  return CLEAVE_OK;
}

cleave_status_t cuda_compiler_get(cuda_compiler_t *compiler, uint32_t device, const cuda_source_t *source,
                                  cuda_function_t *out_function, cleave_message_t *message) {
  (void)pthread_mutex_lock(&compiler->lock);
  cleave_status_t status = get(compiler, device, source, out_function, message);
  (void)pthread_mutex_unlock(&compiler->lock);
  if (status == CLEAVE_OK) {
    kernel_texts_add(compiler->texts, "//", source->nodes == NULL ? "" : source->nodes, source->text);
  }
  return status;
}
