// SPDX-License-Identifier: Apache-2.0
// Generation in ONNX Runtime with keys and values of earlier calls fed back, greedy:
//   node generate.mjs MODEL THREADS STEPS TOKENS
// TOKENS: those of the prompt, with commas between them. Prints JSON: the tokens, ms to the first, and the median of ms of the others.
// States past_*, or past_key_values.*, become present_* or present.*; they have rank 4, with heads and sizes as in HEADSxSIZE
// (default 6x64). The inputs attention_mask and position_ids are given if the model has them, and use_cache_branch of
// merged ones, false for the prompt and true after it; the other one is the tokens.
import { ort } from './tensor.mjs';

const [model, threads, steps, text, sizes = '6x64'] = process.argv.slice(2);
const [heads, size] = sizes.split('x').map(Number);
const session = await ort.InferenceSession.create(model, {
  intraOpNumThreads: Number(threads),
  interOpNumThreads: 1,
  executionMode: 'sequential',
  graphOptimizationLevel: 'all',
});
const states = session.inputNames.filter((name) => name.startsWith('past_'));
const others = ['attention_mask', 'position_ids', 'use_cache_branch'];
const ids = session.inputNames.find((name) => !states.includes(name) && !others.includes(name));

function tokensOf(list) {
  return new ort.Tensor('int64', BigInt64Array.from(list, BigInt), [1, list.length]);
}

// The place of the largest score of the last token. Bits of float16 become integers in the order of their numbers.
function largest(scores) {
  const count = scores.dims[2];
  let data = scores.data.subarray(scores.data.length - count);
  if (scores.type === 'float16') {
    const bits = new Uint16Array(data.buffer, data.byteOffset, count);
    data = Int32Array.from(bits, (half) => (half & 0x8000 ? -(half & 0x7fff) : half));
  }
  let best = 0;
  for (let k = 1; k < count; k++) if (data[k] > data[best]) best = k;
  return best;
}

// What a run reads besides its states: tokens behind `past` others.
function feedsOf(list, past) {
  const feeds = { [ids]: tokensOf(list) };
  if (session.inputNames.includes('attention_mask')) feeds.attention_mask = tokensOf(Array(past + list.length).fill(1));
  if (session.inputNames.includes('position_ids')) feeds.position_ids = tokensOf(list.map((_, k) => past + k));
  if (session.inputNames.includes('use_cache_branch')) feeds.use_cache_branch = new ort.Tensor('bool', [past > 0], [1]);
  return feeds;
}

// A state without tokens, in the type that the model declares.
function nothing(name) {
  const { type } = session.inputMetadata.find((input) => input.name === name);
  return new ort.Tensor(type, type === 'float16' ? new Uint16Array(0) : new Float32Array(0), [1, heads, 0, size]);
}

async function generate(prompt, count) {
  const tokens = [];
  const times = [];
  let feeds = feedsOf(prompt, 0);
  for (const name of states) feeds[name] = nothing(name);
  while (tokens.length < count) {
    const start = performance.now();
    const results = await session.run(feeds);
    tokens.push(largest(results.logits));
    times.push(performance.now() - start);
    feeds = feedsOf(tokens.slice(-1), prompt.length + tokens.length - 1);
    for (const name of states) {
      feeds[name] = results[name.replace('past_key_values.', 'present.').replace('past_', 'present_')];
    }
  }
  return { tokens, times };
}

const prompt = text.split(',').map(Number);
await generate(prompt, 8);
const { tokens, times } = await generate(prompt, Number(steps));
const rest = times.slice(1);
const total = rest.reduce((sum, ms) => sum + ms, 0);
rest.sort((a, b) => a - b);
console.log(
  JSON.stringify({
    tokens,
    first_token_ms: times[0],
    token_ms: rest[rest.length >> 1] ?? 0,
    tokens_per_second: total > 0 ? (rest.length / total) * 1e3 : 0,
  }),
);
