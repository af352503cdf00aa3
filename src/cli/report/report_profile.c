// SPDX-License-Identifier: Apache-2.0
// Where the time of runs went.
#include "cli/report/report_profile.h"

#include "cli/common/output.h"

enum { PROFILE_LINES = 20 };

void cleave_report_profile(const cleave_profile_t *profile, const char *path) {
  double total = 0.0;
  for (size_t k = 0; k < profile->regions.count; k++) {
    total += profile->regions.items[k].total_ms;
  }
  for (int by_region = 1; by_region >= 0; by_region--) {
    const cleave_profile_line_t *lines = by_region != 0 ? profile->regions.items : profile->lines.items;
    size_t count = by_region != 0 ? profile->regions.count : profile->lines.count;
    cleave_print("\ntime per %s\n", by_region != 0 ? "region" : "fusion and operator");
    cleave_table_t table = {.columns = 5, .alignment = "llrrr"};
    cleave_table_cell(&table, by_region != 0 ? "region" : "fusion or operator");
    cleave_table_cell(&table, "backend");
    cleave_table_cell(&table, "steps");
    cleave_table_cell(&table, "ms");
    cleave_table_cell(&table, "share");
    for (size_t k = 0; k < count && k < PROFILE_LINES; k++) {
      char bytes[32];
      bool is_copy = lines[k].bytes > 0;
      cleave_table_cell(&table, "%s%s%s", lines[k].label, is_copy ? ", " : "",
                        is_copy ? cleave_output_bytes((double)lines[k].bytes, bytes, sizeof bytes) : "");
      cleave_table_cell(&table, "%s", lines[k].backend);
      cleave_table_cell(&table, "%u", (unsigned)lines[k].count);
      cleave_table_cell(&table, "%.3f", lines[k].total_ms);
      cleave_table_cell(&table, "%.1f %%", total > 0.0 ? lines[k].total_ms / total * 100.0 : 0.0);
    }
    cleave_table_print(&table);
    cleave_table_deinit(&table);
    if (count > PROFILE_LINES) {
      cleave_print("  and %zu more\n", count - PROFILE_LINES);
    }
  }
  cleave_print("\ntrace written to %s\n", path);
}
