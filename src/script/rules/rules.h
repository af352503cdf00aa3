// SPDX-License-Identifier: Apache-2.0
/* Rule files: Lua 5.4 source, run in a closed environment -> compiled rulesets. */
#ifndef CLEAVE_SCRIPT_RULES_RULES_H
#define CLEAVE_SCRIPT_RULES_RULES_H

#include "partition/pattern/ruleset.h"

/* A loaded rule file: the interpreter, and the rulesets compiled from it. One thread at a time. */
typedef struct cleave_rules cleave_rules_t;

/* Settings of a script: name=value for the options that it declares. */
typedef struct cleave_script_settings {
  const cleave_setting_t *items;
  size_t count;
  bool *out_used;        /* per setting, or NULL: is set if the script has an option of that name */
  bool leaves_tests_out; /* of files that come with cleave: nobody will ask for them */
} cleave_script_settings_t;

/* Called for each file that a load opens, before it is opened, even if it does not exist: the rule file, then
 * the files that it includes. `path` can be opened, and is valid during the call. */
typedef struct cleave_rules_listener {
  void (*note)(void *context, const char *path);
  void *context;
} cleave_rules_listener_t;

/* Loads and compiles, with what libraries of `context` bring (NULL: the process's own). The path of `source`
 * is a file, or the name of a shipped one ("onednn"). A file may include others of its folder (include.h); a
 * source from memory may not. CLEAVE_ERROR_RULE with file:line for everything that is wrong in it. A setting
 * that no option of the file declares is not an error here. `settings` and `listener` may be NULL; the
 * listener is told of files also if the load fails. */
CLEAVE_STATUS cleave_rules_load(cleave_context_t *context, const cleave_rule_source_t *source,
                                const cleave_script_settings_t *settings,
                                const cleave_rules_listener_t *listener, cleave_rules_t **out_rules,
                                cleave_error_t *error);
/* Does cleave_rules_load find the path among the files that come with cleave, because there is no file of
 * this name? */
bool cleave_rules_are_shipped(const char *path);
/* A rule file that is built in, by its path in the source tree ("lua/cleave/gradients/all.lua"), wherever the
 * process runs, and with its options as they are declared. */
CLEAVE_STATUS cleave_rules_load_embedded(cleave_context_t *context, const char *name,
                                         cleave_rules_t **out_rules, cleave_error_t *error);
/* The rules of the library `name` that is loaded in the context, or the one that "name/part" means: passes
 * run on the library, each partitioner is a ruleset on the backend that it asks for. All settings are options
 * for the library. *out_rules is NULL if no library of that name brings rules; CLEAVE_ERROR_RULE if it has no
 * such part. `settings` may be NULL. */
CLEAVE_STATUS cleave_rules_load_library(cleave_context_t *context, const char *name,
                                        const cleave_script_settings_t *settings, cleave_rules_t **out_rules,
                                        cleave_error_t *error);

/* The file's rulesets in the order in which they run: at least one. */
const cleave_ruleset_t *cleave_rules_rulesets(const cleave_rules_t *rules, uint32_t *out_count);
void cleave_rules_destroy(cleave_rules_t *rules);

#endif /* CLEAVE_SCRIPT_RULES_RULES_H */
