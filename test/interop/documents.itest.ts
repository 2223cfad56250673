/** The commands of docs/how-to/talk-to-linux.md, as it shows them: a stock tool in a guest as server, ours as client. */

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { executedBlocks } from '../../scripts/executed-blocks.js';
import { casesOfRound } from '../support/rounds.js';
import { describeWithRig } from './support/describe-on-rig.js';
import { startRocev2 } from './support/rocev2.js';

const PAGE = readFileSync(fileURLToPath(new URL('../../docs/how-to/talk-to-linux.md', import.meta.url)), 'utf8');
/** Of the page. */
const [THEIRS, OURS] = ['10.77.0.2', '10.77.0.1'];
/** Where each tool listens by default, by the first part of its name. */
const PORTS = { ibv_: 18515, ib_: 18515, rping: 7174, ucmatose: 7471, cmtime: 7471, udaddy: 7174 } as const;

interface Pair {
  readonly server: string;
  readonly client: string;
}

/** Rows of the table `| server | client |`. */
const PAIRS: readonly Pair[] = [...PAGE.matchAll(/^\| `([^`]+)` \| `rocev2 ([^`]+)` \|$/gm)].map(
  ([, server, client]) => ({ server, client }),
);

await describeWithRig('the page on Linux', {}, (rig) => {
  const here = (command: string) =>
    command.replaceAll(THEIRS, rig().guests[0].ip4).replaceAll(OURS, rig().hostSide.ip4);

  test('has a table of tools, and blocks for a guest', () => {
    expect(PAIRS.length).toBeGreaterThan(8);
    expect(executedBlocks(PAGE).filter(({ marks }) => marks.includes('needs guest'))).toHaveLength(2);
  });

  test('makes a device that is there', async () => {
    const [first] = executedBlocks(PAGE).filter(({ marks }) => marks.includes('needs guest'));
    const commands = first.steps.map(({ command }) => command).filter((command) => !command.startsWith('ib_'));
    const again = ['rdma link delete rxe0', ...commands].join(' && ');
    const { exitCode, stdout, stderr } = await rig().exec(`${again} && rdma link show`);
    expect(exitCode, stdout + stderr).toBe(0);
    expect(stdout).toMatch(/rxe0\/1 state ACTIVE/);
  });

  test.each(casesOfRound(PAIRS))('$server, and $client', { retry: 1 }, async ({ server, client }) => {
    const [, port] = Object.entries(PORTS).find(([tool]) => server.startsWith(tool))!;
    const peer = await rig().background('server', here(server));
    try {
      await rig().listening(port);
      const { exitCode, stdout, stderr } = await startRocev2(rig(), here(client).split(' ')).wait();
      expect(exitCode, stdout + stderr).toBe(0);
    } finally {
      await peer.kill();
    }
  });
});
