// SPDX-License-Identifier: Apache-2.0
/* Commands read settings, shapes, input and reference tensors, and write tensors. */
#ifndef CLEAVE_CLI_COMMON_LOAD_H
#define CLEAVE_CLI_COMMON_LOAD_H

#include "cli/common/sizes.h"
#include "partition/plan/plan.h"
#include "tensor/tensor.h"

/* name=value texts. The settings point into `list`'s texts, which are copied. */
typedef struct cleave_settings {
  cleave_setting_t *items;
  size_t count;
  char **names;
  bool *used;    /* per setting: it is an option of the model script that was read last */
  uint64_t seed; /* of what that script draws; 0: its own */
} cleave_settings_t;

CLEAVE_STATUS cleave_settings_read(const cleave_text_list_t *list, cleave_settings_t *out_settings,
                                   cleave_error_t *error);
void cleave_settings_deinit(cleave_settings_t *settings);

/* Rule files by their paths, in that order, with these settings (may be NULL), which must outlive the
 * request.
 */
CLEAVE_STATUS cleave_rule_request(const cleave_text_list_t *paths, const cleave_settings_t *settings,
                                  cleave_partition_request_t *out_request, cleave_error_t *error);
void cleave_rule_request_deinit(cleave_partition_request_t *request);

/* A model, as commands open it: with the settings of its script, and as --lenient, --keep-dead and --fix say.
 * Inputs that have a default stay inputs if `files` (NAME=FILE) names them, or if `folder` holds input_N.pb
 * for them, too. Both may be NULL. Sizes in `shapes` (N=4) are there for conditions that need them. */
CLEAVE_STATUS cleave_model_read(const char *path, cleave_settings_t *settings,
                                const cleave_text_list_t *shapes, const cleave_text_list_t *files,
                                const char *folder, cleave_model_t **out_model, cleave_error_t *error);

/* The inputs or outputs that an option names. */
typedef struct cleave_port_option {
  const char *option; /* "--input" */
  const char *kind;   /* "input" */
  const void *owner;  /* of the names, which are never NULL */
  const char *(*name)(const void *owner, uint32_t index);
  uint32_t count;
  bool may_be_added; /* a name that none of them has is no error: rules may add a port of that name */
} cleave_port_option_t;

/* Splits "NAME=FILE" at the first '=' whose left side is one of the names. *out_index: CLEAVE_INDEX_NONE if
 * it is none and may be added. */
CLEAVE_STATUS cleave_port_option_find(const cleave_port_option_t *ports, const char *text,
                                      uint32_t *out_index, const char **out_value, cleave_error_t *error);

/* Inputs of a model, by position. */
typedef struct cleave_inputs {
  size_t count;
  cleave_tensor_t **tensors;
  cleave_tensor_view_t *views;           /* of the tensors */
  const cleave_tensor_view_t **pointers; /* to the views */
  cleave_sizes_t sizes;                  /* that the model leaves open */
  cleave_text_t drawn; /* which were drawn, and how: "x: drawn from seed 0, normal", one a line; "" if all
                          were given */
} cleave_inputs_t;

typedef struct cleave_input_request {
  const cleave_text_list_t *files;        /* NAME=FILE (.npy or .pb) */
  const cleave_text_list_t *shapes;       /* NAME=1x3x224x224, or N=1 */
  const cleave_plan_document_t *document; /* saved plan: its sizes before 1; or NULL */
  const cleave_sizes_t *known;            /* names of sizes that were found before; or NULL */
  const char *folder;                     /* input_N.pb, by position; or NULL */
  uint64_t seed;
  bool may_be_added; /* names that the model does not have may be inputs that rules add: not looked at yet */
} cleave_input_request_t;

/* Inputs for a model: from files, from the folder, or drawn from the seed with the shapes that are known or
 * given; sizes that nothing tells are what cli/common/sizes.h says. */
CLEAVE_STATUS cleave_inputs_load(const cleave_model_t *model, const cleave_input_request_t *request,
                                 cleave_inputs_t *out_inputs, cleave_error_t *error);
void cleave_inputs_deinit(cleave_inputs_t *inputs);

/* The inputs of a plan: the model's (`inputs`, shared), and those that rules added, from files or drawn.
 * Every name of the request has to be one of them. */
CLEAVE_STATUS cleave_inputs_load_added(const cleave_plan_t *plan, const cleave_input_request_t *request,
                                       const cleave_inputs_t *inputs, cleave_inputs_t *out_inputs,
                                       cleave_error_t *error);

/* output_N.pb of the folder; as many as there are outputs. The caller releases each. */
CLEAVE_STATUS cleave_outputs_load(const char *folder, cleave_tensor_t **outputs, size_t count,
                                  cleave_error_t *error);

/* The folder's `kind`_0.pb, `kind`_1.pb, ...; `kind` is "input" or "output". The folder is there. */
CLEAVE_STATUS cleave_tensors_save(const char *folder, const char *kind, cleave_tensor_t *const *tensors,
                                  size_t count, cleave_error_t *error);

/* A tensor file by its extension: .npy or .pb. */
CLEAVE_STATUS cleave_tensor_load(const char *path, cleave_tensor_t **out_tensor, cleave_error_t *error);
/* `name` goes into a .pb. */
CLEAVE_STATUS cleave_tensor_save(const char *path, const cleave_tensor_t *tensor, const char *name,
                                 cleave_error_t *error);
/* Whether the extension is one of these; if not, the error names the file. */
CLEAVE_STATUS cleave_tensor_path_check(const char *path, cleave_error_t *error);

#endif /* CLEAVE_CLI_COMMON_LOAD_H */
