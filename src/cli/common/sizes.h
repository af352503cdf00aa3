// SPDX-License-Identifier: Apache-2.0
/*
 * Sizes that a model leaves open, and what every command takes them for: what --shape says, else what a given
 * tensor has, else what a saved plan was made for, else what its name says ("past + 1"), else 1. An input of
 * unknown shape has the shape of what it is combined with, if that is known. Only what the user asks for with
 * `?` stays open.
 */
#ifndef CLEAVE_CLI_COMMON_SIZES_H
#define CLEAVE_CLI_COMMON_SIZES_H

#include <jansson.h>

#include "base/containers/array.h"
#include "cli/common/arguments.h"
#include "graph/graph.h"
#include "partition/plan/plan_document.h"
#include "tensor/tensor.h"

/* The help text of --shape. */
#define CLEAVE_SHAPE_HELP                                                                                  \
  "size that the model leaves open, by its name, like N=1, or by its input, like x=1x3x224x224; may be "   \
  "given many times. ? instead of a size leaves it open, if nothing runs. A size that nothing determines " \
  "is 1"

typedef enum cleave_size_source {
  CLEAVE_SIZE_NONE,      /* nothing tells it yet */
  CLEAVE_SIZE_GIVEN,     /* by --shape */
  CLEAVE_SIZE_TENSOR,    /* by a tensor for an input */
  CLEAVE_SIZE_PLAN,      /* by the saved plan */
  CLEAVE_SIZE_INFERENCE, /* by what the input is combined with */
  CLEAVE_SIZE_NAME,      /* by its name, an expression of other sizes: "past + 1" */
  CLEAVE_SIZE_TAKEN,     /* by nothing: taken as 1 */
  CLEAVE_SIZE_OPEN,      /* left open, as --shape NAME=? asks */
} cleave_size_source_t;

/* A size that the model leaves open: a name ("N"), or a dimension without one ("x[0]"); or an input whose
 * whole shape is open ("x"). */
typedef struct cleave_size {
  char *name;
  char *value; /* "4", "[2, 3]", "?" */
  cleave_size_source_t source;
} cleave_size_t;

typedef struct cleave_sizes {
  size_t input_count;
  cleave_tensor_view_t *types; /* by input, without data; dims < 0 and rank < 0: left open */
  const cleave_tensor_view_t *
      *pointers;                     /* to the types that say more than the model; NULL: the model says it */
  int64_t (*dims)[CLEAVE_MAX_RANK];  /* of the types */
  bool closes;                       /* there is a pointer */
  CLEAVE_ARRAY(cleave_size_t) items; /* in the order of the inputs */
} cleave_sizes_t;

typedef struct cleave_size_request {
  const cleave_text_list_t *shapes;       /* NAME=1x3x224x224, of an input, or N=1; `?` leaves a size open */
  cleave_tensor_t *const *tensors;        /* by input, NULL if there is none; or NULL */
  const cleave_plan_document_t *document; /* the saved plan; or NULL */
  bool may_be_added;                      /* names that are not found may be those of inputs that rules add */
  const cleave_sizes_t *known;            /* names that were found elsewhere; or NULL */
  bool *used;                             /* by shape: its name was found; or NULL */
  bool leaves_open;                       /* what nothing tells stays open, and is not 1 */
} cleave_size_request_t;

/* CLEAVE_ERROR_INVALID_ARGUMENT if --shape contradicts itself or a tensor. */
CLEAVE_STATUS cleave_sizes_find(const cleave_graph_t *graph, const cleave_size_request_t *request,
                                cleave_sizes_t *out_sizes, cleave_error_t *error);
void cleave_sizes_deinit(cleave_sizes_t *sizes);

/* "N = 4 given, T = 1 taken; --shape T=SIZE sets it, T=? leaves it open", without an end of line; "" if the
 * model leaves nothing open. */
void cleave_sizes_print(const cleave_sizes_t *sizes, cleave_text_t *text);
/* [{"name": "N", "value": "4", "from": "given"}]. */
json_t *cleave_sizes_json(const cleave_sizes_t *sizes);

/* The sizes that --shape gives by one number (N=4), whether a model has them or not. `out_sizes` has room for
 * all; the caller frees their names, after failures too. */
CLEAVE_STATUS cleave_shape_option_list(const cleave_text_list_t *shapes, cleave_open_size_t *out_sizes,
                                       size_t *out_count, cleave_error_t *error);

/* ---- size_finder ---- */

/* Inside the search for sizes: sizes.c, which finds them, and shape_option.c, which reads what --shape says.
 */
typedef struct cleave_size_finder {
  const cleave_graph_t *model;
  const cleave_graph_t *graph; /* the model, with what inference makes of inputs of unknown shape */
  const cleave_size_request_t *request;
  cleave_sizes_t *sizes;
  cleave_strings_t names; /* of the items of `sizes` */
  size_t symbol_count;
  int64_t *symbols;              /* by number; -1: not known */
  cleave_size_source_t *sources; /* by symbol */
  uint32_t *shape_of;            /* by input: the --shape that gives it, or NONE */
} cleave_size_finder_t;

static inline const char *cleave_size_input_name(const cleave_size_finder_t *finder, size_t index) {
  return cleave_value_name(finder->graph, finder->graph->inputs.items[index]);
}

/* The input as the model has it. */
static inline const cleave_value_record_t *cleave_size_origin(const cleave_size_finder_t *finder,
                                                              size_t index) {
  return cleave_graph_value(finder->model, finder->model->inputs.items[index]);
}

/* Reads one --shape: of an input before that of a size with the same name. Names may have '=' in them. */
CLEAVE_STATUS cleave_size_take_option(cleave_size_finder_t *finder, size_t index, cleave_error_t *error);
/* Reads the shape that --shape gives an input; `?` alone leaves open all that the model does. */
CLEAVE_STATUS cleave_size_given_shape(const cleave_size_finder_t *finder, size_t input, int32_t *out_rank,
                                      int64_t *dims, cleave_error_t *error);

#endif /* CLEAVE_CLI_COMMON_SIZES_H */
