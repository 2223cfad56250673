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
  /** Set-ups that were begun. */
  begun = 0;
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
      this.begun++;
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

it('set-ups for a stranger who sends 1,000 REQs a second are begun at a bounded pace, and the processor stays free for others', async () => {
  const world = await TwoManagers.create();
  const server = new Server(world);
  const times: number[] = [];
  for (let i = 1; i <= 2000; i++) {
    world.forge(STRANGER, request(STRANGER, i));
    await world.pass(NS_PER_MS);
    if (i % 100 === 0) times.push(await connectHonestly(world));
  }
  expect(server.begun - times.length).toBeLessThanOrEqual(16 + 2 * 16 + 1);
  expect(Math.max(...times)).toBeLessThan(NS_PER_MS);
}, 120_000);

it('who has proved himself is not held up by that: a hundred connections at once', async () => {
  const world = await TwoManagers.create();
  const server = new Server(world);
  await connectHonestly(world);
  const start = world.events.nowNs;
  const connects = Array.from({ length: 100 }, async () =>
    world.a.cm.connect(world.b.address, PORT, await world.a.newQp()),
  );
  await world.until(Promise.all(connects));
  expect(world.events.nowNs - start).toBeLessThan(10 * NS_PER_MS);
  expect(server.begun).toBe(101);
});

it('a stranger who connects and leaves, for hours by what he says, does not fill the table by TIMEWAIT', async () => {
  const world = await TwoManagers.create({ limits: { endpoints: 128, timewaitPerAddress: 100 } });
  new Server(world);
  // He has an address of his own, answers as the protocol asks, and says that packets live 2.4 hours.
  world.onStray = (_, mad) => {
    if (mad.name !== 'REP') return;
    const { localCommId, remoteCommId, localQpn } = mad.fields as MessageFields<'REP'>;
    const ids = { localCommId: remoteCommId, remoteCommId: localCommId };
    world.forge(STRANGER, buildMad('DREQ', 0n, { ...ids, remoteQpn: localQpn }));
  };
  const times: number[] = [];
  for (let i = 1; i <= 512; i++) {
    world.forge(STRANGER, request(STRANGER, i, LONGEST_WAITS));
    await world.pass(100_000);
    if (i % 32 === 0) times.push(await connectHonestly(world));
  }
  expect(times).toHaveLength(16);
  expect(percentile(times, 0.99)).toBeLessThan(NS_PER_MS);
}, 120_000);

describe.each([
  ['one address', 10, (_: RandomSource) => STRANGER],
  [
    'addresses that are not his',
    10,
    (random: RandomSource) => IpAddress.parse(`203.0.${randomInt(random, 0, 113)}.${randomInt(random, 1, 250)}`),
  ],
  // Until the honest peer has proved itself it shares the pace of its address.
  ['the address of the honest peer', 1000, () => IpAddress.parse(HONEST)],
] as const)('REQs by the thousand, 10,000 a second, from %s', (_, firstMs, sourceOf) => {
  it('leave the honest peer its connections', async () => {
    const world = await TwoManagers.create({ limits: { endpoints: 256, halfOpen: 128, halfOpenPerAddress: 64 } });
    new Server(world);
    const random = new SeededRandom(7).stream('strangers');
    const times: number[] = [];
    for (let i = 1; i <= 1000; i++) {
      const source = sourceOf(random);
      world.forge(source, request(source, i, LONGEST_WAITS));
      await world.pass(100_000);
      if (i % 20 === 0) times.push(await connectHonestly(world));
    }
    expect(times).toHaveLength(50);
    expect(times[0]).toBeLessThan(firstMs * NS_PER_MS);
    expect(Math.max(...times.slice(1))).toBeLessThan(10 * NS_PER_MS);
  }, 120_000);
});

