// SPDX-License-Identifier: Apache-2.0
// Frames between cleave and a worker, from a side that sends what it likes; and the places of shared buffers.
#include "backend/process/worker_protocol.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "unit.h"

typedef struct pair {
  cleave_channel_t near;
  int far;
  cleave_frame_t frame;
} pair_t;

/* Does not wait: what is not there by now does not come. */
static bool give_up(void *context, short events) {
  (void)context;
  (void)events;
  return false;
}

static pair_t make_pair(size_t limit) {
  int ends[2];
  ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  return (pair_t){
      .near = {.socket = ends[0], .wait = give_up, .limit = limit}, .far = ends[1], .frame = {.fd = -1}};
}

static void free_pair(pair_t *pair) {
  (void)close(pair->near.socket);
  if (pair->far >= 0) {
    (void)close(pair->far);
  }
  cleave_free(pair->frame.data);
}

static void write_far(const pair_t *pair, const void *data, size_t length) {
  ck_assert_int_eq(write(pair->far, data, length), (ssize_t)length);
}

/* A frame as bytes. */
static size_t make_bytes(unsigned char *bytes, size_t size) {
  pair_t pair = make_pair(1 << 20);
  ck_assert_int_eq(cleave_channel_send(&pair.near, 7, "hello", 6, -1), CLEAVE_FRAME_OK);
  ssize_t length = read(pair.far, bytes, size);
  ck_assert_int_gt(length, 6);
  free_pair(&pair);
  return (size_t)length;
}

UNIT_TEST(a_frame_arrives_with_its_descriptor) {
  pair_t pair = make_pair(1 << 20);
  cleave_channel_t far = {.socket = pair.far, .wait = give_up};
  int ends[2];
  ck_assert_int_eq(pipe(ends), 0);
  ck_assert_int_eq(cleave_channel_send(&far, 3, "abc", 4, ends[1]), CLEAVE_FRAME_OK);
  ck_assert_int_eq(cleave_channel_send(&far, 4, NULL, 0, -1), CLEAVE_FRAME_OK);
  ck_assert_int_eq(cleave_channel_receive(&pair.near, &pair.frame), CLEAVE_FRAME_OK);
  ck_assert_uint_eq(pair.frame.kind, 3);
  ck_assert_str_eq((const char *)pair.frame.data, "abc");
  ck_assert_int_ge(pair.frame.fd, 0);
  ck_assert_int_eq(fcntl(pair.frame.fd, F_GETFD), FD_CLOEXEC);
  ck_assert_int_eq(write(pair.frame.fd, "x", 1), 1);
  (void)close(pair.frame.fd);
  ck_assert_int_eq(cleave_channel_receive(&pair.near, &pair.frame), CLEAVE_FRAME_OK);
  ck_assert_uint_eq(pair.frame.kind, 4);
  ck_assert_uint_eq(pair.frame.length, 0);
  ck_assert_int_eq(pair.frame.fd, -1);
  (void)close(ends[0]);
  (void)close(ends[1]);
  free_pair(&pair);
}

UNIT_TEST(a_frame_that_is_cut_is_waited_for_or_closed) {
  unsigned char bytes[128];
  size_t length = make_bytes(bytes, sizeof bytes);
  for (size_t cut = 0; cut < length; cut++) {
    pair_t pair = make_pair(1 << 20);
    write_far(&pair, bytes, cut);
    ck_assert_int_eq(cleave_channel_receive(&pair.near, &pair.frame), CLEAVE_FRAME_GIVEN_UP);
    free_pair(&pair);
    pair = make_pair(1 << 20);
    write_far(&pair, bytes, cut);
    (void)close(pair.far);
    pair.far = -1;
    ck_assert_int_eq(cleave_channel_receive(&pair.near, &pair.frame), CLEAVE_FRAME_CLOSED);
    free_pair(&pair);
  }
}

