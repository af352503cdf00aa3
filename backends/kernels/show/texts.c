// SPDX-License-Identifier: Apache-2.0
// A list of texts. Whoever reads them gets one text of all, which the list keeps.
#include "kernels/show/texts.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/writer.h"
#include "kernels/text.h"

enum { MAX_TITLE = 600, MAX_NODES = 400 };

typedef struct entry {
  struct entry *next;
  const char *comment;
  char title[MAX_TITLE];
  char text[];
} entry_t;

enum { KEEP_NONE, KEEP_TEXTS, KEEP_CUDA };

struct kernel_texts {
  pthread_mutex_t lock;
  atomic_int mode;
  entry_t *first;
  cuda_writer_t all;
};

kernel_texts_t *kernel_texts_create(void) {
  kernel_texts_t *texts = calloc(1, sizeof *texts);
  if (texts != NULL && pthread_mutex_init(&texts->lock, NULL) != 0) {
    free(texts);
    return NULL;
  }
  return texts;
}

void kernel_texts_destroy(kernel_texts_t *texts) {
  if (texts == NULL) {
    return;
  }
  while (texts->first != NULL) {
    entry_t *next = texts->first->next;
    free(texts->first);
    texts->first = next;
  }
  cuda_writer_deinit(&texts->all);
  (void)pthread_mutex_destroy(&texts->lock);
  free(texts);
}

cleave_status_t kernel_texts_hint(kernel_texts_t *texts, const char *value, cleave_message_t *message) {
  static const char *const values[] = {[KEEP_NONE] = "0", [KEEP_TEXTS] = "1", [KEEP_CUDA] = "cuda"};
  for (int mode = KEEP_NONE; value != NULL && mode <= KEEP_CUDA; mode++) {
    if (strcmp(value, values[mode]) == 0) {
      atomic_store(&texts->mode, mode);
      return CLEAVE_OK;
    }
  }
  return kernel_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT,
                     "hint.kernels: expected 0, 1 or cuda, found '%.60s'", value == NULL ? "" : value);
}

bool kernel_texts_keeps(const kernel_texts_t *texts) {
  return atomic_load(&texts->mode) != KEEP_NONE;
}

static void add(kernel_texts_t *texts, const char *comment, const char *title, const char *text) {
  entry_t **at = &texts->first;
  for (; *at != NULL; at = &(*at)->next) {
    if (strcmp((*at)->text, text) == 0 && strcmp((*at)->title, title) == 0) {
      return; /* a region that is compiled more than once, for trials or for another session */
    }
  }
  size_t size = strlen(text) + 1;
  *at = calloc(1, sizeof **at + size);
  if (*at != NULL) {
    (*at)->comment = comment;
    (void)snprintf((*at)->title, sizeof(*at)->title, "%s", title);
    memcpy((*at)->text, text, size);
  }
}

void kernel_texts_add(kernel_texts_t *texts, const char *comment, const char *title, const char *text) {
  if (kernel_texts_keeps(texts)) {
    (void)pthread_mutex_lock(&texts->lock);
    add(texts, comment, title, text);
    (void)pthread_mutex_unlock(&texts->lock);
  }
}

static bool is_first(const kernel_texts_t *texts, const entry_t *entry) {
  const entry_t *at = texts->first;
  while (at != entry && strcmp(at->text, entry->text) != 0) {
    at = at->next;
  }
  return at == entry;
}

const char *kernel_texts_read(kernel_texts_t *texts) {
  cuda_writer_t all = {0};
  (void)pthread_mutex_lock(&texts->lock);
  for (const entry_t *entry = texts->first; entry != NULL; entry = entry->next) {
    uint32_t more = 0;
    for (const entry_t *other = entry->next; other != NULL; other = other->next) {
      more += strcmp(other->text, entry->text) == 0 ? 1 : 0;
    }
    if (is_first(texts, entry)) {
      cuda_write(&all, "%s ---- %s", entry->comment, entry->title);
      cuda_write(&all, more == 0 ? "" : ", and for %" PRIu32 " more", more);
      cuda_write(&all, " ----\n%s\n", entry->text);
    }
  }
  cuda_writer_deinit(&texts->all);
  texts->all = all;
  (void)pthread_mutex_unlock(&texts->lock);
  return all.text == NULL || all.failed ? "" : all.text;
}

