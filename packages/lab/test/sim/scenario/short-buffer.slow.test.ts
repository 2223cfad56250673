import { describe, expect, it } from 'vitest';
import { runScenario } from '../../../src/sim/scenario/run-scenario.js';
import { parseScenario } from '../../../src/sim/scenario/schema.js';

const QUEUE_PACKETS = 16;

/** One message of so many packets, five times as fast as the bottleneck takes them. */
async function oneMessage(op: 'write' | 'send' | 'read', recovery: 'go-back-n' | 'selective-repeat', packets: number) {
  const bytes = packets * 1024;
  const { flows } = await runScenario(
    parseScenario({
      name: 'short-buffer',
      duration: '20s',
      topology: { kind: 'dumbbell', hosts: 2, rate: '1Gbps', middleRate: '200Mbps' },
      nic: { mtu: 1024, recovery },
      switch: { queuePackets: QUEUE_PACKETS },
      flows: [{ kind: 'flows', from: 'h0', to: 'h1', op, message: bytes, bytes }],
    }),
    { realNowNs: () => 0 },
  );
  return flows[0];
}

// The packet that asks for the acknowledgement is the last, and behind a burst that fills the buffer it is lost each time.
describe('a message somewhat longer than the buffer on its way arrives', () => {
  const cases = (['write', 'send', 'read'] as const).flatMap((op) =>
    (['go-back-n', 'selective-repeat'] as const).map((recovery) => [op, recovery] as const),
  );
  it.each(cases)('%s, %s', async (op, recovery) => {
    for (let packets = 1; packets <= 4 * QUEUE_PACKETS; packets++) {
      const { bytes, failure, completionNs } = await oneMessage(op, recovery, packets);
      expect({ packets, bytes, failure }).toEqual({ packets, bytes: packets * 1024, failure: null });
      expect(completionNs).not.toBeNull();
    }
  });
});
