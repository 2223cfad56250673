/** How often a NIC in a thread of its own wakes up: the sleeps it asks for are counted, not timed. */

import { afterEach, describe, expect, it } from 'vitest';
import type { BatchedUdpPort } from '../../src/dgram-ext/batched-udp-port.js';
import { ThreadPoller } from '../../src/driver/worker/thread-poller.js';
import type { Nic } from '../../src/nic/nic.js';
import type { Port } from '../../src/port/datagram.js';

const NEVER = Number.POSITIVE_INFINITY;
const MS = 1e6;

const open: ThreadPoller[] = [];

afterEach(() => {
  for (const poller of open.splice(0)) poller.close();
});

interface Options {
  /** Datagrams that each look at the socket finds, in turn; nothing behind them. */
  readonly arrivals?: readonly number[];
  /** The numbers of the sleeps that something ends, from 0 on. */
  readonly wokenAt?: readonly number[];
  /** The port is wrapped, as for a capture. */
  readonly isObserved?: boolean;
}

/** The first `count` sleeps of a poller, in ms. */
async function sleepsOf(
  count: number,
  { arrivals = [], wokenAt = [], isObserved = false }: Options,
): Promise<number[]> {
  const sleeps: number[] = [];
  const left = [...arrivals];
  const nic = { nextDeadlineNs: NEVER, nextTimerNs: NEVER, hasWork: false };
  let enough = () => {};
  const isEnough = new Promise<void>((resolve) => {
    enough = resolve;
  });
  const socket = {
    onDatagram: () => {},
    onPause: () => {},
    receive: () => left.shift() ?? 0,
    wait: (timeoutNs: number) => {
      sleeps.push(timeoutNs / MS);
      if (sleeps.length === count) enough();
      return wokenAt.includes(sleeps.length - 1);
    },
  };
  const port = isObserved ? { ...socket } : socket;
  const hooks = { begin: () => false, mayBlock: (_nowNs: number, worked: boolean) => !worked };
  const poller = new ThreadPoller(nic as Nic, port as unknown as Port, socket as unknown as BatchedUdpPort, hooks);
  open.push(poller);
  await isEnough;
  poller.close();
  return sleeps.slice(0, count);
}

describe('the sleeps of a worker engine', () => {
  it('grow while nothing happens: 13 wake-ups a second, not 100', async () => {
    expect(await sleepsOf(6, {})).toEqual([10, 20, 40, 80, 80, 80]);
  });

  it('begin anew after a datagram', async () => {
    expect(await sleepsOf(5, { arrivals: [0, 0, 0, 1] })).toEqual([10, 20, 40, 10, 20]);
  });

  it('begin anew after a message, whose answer may need the event loop', async () => {
    expect(await sleepsOf(5, { wokenAt: [2] })).toEqual([10, 20, 40, 10, 20]);
  });

  it('stay short where files are written', async () => {
    expect(await sleepsOf(4, { isObserved: true })).toEqual([10, 10, 10, 10]);
  });
});
