// @ts-check
/**
 * The sliding-window memory pool against one request for memory a write, interleaved in one run: time for the same bytes by block size, and
 * control messages per 1,024 blocks.
 *
 *   node bench/window.js [--reps 5] [--total 268435456] [--blocks 16] [--io auto] [--engine worker] [--json]
 */

import os from 'node:os';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { runWindow } from '../build/packages/cli/src/window/experiment.js';
import { WINDOW_POLICIES } from '../build/packages/cli/src/window/policies.js';

const KIB = 1024;
const BLOCK_SIZES = [4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, 1024 * KIB, 4096 * KIB];
/** Small blocks take so long in the baseline that fewer bytes tell as much. */
const BLOCKS_MAX = 8192;

const { values } = parseArgs({
  options: {
    reps: { type: 'string', default: '5' },
    total: { type: 'string', default: String(2 ** 30) },
    blocks: { type: 'string', default: '16' },
    io: { type: 'string', default: 'mmsg' },
    engine: { type: 'string', default: 'worker' },
    json: { type: 'boolean', default: false },
  },
});
const blocks = Number(values.blocks);
/** @type {import('../build/packages/command/src/nic-options.js').NicFlags} */
const nic = {
  io: /** @type {any} */ (values.io),
  engine: /** @type {any} */ (values.engine),
  spin: true,
  mapRegions: true,
};
const signal = new AbortController().signal;

const median = (/** @type {number[]} */ numbers) => numbers.toSorted((a, b) => a - b)[numbers.length >>> 1];

const rows = [];
for (const blockBytes of BLOCK_SIZES) {
  const totalBytes = Math.min(Number(values.total), blockBytes * BLOCKS_MAX);
  /** @type {Record<string, {seconds: number[], controlMessages: number[]}>} */
  const runs = Object.fromEntries(WINDOW_POLICIES.map((policy) => [policy, { seconds: [], controlMessages: [] }]));
  for (let rep = 0; rep < Number(values.reps); rep++) {
    for (const policy of WINDOW_POLICIES) {
      const settings = {
        policy,
        blocks,
        blocksMax: blocks,
        blockBytes,
        totalBytes,
        mas: Math.max(1, blocks >>> 1),
        matNs: 5e6,
        nic,
      };
      const result = await runWindow(settings, { interrupted: signal, onSent: () => {}, note: () => {} });
      if (!result.verified) throw new Error(`${policy}: the received data differs from the data sent`);
      runs[policy].seconds.push(result.seconds);
      runs[policy].controlMessages.push((result.controlMessages * 1024 * blockBytes) / totalBytes);
    }
    process.stderr.write(`${blockBytes / KIB} KiB, rep ${rep + 1}/${values.reps}\n`);
  }
  const seconds = Object.fromEntries(WINDOW_POLICIES.map((policy) => [policy, median(runs[policy].seconds)]));
  // The ratio of one repetition compares neighbours in time; its median is less noisy than the ratio of medians.
  const saving = (/** @type {string} */ policy) =>
    median(runs[policy].seconds.map((s, rep) => 1 - s / runs['baseline'].seconds[rep]));
  rows.push({
    blockBytes,
    totalBytes,
    seconds,
    saving: { nodelay: saving('nodelay'), nagle: saving('nagle') },
    controlMessagesPer1024Blocks: Object.fromEntries(
      WINDOW_POLICIES.map((policy) => [policy, Math.round(median(runs[policy].controlMessages))]),
    ),
  });
}

if (values.json) console.log(JSON.stringify({ blocks, reps: Number(values.reps), rows }));
else {
  console.log(
    `node ${process.version}, ${os.cpus().length} x ${os.cpus()[0].model}, ${values.reps} interleaved repetitions`,
  );
  console.log(
    `pool of ${blocks} blocks, MAS ${Math.max(1, blocks >>> 1)}, MAT 5 ms, ${values.engine} engines, --io ${values.io}; seconds are medians\n`,
  );
  console.log(
    '   block     total  baseline   nodelay     nagle   saving by nodelay, nagle   messages per 1,024 blocks',
  );
  for (const { blockBytes, totalBytes, seconds, saving, controlMessagesPer1024Blocks: messages } of rows) {
    const cells = WINDOW_POLICIES.toReversed().map((policy) => seconds[policy].toFixed(3).padStart(9));
    const percent = (/** @type {number} */ share) => `${(100 * share).toFixed(1)} %`.padStart(8);
    console.log(
      `${`${blockBytes / KIB} KiB`.padStart(8)} ${`${totalBytes / KIB / KIB} MiB`.padStart(9)} ${[cells[0], cells[2], cells[1]].join(' ')}` +
        `        ${percent(saving.nodelay)}  ${percent(saving.nagle)}       ${messages['baseline']} / ${messages['nodelay']} / ${messages['nagle']}`,
    );
  }
}
