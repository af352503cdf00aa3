// SPDX-License-Identifier: Apache-2.0
// Attention whose keys were split over blocks: the parts of each row, weighed by their largest scores. SPLITS and VALUE_SIZE are
// defined before; rows are those of all batches and heads of keys, of `rows` each. A thread has a column of a row.
struct arguments {
  const number *parts;
  element *y;
  index total; // rows of all
  index rows;
  index heads;
  index group;
  index queries;
  index y_batch;
  index y_head;
  index y_row;
};

extern "C" __global__ void __launch_bounds__(256) cleave_kernel(const arguments args) {
  index row = (index)blockIdx.x * 256 + threadIdx.x;
  const index column = take_last(row, (index)VALUE_SIZE);
  if (row >= args.total) {
    return;
  }
  const number *part = args.parts + row * (VALUE_SIZE + 2);
  const index step = args.total * (VALUE_SIZE + 2);
  const number nothing = -(number)__int_as_float(0x7f800000);
  number largest = nothing;
  for (int s = 0; s < SPLITS; s++) {
    largest = fmax(largest, part[s * step + VALUE_SIZE]);
  }
  const number base = largest == nothing ? (number)0 : largest;
  number sum = 0;
  number weights = 0;
  for (int s = 0; s < SPLITS; s++) {
    const number factor = exp(part[s * step + VALUE_SIZE] - base);
    sum += part[s * step + column] * factor;
    weights += part[s * step + VALUE_SIZE + 1] * factor;
  }
  index rest = row;
  const index own = take_last(rest, args.rows);
  const index head = take_last(rest, args.heads);
  const index query = own % args.queries;
  args.y[rest * args.y_batch + (head * args.group + own / args.queries) * args.y_head + query * args.y_row + column] =
      narrow(weights == 0 ? (number)0 : sum / weights);
}
