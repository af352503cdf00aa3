// SPDX-License-Identifier: Apache-2.0
// How long ONNX Runtime takes until a model has run once, and its process's peak of memory, as JSON:
//   node start.mjs MODEL THREADS REPEAT
// Inputs come from test_data_set_0 beside the model; without it they are float32 [1, 8].
import fs from 'node:fs';
import path from 'node:path';
import { ort, readTensor } from './tensor.mjs';

const [model, threads, repeat] = process.argv.slice(2);
const data = path.join(path.dirname(model), 'test_data_set_0');

let start = performance.now();
const session = await ort.InferenceSession.create(model, {
  intraOpNumThreads: Number(threads),
  interOpNumThreads: 1,
  executionMode: 'sequential',
  graphOptimizationLevel: 'all',
});
const loaded = performance.now() - start;
const feeds = {};
session.inputNames.forEach((name, k) => {
  feeds[name] = fs.existsSync(data) ? readTensor(path.join(data, `input_${k}.pb`))
    : new ort.Tensor('float32', new Float32Array(8), [1, 8]);
});
const times = [];
for (let k = 0; k < Number(repeat); k++) {
  start = performance.now();
  await session.run(feeds);
  times.push(performance.now() - start);
}
const first = times[0];
times.sort((a, b) => a - b);
console.log(JSON.stringify({
  load_ms: loaded,
  first_ms: first,
  median_ms: times[times.length >> 1],
  peak_rss_mb: process.resourceUsage().maxRSS / 1024,
}));
