// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE  // sched_getaffinity
/* Status, memory, arena, arrays, text, hashes, files, threads. */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/containers/array.h"
#include "base/containers/heap.h"
#include "base/containers/key_set.h"
#include "base/hash.h"
#include "base/show.h"
#include "base/text.h"
#include "system/file.h"
#include "system/processors.h"
#include "system/threads.h"
#include "unit.h"

UNIT_TEST(keeps_the_first_error_and_puts_the_place_in_front) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  ck_assert_int_eq(cleave_error_set_at(&error, CLEAVE_ERROR_RULE, "a.lua", 7, "bad %s", "word"),
                   CLEAVE_ERROR_RULE);
  ck_assert_int_eq(cleave_error_set(&error, CLEAVE_ERROR_IO, "later"), CLEAVE_ERROR_IO);
  ck_assert_str_eq(error.message, "a.lua:7: bad word");
  ck_assert_int_eq(error.line, 7);
  ck_assert_int_eq(error.status, CLEAVE_ERROR_RULE);
  cleave_error_clear(&error);
  ck_assert_str_eq(error.message, "");
  ck_assert_int_eq(cleave_error_set(NULL, CLEAVE_ERROR_IO, "nowhere"), CLEAVE_ERROR_IO);
}

UNIT_TEST(messages_are_one_line_and_cut_at_the_buffer) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  char name[2000];
  memset(name, 'x', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  name[3] = '\n';
  (void)cleave_error_set(&error, CLEAVE_ERROR_FORMAT, "node '%s'", name);
  ck_assert_uint_eq(strlen(error.message), sizeof error.message - 1);
  ck_assert_ptr_null(strchr(error.message, '\n'));
}

UNIT_TEST(refuses_sizes_that_overflow) {
  ck_assert_ptr_null(cleave_allocate(SIZE_MAX / 2, 3));
  ck_assert_ptr_null(cleave_allocate_zeroed(SIZE_MAX, 1));
  ck_assert_ptr_null(cleave_allocate_aligned(SIZE_MAX));
  cleave_arena_t arena = {0};
  ck_assert_ptr_null(cleave_arena_allocate(&arena, SIZE_MAX / 4, 8));
  cleave_arena_deinit(&arena);
}

UNIT_TEST(fails_the_allocation_that_a_test_asks_for) {
  (void)cleave_memory_fail_after(1);
  void *first = cleave_allocate(1, 1);
  ck_assert_ptr_nonnull(first);
  ck_assert_ptr_null(cleave_allocate(1, 1));
  ck_assert_ptr_null(cleave_allocate(1, 1));
  ck_assert_int_eq(cleave_memory_fail_after(-1), 1);
  cleave_free(first);
}

UNIT_TEST(arena_memory_is_zeroed_aligned_and_stays) {
  cleave_arena_t arena = {0};
  char *texts[500];
  for (int k = 0; k < 500; k++) {
    texts[k] = cleave_arena_format(&arena, "text %d", k);
    ck_assert_uint_eq((uintptr_t)texts[k] % 16, 0);
  }
  unsigned char *large = cleave_arena_allocate(&arena, 3 << 20, 1);
  ck_assert_int_eq(large[(3 << 20) - 1], 0);
  ck_assert_str_eq(texts[0], "text 0");
  ck_assert_str_eq(texts[499], "text 499");
  cleave_arena_deinit(&arena);
}

static cleave_status_t push_numbers(int count, int *out_sum, cleave_error_t *error) {
  CLEAVE_ARRAY(int) array = {0};
  for (int k = 0; k < count; k++) {
    CLEAVE_ARRAY_PUSH(&array, k, error);
  }
  for (size_t k = 0; k < array.count; k++) {
    *out_sum += array.items[k];
  }
  cleave_array_free(&array);
  return CLEAVE_OK;
}

