/** Simulated hosts in any number on one clock, each with the verbs objects of one end. */

import type { EventQueue } from '../../packages/lab/src/sim/event-queue.js';
import { SimHost } from '../../packages/lab/src/sim/sim-host.js';
import { SeededRandom } from '../../src/core/random.js';
import { IpAddress } from '../../src/packet/address.js';
import { Access } from '../../src/verbs/access.js';
import { RdmaDevice } from '../../src/verbs/device.js';
import { connectQp, type Player } from '../support/pair.js';

const MEMORY_BYTES = 256 << 10;

/** Hosts of one `seed` choose the same QPNs and keys. */
export async function newPlayer(events: EventQueue, address: string, seed: number): Promise<Player> {
  const random = new SeededRandom(seed).stream('host');
  const host = new SimHost({ address: IpAddress.parse(address), events, random });
  const device = await RdmaDevice.over(host);
  const pd = await device.createPd();
  const cq = await device.createCq(1024);
  const recvCq = await device.createCq(1024);
  const qp = await pd.createQp({ sendCq: cq, recvCq });
  const mr = await pd.regMr(MEMORY_BYTES, Access.REMOTE_ALL);
  return { host, device, pd, cq, recvCq, qp, mr, startPsn: 0x100 };
}

/** Takes both to RTS against each other. */
export async function connectPlayers(a: Player, b: Player): Promise<void> {
  const own = { mtu: 1024, recovery: 'go-back-n' } as const;
  await connectQp(a.qp, { address: b.host.address, qpn: b.qp.qpn, psn: b.startPsn }, { ...own, psn: a.startPsn });
  await connectQp(b.qp, { address: a.host.address, qpn: a.qp.qpn, psn: a.startPsn }, { ...own, psn: b.startPsn });
}
