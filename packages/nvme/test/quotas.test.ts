/** Hosts that connect and stay: how many an address and a host have, and what a host costs that has proved nothing. In virtual time. */

import { describe, expect, it } from 'vitest';
import { IpAddress } from '../../../src/packet/address.js';
import type { PipeEnd } from '../../../test/storage-rpc/sk/pipe.js';
import { pass, runToRest } from '../../../test/support/virtual-time.js';
import { EventQueue } from '../../lab/src/sim/event-queue.js';
import { virtualClock } from '../../lab/src/sim/virtual-clock.js';
import { FAILURE, writeNegotiation } from '../src/auth/dhchap-messages.js';
import { DhchapSecret } from '../src/auth/dhchap-secret.js';
import { PacedWork } from '../src/auth/paced-work.js';
import { writeAuthentication } from '../src/fabrics.js';
import { TcpHostConnection } from '../src/host/tcp-host-connection.js';
import { FCTYPE, OP_FABRICS } from '../src/opcodes.js';
import { RdmaQueueQuota, type RdmaQueueSlot } from '../src/rdma/rdma-queue-quota.js';
import { DNR, STATUS } from '../src/status.js';
import { NO_DIGESTS } from '../src/tcp/pdu.js';
import { RawQueue, statusOf } from './raw-queue.js';
import { HOST_NQN, TcpWorld, unpredictable } from './world.js';

const PER_ADDRESS = 128;
const PENDING_PER_ADDRESS = 32;
const ATTACKER = '192.0.2.66';
const secret = DhchapSecret.parse(DhchapSecret.format(Buffer.alloc(32, 1)));
const authentication = { secret, controllerSecret: undefined, randomBytes: unpredictable };
const withSecrets = () => new TcpWorld({ secrets: new Map([[HOST_NQN, { host: secret, controller: undefined }]]) });

/** Admin queues that connect and do no more. Status of each Connect; 0: it is connected. */
async function connectMany(world: TcpWorld, count: number, from: string, hostNqn?: (i: number) => string) {
  const statuses: number[] = [];
  for (let i = 0; i < count; i++) {
    const queue = await RawQueue.open(world, undefined, from);
    statuses.push(await statusOf(queue.connect(hostNqn && { hostnqn: hostNqn(i) })));
  }
  return statuses;
}

describe('controllers', () => {
  it('of one address are as many as its quota, and hosts at other addresses get in', async () => {
    const world = new TcpWorld();
    const honest = await world.openDisk();
    await connectMany(world, 300, ATTACKER, (i) => `nqn.2026-11.example:${i}`);
    expect(world.target.controllers).toBe(1 + PER_ADDRESS);
    await world.openDisk({ hostNqn: 'nqn.2026-11.example:other' });
    await world.until(honest.write(0, Buffer.alloc(4096, 7)));
  });

  it('that are in use do not make room: a further one of the address is refused', async () => {
    const world = new TcpWorld();
    for (let i = 0; i < PER_ADDRESS; i++) {
      await RawQueue.admin(world, { hostnqn: `nqn.2026-11.example:${i}` }, undefined, ATTACKER);
    }
    const [status] = await connectMany(world, 1, ATTACKER);
    expect(status).toBe(STATUS.CONNECT_BUSY); // Without DNR.
    expect(world.target.controllers).toBe(PER_ADDRESS);
    await world.openDisk();
  });

  it('of one host are as many as its quota, from whatever addresses', async () => {
    const world = new TcpWorld();
    for (let i = 0; i < PER_ADDRESS; i++) await RawQueue.admin(world, {}, undefined, `192.0.2.${i % 8}`);
    expect(await connectMany(world, 1, '192.0.2.200')).toEqual([STATUS.CONNECT_BUSY]);
    await world.openDisk({ hostNqn: 'nqn.2026-11.example:other' });
  });

  it('are not held for hosts that have not authenticated, which keep nobody out', async () => {
    const world = withSecrets();
    await connectMany(world, 300, ATTACKER, () => HOST_NQN);
    expect(world.target.controllers).toBe(0);
    expect(world.target.connections.tcp).toBe(PENDING_PER_ADDRESS);
    await world.openDisk({ authentication });
    await world.pass(11e9);
    expect([world.target.controllers, world.target.connections.tcp]).toEqual([1, 3]);
  });
});

