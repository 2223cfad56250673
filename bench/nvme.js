/**
 * NVMe over Fabrics in numbers: our target against the kernel's, nvmet, over RDMA and TCP in the same pair of QEMU guests; and our host behind
 * an NBD gateway against our storage RPC behind one, on loopback. Contenders take turns; medians. Needs fio, and for guests what
 * test/interop/rig needs. What is asked for may be measured in parts: the lines of a table are independent of each other.
 *
 *     npm run bench:nvme [-- --rounds 3 --seconds 5 --part guests|loopback|all --ops randread,randwrite --blocks 4k,1m]
 *
 * Between guests also `--transports rdma,tcp`, `--warm SECONDS` before the first measurement, `--limit SECONDS` after which a measurement is given
 * up, `--target '--engine inline'`, options of our target, and `--write`: the rows go into packages/nvme/docs/results.md.
 */

import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { BLOCKS, cellsOf, OPS, TRANSPORTS } from './nvme/cells.js';
import { benchGuests } from './nvme/guests.js';
import { benchLoopback } from './nvme/loopback.js';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '5' },
    part: { type: 'string', default: 'all' },
    ops: { type: 'string', default: OPS.join() },
    blocks: { type: 'string', default: BLOCKS.join() },
    transports: { type: 'string', default: TRANSPORTS.join() },
    warm: { type: 'string', default: '10' },
    limit: { type: 'string', default: '60' },
    target: { type: 'string', default: '' },
    write: { type: 'boolean', default: false },
  },
});
const PARTS = { loopback: [benchLoopback], guests: [benchGuests], all: [benchLoopback, benchGuests] };
const parts = PARTS[/** @type {keyof typeof PARTS} */ (values.part)];
if (parts === undefined) throw new Error(`--part is guests, loopback or all, not ${values.part}`);
if (values.write && values.part !== 'guests')
  throw new Error('--write is for --part guests: the other table is copied');
/** @param {'ops' | 'blocks' | 'transports'} option @param {readonly string[]} known */
const listOf = (option, known) => {
  const list = values[option].split(',');
  const unknown = list.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new Error(`--${option} has ${known.join(', ')}, not ${unknown}`);
  return list;
};
const plan = {
  rounds: Number(values.rounds),
  seconds: Number(values.seconds),
  warmSeconds: Number(values.warm),
  limitSeconds: Number(values.limit),
  cells: cellsOf(listOf('ops', OPS), listOf('blocks', BLOCKS)),
  transports: listOf('transports', TRANSPORTS),
  targetOptions: values.target,
  isWritten: values.write,
};
console.log(
  `node ${process.version}, ${cpus().length} x ${cpus()[0].model}; ${plan.rounds} turns of ${plan.seconds} s`,
);
for (const bench of parts) await bench(plan);
