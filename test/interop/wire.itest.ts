/** `rocev2 wire` in the path between two Linux Soft-RoCE guests, on their two taps: what it does to their packets, and what its audit says of it. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import type { RunningCommand } from './support/command.js';
import { describeOnRig } from './support/describe-on-rig.js';
import { Rig } from './support/rig.js';
import { buildRocev2, startRocev2 } from './support/rocev2.js';

const PERFTEST_PORT = 18515;
/** Four packets a message at a path MTU of 1024. */
const MESSAGE = '-s 4096 -n 300 -t 8 -x 1 -F';

await describeOnRig('a wire between two guests', 'bridge', () => {
  let rig: Rig;
  beforeAll(async () => {
    await buildRocev2();
    rig = await Rig.start({ guests: 2 });
    // Nothing but the wire joins the guests.
    for (const { interface: tap } of rig.guests) await rig.host(['ip', 'link', 'set', tap!, 'nomaster']).wait();
  });
  afterAll(() => rig?.stop());

  async function wire(rules?: string): Promise<RunningCommand> {
    const [one, other] = rig.guests.map((guest) => guest.interface!);
    const faults = rules === undefined ? [] : ['--faults', rules];
    const running = startRocev2(rig, ['wire', one, other, '--audit', ...faults]);
    await running.waitForOutput(/Ctrl-C ends it/, 20_000, 'stderr');
    return running;
  }

  /** Guest 1 runs the tool against guest 2. */
  async function talk(tool: string): Promise<void> {
    const [, second] = rig.guests;
    const server = await rig.background('server', `${tool} ${MESSAGE}`, { guest: 2 });
    await rig.listening(PERFTEST_PORT, { guest: 2 });
    const client = await rig.exec(`${tool} ${MESSAGE} ${second.ip4}`);
    expect(client.exitCode, client.stdout + client.stderr).toBe(0);
    expect(await server.wait()).toMatchObject({ exitCode: 0 });
  }

  test('passes everything on, and they keep the rules', async () => {
    const running = await wire();
    await talk('ib_write_bw');
    const { stdout } = await running.stop('SIGINT');
    expect(stdout).not.toMatch(/broken: /);
    expect(stdout).toMatch(/2 connections with both directions/); // seen at either side
  });

  test('loses one packet in 256, and shows that it is asked for and sent again', async () => {
    const running = await wire('a>b:every=256');
    await talk('ib_write_bw');
    expect(running.stdout).toMatch(/a>b {2}RC RDMA_WRITE_\w+ PSN \d+ .*: rule 'a>b:every=256'/);
    expect(running.stdout).toMatch(/at b .*PSN \w+ missing before RDMA_WRITE_/);
    expect(running.stdout).toMatch(/at a .*NAK reaction after/);
    expect(running.stdout).toMatch(/at b .*retransmission after/);
    const { stdout } = await running.stop('SIGINT');
    expect(stdout).not.toMatch(/rule \d+ broken: /);
    expect(Number(/^tx_dropped_fault +0 +(\d+)$/m.exec(stdout)![1])).toBeGreaterThan(0);
  });

  test('delays one READ response, and names what came in its place', async () => {
    const running = await wire('b>a:opcode=RDMA_READ_RESPONSE_FIRST,delay=20ms:once');
    await talk('ib_read_bw');
    const { stdout } = await running.stop('SIGINT');
    expect(stdout).toMatch(/b>a {2}RC RDMA_READ_RESPONSE_FIRST PSN \d+ .*: rule 'b>a:opcode/);
    expect(stdout).toMatch(/at [ab] .*: rule 6[0-4]/); // A choice is told once, at the side where it is seen first.
    expect(stdout).toMatch(/^faults_delayed +1 +0$/m);
  });

  test('rewrites one MSN, and names the rule that it breaks', async () => {
    // A little more could be right: messages that are under way may be complete before their acknowledgement.
    const running = await wire('b>a:every=20,rewrite=msn,+100000:once');
    await talk('ib_write_bw');
    const { stdout } = await running.stop('SIGINT');
    expect(stdout).toMatch(/b>a {2}RC ACKNOWLEDGE PSN \d+ .*: rule 'b>a:every=20,rewrite=msn/);
    expect(stdout).toMatch(/at a .*: rule 40 broken: /);
    expect(stdout).not.toMatch(/at b .*: rule \d+ broken: /);
  });
});
