/**
 * The attacks of docs/security.md on two devices with real sockets, by an attacker through whose hands every frame of both goes: what becomes of each, and that the
 * honest pair does not notice. What it costs the pair is measured by `npm run bench:secure-attacks`. The attacker is the one of that bench.
 */

import { pathToFileURL } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import type { Connection, RdmaDevice } from '../../src/index.js';
import { builtApi, isBuilt } from '../support/built-api.js';

type End = 'a' | 'b';
interface Attack {
  readonly name: string;
  readonly inject?: (path: OnPath) => void;
  readonly before?: (path: OnPath, frame: Buffer) => void;
}
interface OnPath {
  known: { rkey: number; addr: bigint };
  attack: Attack | undefined;
  due: number;
  struck: number;
  replace: (frame: Buffer, to: End) => Buffer | undefined;
  frameOf(end: End): { local: string; remote: string };
  close(): void;
}
interface Attacker {
  readonly OnPath: { open(): Promise<OnPath> };
  readonly ATTACKS: readonly Attack[];
  readonly flipped: (frame: Buffer) => Buffer;
}

const { OnPath, ATTACKS, flipped } = isBuilt
  ? ((await import(pathToFileURL('bench/secure-attacks/on-path.js').href)) as Attacker)
  : ({ ATTACKS: [] as Attack[] } as unknown as Attacker);

const REGION_BYTES = 65_536;
const STRIKES = 20;
const psk = { identity: 'honest', key: new Uint8Array(32).fill(7) };

interface Pair {
  readonly path: OnPath;
  readonly a: RdmaDevice;
  readonly b: RdmaDevice;
  readonly from: Connection;
  /** What b has. */
  readonly memory: Uint8Array;
}

const closing: Array<() => Promise<void> | void> = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function pairOf(secure: boolean): Promise<Pair> {
  const { connect, listen, openDevice } = await builtApi();
  const path = await OnPath.open();
  closing.push(() => path.close());
  const device = async (end: End, address: string) => {
    const made = await openDevice({ address, frame: path.frameOf(end), ...(secure && { secure: { psk } }) });
    closing.push(() => made.close());
    return made;
  };
  const b = await device('b', '10.78.0.2');
  const a = await device('a', '10.78.0.1');
  const host = '127.0.0.1';
  const memory = b.allocate(REGION_BYTES);
  const listener = await listen(b, { port: 0, host, region: memory, allowForeignGid: true });
  closing.push(() => listener.close());
  const rateControl = { name: 'dcqcn', linkRateBps: 1e9 } as const;
  const [, from] = await Promise.all([
    listener.accept(),
    connect(a, { host, port: listener.port, allowForeignGid: true, rateControl }),
  ]);
  const { rkey, addr } = from.agreement.region!;
  path.known = { rkey, addr };
  return { path, a, b, from, memory };
}

/** One honest round: what is written stands there afterwards. */
async function round({ from, memory }: Pair, fill: number): Promise<void> {
  const data = Buffer.alloc(REGION_BYTES, fill);
  await from.write(data);
  expect(data.equals(memory)).toBe(true);
  expect((await from.read(REGION_BYTES)).equals(data)).toBe(true);
}

/** By what counter of either end strikes may be told. */
const COUNTED: Readonly<Record<string, readonly string[]>> = {
  injection: ['plain'],
  replacement: ['forged', 'malformed', 'unknown_spi', 'replayed', 'plain'],
  'fatal NAK': ['plain'],
  'false ACK': ['plain'],
  'CNP flood': ['plain'],
  replay: ['replayed'],
  truncation: ['forged', 'malformed', 'plain'],
  reflection: ['unknown_spi'],
  downgrade: ['plain'],
  'unknown SPI': ['unknown_spi'],
  'key exhaustion': ['forged'],
};

const dropsOf = ({ a, b }: Pair, reasons: readonly string[]) => {
  const counters = [a, b].map((device) => device.counters() as Record<string, number>);
  return counters.flatMap((of) => reasons.map((reason) => of[`secure_drop_${reason}`])).reduce((sum, n) => sum + n, 0);
};

describe.runIf(isBuilt)('an attacker in the path of two devices, packets protected', () => {
  it('has a verdict for each of its attacks', () => {
    expect(ATTACKS.map(({ name }) => name)).toEqual(Object.keys(COUNTED));
  });

  it.each(ATTACKS.map((attack) => [attack.name, attack] as const))('%s', async (name, attack) => {
    const pair = await pairOf(true);
    const { path, a, b } = pair;
    await round(pair, 1);
    path.attack = attack;
    for (let fill = 2; path.struck < STRIKES; fill++) {
      path.due = 4;
      if (attack.inject !== undefined) for (let n = 0; n < 4; n++) attack.inject(path);
      await round(pair, fill);
    }
    path.attack = undefined;
    await round(pair, 99);
    // Frames cross sockets of their own: the last strikes may still be under way.
    await expect.poll(() => dropsOf(pair, COUNTED[name])).toBe(path.struck);
    for (const device of [a, b]) {
      expect(device.counters()).toMatchObject({
        rp_cnp_handled: 0,
        unsent_response: 0,
        secure_rekeys: 0,
        req_cqe_error: 0,
      });
    }
  });

  it('replacement in the path: what is replaced is lost, and comes again', async () => {
    const pair = await pairOf(true);
    const { path, b } = pair;
    let count = 0;
    let replaced = 0;
    path.replace = (frame, to) => {
      if (to !== 'b' || frame.length < 1000 || ++count % 20 !== 7 || replaced === 5) return frame;
      replaced++;
      return flipped(frame);
    };
    for (let fill = 1; replaced < 5; fill++) await round(pair, fill);
    expect(dropsOf(pair, COUNTED['replacement'])).toBe(5);
    expect(b.counters().rx_icrc_errors).toBe(0);
  });
});

describe.runIf(isBuilt)('the twins: the same attacker, packets plain', () => {
  const attack = (name: string) => ATTACKS.find((one) => one.name === name)!;

  it('a WRITE of its own is executed', async () => {
    const pair = await pairOf(false);
    await pair.from.write(Buffer.alloc(REGION_BYTES, 1));
    attack('injection').inject!(pair.path);
    await expect.poll(() => [...pair.memory.subarray(63, 65)]).toEqual([0xee, 1]);
  });

  it('congestion notifications of its own are believed', async () => {
    const pair = await pairOf(false);
    await round(pair, 1);
    attack('CNP flood').inject!(pair.path);
    await expect.poll(() => pair.a.counters().rp_cnp_handled + pair.a.counters().rp_cnp_ignored).toBeGreaterThan(0);
  });

  it('a NAK of its own ends the connection', async () => {
    const pair = await pairOf(false);
    await round(pair, 1);
    pair.path.replace = (frame, to) => (to === 'a' ? undefined : frame);
    const written = pair.from.write(Buffer.alloc(64));
    const strike = setInterval(() => attack('fatal NAK').inject!(pair.path), 5); // timer: an attacker does not wait
    await expect(written).rejects.toThrow();
    clearInterval(strike);
  });
});