/* Where there are large pages: 64 KiB behind four of them do not make a fifth resident. */
UNIT_TEST(a_small_rest_takes_no_large_page) {
  enum { LARGE = 2 << 20, REST = 64 << 10, PIECE = 4096 };
  static unsigned char resident[5 * LARGE / PIECE];
  size_t bytes = 4 * (size_t)LARGE + REST;
  size_t count = 0;
  unsigned char *memory = cleave_allocate_aligned(bytes);
  ck_assert_ptr_nonnull(memory);
  memset(memory, 1, bytes);
  if (sysconf(_SC_PAGESIZE) == PIECE && mincore(memory, 5 * (size_t)LARGE, resident) == 0) {
    for (size_t k = 0; k < sizeof resident; k++) {
      count += resident[k] & 1;
    }
    ck_assert_uint_le(count * PIECE, bytes + LARGE / 2);
  }
  cleave_free(memory);
}

UNIT_TEST(arrays_grow_and_keep_their_items) {
  int sum = 0;
  unit_ok(push_numbers(1000, &sum, e));
  ck_assert_int_eq(sum, 499500);
}

UNIT_TEST(a_set_of_keys_has_what_was_added) {
  cleave_key_set_t set = {0};
  ck_assert(!cleave_key_set_has(&set, 7));
  for (uint64_t k = 2; k < 5000; k++) {
    unit_ok(cleave_key_set_add(&set, k * 1024, e)); /* all of them want the first slots */
    unit_ok(cleave_key_set_add(&set, k * 1024, e));
  }
  ck_assert_uint_eq(set.count, 4998);
  for (uint64_t k = 2; k < 5000; k++) {
    ck_assert(cleave_key_set_has(&set, k * 1024) && !cleave_key_set_has(&set, k * 1024 + 1));
  }
  unit_ok(cleave_key_set_add(&set, 0, e));
  ck_assert(cleave_key_set_has(&set, 0));
  cleave_key_set_clear(&set);
  ck_assert(!cleave_key_set_has(&set, 2048) && !cleave_key_set_has(&set, 0));
  unit_ok(cleave_key_set_add(&set, 2048, e));
  ck_assert(cleave_key_set_has(&set, 2048) && set.count == 1);
  cleave_key_set_deinit(&set);
  (void)cleave_memory_fail_after(0);
  ck_assert_int_eq(cleave_key_set_add(&set, 1, NULL), CLEAVE_ERROR_OUT_OF_MEMORY);
  (void)cleave_memory_fail_after(-1);
}

static bool is_less(const void *a, const void *b) {
  return *(const uint32_t *)a < *(const uint32_t *)b;
}

UNIT_TEST(a_heap_gives_its_items_in_order) {
  uint32_t items[500];
  uint32_t state = 1;
  for (size_t count = 1; count <= 500; count++) {
    state = state * 1664525u + 1013904223u;
    items[count - 1] = state >> 24; /* many are equal */
    cleave_heap_add_last(items, count, sizeof items[0], is_less);
  }
  for (size_t count = 500; count > 0; count--) {
    cleave_heap_move_first_to_end(items, count, sizeof items[0], is_less);
    ck_assert(count == 500 || items[count - 1] >= items[count]);
  }
}

UNIT_TEST(finds_the_name_that_was_meant) {
  const char *const names[] = {"Conv", "ConvTranspose", "Concat", "Relu", "LeakyRelu", "MatMul"};
  const char *const cases[][2] = {{"Convv", "Conv"},    {"conv", "Conv"},           {"Rleu", "Relu"},
                                  {"Matmul", "MatMul"}, {"LeakyReLU", "LeakyRelu"}, {"Concta", "Concat"}};
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
    cleave_nearest_t nearest = {0};
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
      cleave_nearest_offer(&nearest, cases[c][0], names[k]);
    }
    ck_assert_str_eq(nearest.name, cases[c][1]);
  }
  cleave_nearest_t none = {0};
  cleave_nearest_offer(&none, "Softmax", "Relu");
  ck_assert_str_eq(cleave_nearest_hint(&none), "");
}

UNIT_TEST(text_grows_and_a_failed_append_is_seen) {
  cleave_text_t text = {0};
  for (int k = 0; k < 200; k++) {
    cleave_text_format(&text, "%d,", k);
  }
  ck_assert_uint_eq(text.length, 690);
  ck_assert_int_eq(strncmp(cleave_text_get(&text), "0,1,2,", 6), 0);
  (void)cleave_memory_fail_after(0);
  char room[1024];
  memset(room, 'y', sizeof room);
  cleave_text_append(&text, room, sizeof room);
  (void)cleave_memory_fail_after(-1);
  unit_fails(cleave_text_check(&text, e), CLEAVE_ERROR_OUT_OF_MEMORY, "out of memory");
  cleave_text_deinit(&text);
}

