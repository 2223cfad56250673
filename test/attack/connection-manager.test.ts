/**
 * What strangers may send to QP1: REQs that ask for hours, by the thousand, from forged addresses. In each case an honest peer connects
 * meanwhile.
 */

import { describe, expect, it } from 'vitest';
import type { CmConnection } from '../../src/cm/cm-connection.js';
import type { CmListener } from '../../src/cm/cm-listener.js';
import { buildMad, type MessageFields } from '../../src/cm/messages.js';
import { type RandomSource, randomInt, SeededRandom } from '../../src/core/random.js';
import { NS_PER_MS, NS_PER_S } from '../../src/core/units.js';
import { IpAddress } from '../../src/packet/address.js';
import { TwoManagers } from '../cm/two-managers.js';
import { forgedReq, LONGEST_WAITS } from './toolkit/forged-requests.js';

const PORT = 7174;
const HONEST = '192.0.2.1';
const SERVER = '192.0.2.2';
const STRANGER = IpAddress.parse('192.0.2.66');

/** A REQ to the server, as from `source`; the number makes it another than those before. */
function request(source: IpAddress, communicationId: number, fields: Partial<MessageFields<'REQ'>> = {}): Uint8Array {
  return forgedReq({ source: source.text, destination: SERVER, port: PORT, communicationId, fields });
}

/** A program that accepts whoever comes, all side by side. */
class Server {
  readonly connections: CmConnection[] = [];
  /** Set-ups that are under way. */
  pending = 0;
  failed = 0;
  readonly listener: CmListener;
  readonly #world: TwoManagers;

  constructor(world: TwoManagers) {
    this.#world = world;
    this.listener = world.b.cm.listen(PORT);
    void this.#run();
  }

  async #run(): Promise<void> {
    for await (const request of this.listener) {
      this.pending++;
      const qp = await this.#world.b.newQp();
      void request
        .accept(qp)
        .then(
          (connection) => this.connections.push(connection),
          () => {
            this.failed++;
            return qp.close();
          },
        )
        .finally(() => this.pending--);
    }
  }
}

/** Connects from the honest side; ns it took. */
async function connectHonestly(world: TwoManagers): Promise<number> {
  const start = world.events.nowNs;
  const qp = await world.a.newQp();
  const connection = await world.until(world.a.cm.connect(world.b.address, PORT, qp));
  const took = world.events.nowNs - start;
  await world.until(connection.disconnect());
  await qp.close();
  return took;
}

function percentile(times: readonly number[], share: number): number {
  return [...times].sort((a, b) => a - b)[Math.ceil(share * times.length) - 1];
}

it('a REQ that asks for 39 hours is waited for by a limit of our own', async () => {
  const world = await TwoManagers.create();
  const server = new Server(world);
  world.forge(STRANGER, request(STRANGER, 1, LONGEST_WAITS));
  await world.pass(NS_PER_MS);
  expect(server.pending).toBe(1);
  expect(await connectHonestly(world)).toBeLessThan(NS_PER_MS);
  await world.pass(30 * NS_PER_S);
  expect(server).toMatchObject({ pending: 0, failed: 1 });
});

it('8,192 datagrams of one stranger do not fill the table by TIMEWAIT', async () => {
  const world = await TwoManagers.create();
  new Server(world);
  // He has an address of his own, answers as the protocol asks, and says that packets live 2.4 hours.
  world.onStray = (_, mad) => {
    if (mad.name !== 'REP') return;
    const { localCommId, remoteCommId, localQpn } = mad.fields as MessageFields<'REP'>;
    const ids = { localCommId: remoteCommId, remoteCommId: localCommId };
    world.forge(STRANGER, buildMad('DREQ', 0n, { ...ids, remoteQpn: localQpn }));
  };
  const times: number[] = [];
  for (let i = 1; i <= 4096; i++) {
    world.forge(STRANGER, request(STRANGER, i, LONGEST_WAITS));
    await world.pass(100_000);
    if (i % 256 === 0) times.push(await connectHonestly(world));
  }
  expect(times).toHaveLength(16);
  expect(percentile(times, 0.99)).toBeLessThan(NS_PER_MS);
}, 60_000);

describe.each([
  ['one address', (_: RandomSource) => STRANGER],
  [
    'addresses that are not his',
    (random: RandomSource) => IpAddress.parse(`203.0.${randomInt(random, 0, 113)}.${randomInt(random, 1, 250)}`),
  ],
  ['the address of the honest peer', () => IpAddress.parse(HONEST)],
])('REQs by the thousand, 10,000 a second, from %s', (_, sourceOf) => {
  it('leave the honest peer its connections', async () => {
    const world = await TwoManagers.create();
    new Server(world);
    const random = new SeededRandom(7).stream('strangers');
    const times: number[] = [];
    for (let i = 1; i <= 5000; i++) {
      const source = sourceOf(random);
      world.forge(source, request(source, i, LONGEST_WAITS));
      await world.pass(100_000);
      if (i % 100 === 0) times.push(await connectHonestly(world));
    }
    expect(times).toHaveLength(50);
    expect(percentile(times, 0.99)).toBeLessThan(10 * NS_PER_MS);
  }, 60_000);
});
