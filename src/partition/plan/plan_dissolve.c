// SPDX-License-Identifier: Apache-2.0
// Dissolves regions that their backend refuses: the nodes of each become steps of their own in its place. The
// nodes of a region are in topological order, so the resulting order is topological too.

#include <string.h>

#include "partition/plan/plan_document.h"

static cleave_status_t add_notes(cleave_plan_document_t *document, const char *const *reasons,
                                 cleave_error_t *error) {
  size_t most = (size_t)document->note_count + document->region_count;
  cleave_document_note_t *notes = cleave_arena_allocate(&document->arena, most, sizeof *notes);
  CLEAVE_TRY_MEMORY(notes, error);
  if (document->note_count > 0) {
    memcpy(notes, document->notes, document->note_count * sizeof *notes);
  }
  for (uint32_t k = 0; k < document->region_count; k++) {
    const cleave_document_region_t *region = &document->regions[k];
    if (reasons[k] == NULL) {
      continue;
    }
    const char *reason = cleave_arena_copy_text(&document->arena, reasons[k], strlen(reasons[k]));
    CLEAVE_TRY_MEMORY(reason, error);
    notes[document->note_count++] = (cleave_document_note_t){
        .kind = CLEAVE_PLAN_NOTE_BACKEND, .rule = region->rule, .node = region->nodes[0], .reason = reason};
  }
  document->notes = notes;
  return CLEAVE_OK;
}

cleave_status_t cleave_plan_document_dissolve(cleave_plan_document_t *document, const char *const *reasons,
                                              cleave_error_t *error) {
  size_t count = document->step_count;
  for (uint32_t k = 0; k < document->region_count; k++) {
    count += reasons[k] != NULL ? document->regions[k].node_count : 0;
  }
  cleave_document_step_t *steps = cleave_arena_allocate(&document->arena, count, sizeof *steps);
  CLEAVE_TRY_MEMORY(steps, error);
  CLEAVE_TRY(add_notes(document, reasons, error));
  uint32_t step_count = 0;
  uint32_t region_count = 0;
  for (uint32_t s = 0; s < document->step_count; s++) {
    cleave_document_step_t step = document->steps[s];
    if (step.region == CLEAVE_INDEX_NONE) {
      steps[step_count++] = step;
      continue;
    }
    // Regions are in the order of their steps: later ones move up in the list.
    cleave_document_region_t region = document->regions[step.region];
    if (reasons[step.region] == NULL) {
      document->regions[region_count] = region;
      steps[step_count++] = (cleave_document_step_t){.region = region_count++, .stage = step.stage};
      continue;
    }
    for (uint32_t k = 0; k < region.node_count; k++) {
      steps[step_count++] =
          (cleave_document_step_t){.region = CLEAVE_INDEX_NONE, .node = region.nodes[k], .stage = step.stage};
    }
  }
  document->steps = steps;
  document->step_count = step_count;
  document->region_count = region_count;
  return CLEAVE_OK;
}