UNIT_TEST(rows_become_aligned_columns) {
  cleave_text_t rows = {0};
  cleave_text_t table = {0};
  cleave_text_add(&rows, "name\tcount\twhat\n");
  cleave_text_align(&table, cleave_text_get(&rows), "lrl", "<", ">");
  ck_assert_str_eq(cleave_text_get(&table), ""); /* only a heading */
  cleave_text_show(&rows, "%s\t%d\t%s\n", "a\tb\n", 7, "x");
  cleave_text_add(&rows, "\xc3\xa4\t12345678\t\033[1mbold\033[0m\n");
  cleave_text_align(&table, cleave_text_get(&rows), "lrl", "<", ">");
  ck_assert_str_eq(cleave_text_get(&table),
                   "  <name       count  what>\n"
                   "  a\\tb\\n         7  x\n"
                   "  \xc3\xa4       12345678  \033[1mbold\033[0m\n");
  cleave_text_deinit(&table);
  cleave_text_deinit(&rows);
}

/* What is shown for these arguments, in a buffer that is large enough. */
#define SHOWS(expected, ...)                                       \
  do {                                                             \
    char shown_[256];                                              \
    int length_ = cleave_show(shown_, sizeof shown_, __VA_ARGS__); \
    ck_assert_str_eq(shown_, expected);                            \
    ck_assert_int_eq(length_, (int)strlen(expected));              \
  } while (0)

UNIT_TEST(texts_from_outside_are_shown_escaped) {
  SHOWS("a\\n\\r\\t\\x1b[2J\\x07\\x7f", "%s", "a\n\r\t\x1b[2J\a\x7f");
  SHOWS("\\u{9b}2J \\u{202e} \\u{2066} \\u{2028} \\u{feff} \\u{e0041}", "%s %s %s %s %s %s",
        "\xc2\x9b"
        "2J",
        "\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x80\xa8", "\xef\xbb\xbf", "\xf3\xa0\x81\x81");
  SHOWS("\\xff \\xc3 \\xc0\\xaf \\xed\\xa0\\x80", "%s %s %s %s", "\xff", "\xc3", "\xc0\xaf", "\xed\xa0\x80");
  SHOWS(
      "gr\xc3\xb6\xc3\x9f"
      "e \xe6\x97\xa5 \xf0\x9f\x98\x80",
      "%s",
      "gr\xc3\xb6\xc3\x9f"
      "e \xe6\x97\xa5 \xf0\x9f\x98\x80");
  SHOWS("\\n\\x1b", "%s", "\\n\\x1b"); /* what is shown already stays */
}

UNIT_TEST(shows_numbers_and_widths_as_printf_does) {
  SHOWS("-7 7 ff 0001 -1 5 18446744073709551615 1.50 1e-07 50%", "%d %u %x %04d %lld %zu %llu %.2f %g %d%%",
        -7, 7u, 255u, 1, -1LL, (size_t)5, ULLONG_MAX, 1.5, 1e-7, 50);
  SHOWS("[a   ][   a][\xc3\xa4   ][\\n  ]", "[%-4s][%4s][%-4s][%-*s]", "a", "a", "\xc3\xa4", 4, "\n");
  SHOWS("abc ab \xe2\x82\xac a", "%.3s %.*s %.5s %.3s", "abcdef", 2, "abcdef", "\xe2\x82\xac\xe2\x82\xac",
        "a\xe2\x82\xac");
  SHOWS("\x1b[1mx\n", CLEAVE_TRUSTED "%c\n", "\x1b[1m", 'x');
  char small[8];
  ck_assert_int_eq(cleave_show(small, sizeof small, "%s", "abcdef\n"), 8);
  ck_assert_str_eq(small, "abcdef"); /* an escape is whole or not there */
  ck_assert_int_eq(cleave_show(small, sizeof small, "0123456789%d", 5), 11);
  ck_assert_str_eq(small, "0123456");
  ck_assert_int_eq(cleave_show(NULL, 0, "%s", "\n"), 2);
}

