/**
 * Full-size packets both ways through an rping service: the server READs the client's text and WRITEs it back. Sizes
 * rise; the last one that returns is the largest packet that passes.
 */

import { type CliIo, Output, RpingEnd, SIZE_MIN_BYTES, type Tally } from '@rocev2/command';
import { ConnectionManager } from 'rocev2/internal/cm';
import type { CounterName } from 'rocev2/internal/memory';
import { type IpAddress, PATH_MTUS } from 'rocev2/internal/packet';
import type { RdmaDevice } from 'rocev2/internal/verbs';

/** A peer that does not answer is given up after 2 s: 4.096 us * 2^17 for an answer, four times. */
const TIMING = { responseTimeout: 17, packetLifetime: 13, maxRetries: 3 };
const CONNECT_MS = 5000;
/** Longest time for one ping: eight transmissions of a packet, at 67 ms each, and as much for the return path. */
const PING_MS = 3000;
const ROUNDS = 20;

export interface ServiceTestOptions {
  readonly port: number;
  readonly sizeBytes: number;
  readonly dscp: number;
  readonly signal: AbortSignal;
}

/** What came of it. */
export interface ServiceReport {
  /** Why there was no connection; null: there was one. */
  readonly refusal: string | null;
  /** Path MTU of the connection in bytes; 0 without one. */
  readonly pathMtu: number;
  /**
   * The sizes of pings, with whether their text came back unchanged; the test ends with the first that did not come
   * back.
   */
  readonly pings: ReadonlyArray<{ readonly sizeBytes: number; readonly outcome: 'right' | 'wrong' | 'lost' }>;
  /** Why the last ping did not come back; null: it did. */
  readonly failure: string | null;
  /** What the NIC counted during the test, without what stayed 0. */
  readonly counters: Partial<Record<CounterName, number>>;
}

export function pingSizes(pathMtu: number, sizeBytes: number): number[] {
  const single = [SIZE_MIN_BYTES, ...PATH_MTUS.filter((mtu) => mtu <= pathMtu)].filter((size) => size <= sizeBytes);
  return sizeBytes > single.at(-1)! ? [...single, ...Array<number>(ROUNDS).fill(sizeBytes)] : single;
}

export async function testService(
  device: RdmaDevice,
  remote: IpAddress,
  { port, sizeBytes, dscp, signal }: ServiceTestOptions,
  io: CliIo,
): Promise<ServiceReport> {
  await using cm = await ConnectionManager.open(device, { timing: TIMING, dscp });
  const before = device.counters();
  const pings: Array<ServiceReport['pings'][number]> = [];
  const counted = () => differences(before, device.counters());
  const end = await RpingEnd.create(device, { size: sizeBytes, validate: true });
  const connecting = cm.connect(remote, port, end.qp, {
    responderResources: 1,
    initiatorDepth: 1,
    timeoutMs: CONNECT_MS,
    signal,
  });
  const connection = await connecting.catch((error: Error) => error);
  if (connection instanceof Error) {
    return { refusal: connection.message, pathMtu: 0, pings, failure: null, counters: counted() };
  }
  const { pathMtu } = connection;
  const quiet = new Output({ ...io }, true);
  let failure: string | null = null;
  const hangUp = () => void connection.disconnect();
  signal.addEventListener('abort', hangUp, { once: true });
  for (const size of pingSizes(pathMtu, sizeBytes)) {
    if (signal.aborted) break;
    const tally: Tally = { peer: remote, pings: pings.length, faults: 0, seconds: 0 };
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      hangUp();
    }, PING_MS);
    const outcome = await end
      .ask(tally, quiet, size)
      .then(() => (tally.faults === 0 ? ('right' as const) : ('wrong' as const)))
      .catch((error: Error) => {
        failure = isLate ? `no answer for ${PING_MS / 1000} s` : error.message;
        return 'lost' as const;
      });
    clearTimeout(timer);
    pings.push({ sizeBytes: size, outcome });
    if (outcome === 'lost') break;
  }
  signal.removeEventListener('abort', hangUp);
  await connection.disconnect();
  return { refusal: null, pathMtu, pings, failure, counters: counted() };
}

function differences(
  before: Readonly<Record<CounterName, number>>,
  after: Readonly<Record<CounterName, number>>,
): Partial<Record<CounterName, number>> {
  const names = Object.keys(after) as CounterName[];
  return Object.fromEntries(names.map((name) => [name, after[name] - before[name]]).filter(([, count]) => count !== 0));
}
