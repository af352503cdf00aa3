// SPDX-License-Identifier: Apache-2.0
// ONNX Runtime, from the folder that has node_modules with onnxruntime-node (ORT_DIR, or build), and tensors from files for it.
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';

const require = createRequire(path.join(process.env.ORT_DIR ?? path.join(import.meta.dirname, '../../build'), 'x.js'));
export const ort = require('onnxruntime-node');

// TensorProto with raw_data: dims = 1, data_type = 2, name = 8, raw_data = 9.
const types = {
  1: ['float32', Float32Array],
  2: ['uint8', Uint8Array],
  3: ['int8', Int8Array],
  4: ['uint16', Uint16Array],
  6: ['int32', Int32Array],
  7: ['int64', BigInt64Array],
  9: ['bool', Uint8Array],
  10: ['float16', Uint16Array],
  11: ['float64', Float64Array],
};
export function readTensor(file) {
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
  let raw = new Uint8Array(0);
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
  if (types[type] === undefined) throw new Error(`${file}: element type ${type} is not read here`);
  const [name, View] = types[type];
  return new ort.Tensor(name, new View(raw.buffer), dims);
}
