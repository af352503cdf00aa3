/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside a session, shared by the files that build it (session_build.c, session_memory.c), run it
 * (session_run.c, session_dynamic.c) and read it (session.c).
 *
 * A slot is a value that exists between steps. Its memory is one of:
 *   USER    the buffer that was given for a graph input
 *   CONSTANT a tensor of the graph
 *   BLOCK   planned memory: an offset in the shared block, or in the buffer of the outputs
 *   OWNED   memory of its own, for a shape that is known only at run time
 *   ALIAS   the memory of another slot (Reshape and its like)
 * Steps hold copies of slot views (`inputs`, `outputs`). Those that show a user's buffer are patched when
 * another one is given; those of dynamic steps are copied anew in each run. Other steps never see owned
 * memory: their shapes are all known.
 */
#ifndef CLEAVE_RUNTIME_SESSION_INTERNAL_H
#define CLEAVE_RUNTIME_SESSION_INTERNAL_H

#include "runtime/program_cache.h"
#include "runtime/registry.h"
#include "runtime/session.h"
#include "runtime/view.h"

typedef enum cleave_slot_kind {
  CLEAVE_SLOT_USER,
  CLEAVE_SLOT_CONSTANT,
  CLEAVE_SLOT_BLOCK,
  CLEAVE_SLOT_OWNED,
  CLEAVE_SLOT_ALIAS
} cleave_slot_kind_t;

typedef struct cleave_slot {
  cleave_slot_kind_t kind;
  cleave_value_t value;
  uint32_t root;   /* ALIAS: the slot whose memory it is (never itself an alias); others: their own number */
  uint32_t block;  /* BLOCK: in session->blocks */
  bool is_output;  /* a graph output, or an alias of it is one */
  bool is_set;     /* USER: given */
  uint32_t last;   /* last step that reads the memory */
  size_t bytes;    /* of a known shape */
  size_t capacity; /* OWNED: of `view.data` */
  cleave_tensor_view_t view;
  int64_t dims[CLEAVE_MAX_RANK];
} cleave_slot_t;

/* Planned memory of one value, or of several that take over from each other in place. */
typedef struct cleave_block {
  size_t bytes;
  size_t offset;
  uint32_t first; /* steps */
  uint32_t last;
  bool is_output; /* in the buffer of the outputs, not shared */
} cleave_block_t;

enum { CLEAVE_DYNAMIC_PROGRAMS = 8 };

/* A program of a dynamic step, for one set of shapes. */
typedef struct cleave_dynamic_program {
  cleave_program_t *program; /* NULL: the entry is free */
  uint64_t key;              /* hash of the shapes of inputs and outputs */
  uint64_t used;             /* number of the run that used it last */
} cleave_dynamic_program_t;

typedef struct cleave_step {
  cleave_program_t *program; /* NULL: dynamic */
  cleave_run_args_t args;
  uint32_t input_count;
  uint32_t output_count;
  cleave_tensor_view_t *inputs; /* args.inputs */
  cleave_tensor_view_t *outputs;
  const uint32_t *input_slots;
  const uint32_t *output_slots;
  const char *name;
  const char *op;
  const char *backend;
  uint32_t region;
  cleave_node_t node;
  const cleave_node_t *nodes; /* as in the view */
  uint32_t node_count;
  /* dynamic */
  cleave_dynamic_program_t *programs; /* CLEAVE_DYNAMIC_PROGRAMS of them */
  const uint32_t *port_slots;         /* per input port, then per output port of the node: slot, or NONE */
  /* profile */
  uint64_t start_ns;
  uint64_t end_ns;
  cleave_step_time_t *parts; /* copies */
  uint32_t part_count;
  uint32_t part_capacity;
} cleave_step_t;

/* Where the views of a slot lie, to be patched. */
typedef struct cleave_patch {
  uint32_t next; /* of the same root slot; NONE ends */
  uint32_t slot; /* whose view it copies */
  cleave_tensor_view_t *view;
} cleave_patch_t;

struct cleave_session {
  cleave_arena_t arena;        /* everything below that is not said to be elsewhere */
  cleave_model_t *model;       /* retained, or NULL */
  const cleave_graph_t *graph; /* that runs */
  cleave_graph_t *bound;       /* owned copy, or NULL */
  const cleave_plan_t *plan;   /* or NULL */
  const cleave_backend_handle_t *cpu;
  cleave_compile_options_t compile_options;
  bool profile;
  bool strict;                     /* a region that its backend does not compile is an error */
  cleave_program_cache_t *cache;   /* retained, or NULL */
  uint32_t reused_count;           /* programs that another session had compiled */
  struct cleave_blob_store *blobs; /* retained, or NULL */
  uint32_t loaded_count;           /* programs that were in it */
  CLEAVE_ARRAY(cleave_slot_t) slots;
  uint32_t *value_slot; /* by graph value; NONE */
  CLEAVE_ARRAY(cleave_step_t) steps;
  CLEAVE_ARRAY(cleave_block_t) blocks;
  CLEAVE_ARRAY(cleave_program_t *) programs; /* each once; a reference to each */
  CLEAVE_ARRAY(cleave_patch_t) patches;
  CLEAVE_ARRAY(const char *) notes;
  uint32_t *slot_patch; /* by root slot: first patch, or NONE */
  uint32_t input_count;
  uint32_t *input_slots; /* by graph input; NONE where nobody uses it */
  uint32_t output_count;
  uint32_t *output_slots; /* by graph output */
  unsigned char *memory;  /* blocks, then workspace */
  unsigned char *output_memory;
  cleave_session_memory_t statistics;
  cleave_arena_t dynamic_arena; /* of the dynamic step at work */
  void *dynamic_workspace;      /* of dynamic steps; grows */
  size_t dynamic_workspace_bytes;
  uint64_t run_number;
  uint32_t dynamic_program_count;
  bool has_run;
};

/* Steps, slots, programs, from the bound graph and the plan. */
CLEAVE_MUST_USE cleave_status_t cleave_session_build(cleave_session_t *session, cleave_error_t *error);

/* "operator 'X' (node 'n') is not supported by cpu: reason" */
cleave_status_t cleave_session_fail_node(const cleave_graph_t *graph, cleave_node_t node,
                                         cleave_status_t status, const cleave_message_t *message,
                                         cleave_error_t *error);

/* Blocks, their offsets, the memory itself, and all views and patches. */
CLEAVE_MUST_USE cleave_status_t cleave_session_plan_memory(cleave_session_t *session, cleave_error_t *error);

/* Copies the pointer of a USER slot into the slots and views that show its memory. */
void cleave_session_patch(cleave_session_t *session, uint32_t root);

CLEAVE_MUST_USE cleave_status_t cleave_session_run_dynamic(cleave_session_t *session, cleave_step_t *step,
                                                           cleave_error_t *error);

#endif /* CLEAVE_RUNTIME_SESSION_INTERNAL_H */
