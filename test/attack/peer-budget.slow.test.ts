/**
 * Who claims an address tells how much its socket can hold. What one claims is for its own queue pair: others at that address get their fair share of
 * what they were told themselves, and all of it again when it goes.
 */

import { describe, expect, it } from 'vitest';
import type { QueuePair } from '../../src/verbs/queue-pair.js';
import { connectToPeer, LoneNic } from '../support/lone-nic.js';

async function another(nic: LoneNic, inflightPackets?: number): Promise<QueuePair> {
  const qp = await nic.pd.createQp({ sendCq: nic.cq, recvCq: nic.recvCq });
  await connectToPeer(qp, 'RTS', inflightPackets === undefined ? {} : { inflightPackets });
  return qp;
}

const windowOf = async (qp: QueuePair) => (await qp.device.command('inspectQp', { qpn: qp.qpn })).windowPackets;

/** An honest queue pair, told 496 packets, to the address that others claim. */
const honest = () => LoneNic.create({ attr: { inflightPackets: 496 } });

describe('the window of an honest queue pair', () => {
  it('is all of what its peer told, alone', async () => {
    expect(await windowOf((await honest()).qp)).toBe(496);
  });

  it.each([[2], [64], [496], [100_000], [0xffffffff], [undefined]])(
    'is its fair share when another claims the address with %s packets, and all of it when that one goes',
    async (claimed) => {
      const nic = await honest();
      const stranger = await another(nic, claimed);
      expect(await windowOf(nic.qp)).toBe(248);
      await stranger.modify({ state: 'RESET' });
      expect(await windowOf(nic.qp)).toBe(496);
    },
  );

  it('of the stranger is what he was told himself', async () => {
    const nic = await honest();
    const [small, usual] = [await another(nic, 2), await another(nic)];
    expect(await Promise.all([nic.qp, small, usual].map(windowOf))).toEqual([165, 1, 42]);
  });

  it('takes over the share of those that go to ERR, at once and once', async () => {
    const nic = await honest();
    const others = [await another(nic, 496), await another(nic, 496), await another(nic, 496)];
    expect(await windowOf(nic.qp)).toBe(124);
    await others[0].modify({ state: 'ERR' });
    expect(await windowOf(nic.qp)).toBe(165);
    await others[0].modify({ state: 'RESET' });
    await others[0].close();
    expect(await windowOf(nic.qp)).toBe(165);
    await others[1].close();
    expect(await windowOf(nic.qp)).toBe(248);
    await connectToPeer(others[2], 'RESET');
    await others[2].modify({ state: 'ERR' });
    await others[2].modify({ state: 'RESET' });
    await connectToPeer(others[2], 'RTS', { inflightPackets: 496 });
    expect(await windowOf(nic.qp)).toBe(248);
  });

  it('is 128 packets where nobody told', async () => {
    const nic = await LoneNic.create();
    await another(nic, 496);
    expect(await windowOf(nic.qp)).toBe(64);
  });

  it('keeps what was told when the address vector is set again in SQD', async () => {
    const nic = await honest();
    await nic.qp.modify({ state: 'SQD' });
    await nic.qp.modify({ av: { address: (await nic.qp.query()).remote } });
    await nic.qp.modify({ state: 'RTS' });
    expect(await windowOf(nic.qp)).toBe(496);
  });
});