UNIT_TEST(hashes_are_the_same_everywhere) {
  ck_assert_uint_eq(cleave_hash_bytes(CLEAVE_HASH_SEED, "cleave", 6),
                    cleave_hash_bytes(CLEAVE_HASH_SEED, "cleave", 6));
  ck_assert_uint_ne(cleave_hash_bytes(CLEAVE_HASH_SEED, "cleave", 6),
                    cleave_hash_bytes(CLEAVE_HASH_SEED, "cleavf", 6));
  ck_assert_uint_ne(cleave_hash_bytes(CLEAVE_HASH_SEED, "\0", 1),
                    cleave_hash_bytes(CLEAVE_HASH_SEED, "\0\0", 2));
}

UNIT_TEST(writes_files_whole_and_maps_them) {
  char folder[] = "/tmp/cleave_base_XXXXXX";
  ck_assert_ptr_nonnull(mkdtemp(folder));
  char path[64];
  (void)snprintf(path, sizeof path, "%s/f", folder);
  unit_ok(cleave_file_write(path, "old", 3, e));
  unit_ok(cleave_file_write(path, "newer", 5, e));
  cleave_file_t *file = NULL;
  unit_ok(cleave_file_open(path, &file, e));
  cleave_file_t *shared = cleave_file_retain(file);
  cleave_file_release(file);
  ck_assert_uint_eq(cleave_file_size(shared), 5);
  ck_assert_mem_eq(cleave_file_data(shared), "newer", 5);
  cleave_file_release(shared);
  unit_fails_with(cleave_file_open(folder, &file, e), CLEAVE_ERROR_IO, "not a regular file");
  ck_assert_int_eq(unlink(path), 0);
  unit_fails_with(cleave_file_open(path, &file, e), CLEAVE_ERROR_IO, "cannot open: No such file");
  unit_fails_with(cleave_file_write("/nonexistent/x", "", 0, e), CLEAVE_ERROR_IO, "cannot write");
  ck_assert_int_eq(rmdir(folder), 0); /* no temporary file is left */
}

/* Memory of this process that is there, in bytes. */
static long resident_bytes(void) {
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  ck_assert_ptr_nonnull(file);
  ck_assert_int_eq(fscanf(file, "%*d %ld", &pages), 1);
  (void)fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}

UNIT_TEST(pages_of_a_mapped_file_go_and_come_back) {
  enum { SIZE = 32 << 20, STEP = 4099 };
  char path[64];
  (void)snprintf(path, sizeof path, "/tmp/cleave_pages_%ld", (long)getpid());
  unsigned char *content = malloc(SIZE);
  ck_assert_ptr_nonnull(content);
  for (size_t k = 0; k < SIZE; k++) {
    content[k] = (unsigned char)(k % 251);
  }
  unit_ok(cleave_file_write(path, content, SIZE, e));
  cleave_file_t *file = NULL;
  unit_ok(cleave_file_open(path, &file, e));
  const unsigned char *data = cleave_file_data(file);
  ck_assert_int_eq(memcmp(data, content, SIZE), 0);
  long before = resident_bytes();
  cleave_file_drop_pages(data + 1, SIZE - 2);
  ck_assert_int_lt(resident_bytes(), before - SIZE / 2);
  for (size_t k = 0; k < SIZE; k += STEP) {
    ck_assert_uint_eq(data[k], k % 251);
  }
  /* Memory that is no file's, or leaves the file, stays. */
  cleave_file_drop_pages(content, SIZE);
  cleave_file_drop_pages(data, (size_t)SIZE + (1 << 20));
  cleave_file_drop_pages(data, 0);
  ck_assert_int_eq(memcmp(data, content, SIZE), 0);
  cleave_file_release(file);
  cleave_file_drop_pages(content, SIZE);
  ck_assert_uint_eq(content[SIZE - 1], (SIZE - 1) % 251);
  free(content);
  (void)unlink(path);
}

