// @ts-check
/**
 * What a packet of 4 KiB costs its sender when its data are copied into a slot, and when the kernel gathers them from the region (`TxBatch.borrow`): header, data, ICRC
 * and sendmmsg with trains, to a socket of this process, which another call empties. Both take turns every eight batches. Nanoseconds a packet, the tenth
 * percentile and the median over the batches; other programs on the machine move the latter.
 *
 *   node bench/borrow.js [--mib 64] [--batches 4000]
 */

import process from 'node:process';
import { parseArgs } from 'node:util';
import { libC } from '../build/src/dgram-ext/libc.js';
import { boundUdpPort, enableBatching, openNativeSocket } from '../build/src/dgram-ext/native-socket.js';
import { ReceiveVector } from '../build/src/dgram-ext/receive-vector.js';
import { SendVector } from '../build/src/dgram-ext/send-vector.js';
import { chooseCrc32 } from '../build/src/driver/crc32/crc32-choice.js';
import { systemRandom } from '../build/src/driver/system-random.js';
import { KeyTable } from '../build/src/memory/key-table.js';
import { MemoryRange } from '../build/src/memory/memory-range.js';
import { IpAddress } from '../build/src/packet/address.js';
import { RC_WRITE_MIDDLE } from '../build/src/packet/opcode.js';
import { writeBth } from '../build/src/packet/roce.js';
import { borrowPayload } from '../build/src/qp/borrowed-payload.js';
import { Path } from '../build/src/qp/path.js';

const { values } = parseArgs({
  options: { mib: { type: 'string', default: '64' }, batches: { type: 'string', default: '4000' } },
});
const PACKETS = 60;
const DATA_BYTES = 4096;
const BUFFER_BYTES = 4 << 20;

const crc32 = chooseCrc32();
const lib = libC();
if (typeof lib === 'string') throw new Error(lib);
const address = IpAddress.parse('127.0.0.1');
const [receiver, sender] = [0, 0].map((port) => openNativeSocket(address, port, BUFFER_BYTES, BUFFER_BYTES));
for (const fd of [receiver, sender]) enableBatching(fd, 4);
const received = new ReceiveVector(lib, 8, address);
const path = new Path({
  local: address,
  remote: address,
  localUdpPort: boundUdpPort(sender),
  sourcePort: boundUdpPort(sender),
  hasFixedPort: true,
  remoteUdpPort: boundUdpPort(receiver),
  dscp: 0,
  ecn: 0,
  makesIcrc: true,
});
const memory = new Uint8Array(Number(values.mib) << 20).fill(1);
const keys = new KeyTable(systemRandom());
const range = new MemoryRange();
keys.resolve(keys.register(1, memory, 0, 0, 0).key, 1, -1, 0, 0, memory.length, 0, range);
const vectors = [false, true].map((borrows) => new SendVector(lib, PACKETS, address, 64, borrows));

let offset = 0;

function fill(/** @type {SendVector} */ batch, /** @type {number} */ psn) {
  batch.count = 0;
  for (let i = 0; i < PACKETS; i++) {
    const start = batch.payloadOffset(batch.count);
    const at = writeBth(batch.slab, start, RC_WRITE_MIDDLE, 0, 5, false, psn);
    if (!borrowPayload(batch, range, offset, DATA_BYTES, at - start)) range.copyTo(offset, DATA_BYTES, batch.slab, at);
    path.seal(batch, at + DATA_BYTES, 0);
    offset = (offset + DATA_BYTES) % memory.length;
  }
}

const now = () => Number(process.hrtime.bigint());
/** @type {Array<{ fill: number[], send: number[], both: number[] }>} */
const times = [0, 1].map(() => ({ fill: [], send: [], both: [] }));
const batches = Number(values.batches);
for (let n = 0; n < batches; n++) {
  const kind = (n >> 3) & 1;
  const vector = vectors[kind];
  const begun = now();
  fill(vector, n);
  const filled = now();
  vector.prepare();
  vector.send(sender);
  vector.release();
  const sent = now();
  while (received.receive(receiver) > 0);
  if (n < batches / 10) continue; // Cold code.
  times[kind].fill.push((filled - begun) / PACKETS);
  times[kind].send.push((sent - filled) / PACKETS);
  times[kind].both.push((sent - begun) / PACKETS);
}

console.log(`${values.mib} MiB of data, CRC-32 by ${crc32}, ns a packet: p10, p50`);
for (const part of /** @type {const} */ (['fill', 'send', 'both'])) {
  const [copied, borrowed] = times.map((of) => {
    const sorted = of[part].sort((a, b) => a - b);
    return [0.1, 0.5].map((rank) => sorted[Math.floor(sorted.length * rank)].toFixed(0)).join(', ');
  });
  console.log(`${part.padEnd(5)} copied ${copied.padEnd(12)} gathered ${borrowed}`);
}
