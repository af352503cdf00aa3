// SPDX-License-Identifier: Apache-2.0
/*
 * What a loaded library adds to cleave: its operators go into the table (ops/custom.h), its partitioners and
 * passes into the list of rules (library_rules.h). Kernels of its operators look like one more
 * backend, on host memory, whose programs are single nodes: whoever compiles and runs views runs them, too.
 */
#ifndef CLEAVE_BACKEND_REGISTRY_EXTENSIONS_H
#define CLEAVE_BACKEND_REGISTRY_EXTENSIONS_H

#include "backend/region/view.h"
#include "backend/registry/registry.h"

typedef struct cleave_extensions cleave_extensions_t;

/* Takes up what the backend of `library` brings, all or nothing; CLEAVE_ERROR_BACKEND says what is wrong with
 * it. *out_extensions is NULL if it brings nothing. The handle must outlive the extensions. */
CLEAVE_STATUS cleave_extensions_add(const cleave_backend_handle_t *library,
                                    cleave_extensions_t **out_extensions, cleave_error_t *error);
/* Nothing of the library is found any more. NULL is a no-op. */
void cleave_extensions_remove(cleave_extensions_t *extensions);

/* Who runs a single node if no other backend takes it: `cpu`, or, for operators of a library, its kernels.
 * CLEAVE_ERROR_UNSUPPORTED if there are none, with what to do. */
CLEAVE_STATUS cleave_extensions_host(const cleave_graph_t *graph, cleave_node_t node,
                                     const cleave_backend_handle_t *cpu,
                                     const cleave_backend_handle_t **out_handle, cleave_error_t *error);

/* Does one of the nodes keep something between runs? A program for them belongs to one session alone. */
bool cleave_extensions_keep_state(const cleave_graph_t *graph, const cleave_node_t *nodes,
                                  uint32_t node_count);

#endif /* CLEAVE_BACKEND_REGISTRY_EXTENSIONS_H */