UNIT_TEST(a_frame_that_is_none_or_too_long_is_broken) {
  unsigned char bytes[128];
  size_t length = make_bytes(bytes, sizeof bytes);
  pair_t pair = make_pair(5);
  write_far(&pair, bytes, length);
  ck_assert_int_eq(cleave_channel_receive(&pair.near, &pair.frame), CLEAVE_FRAME_BROKEN);
  free_pair(&pair);
  pair = make_pair(SIZE_MAX);
  memset(bytes + 8, 0xff, 8); /* the length: nothing is allocated for what does not come */
  write_far(&pair, bytes, length);
  ck_assert_int_ne(cleave_channel_receive(&pair.near, &pair.frame), CLEAVE_FRAME_OK);
  ck_assert_uint_le(pair.frame.capacity, (size_t)4 << 20);
  free_pair(&pair);
  pair = make_pair(1 << 20);
  bytes[0] ^= 1;
  write_far(&pair, bytes, length);
  ck_assert_int_eq(cleave_channel_receive(&pair.near, &pair.frame), CLEAVE_FRAME_BROKEN);
  free_pair(&pair);
}

UNIT_TEST(sending_to_nobody_is_no_signal) {
  pair_t pair = make_pair(1 << 20);
  (void)close(pair.far);
  pair.far = -1;
  ck_assert_int_eq(cleave_channel_send(&pair.near, 1, "x", 1, -1), CLEAVE_FRAME_CLOSED);
  free_pair(&pair);
}

UNIT_TEST(sending_more_than_anybody_reads_is_given_up) {
  static unsigned char bytes[8 << 20];
  pair_t pair = make_pair(1 << 20);
  ck_assert_int_eq(cleave_channel_send(&pair.near, 1, bytes, sizeof bytes, -1), CLEAVE_FRAME_GIVEN_UP);
  free_pair(&pair);
}

/* ---- buffers ---- */

UNIT_TEST(buffers_end_where_pages_do_and_marks_are_around_them) {
  static const size_t SIZES[] = {0, 1, 64, 100, 4096, 4097, 100000};
  enum { COUNT = sizeof SIZES / sizeof SIZES[0] };
  cleave_area_part_t parts[COUNT];
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  size_t total = 0;
  ck_assert(cleave_area_place(SIZES, COUNT, parts, &total));
  size_t at = 0;
  for (int k = 0; k < COUNT; k++) {
    ck_assert_uint_eq(parts[k].offset, at);
    ck_assert_uint_eq(parts[k].span % page, 0);
    ck_assert_uint_eq(parts[k].lead % 64, 0);
    ck_assert_uint_ge(parts[k].span, parts[k].lead + SIZES[k]);
    ck_assert_uint_lt(parts[k].span - parts[k].lead - SIZES[k], 64);
    at += parts[k].span;
    unsigned char *pages = malloc(parts[k].span);
    ck_assert_ptr_nonnull(pages);
    memset(pages, 0, parts[k].span);
    cleave_area_mark(&parts[k], pages);
    bool is_behind = false;
    ck_assert_uint_eq(cleave_area_check(&parts[k], pages, &is_behind), 0);
    size_t end = parts[k].lead + SIZES[k];
    if (parts[k].lead >= 8) {
      pages[parts[k].lead - 1] = 1;
      pages[parts[k].lead - 8] = 1;
      ck_assert_uint_eq(cleave_area_check(&parts[k], pages, &is_behind), 8);
      ck_assert(!is_behind);
    }
    if (end < parts[k].span) {
      pages[end] = 0;
      ck_assert_uint_eq(cleave_area_check(&parts[k], pages, &is_behind), 1);
      ck_assert(is_behind);
    }
    free(pages);
  }
  ck_assert_uint_eq(total, at);
  ck_assert(!cleave_area_place((const size_t[]){SIZE_MAX - 10}, 1, parts, &total));
  ck_assert(!cleave_area_place((const size_t[]){SIZE_MAX / 4, SIZE_MAX / 4, SIZE_MAX / 4}, 3, parts, &total));
}

UNIT_SUITE("worker_protocol")
