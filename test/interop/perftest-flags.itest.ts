/** perftest's everyday flags: `rocev2 bw` and `lat` and the stock tools take them in the same spelling, on both sides, and mean the same by them. */

import { expect } from 'vitest';
import { cell } from './support/cell.js';
import { describeWithRig } from './support/describe-on-rig.js';
import { jsonResult, saysOnStderr, startRocev2 } from './support/rocev2.js';

const PORT = 18515;
/** Largest message of `-a`; of a datagram the path MTU of the guest. */
const LARGEST_BYTES = 2 ** 23;
const LARGEST_DATAGRAM_BYTES = 4096;
/** The emulated peer measures its clock before every line of `-a`, and moves 40 MB: a second each on a machine that is idle. */
const LIMIT_MS = 110_000;
/** 1.07 s: a guest on a busy machine answers later than the 67 ms that are usual, and eight of those end a connection. */
const PATIENCE = ['-u', '18'];
const FEW = ['-n', '100'];
const ONE_PACKET_AND_MORE = [...FEW, '-s', '5000'];

interface FlagCell {
  readonly op: 'write' | 'read' | 'send' | 'atomic';
  readonly kind: 'bw' | 'lat';
  /** Of both tools. */
  readonly flags: readonly string[];
  /** Of the stock tool alone: what is its default here. */
  readonly theirs?: readonly string[];
  /** What our document says. */
  readonly result: Record<string, unknown>;
}

const moved = (iterations: number, more: Record<string, unknown> = {}) => ({ iterations, sizeBytes: 5000, ...more });
const some = expect.any(Number);
/** All sizes from 2 bytes on, doubled each time. */
const sizesTo = (largest: number) =>
  Array.from({ length: Math.log2(largest) }, (_, k) => expect.objectContaining({ sizeBytes: 2 ** (k + 1) }));

const CELLS: readonly FlagCell[] = [
  { op: 'write', kind: 'bw', flags: [...ONE_PACKET_AND_MORE, '-b'], result: moved(200) },
  { op: 'read', kind: 'bw', flags: [...ONE_PACKET_AND_MORE, '-b'], result: moved(200) },
  { op: 'send', kind: 'bw', flags: [...ONE_PACKET_AND_MORE, '-b'], result: moved(200) },
  { op: 'atomic', kind: 'bw', flags: [...FEW, '-b'], result: { iterations: 200, sizeBytes: 8 } },
  { op: 'send', kind: 'bw', flags: ['-n', '5', '-a'], result: { sizes: sizesTo(LARGEST_BYTES) } },
  {
    op: 'send',
    kind: 'bw',
    flags: [...FEW, '-c', 'UD', '-a', '-b'],
    result: { sizes: sizesTo(LARGEST_DATAGRAM_BYTES) },
  },
  { op: 'send', kind: 'lat', flags: [...FEW, '-c', 'UD', '-a'], result: { sizes: sizesTo(LARGEST_DATAGRAM_BYTES) } },
  { op: 'write', kind: 'bw', flags: [...FEW, '-s', '64', '-I', '64'], result: { iterations: 100, sizeBytes: 64 } },
  { op: 'send', kind: 'lat', flags: [...FEW, '-s', '64', '-I', '64'], result: { iterations: 100, sizeBytes: 64 } },
  { op: 'send', kind: 'bw', flags: ['-n', '800', '-s', '5000', '-l', '8'], result: moved(800) },
  { op: 'write', kind: 'bw', flags: [...ONE_PACKET_AND_MORE, '-Q', '10'], result: moved(100) },
  { op: 'send', kind: 'bw', flags: [...ONE_PACKET_AND_MORE, '-e'], result: moved(100) },
  { op: 'send', kind: 'lat', flags: [...ONE_PACKET_AND_MORE, '-e'], result: moved(100) },
  { op: 'send', kind: 'bw', flags: [...ONE_PACKET_AND_MORE, '-N', '-r', '16'], result: moved(100) },
  { op: 'write', kind: 'bw', flags: [...ONE_PACKET_AND_MORE, '-w', '0.001'], result: moved(100) },
  { op: 'read', kind: 'bw', flags: ['-s', '5000', '-D', '3'], theirs: ['-f', '0'], result: moved(some) },
  { op: 'send', kind: 'lat', flags: ['-s', '5000', '-D', '3'], theirs: ['-f', '0'], result: moved(some) },
];

/** What a cell says of itself: the flags, without the numbers that all have. */
function flagsOf({ flags }: FlagCell): string {
  return flags
    .join(' ')
    .replace(/-n \d+ ?|-s \d+ ?/g, '')
    .trim();
}

await describeWithRig('everyday flags of perftest', { mtu: 4200 }, (rig) => {
  const patienceOf = ({ flags }: FlagCell) => (flags.includes('UD') ? [] : PATIENCE);
  const ours = (run: FlagCell, host: readonly string[]) => {
    const flags = [...run.flags, ...patienceOf(run)];
    const where = ['--bind', rig().hostSide.ip4, '--perftest', '--json'];
    return startRocev2(rig(), [run.kind, run.op, ...host, ...flags, ...where]);
  };
  const stock = (run: FlagCell) =>
    [`ib_${run.op}_${run.kind} -x 1`, ...run.flags, ...patienceOf(run), ...(run.theirs ?? [])].join(' ');

  for (const run of CELLS) {
    const facts = { tool: `ib_${run.op}_${run.kind} ${flagsOf(run)}`, family: 4 } as const;
    const options = { group: 'everyday flags' };
    cell(
      { ...facts, role: 'client' },
      async () => {
        const server = await rig().background('server', stock(run));
        try {
          await rig().listening(PORT);
          const result = jsonResult(ours(run, [rig().guests[0].ip4]), LIMIT_MS).catch(async (cause: Error) => {
            const { stdout, stderr } = await server.log(); // Why it ended, if it was the first: a cell knows one reason to run it again.
            throw new Error(`${cause.message}\n${stdout}${stderr}`, { cause });
          });
          expect(await result).toMatchObject(run.result);
          const { exitCode, stdout, stderr } = await server.wait(LIMIT_MS);
          expect(exitCode, stdout + stderr).toBe(0);
        } finally {
          await server.kill();
        }
      },
      options,
    );
    cell(
      { ...facts, role: 'server' },
      async () => {
        const server = ours(run, []);
        try {
          await saysOnStderr(server, 'waiting for');
          const client = `${stock(run)} ${rig().hostSide.ip4}`;
          const { exitCode, stdout, stderr } = await rig().exec(client, { timeoutMs: LIMIT_MS });
          expect(exitCode, stdout + stderr).toBe(0);
          expect(await jsonResult(server)).toMatchObject(run.result);
        } finally {
          await server.stop();
        }
      },
      options,
    );
  }
});
