// SPDX-License-Identifier: Apache-2.0
// What the kernels of attention share; it stands before each of them. A row is a query of one of the heads that a head of keys
// serves: row = head of the group * queries + query. A block has ROWS rows of a batch and head of keys, all keys or a split of
// them, and SLICE columns of the values. Defined before: SIZE, VALUE_SIZE, SLICE, SLICES, ROWS, THREADS, CAUSAL, MASK (0, 1: it is
// added, 2: bools, false leaves out), VALID (each batch says how many keys count), SPLITS, SCALE, CAPPED and CAP.
struct arguments {
  const element *q;
  const element *k;
  const element *v;
  element *y;
#if MASK
  const mask_element *mask;
#endif
#if VALID
  const i64 *valid;
#endif
#if SPLITS > 1
  number *parts; // [split, batch, head, row, VALUE_SIZE + 2]: sums of values, the largest score, the sum of weights
#endif
  index batches;
  index heads; // of keys
  index group; // heads of queries that one of them serves
  index queries;
  index keys;
  index past; // keys before that of the first query
  index split; // keys of each split
  index q_batch;
  index q_head;
  index q_row;
  index k_batch;
  index k_head;
  index k_row;
  index v_batch;
  index v_head;
  index v_row;
  index y_batch;
  index y_head;
  index y_row;
#if MASK
  index mask_batch;
  index mask_head;
  index mask_row;
  index mask_key;
#endif
};

#define NOTHING (-(number)__int_as_float(0x7f800000)) // the score of a key that is left out

// The head of the group and the query that are a row.
struct row_place {
  index head;
  index query;
};

__device__ __forceinline__ row_place place_row(const arguments &args, index row) {
  const index head = args.group == 1 ? 0 : row / args.queries;
  return {head, row - head * args.queries};
}

// What a block computes. Causal blocks with most keys begin first.
struct block_place {
  index batch;
  index head;
  index first; // row
  index rows;  // of all blocks
  index split;
  int column; // of the values
  index begin; // keys
  index end;
};

__device__ __forceinline__ block_place place_block(const arguments &args) {
  block_place place;
  index rest = (index)blockIdx.x;
  place.column = SLICES > 1 ? (int)take_last(rest, (index)SLICES) * SLICE : 0;
  place.split = SPLITS > 1 ? take_last(rest, (index)SPLITS) : 0;
  place.rows = args.group * args.queries;
  const index tiles = (place.rows + ROWS - 1) / ROWS;
  const index tile = take_last(rest, tiles);
  place.first = (CAUSAL ? tiles - 1 - tile : tile) * ROWS;
  place.head = take_last(rest, args.heads);
  place.batch = rest;
  place.begin = SPLITS > 1 ? place.split * args.split : 0;
  place.end = args.keys;
#if VALID
  const i64 count = args.valid[place.batch];
  place.end = count < 0 ? 0 : count < (i64)args.keys ? (index)count : args.keys;
#endif
#if CAUSAL
  const index last = min(place.first + ROWS, place.rows) - 1;
  const row_place from = place_row(args, place.first);
  const row_place to = place_row(args, last);
  const index most = args.past + (from.head == to.head ? to.query : args.queries - 1) + 1;
  place.end = min(place.end, most);
#endif
  place.end = SPLITS > 1 ? min(place.end, place.begin + args.split) : place.end;
  return place;
}

// What masks need to know of a row.
struct row_mask {
#if MASK
  const mask_element *mask;
#endif
  index last; // key that it may look at
};

__device__ __forceinline__ row_mask find_mask(const arguments &args, const block_place &block, index row) {
  const row_place place = place_row(args, min(row, block.rows - 1));
  row_mask mask;
#if MASK
  mask.mask = args.mask + block.batch * args.mask_batch +
              (block.head * args.group + place.head) * args.mask_head + place.query * args.mask_row;
#endif
  mask.last = CAUSAL ? min(args.past + place.query, block.end - 1) : block.end - 1;
  return mask;
}

// A score, from the product of a query and a key.
__device__ __forceinline__ number score_of(const arguments &args, const row_mask &mask, number product, index key) {
  number score = product * SCALE;
  if (key > mask.last) {
    return NOTHING;
  }
#if CAPPED
  score = CAP * tanh(score / CAP);
#endif
#if MASK == 1
  score += widen(mask.mask[key * args.mask_key]);
#elif MASK == 2
  score = mask.mask[key * args.mask_key] ? score : NOTHING;
#endif
  return score;
}

// What scores are compared with: a row without keys has no largest one.
__device__ __forceinline__ number base_of(number largest) {
  return largest == NOTHING ? (number)0 : largest;
}

// Where a row has its part of a split.
#if SPLITS > 1
__device__ __forceinline__ number *part_of(const arguments &args, const block_place &block, index row) {
  const index all = ((block.split * args.batches + block.batch) * args.heads + block.head) * block.rows + row;
  return args.parts + all * (VALUE_SIZE + 2);
}
#endif

__device__ __forceinline__ element *result_of(const arguments &args, const block_place &block, index row) {
  const row_place place = place_row(args, row);
  return args.y + block.batch * args.y_batch + (block.head * args.group + place.head) * args.y_head +
         place.query * args.y_row;
}
