// SPDX-License-Identifier: Apache-2.0
// Median latency of ONNX Runtime on a model folder (model.onnx, test_data_set_0/input_N.pb), in milliseconds:
//   node ort.mjs FOLDER THREADS REPEAT
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';

const require = createRequire(path.join(process.env.ORT_DIR ?? import.meta.dirname, 'x.js'));
const ort = require('onnxruntime-node');
const [folder, threads, repeat] = process.argv.slice(2);

// TensorProto with raw_data (what the exporter writes): dims = 1, data_type = 2, raw_data = 9.
const types = { 1: ['float32', Float32Array], 6: ['int32', Int32Array], 7: ['int64', BigInt64Array] };
function readTensor(file) {
  const bytes = fs.readFileSync(file);
  let at = 0;
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return Number(value);
    }
  };
  const dims = [];
  let type = 0;
  let raw = null;
  while (at < bytes.length) {
    const key = varint();
    const field = key >> 3;
    if ((key & 7) === 0) {
      const value = varint();
      if (field === 1) dims.push(value);
      if (field === 2) type = value;
    } else {
      const end = varint() + at;
      while (field === 1 && at < end) dims.push(varint());
      if (field === 9) raw = Uint8Array.from(bytes.subarray(at, end));
      at = end;
    }
  }
  const [name, View] = types[type];
  return new ort.Tensor(name, new View(raw.buffer), dims);
}

const session = await ort.InferenceSession.create(path.join(folder, 'model.onnx'), {
  intraOpNumThreads: Number(threads),
  interOpNumThreads: 1,
  executionMode: 'sequential',
  graphOptimizationLevel: 'all',
});
const feeds = {};
session.inputNames.forEach((name, k) => {
  feeds[name] = readTensor(path.join(folder, 'test_data_set_0', `input_${k}.pb`));
});
for (let k = 0; k < 3; k++) await session.run(feeds);
const times = [];
for (let k = 0; k < Number(repeat); k++) {
  const start = performance.now();
  await session.run(feeds);
  times.push(performance.now() - start);
}
times.sort((a, b) => a - b);
console.log(times[times.length >> 1].toFixed(3));