describe('a peer that has proved nothing', () => {
  const REQUESTS = 500;

  /** What the server sends to addresses that only forged REQs name, for each datagram from there, over whole set-ups. */
  async function amplification(decide: (world: TwoManagers) => void): Promise<{ answers: number; withheld: number }> {
    const world = await TwoManagers.create();
    decide(world);
    let answers = 0;
    world.onStray = () => answers++;
    for (let i = 1; i <= REQUESTS; i++) {
      const source = IpAddress.parse(`203.0.113.${1 + (i % 200)}`);
      world.forge(source, request(source, i, LONGEST_WAITS));
      await world.pass(NS_PER_MS);
    }
    await world.pass(60 * NS_PER_S);
    expect(await connectHonestly(world).catch((error) => error.reason)).not.toBe(3);
    return { answers, withheld: world.b.cm.counters().withheld };
  }

  it('gets one datagram for each of his, and all of them together 64 and 16 a second more', async () => {
    const { answers, withheld } = await amplification((world) => new Server(world));
    expect(answers).toBeLessThanOrEqual(REQUESTS + 64 + 16 * 20);
    expect(withheld).toBeGreaterThan(0);
  }, 120_000);

  it('gets no more than that where nobody listens', async () => {
    const { answers, withheld } = await amplification(() => {});
    expect([answers, withheld]).toEqual([REQUESTS, 0]);
  }, 120_000);

  it('twin: one that answers is repeated to for as long as it asks', async () => {
    const world = await TwoManagers.create();
    const server = new Server(world);
    const REPLIES = 70;
    let seen = 0;
    world.onStray = (to, mad) => {
      if (mad.name !== 'REP') return;
      const { localCommId, remoteCommId } = mad.fields as MessageFields<'REP'>;
      const ids = { localCommId: remoteCommId, remoteCommId: localCommId };
      // He asks for time, which only who has read the REP can.
      world.forge(to, buildMad('MRA', 0n, { ...ids, message: 1, serviceTimeout: 8 }));
      seen++;
    };
    for (let i = 1; i <= REPLIES; i++) world.forge(STRANGER, request(STRANGER, i, { localResponseTimeout: 14 }));
    await world.pass(NS_PER_S);
    expect(server.pending).toBe(REPLIES);
    expect(seen).toBeGreaterThan(5 * REPLIES);
    expect(world.b.cm.counters().withheld).toBe(0);
  });
});

describe('an active side whose RTUs are all lost', () => {
  it('learns that the passive side has given up', async () => {
    const world = await TwoManagers.create();
    const server = new Server(world);
    world.fates = (_, name) => (name === 'RTU' ? 'lose' : undefined);
    const connection = await world.until(world.a.cm.connect(world.b.address, PORT, await world.a.newQp()));
    expect(connection.qp.state).toBe('RTS');
    await world.until(connection.disconnected);
    expect(connection.qp.state).toBe('ERR');
    expect(world.events.nowNs).toBeLessThan(25 * NS_PER_S);
    expect(server).toMatchObject({ connections: [], pending: 0, failed: 1 });
    // It has asked again with every REP, and was told by a REJ.
    expect(world.log.filter((entry) => entry === 'a RTU').length).toBeGreaterThan(2);
    expect(world.log.at(-1)).toBe('b REJ');
  });

  it('twin: when only the first four are lost, the repeated REP brings the fifth, and the connection stands', async () => {
    const world = await TwoManagers.create();
    const server = new Server(world);
    world.fates = (_, name, nth) => (name === 'RTU' && nth < 5 ? 'lose' : undefined);
    const connection = await world.until(world.a.cm.connect(world.b.address, PORT, await world.a.newQp()));
    await world.pass(30 * NS_PER_S);
    expect(connection.qp.state).toBe('RTS');
    expect(server.connections).toHaveLength(1);
    expect(world.b.cm.counters()).toMatchObject({ expired: 0 });
  });
});

it('a REJ while the queue pair of the active side is on its way ends connecting', async () => {
  const world = await TwoManagers.create();
  const listener = world.b.cm.listen(PORT);
  const connecting = world.a.cm.connect(world.b.address, PORT, await world.a.newQp()).catch((error) => error);
  const accepting = (await world.until(listener.next())).accept(await world.b.newQp()).catch((error) => error);
  // The passive program goes away as soon as its REP is out.
  await world.until(Promise.all([world.b.cm.close(), accepting]));
  const outcome = await world.until(connecting);
  if (outcome instanceof Error) expect(outcome).toMatchObject({ code: 'ERR_ROCE_CONNECT' });
  else await world.until(outcome.disconnected);
});