/* The signal comes in the middle of the content: a file may not grow beyond what is allowed here. */
UNIT_TEST(an_empty_file_has_data_to_point_into) {
  char path[64];
  cleave_file_t *file = NULL;
  (void)snprintf(path, sizeof path, "/tmp/cleave_empty_%ld", (long)getpid());
  unit_ok(cleave_file_write(path, "", 0, e));
  unit_ok(cleave_file_open(path, &file, e));
  ck_assert_uint_eq(cleave_file_size(file), 0);
  ck_assert_ptr_nonnull(cleave_file_data(file));
  cleave_file_release(file);
  unit_ok(cleave_file_read(path, 100, &file, e));
  ck_assert_ptr_nonnull(cleave_file_data(file));
  cleave_file_release(file);
  (void)unlink(path);
}

UNIT_TEST(a_process_that_is_ended_while_it_writes_leaves_nothing) {
  static const char FOLDER[] = "half_written";
  enum { ALLOWED = 64 << 10, SIZE = 1 << 20 };
  ck_assert(mkdir(FOLDER, 0700) == 0 || errno == EEXIST);
  pid_t child = fork();
  if (child == 0) {
    static char content[SIZE];
    struct rlimit limit = {ALLOWED, ALLOWED};
    (void)signal(SIGXFSZ, SIG_DFL);
    (void)setrlimit(RLIMIT_FSIZE, &limit);
    _exit(cleave_file_write("half_written/out.txt", content, sizeof content, NULL) == CLEAVE_OK ? 0 : 1);
  }
  int status = 0;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
  ck_assert_msg(rmdir(FOLDER) == 0, "something is left in %s", FOLDER);
}

UNIT_TEST(takes_paths_apart) {
  size_t length = 0;
  (void)cleave_path_folder("/a/b.onnx", &length);
  ck_assert_uint_eq(length, 3);
  (void)cleave_path_folder("b.onnx", &length);
  ck_assert_uint_eq(length, 0);
  ck_assert_str_eq(cleave_path_name("/a/b.onnx"), "b.onnx");
  ck_assert(cleave_path_has_extension("x.ONNX", ".onnx"));
  ck_assert(!cleave_path_has_extension(".onnx", ".onnx"));
}

static void mark(void *context, int64_t begin, int64_t end) {
  unsigned char *seen = context;
  for (int64_t k = begin; k < end; k++) {
    seen[k]++;
  }
}

UNIT_TEST(a_parallel_loop_visits_every_index_once) {
  static unsigned char seen[10007];
  for (int32_t threads = 1; threads < 5; threads++) {
    memset(seen, 0, sizeof seen);
    cleave_parallel_for(threads, sizeof seen, 100, mark, seen);
    for (size_t k = 0; k < sizeof seen; k++) {
      ck_assert_int_eq(seen[k], 1);
    }
  }
  cleave_parallel_for(4, 0, 1, mark, NULL);
  ck_assert_int_ge(cleave_threads_available(), 1);
}

/* A file below `root`, with the folders on its way. */
static void put(const char *root, const char *name, const char *text) {
  char path[512];
  (void)snprintf(path, sizeof path, "%s%s", root, name);
  for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')) != NULL; at++) {
    *at = '\0';
    (void)mkdir(path, 0700);
    *at = '/';
  }
  FILE *file = fopen(path, "w");
  ck_assert_ptr_nonnull(file);
  (void)fputs(text, file);
  (void)fclose(file);
}

static void remove_folder(const char *root) {
  char command[128];
  (void)snprintf(command, sizeof command, "rm -rf '%s'", root);
  ck_assert_int_eq(system(command), 0);
}

#define MOUNT_UNIFIED "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
#define MOUNT_CPU "31 24 0:27 /box /groups/cpu rw shared:3 - cgroup cgroup rw,cpu,cpuacct\n"