describe('I/O queues', () => {
  it('of an authenticated host cannot be taken by one that has not authenticated', async () => {
    const world = withSecrets();
    const stolen: PipeEnd[] = [];
    const dial = async (qid: number) => {
      if (qid === 1) {
        const queue = await RawQueue.open(world);
        stolen.push(world.pipes.at(-1)!.host);
        expect((await queue.connect({ qid, cntlid: 1 })) >>> 16).toBe(2); // It has to authenticate.
      }
      return TcpHostConnection.over(world.pipe(), NO_DIGESTS);
    };
    const host = await world.connect({ ioQueues: 2, authentication, dial });
    expect(stolen).toHaveLength(1);
    stolen[0].destroy(); // The queue of the host stays when it ends.
    await world.pass(1e9);
    expect(world.target.connections.tcp).toBe(3);
    expect(await world.until(host.namespaces())).toHaveLength(1);
  });

  it('need the host ID of the controller', async () => {
    const world = new TcpWorld();
    const admin = await RawQueue.admin(world, { hostId: Buffer.alloc(16, 1) });
    const queue = await RawQueue.open(world);
    const connect = (byte: number) =>
      statusOf(queue.connect({ qid: 1, cntlid: admin.cntlid, hostId: Buffer.alloc(16, byte) }));
    expect(await connect(2)).toBe(STATUS.CONNECT_INVALID_PARAMETERS | DNR);
    expect(await connect(1)).toBe(0);
  });
});

describe('refused hosts', () => {
  it.each([
    ['that the subsystem does not allow', { hosts: ['nqn.2026-11.example:other'] }, /0x184/],
    ['beyond the quota', {}, /0x181/],
  ])('%s are reported once, and counted', async (_, options, why) => {
    const notices: string[] = [];
    const onNotice = (notice: string) => void notices.push(notice);
    const world = new TcpWorld({ ...options, onNotice });
    if (!('hosts' in options)) {
      for (let i = 0; i < PER_ADDRESS; i++) await RawQueue.admin(world, {}, undefined, ATTACKER);
      expect(notices).toEqual([]);
    }
    expect(await connectMany(world, 3, ATTACKER)).not.toContain(0);
    expect(notices).toEqual([expect.stringMatching(`^a host at ${ATTACKER} was refused: `)]);
    expect(notices[0]).toMatch(why);
    expect(world.target.counters.refusedHosts).toBe(3);
  });
});

describe('queues over RDMA', () => {
  const at = (address: string) => IpAddress.parse(address);

  /** The quota, and an address that sets queues up; a connected one counts as in use. */
  function rig() {
    const events = new EventQueue();
    const quota = new RdmaQueueQuota(virtualClock(events));
    const ended: RdmaQueueSlot[] = [];
    const open = (address: string, isConnected = false) => {
      const slot = quota.admit(at(address));
      if (slot === undefined) return undefined;
      slot.isConnected = () => isConnected;
      slot.end = () => void ended.push(slot);
      return slot;
    };
    const openMany = (count: number, address: string, isConnected = false) =>
      Array.from({ length: count }, () => open(address, isConnected)).filter((slot) => slot !== undefined);
    return { events, quota, ended, open, openMany };
  }

  it('that do not connect are as many as the quota of their address; other addresses get in', () => {
    const { ended, open, openMany } = rig();
    expect(openMany(300, ATTACKER)).toHaveLength(128);
    expect(ended).toEqual([]);
    expect(open('192.0.2.1')).toBeDefined();
  });

  it('make room for others after 2 s if they have not connected, and not before', () => {
    const { events, ended, open, openMany } = rig();
    const slots = openMany(128, ATTACKER);
    events.at(2e9, () => {});
    runToRest(events);
    expect(open(ATTACKER)).toBeUndefined();
    events.at(2e9 + 1, () => {});
    runToRest(events);
    expect(open(ATTACKER)).toBeDefined();
    expect(ended).toEqual([slots[0]]);
    expect(slots[0].isEvicted).toBe(true);
  });

  it('that are in use stay, and are as many as the quota of their address', () => {
    const { events, ended, quota, open, openMany } = rig();
    const slots = openMany(300, ATTACKER, true);
    expect(slots).toHaveLength(256);
    events.at(60e9, () => {});
    runToRest(events);
    expect(open(ATTACKER)).toBeUndefined();
    expect(ended).toEqual([]);
    quota.leave(slots[0]);
    expect(open(ATTACKER)).toBeDefined();
  });

  it('of all addresses together have a quota, from which an address with more of them gives way', () => {
    const { events, ended, open, openMany } = rig();
    const first = openMany(128, ATTACKER);
    openMany(127, '192.0.2.67');
    expect(open('192.0.2.68')).toBeDefined();
    expect(open('192.0.2.69')).toBeUndefined();
    events.at(3e9, () => {});
    runToRest(events);
    expect(open('192.0.2.69')).toBeDefined();
    expect(ended).toEqual([first[0]]);
  });
});

