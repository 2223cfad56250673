/**
 * NVMe over Fabrics in numbers: our target against the kernel's, nvmet, over RDMA and TCP in the same pair of QEMU guests; and our host behind
 * an NBD gateway against our storage RPC behind one, on loopback. Contenders take turns; medians. Needs fio, and for guests what
 * test/interop/rig needs.
 *
 *     npm run bench:nvme [-- --rounds 3 --seconds 5 --part guests|loopback|all --ops randread,randwrite]
 */

import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { cellsOf, OPS } from './nvme/cells.js';
import { benchGuests } from './nvme/guests.js';
import { benchLoopback } from './nvme/loopback.js';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '5' },
    part: { type: 'string', default: 'all' },
    ops: { type: 'string', default: OPS.join() },
  },
});
const PARTS = { loopback: [benchLoopback], guests: [benchGuests], all: [benchLoopback, benchGuests] };
const parts = PARTS[/** @type {keyof typeof PARTS} */ (values.part)];
if (parts === undefined) throw new Error(`--part is guests, loopback or all, not ${values.part}`);
const ops = values.ops.split(',');
const unknown = ops.find((op) => !OPS.includes(op));
if (unknown !== undefined) throw new Error(`--ops has ${OPS.join(', ')}, not ${unknown}`);
const plan = { rounds: Number(values.rounds), seconds: Number(values.seconds), cells: cellsOf(ops) };
console.log(
  `node ${process.version}, ${cpus().length} x ${cpus()[0].model}; ${plan.rounds} turns of ${plan.seconds} s`,
);
for (const bench of parts) await bench(plan);