UNIT_TEST(processors_with_nothing_to_do_are_those_that_the_process_may_use) {
  char root[] = "/tmp/cleave_idle_XXXXXX";
  char text[1 << 16] = "cpu  1 2 3 400000 5 6 7 8 9 10\n";
  size_t length = strlen(text);
  uint64_t idle = 7;
  int32_t processors = 0;
  cpu_set_t allowed;
  ck_assert_int_eq(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  ck_assert_ptr_nonnull(mkdtemp(root));
  ck_assert(!cleave_processor_idle(root, &idle, &processors));
  for (int k = 0; k < CPU_SETSIZE; k++) {
    length += (size_t)snprintf(text + length, sizeof text - length, "cpu%d 9 9 9 %d 1 9 9\n", k,
                               CPU_ISSET((size_t)k, &allowed) ? 100 : 7000);
  }
  (void)snprintf(text + length, sizeof text - length, "intr 1 2 3\ncpu0 9 9 9 900 1 9 9\n");
  put(root, "/proc/stat", text);
  ck_assert(cleave_processor_idle(root, &idle, &processors));
  ck_assert_int_eq(processors, CPU_COUNT(&allowed));
  ck_assert_uint_eq(idle,
                    UINT64_C(101) * (uint64_t)processors * (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK)));
  put(root, "/proc/stat", "rubbish\ncpu0 9 9 9 900 1 9 9\n");
  ck_assert(!cleave_processor_idle(root, &idle, &processors));
  remove_folder(root);
}

UNIT_TEST(quotas_of_control_groups_of_version_2_bind_all_below) {
  char root[] = "/tmp/cleave_quota_XXXXXX";
  ck_assert_ptr_nonnull(mkdtemp(root));
  ck_assert_int_eq(cleave_processor_quota(root), 0);
  put(root, "/proc/self/cgroup", "0::/a/b\n");
  put(root, "/proc/self/mountinfo", "29 1 8:1 / / rw - ext4 /dev/a rw\n" MOUNT_UNIFIED);
  put(root, "/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  ck_assert_int_eq(cleave_processor_quota(root), 0);
  put(root, "/sys/fs/cgroup/a/cpu.max", "250000 100000\n");
  ck_assert_int_eq(cleave_processor_quota(root), 3);
  put(root, "/sys/fs/cgroup/a/b/cpu.max", "100000 50000\n");
  ck_assert_int_eq(cleave_processor_quota(root), 2);
  put(root, "/sys/fs/cgroup/a/b/cpu.max", "1000 100000\n");
  ck_assert_int_eq(cleave_processor_quota(root), 1);
  /* Seen from a namespace below the group. */
  put(root, "/proc/self/cgroup", "0::/../../a/b\n");
  put(root, "/sys/fs/cgroup/cpu.max", "400000 100000\n");
  ck_assert_int_eq(cleave_processor_quota(root), 4);
  put(root, "/sys/fs/cgroup/cpu.max", "rubbish\n");
  ck_assert_int_eq(cleave_processor_quota(root), 0);
  remove_folder(root);
}

UNIT_TEST(quotas_of_control_groups_of_version_1_are_read_below_the_mount) {
  char root[] = "/tmp/cleave_quota_XXXXXX";
  ck_assert_ptr_nonnull(mkdtemp(root));
  put(root, "/proc/self/cgroup", "3:cpuset:/\n2:cpu,cpuacct:/box/in\n0::/\n");
  put(root, "/proc/self/mountinfo", MOUNT_UNIFIED MOUNT_CPU);
  put(root, "/groups/cpu/in/cpu.cfs_quota_us", "-1\n");
  put(root, "/groups/cpu/in/cpu.cfs_period_us", "100000\n");
  ck_assert_int_eq(cleave_processor_quota(root), 0);
  put(root, "/groups/cpu/cpu.cfs_quota_us", "150000\n");
  put(root, "/groups/cpu/cpu.cfs_period_us", "100000\n");
  ck_assert_int_eq(cleave_processor_quota(root), 2);
  put(root, "/groups/cpu/in/cpu.cfs_quota_us", "50000\n");
  ck_assert_int_eq(cleave_processor_quota(root), 1);
  put(root, "/proc/self/cgroup", "2:cpu,cpuacct:/boxes/in\n");
  ck_assert_int_eq(cleave_processor_quota(root), 2);
  remove_folder(root);
}

UNIT_TEST(the_number_of_threads_is_the_users_own) {
  ck_assert_int_eq(setenv("OMP_NUM_THREADS", "7,2", 1), 0);
  ck_assert_int_eq(cleave_threads_available(), 7);
  ck_assert_int_eq(setenv("OMP_NUM_THREADS", "-3", 1), 0);
  ck_assert_int_ge(cleave_threads_available(), 1);
}

UNIT_SUITE("base")
