// SPDX-License-Identifier: Apache-2.0
/*
 * Packed weights that programs share. A slab is one stretch of memory in large pages that a program fills
 * while it compiles; what is in it is found again by its content: which constant (by version), scaled how, in
 * which layout. A program that needs the same takes it from there, and only what is new is packed. Slabs live
 * as long as a program holds them, and with them what can be found. Finished slabs are only read: programs
 * that share them may run at the same time.
 */
#ifndef ONEDNN_PACKED_H
#define ONEDNN_PACKED_H

#include "onednn/library/layout.h"

/* Identifies the content of a constant. All zero: it is not known, and never shared. */
typedef struct onednn_content {
  uint64_t key[2];
} onednn_content_t;

bool onednn_content_known(const onednn_content_t *content);

/* The content of a constant of the region; not known if it has no version. */
onednn_content_t onednn_content_of(const cleave_value_view_t *value);

/* `content` with more that it depends on. What is not known stays so. */
onednn_content_t onednn_content_mix(const onednn_content_t *content, const void *data, size_t bytes);
onednn_content_t onednn_content_layout(const onednn_content_t *content, const onednn_layout_t *layout);

/* All slabs of a backend state. Thread-safe. */
typedef struct onednn_store onednn_store_t;

/* NULL without memory. Slabs must all be gone before it is destroyed. */
onednn_store_t *onednn_store_create(void);
void onednn_store_destroy(onednn_store_t *store);

/* Variants of what lives will be compiled soon: memory for the next slab, as large as the largest one, is
 * made ready by a thread. Not wanted: what is not finished is given up. One thread at a time. */
void onednn_store_prepare(onednn_store_t *store, bool wanted);
/* Bytes of the memory that is ready. */
size_t onednn_store_spare(onednn_store_t *store);

typedef struct onednn_slab onednn_slab_t;

/* Room for about `bytes`, which are expected, with any content, and for sure for `first` bytes (at most
 * `bytes`) that are taken at once; NULL without memory. What is not taken costs only address space. The
 * caller has the only reference. */
onednn_slab_t *onednn_slab_create(onednn_store_t *store, size_t bytes, size_t first);
void onednn_slab_release(onednn_slab_t *slab);

/* 64-byte aligned memory, or NULL if the slab is full. */
void *onednn_slab_take(onednn_slab_t *slab, size_t bytes);

/* Gives back what was not taken; nothing can be taken afterwards. */
void onednn_slab_trim(onednn_slab_t *slab);
/* Bytes that were taken. */
size_t onednn_slab_used(const onednn_slab_t *slab);

/* From now on, `content` is found at `data` of this slab, in place of where it was found before. Without
 * memory it is not. */
void onednn_slab_publish(onednn_slab_t *slab, const onednn_content_t *content, void *data);

/* Finds the content, and gives the caller a reference to its slab; NULL if there is none. */
void *onednn_store_find(onednn_store_t *store, const onednn_content_t *content, onednn_slab_t **out_slab);

#endif /* ONEDNN_PACKED_H */