void kernel_texts_nodes(const cleave_region_view_t *region, uint32_t node_count, const uint32_t *nodes,
                        char *out_text, size_t size) {
  size_t at = 0;
  out_text[0] = '\0';
  for (uint32_t k = 0; k < node_count && at < size; k++) {
    const cleave_node_view_t *node = &region->nodes[nodes[k]];
    bool has_name = node->name != NULL && node->name[0] != '\0';
    int length =
        snprintf(out_text + at, size - at, "%s%s", k == 0 ? "" : ", ", has_name ? node->name : node->op);
    at += length > 0 ? (size_t)length : 0;
  }
  for (char *c = out_text; *c != '\0'; c++) { /* names come from models */
    *c = *c < ' ' || *c > '~' ? '?' : *c;
  }
}

/* ---- programs ---- */

/* The nodes, and the sizes of the space. */
static void write_title(const kernel_lowered_t *lowered, char *out_title) {
  char names[MAX_NODES];
  kernel_texts_nodes(lowered->region, lowered->node_count, lowered->nodes, names, sizeof names);
  int used = snprintf(out_title, MAX_TITLE, "%s", names);
  for (int32_t d = 0; d < lowered->program->rank; d++) {
    used += snprintf(out_title + used, (size_t)(MAX_TITLE - used), "%s%" PRId64, d == 0 ? ": " : " x ",
                     lowered->dims[d]);
  }
}

/* As on a device whose memory is aligned; NULL if there is no such kernel. */
static char *make_cuda_text(const kernel_lowered_t *lowered) {
  enum { ALIGNED = 256 };
  cleave_message_t message = {.text = ""};
  kernel_tensor_t inputs[KERNEL_MAX_TENSORS];
  void *outputs[KERNEL_MAX_TENSORS];
  kernel_cuda_t *kernel = NULL;
  char *text = NULL;
  for (uint32_t k = 0; k < lowered->program->input_count; k++) {
    const kernel_view_t *view = &lowered->views[k];
    size_t size = cleave_dtype_size(lowered->region->values[lowered->inputs[k]].tensor.dtype);
    inputs[k] = (kernel_tensor_t){
        .data = (const void *)(uintptr_t)(ALIGNED + (uint64_t)view->offset * size % ALIGNED),
        .rank = view->rank,
        .dims = view->dims,
        .strides = view->strides};
  }
  for (uint32_t k = 0; k < lowered->program->output_count; k++) {
    outputs[k] = (void *)(uintptr_t)ALIGNED;
  }
  const kernel_cuda_call_t call = {.inputs = inputs, .outputs = outputs, .dims = lowered->dims};
  kernel_cuda_launch_t *launch = malloc(sizeof *launch);
  if (launch != NULL &&
      kernel_cuda_create(lowered->program, lowered->fast_math, &kernel, &message) == CLEAVE_OK &&
      kernel_cuda_prepare(kernel, &call, launch, &message) == CLEAVE_OK &&
      kernel_cuda_text(kernel, &launch->variant, "", &text, &message) != CLEAVE_OK) {
    text = NULL;
  }
  kernel_cuda_destroy(kernel);
  free(launch);
  return text;
}

static char *make_program_text(const kernel_program_t *program) {
  size_t size = kernel_program_print(program, NULL, 0) + 1;
  char *text = malloc(size);
  if (text != NULL) {
    (void)kernel_program_print(program, text, size);
  }
  return text;
}

void kernel_texts_add_lowered(kernel_texts_t *texts, const kernel_lowered_t *lowered) {
  if (!kernel_texts_keeps(texts)) {
    return;
  }
  char title[MAX_TITLE];
  write_title(lowered, title);
  bool is_cuda = atomic_load(&texts->mode) == KEEP_CUDA;
  char *text = is_cuda ? make_cuda_text(lowered) : make_program_text(lowered->program);
  if (text != NULL) {
    kernel_texts_add(texts, is_cuda ? "//" : "#", title, text);
  }
  free(text);
}
