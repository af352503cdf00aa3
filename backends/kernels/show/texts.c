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

enum { MAX_TITLE = 600, MAX_NODES = 400, HIDDEN = UINT32_MAX };

typedef struct entry {
  size_t number;
  uint32_t others; /* titles with the same text, if this is the first of them; otherwise HIDDEN */
  const char *comment;
  char *title;
  char *text; /* one block with the title */
} entry_t;

enum { KEEP_NONE, KEEP_TEXTS, KEEP_CUDA };

struct kernel_texts {
  pthread_mutex_t lock;
  atomic_int mode;
  entry_t *entries; /* in the order in which they came, repeated ones among them */
  size_t count;
  size_t room;
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
  for (size_t k = 0; k < texts->count; k++) {
    free(texts->entries[k].title);
  }
  free(texts->entries);
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

static bool keeps(const kernel_texts_t *texts) {
  return atomic_load(&texts->mode) != KEEP_NONE;
}

static void add(kernel_texts_t *texts, const char *comment, const char *title, const char *text) {
  if (texts->count == texts->room) {
    size_t room = texts->room * 2 + 16;
    entry_t *entries = realloc(texts->entries, room * sizeof *entries);
    if (entries == NULL) {
      return;
    }
    texts->entries = entries;
    texts->room = room;
  }
  size_t title_size = strlen(title) + 1;
  size_t text_size = strlen(text) + 1;
  char *own = malloc(title_size + text_size);
  if (own != NULL) {
    memcpy(own, title, title_size);
    memcpy(own + title_size, text, text_size);
    texts->entries[texts->count] =
        (entry_t){.number = texts->count, .comment = comment, .title = own, .text = own + title_size};
    texts->count++;
  }
}

void kernel_texts_add(kernel_texts_t *texts, const char *comment, const char *title, const char *text) {
  if (keeps(texts)) {
    (void)pthread_mutex_lock(&texts->lock);
    add(texts, comment, title, text);
    (void)pthread_mutex_unlock(&texts->lock);
  }
}

static int compare_texts(const void *left, const void *right) {
  const entry_t *a = left;
  const entry_t *b = right;
  int order = strcmp(a->text, b->text);
  order = order != 0 ? order : strcmp(a->title, b->title);
  return order != 0 ? order : (a->number > b->number) - (a->number < b->number);
}

static int compare_numbers(const void *left, const void *right) {
  const entry_t *a = left;
  const entry_t *b = right;
  return (a->number > b->number) - (a->number < b->number);
}

/* Sorts by text and title, and forgets a title that its text has already: a region was compiled again. */
static void forget_repeated(kernel_texts_t *texts) {
  size_t kept = 0;
  qsort(texts->entries, texts->count, sizeof *texts->entries, compare_texts);
  for (size_t k = 0; k < texts->count; k++) {
    entry_t *entry = &texts->entries[k];
    const entry_t *last = kept > 0 ? &texts->entries[kept - 1] : NULL;
    if (last != NULL && strcmp(last->text, entry->text) == 0 && strcmp(last->title, entry->title) == 0) {
      free(entry->title);
    } else {
      texts->entries[kept++] = *entry;
    }
  }
  texts->count = kept;
}

/* Puts texts into the order of their first titles again. */
static void group_texts(kernel_texts_t *texts) {
  for (size_t begin = 0, end = 0; begin < texts->count; begin = end) {
    size_t first = begin;
    for (end = begin; end < texts->count && strcmp(texts->entries[begin].text, texts->entries[end].text) == 0;
         end++) {
      first = texts->entries[end].number < texts->entries[first].number ? end : first;
      texts->entries[end].others = HIDDEN;
    }
    texts->entries[first].others = (uint32_t)(end - begin - 1);
  }
  qsort(texts->entries, texts->count, sizeof *texts->entries, compare_numbers);
}

const char *kernel_texts_read(kernel_texts_t *texts) {
  (void)pthread_mutex_lock(&texts->lock);
  cuda_writer_deinit(&texts->all);
  if (texts->count > 0) {
    forget_repeated(texts);
    group_texts(texts);
  }
  for (size_t k = 0; k < texts->count; k++) {
    entry_t *entry = &texts->entries[k];
    entry->number = k;
    if (entry->others != HIDDEN) {
      cuda_write(&texts->all, "%s ---- %s", entry->comment, entry->title);
      if (entry->others > 0) {
        cuda_write(&texts->all, ", and for %" PRIu32 " more", entry->others);
      }
      cuda_write(&texts->all, " ----\n%s\n", entry->text);
    }
  }
  const char *all = texts->all.text == NULL || texts->all.failed ? "" : texts->all.text;
  (void)pthread_mutex_unlock(&texts->lock);
  return all;
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
  size_t used = (size_t)snprintf(out_title, MAX_TITLE, "%s", names);
  for (int32_t d = 0; d < lowered->program->rank; d++) {
    used += (size_t)snprintf(out_title + used, MAX_TITLE - used, "%s%" PRId64, d == 0 ? ": " : " x ",
                             lowered->dims[d]);
  }
}

/* Makes the text for a device whose memory is aligned; NULL, and why, if there is no such kernel. */
static char *make_cuda_text(const kernel_lowered_t *lowered, cleave_message_t *message) {
  enum { ALIGNED = 256 };
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
      kernel_cuda_create(lowered->program, lowered->fast_math, &kernel, message) == CLEAVE_OK &&
      kernel_cuda_prepare(kernel, &call, launch, message) == CLEAVE_OK &&
      kernel_cuda_text(kernel, &launch->variant, "", &text, message) != CLEAVE_OK) {
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
  if (!keeps(texts)) {
    return;
  }
  char title[MAX_TITLE];
  char refusal[sizeof(cleave_message_t) + 32];
  cleave_message_t message = {.text = ""};
  write_title(lowered, title);
  bool is_cuda = atomic_load(&texts->mode) == KEEP_CUDA;
  char *text = is_cuda ? make_cuda_text(lowered, &message) : make_program_text(lowered->program);
  (void)snprintf(refusal, sizeof refusal, "// it has no CUDA text: %s\n", message.text);
  if (text != NULL || message.text[0] != '\0') {
    kernel_texts_add(texts, is_cuda ? "//" : "#", title, text != NULL ? text : refusal);
  }
  free(text);
}
