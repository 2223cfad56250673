/** Congestion between us and Soft-RoCE, which neither sends CNPs nor knows what they are: marks and CNPs must do it no harm. */

import { afterAll, beforeAll, expect } from 'vitest';
import { cell } from './support/cell.js';
import { describeOnRig } from './support/describe-on-rig.js';
import { PATIENCE } from './support/patience.js';
import { Rig } from './support/rig.js';
import { buildRocev2, jsonResult, saysOnStderr, startRocev2 } from './support/rocev2.js';

const PORT = 18515;
const RUN = ['-s', '64KiB', '-n', '200', ...PATIENCE] as const;
const STOCK = `ib_write_bw -x 1 -s 65536 -n 200 ${PATIENCE.join(' ')}`;
/** An emulated guest takes milliseconds to answer: TIMELY would go down to its floor. */
const FLOOR = ['--cc-params', 'minimumRateBps=200Mbps'] as const;
/** Traffic class with ECT(0) and nothing else. */
const ECT0 = '--tclass=2';

await describeOnRig('congestion between us and Soft-RoCE', 'bridge', () => {
  let rig: Rig;

  async function nft(...lines: string[]): Promise<void> {
    for (const line of lines) {
      const { exitCode, stderr } = await rig.host(['nft', line]).wait(10_000);
      expect(exitCode, stderr).toBe(0);
    }
  }

  beforeAll(async () => {
    await buildRocev2();
    rig = await Rig.start({ guests: 1, mtu: 4200 });
    // Everything that can be marked is, on the way in and on the way out.
    await nft(
      'add table ip marks',
      'add chain ip marks input { type filter hook input priority 0; }',
      'add chain ip marks output { type filter hook output priority 0; }',
      'add rule ip marks input udp dport 4791 ip ecn ect0 ip ecn set ce',
      'add rule ip marks output udp dport 4791 ip ecn ect0 counter ip ecn set ce',
    );
  });
  afterAll(() => rig?.stop());

  cell(
    { tool: 'ib_write_bw', role: 'server', family: 4, what: 'its marked packets are answered by CNPs' },
    async () => {
      const server = startRocev2(rig, ['bw', 'write', ...RUN, '--bind', rig.hostSide.ip4, '--perftest', '--json']);
      try {
        await saysOnStderr(server, 'waiting for');
        const { exitCode, stdout, stderr } = await rig.exec(`${STOCK} ${ECT0} ${rig.hostSide.ip4}`);
        expect(exitCode, stdout + stderr).toBe(0);
        const { iterations, counters } = (await jsonResult(server)) as {
          iterations: number;
          counters: Record<string, number>;
        };
        expect(iterations).toBe(200);
        expect(counters['np_ecn_marked_roce_packets']).toBeGreaterThan(200);
        expect(counters['np_cnp_sent']).toBeGreaterThan(5);
        expect(counters['np_cnp_sent']).toBeLessThanOrEqual(counters['np_ecn_marked_roce_packets']);
      } finally {
        await server.stop();
      }
    },
  );

  for (const cc of ['dcqcn', 'timely', 'patched-timely'] as const) {
    cell({ tool: 'ib_write_bw', role: 'client', family: 4, what: `under ${cc}, which gets no CNPs` }, async () => {
      const server = await rig.background('server', STOCK);
      try {
        await rig.listening(PORT);
        const args = ['bw', 'write', rig.guests[0].ip4, ...RUN, '--bind', rig.hostSide.ip4, '--perftest', '--json'];
        const result = await jsonResult(startRocev2(rig, [...args, '--cc', cc, '--rate', '1Gbps', ...FLOOR]));
        const { exitCode, stdout, stderr } = await server.wait();
        expect(exitCode, stdout + stderr).toBe(0);
        expect(result).toMatchObject({ cc, iterations: 200 });
        expect(result['counters']).not.toHaveProperty('rp_cnp_handled');
        // Nothing is lost here: a gap would be a packet whose ICRC Soft-RoCE did not accept.
        expect(result['counters']).not.toHaveProperty('packet_seq_err');
      } finally {
        await server.kill();
      }
    });
  }
});
