// SPDX-License-Identifier: Apache-2.0
/*
 * Texts of the kernels that a backend generates, for people: kept from the moment somebody asks, each once,
 * with the nodes that it computes. They are what backends answer to the setting "kernels.text" once they were
 * told "hint.kernels" (`cleave kernels`). Thread-safe, except that a text lives until the next one is read.
 * Short memory loses texts, and nothing else.
 */
#ifndef CLEAVE_KERNELS_SHOW_TEXTS_H
#define CLEAVE_KERNELS_SHOW_TEXTS_H

#include "kernels/lower/lower.h"

typedef struct kernel_texts kernel_texts_t;

/* NULL: no memory. */
kernel_texts_t *kernel_texts_create(void);
void kernel_texts_destroy(kernel_texts_t *texts);

/* Sets what is kept: "0" nothing more, "1" texts, "cuda" programs also as the CUDA text that they would have.
 */
CLEAVE_MUST_USE cleave_status_t kernel_texts_hint(kernel_texts_t *texts, const char *value,
                                                  cleave_message_t *message);

/* A text whose comments begin with `comment`, and what it computes, which is printable ASCII. Does nothing
 * unless texts are kept. */
void kernel_texts_add(kernel_texts_t *texts, const char *comment, const char *title, const char *text);
/* Adds a program as kernel_lower has made it. */
void kernel_texts_add_lowered(kernel_texts_t *texts, const kernel_lowered_t *lowered);
/* All of them, in order; "" if there are none. */
const char *kernel_texts_read(kernel_texts_t *texts);

/* "conv1, relu1": names of nodes, or their operators; printable ASCII. */
void kernel_texts_nodes(const cleave_region_view_t *region, uint32_t node_count, const uint32_t *nodes,
                        char *out_text, size_t size);

#endif /* CLEAVE_KERNELS_SHOW_TEXTS_H */
