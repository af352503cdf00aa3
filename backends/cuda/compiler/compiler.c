// SPDX-License-Identifier: Apache-2.0
// Kernels by key. An image is kept for other devices of the same architecture.
#include "compiler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FOLDER = 512 };

typedef struct entry {
  cuda_key_t key;
  uint32_t device;
  cuda_module_t module;
  cuda_function_t function;
  struct entry *next;
} entry_t;

typedef struct architecture {
  char name[24];
  bool wants_ptx;
  bool is_known;
} architecture_t;

struct cuda_compiler {
  cuda_state_t *state;
  pthread_mutex_t lock;
  entry_t *entries;
  char folder[MAX_FOLDER]; /* "": none */
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
  if (!cuda_disk_folder(compiler->folder, sizeof compiler->folder)) {
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
  while (compiler->entries != NULL) {
    entry_t *next = compiler->entries->next;
    if (cuda_enter(compiler->state, compiler->entries->device, &message) == CLEAVE_OK) {
      (void)compiler->state->libraries.driver.module_unload(compiler->entries->module);
      cuda_leave(compiler->state);
    }
    free(compiler->entries);
    compiler->entries = next;
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

static cleave_status_t load(cuda_compiler_t *compiler, entry_t *entry, const char *image, const char *name,
                            cleave_message_t *message) {
  const cuda_driver_t *driver = &compiler->state->libraries.driver;
  CUDA_TRY(cuda_check(compiler->state, driver->module_load(&entry->module, image), "load a kernel", message));
  cleave_status_t status =
      cuda_check(compiler->state, driver->module_function(&entry->function, entry->module, name),
                 "find a kernel in its module", message);
  if (status != CLEAVE_OK) {
    (void)driver->module_unload(entry->module);
  }
  return status;
}

/* From disk, if it loads; otherwise by NVRTC. */
static cleave_status_t make(cuda_compiler_t *compiler, const cuda_source_t *source,
                            const architecture_t *architecture, entry_t *entry, cleave_message_t *message) {
  cuda_image_t image = {NULL, 0};
  bool has_folder = compiler->folder[0] != '\0';
  if (has_folder && cuda_disk_read(compiler->folder, entry->key, &image)) {
    cleave_status_t status = load(compiler, entry, image.bytes, source->entry, message);
    free(image.bytes);
    if (status == CLEAVE_OK) {
      compiler->counts.from_disk++;
      return CLEAVE_OK;
    }
  }
  CUDA_TRY(cuda_nvrtc_compile(compiler->state, source, architecture->name, architecture->wants_ptx, &image,
                              message));
  compiler->counts.compiled++;
  cleave_status_t status = load(compiler, entry, image.bytes, source->entry, message);
  if (status == CLEAVE_OK && has_folder) {
    cuda_disk_write(compiler->folder, entry->key, image);
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
  cuda_key_t key = key_of(compiler, source, architecture);
  for (const entry_t *entry = compiler->entries; entry != NULL; entry = entry->next) {
    if (memcmp(&entry->key, &key, sizeof key) == 0 && entry->device == device) {
      compiler->counts.in_memory++;
      *out_function = entry->function;
      return CLEAVE_OK;
    }
  }
  entry_t *entry = calloc(1, sizeof *entry);
  if (entry == NULL) {
    return cuda_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, CLEAVE_REASON_NONE, "no memory for a kernel");
  }
  entry->key = key;
  entry->device = device;
  cleave_status_t status = make(compiler, source, architecture, entry, message);
  if (status != CLEAVE_OK) {
    free(entry);
    return status;
  }
  entry->next = compiler->entries;
  compiler->entries = entry;
  *out_function = entry->function;
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