describe('expensive steps of authentication', () => {
  /** Steps of 8 ms, of several addresses; the share of the time that they take, and when those of each address end. */
  async function paced(steps: Readonly<Record<string, number>>) {
    const events = new EventQueue();
    const clock = virtualClock(events);
    let computedNs = 0;
    const work = new PacedWork({
      ...clock,
      nowNs: () => clock.nowNs() + computedNs,
      wakeAt: (atNs, wake) => clock.wakeAt(atNs - computedNs, wake),
    });
    const endedNs: Record<string, number> = {};
    let done = 0;
    for (const [network, count] of Object.entries(steps)) {
      for (let i = 0; i < count; i++) {
        const step = () => {
          computedNs += 8e6;
        };
        void work.run(network, step).then(() => {
          endedNs[network] = clock.nowNs() + computedNs;
          done++;
        });
      }
    }
    await pass(events, 100e9);
    return { done, share: computedNs / Math.max(...Object.values(endedNs)), endedNs };
  }

  it('take a third of the time of the event loop at most', async () => {
    const { done, share } = await paced({ [ATTACKER]: 100 });
    expect(done).toBe(100);
    expect(share).toBeLessThan(0.35);
    expect(share).toBeGreaterThan(0.3);
  });

  it('of an address do not wait for all those of another', async () => {
    const { endedNs } = await paced({ [ATTACKER]: 200, '192.0.2.1': 2 });
    expect(endedNs['192.0.2.1']).toBeLessThan(0.1 * endedNs[ATTACKER]);
  });

  it('are refused where too many of one address wait', async () => {
    const events = new EventQueue();
    const work = new PacedWork(virtualClock(events));
    const many = Array.from({ length: 300 }, () => work.run(ATTACKER, () => 1));
    const refused = Promise.allSettled(many).then((all) => all.filter(({ status }) => status === 'rejected').length);
    await pass(events, 1e9);
    expect(await refused).toBe(300 - 256 - 1);
    await expect(work.run('192.0.2.1', () => 2)).resolves.toBe(2);
  });

  it('do not include groups that are too large', async () => {
    const world = withSecrets();
    const queue = await RawQueue.open(world);
    await queue.connect();
    const negotiate = (groups: readonly number[]) => {
      const out = writeNegotiation({ transaction: 1, secureChannel: 0, hashes: [3], groups });
      const fill = (sqe: Buffer) => writeAuthentication(sqe, out.length);
      return queue.send({ opcode: OP_FABRICS, nsid: FCTYPE.AUTHENTICATION_SEND, fill, out });
    };
    await negotiate([5]);
    const into = Buffer.alloc(2000);
    const fill = (sqe: Buffer) => writeAuthentication(sqe, into.length);
    await queue.send({ opcode: OP_FABRICS, nsid: FCTYPE.AUTHENTICATION_RECEIVE, fill, into });
    expect([into[1], into[7]]).toEqual([0xf1, FAILURE.GROUP]);
  });
});
