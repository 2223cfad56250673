/** DH-HMAC-CHAP between host and target, in virtual time: who has the secrets gets in, in both directions, and nobody else. */

import { createDiffieHellman, createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { randomInt, SeededRandom } from '../../../src/core/random.js';
import { DHCHAP_GROUPS, DHCHAP_HASHES, DhchapKeyPair, primeOf, respond } from '../src/auth/dhchap-algorithms.js';
import { readChallenge, writeNegotiation, writeReply } from '../src/auth/dhchap-messages.js';
import { DhchapSecret } from '../src/auth/dhchap-secret.js';
import { authenticate } from '../src/auth/host-authentication.js';
import { TargetAuthentication } from '../src/auth/target-authentication.js';
import { writeAuthentication } from '../src/fabrics.js';
import { ADMIN, FCTYPE, OP_FABRICS, PROPERTY } from '../src/opcodes.js';
import { DNR, STATUS } from '../src/status.js';
import { RawQueue, statusOf } from './raw-queue.js';
import { HOST_NQN, NQN, TcpWorld, unpredictable } from './world.js';

const secretOf = (byte: number, hash: 'none' | 'sha256' = 'none') =>
  DhchapSecret.parse(DhchapSecret.format(Buffer.alloc(32, byte), hash));
const [HOST, CONTROLLER, OTHER] = [secretOf(1), secretOf(2, 'sha256'), secretOf(3)];

function worldOf(controller: DhchapSecret | undefined = CONTROLLER): TcpWorld {
  return new TcpWorld({ secrets: new Map([[HOST_NQN, { host: HOST, controller }]]) });
}

function open(world: TcpWorld, secret: DhchapSecret, controllerSecret?: DhchapSecret) {
  return world.openDisk({ authentication: { secret, controllerSecret, randomBytes: unpredictable } });
}

describe('a host', () => {
  it('with its secret gets in, on every queue', async () => {
    const disk = await open(worldOf(), HOST);
    expect(disk.sizeBytes).toBeGreaterThan(0);
  });

  it('with its secret and that of the target knows whom it talks to, and moves data', async () => {
    const world = worldOf();
    const disk = await open(world, HOST, CONTROLLER);
    await world.until(disk.write(0, Buffer.alloc(4096, 7)));
    const read = Buffer.alloc(4096);
    await world.until(disk.read(0, 4096, read));
    expect(read[0]).toBe(7);
  });

  it.each([
    ['another secret', OTHER, undefined, CONTROLLER, 'the secrets differ'],
    ['another secret of the target', HOST, OTHER, CONTROLLER, 'does not have the controller secret'],
    ['a target without a secret', HOST, CONTROLLER, undefined, 'it has none to prove itself by'],
  ])('with %s does not get in', async (_, secret, controllerSecret, targets, words) => {
    const world = targets === undefined ? noController() : worldOf(targets);
    await expect(open(world, secret, controllerSecret)).rejects.toThrow(words);
    await world.pass(1e9);
    expect(world.target.controllers).toBe(0);
    expect(world.memory.pool.inUse).toBe(0);
  });

  const noController = () => new TcpWorld({ secrets: new Map([[HOST_NQN, { host: HOST, controller: undefined }]]) });

  it('without a secret is told what it lacks, and one that nobody knows is refused', async () => {
    const world = worldOf();
    await expect(world.openDisk()).rejects.toThrow('asks for authentication');
    expect(await statusOf(world.connect({ hostNqn: `${HOST_NQN}2` }))).toBe(STATUS.CONNECT_INVALID_HOST | DNR);
  });

  it('that wants the proof of the target does not go on with one that asks for nothing', async () => {
    const open = new TcpWorld();
    const authentication = { secret: HOST, controllerSecret: CONTROLLER, randomBytes: unpredictable };
    await expect(open.connect({ authentication })).rejects.toThrow('the target does not prove itself');
    await open.connect({ authentication: { ...authentication, controllerSecret: undefined } });
  });
});

describe('a queue that is not authenticated', () => {
  it('executes nothing, and ends', async () => {
    const world = worldOf();
    const queue = await RawQueue.open(world);
    const connected = await queue.connect();
    expect(connected >>> 16).toBe(2);
    const required = STATUS.AUTHENTICATION_REQUIRED | DNR;
    expect(await statusOf(queue.property(PROPERTY.VS))).toBe(required);
    const identify = { opcode: ADMIN.IDENTIFY, dwords: [1], into: Buffer.alloc(4096) };
    expect(await queue.status(identify)).toBe(required);
    expect(world.target.controllers).toBe(0);
    await world.pass(11e9);
    expect(world.target.connections.tcp).toBe(0);
  });

  it('of an authenticated host cannot be an I/O queue', async () => {
    const world = worldOf();
    const authentication = { secret: HOST, controllerSecret: undefined, randomBytes: unpredictable };
    await world.connect({ ioQueues: 0, authentication });
    const queue = await RawQueue.open(world);
    const stolen = await queue.connect({ qid: 3, cntlid: 1 });
    expect(stolen >>> 16).toBe(2);
    expect(await queue.status({ opcode: 0, nsid: 1 })).toBe(STATUS.AUTHENTICATION_REQUIRED | DNR);
  });

  const message = (fctype: number, bytes: Buffer) => ({
    opcode: OP_FABRICS,
    nsid: fctype,
    fill: (sqe: Buffer) => writeAuthentication(sqe, bytes.length),
    ...(fctype === FCTYPE.AUTHENTICATION_SEND ? { out: bytes } : { into: bytes }),
  });

  it('is refused a message that there is not, or that has no room', async () => {
    const queue = await RawQueue.open(worldOf());
    await queue.connect();
    const fetch = (bytes: number) => queue.status(message(FCTYPE.AUTHENTICATION_RECEIVE, Buffer.alloc(bytes)));
    expect(await fetch(4096)).toBe(STATUS.COMMAND_SEQUENCE_ERROR | DNR);
    expect(await queue.status(message(FCTYPE.AUTHENTICATION_SEND, Buffer.alloc(8192)))).toBe(
      STATUS.INVALID_FIELD | DNR,
    );
    const negotiation = writeNegotiation({ transaction: 1, secureChannel: 0, hashes: [1], groups: [0] });
    expect(await queue.status(message(FCTYPE.AUTHENTICATION_SEND, negotiation))).toBe(0);
    expect(await fetch(16)).toBe(STATUS.INVALID_FIELD | DNR);
  });
});

/** Both sides without anything between them. */
function pair(secrets: { host: DhchapSecret; controller: DhchapSecret | undefined }) {
  const parties = { hostNqn: HOST_NQN, subsystemNqn: NQN, randomBytes: unpredictable };
  const target = new TargetAuthentication({ ...parties, pace: async (work) => work() }, secrets);
  const receive = async () => target.fetch() ?? Buffer.alloc(0);
  return { parties, target, receive };
}

describe('hash and group', () => {
  it.each(DHCHAP_HASHES.flatMap(({ id: hash, name }) => [0, 1].map((group) => ({ name, hash, group }))))(
    '$name with group $group serve in both directions',
    async ({ hash, group }) => {
      const { parties, target, receive } = pair({ host: HOST, controller: CONTROLLER });
      const send = async (bytes: Buffer) => {
        const isOffer = bytes[0] === 0 && bytes[1] === 0;
        const narrow = { transaction: bytes.readUInt16LE(4), secureChannel: 0, hashes: [hash], groups: [group] };
        await target.onMessage(isOffer ? writeNegotiation(narrow) : bytes);
      };
      await authenticate({ ...parties, secret: HOST, controllerSecret: CONTROLLER, send, receive });
      expect(target.isAuthenticated).toBe(true);
    },
  );

  it.each([
    ['hash', { hashes: [9], groups: [0] }, 4],
    ['group', { hashes: [1], groups: [99] }, 5],
    ['secure channel', { hashes: [1], groups: [0], secureChannel: 1 }, 3],
  ])('that the target does not have are named: %s', async (_, offer, code) => {
    const { target } = pair({ host: HOST, controller: undefined });
    await target.onMessage(writeNegotiation({ transaction: 7, secureChannel: 0, ...offer }));
    expect([...target.fetch()!]).toEqual([0, 0xf1, 0, 0, 7, 0, 1, code]);
    expect(target.isAuthenticated).toBe(false);
  });

  it('the primes are those of RFC 7919', () => {
    const endings = [
      '886b423861285c97',
      '25e41d2b66c62e37',
      'c68a007e5e655f6a',
      'a40e329cd0e40e65',
      'd68c8bb7c5c6424c',
    ];
    for (const [i, group] of DHCHAP_GROUPS.filter(({ bits }) => bits > 0).entries()) {
      const prime = primeOf(group).toString('hex');
      expect(prime.slice(0, 48)).toBe('ffffffffffffffffadf85458a2bb4a9aafdc5620273d3cf1');
      expect(prime.slice(-32)).toBe(`${endings[i]}ffffffffffffffff`);
      const [a, b] = [new DhchapKeyPair(group), new DhchapKeyPair(group)];
      expect(a.publicValue.length).toBe(group.bits / 8);
      expect(a.secretWith(b.publicValue)!.equals(b.secretWith(a.publicValue)!)).toBe(true);
      expect(() => a.secretWith(Buffer.alloc(group.bits / 8, 0))).toThrow();
      expect(() => a.secretWith(Buffer.alloc(group.bits / 8, 0xff))).toThrow();
    }
  });

  it('a secret is that of OpenSSL for the same public values, also for those with zeros in front', () => {
    const [group] = DHCHAP_GROUPS;
    const theirs = createDiffieHellman(primeOf(group), 2);
    const ours = new DhchapKeyPair(group);
    theirs.generateKeys();
    expect(ours.secretWith(theirs.getPublicKey())).toEqual(theirs.computeSecret(ours.publicValue));
    for (const exponent of [2, 7, 8, 15, 16, 1023, 2040]) {
      const publicValue = Buffer.from((1n << BigInt(exponent)).toString(16).padStart(group.bits / 4, '0'), 'hex');
      theirs.setPrivateKey(Buffer.of(exponent >> 8, exponent & 0xff)); // 2 ** exponent is below the prime.
      expect(ours.secretWith(publicValue)).toEqual(theirs.computeSecret(ours.publicValue));
    }
  });

  it('a response is the HMAC of what the specification lists, in its order', () => {
    const [hash] = DHCHAP_HASHES.slice(-1);
    const input = { hash, key: Buffer.alloc(32, 1), challenge: Buffer.alloc(32, 2), secret: undefined };
    const response = respond({
      ...input,
      sequence: 0x0403_0201,
      transaction: 0x0605,
      role: 'HostHost',
      own: 'host',
      other: 'subsystem',
    });
    const bytes = Buffer.concat([
      input.challenge,
      Buffer.of(1, 2, 3, 4, 5, 6, 0),
      Buffer.from('HostHosthost\0subsystem'),
    ]);
    expect(response.equals(createHmac('sha256', input.key).update(bytes).digest())).toBe(true);
  });
});

describe('an attacker', () => {
  it('gets nowhere by an answer to an older challenge', async () => {
    const { parties, target, receive } = pair({ host: HOST, controller: undefined });
    const sent: Buffer[] = [];
    const send = async (bytes: Buffer) => {
      sent.push(bytes);
      await target.onMessage(bytes);
    };
    await authenticate({ ...parties, secret: HOST, controllerSecret: undefined, send, receive });
    const again = pair({ host: HOST, controller: undefined });
    await again.target.onMessage(sent[0]);
    expect(again.target.fetch()).toBeDefined();
    await again.target.onMessage(sent[1]);
    expect(again.target.fetch()![1]).toBe(0xf1);
    expect(again.target.isAuthenticated).toBe(false);
  });

  it('gets nowhere by the challenge of the target as its own (reflection)', async () => {
    const { target } = pair({ host: HOST, controller: HOST });
    await target.onMessage(writeNegotiation({ transaction: 1, secureChannel: 0, hashes: [1], groups: [0] }));
    const { challenge, sequence } = readChallenge(target.fetch()!)!;
    const publicValue = Buffer.alloc(0);
    await target.onMessage(writeReply({ transaction: 1, response: challenge, challenge, sequence, publicValue }));
    expect(target.fetch()![1]).toBe(0xf1);
  });

  it.each([1, 2, 3])('gets nowhere by any bytes, seed %i, and nothing throws', async (seed) => {
    const random = new SeededRandom(seed).stream('bytes');
    for (let round = 0; round < 500; round++) {
      const { target } = pair({ host: HOST, controller: CONTROLLER });
      for (let n = 0; n < 6; n++) {
        const groups = [0];
        const message =
          n === 0 && randomInt(random, 0, 1) === 0
            ? writeNegotiation({ transaction: 1, secureChannel: 0, hashes: [1], groups })
            : Buffer.from(Array.from({ length: randomInt(random, 0, 160) }, () => random.u32() & 0xff));
        if (n > 0 && message.length > 16) message.set([1, randomInt(random, 1, 4), 0, 0, 1, 0, 32], 0);
        await target.onMessage(message);
        target.fetch();
        expect(target.isAuthenticated).toBe(false);
      }
    }
  });
});

describe('a secret as text', () => {
  it('is read: the example of the specification, which goes with any hash', () => {
    for (const hash of [0, 1, 2, 3]) {
      DhchapSecret.parse(`DHHC-1:0${hash}:ia6zGodOr4SEG0Zzaw398rpY0wqipUWj4jWjUh4HWUz6aQ2n:`);
    }
    const key = Buffer.from('abcdefghijklmnopqrstuvwxyz012345');
    expect(DhchapSecret.parse(DhchapSecret.format(key)).keyOf(HOST_NQN).equals(key)).toBe(true);
    const transformed = DhchapSecret.parse(DhchapSecret.format(key, 'sha256')).keyOf(HOST_NQN);
    const expected = createHmac('sha256', key).update(`${HOST_NQN}NVMe-over-Fabrics`).digest();
    expect(transformed.equals(expected)).toBe(true);
  });

  it.each([
    ['', 'form'],
    ['DHHC-1:09:AAAA:', 'form'],
    [`DHHC-1:00:${Buffer.alloc(20).toString('base64')}:`, '32, 48 or 64'],
    [`DHHC-1:00:${Buffer.alloc(36, 1).toString('base64')}:`, 'checksum'],
    ['DHHC-1:00:ia6zGodOr4SEG0Zzaw398rpY0wqipUWj4jWjUh4HWUz6aQ2m:', 'checksum'],
  ])('%j is none', (text, words) => {
    expect(() => DhchapSecret.parse(text)).toThrow(words);
  });

  it('does not show itself', () => {
    expect(JSON.stringify(HOST)).toBe('{}');
    expect(() => DhchapSecret.parse('DHHC-1:00:c2VjcmV0:')).not.toThrow('c2VjcmV0');
  });
});
