/**
 * When a NIC on an event loop is polled: after what a port has delivered together, within the call of a program that spins, else in the check phase. The order of callbacks is what is tested; only
 * the clock of doorbells is the test's.
 */

import { performance } from 'node:perf_hooks';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { EventLoopPoller } from '../../src/driver/event-loop-poller.js';
import type { Nic } from '../../src/nic/nic.js';
import type { Port, RxDatagram, TxBatch } from '../../src/port/datagram.js';

const NEVER = Number.POSITIVE_INFINITY;
const US = 1e-3;

/** What has happened, in order. */
let log: string[];
let poller: EventLoopPoller | undefined;

class StubNic {
  nextDeadlineNs = NEVER;
  nextTimerNs = NEVER;
  hasWork = true;
  timersFired = 0;

  receive(): void {
    log.push('received');
  }

  transmit(): number {
    this.hasWork = false;
    log.push('sent');
    return 1;
  }

  onDeadline(_now: number, timersToo: boolean): void {
    if (timersToo) this.timersFired++;
  }
}

/** A port that reads many datagrams at a time, or one that hands over each as it comes. */
function makePort(tells: boolean) {
  return {
    onDatagram: (_datagram: RxDatagram) => {},
    ...(tells && { onDelivered: () => {} }),
    onPause: () => {},
    beginBatch: () => ({ count: 0 }) as TxBatch,
    sendBatch: () => {},
  };
}

function start(nic: StubNic, tells: boolean) {
  const port = makePort(tells);
  poller = new EventLoopPoller(nic as unknown as Nic, port as unknown as Port);
  return {
    port,
    poller,
    deliver: (datagrams = 1) => {
      for (let i = 0; i < datagrams; i++) port.onDatagram({} as RxDatagram);
      port.onDelivered?.();
    },
  };
}

/** A chain of promises, as the handler of a request is one. */
async function handle(): Promise<void> {
  for (let step = 0; step < 20; step++) await undefined;
  log.push('handled');
}

const round = () => new Promise<void>((resolve) => setImmediate(resolve));

beforeEach(() => {
  log = [];
});

afterEach(() => {
  vi.restoreAllMocks();
  poller?.close();
});

describe('a poll after what was delivered', () => {
  it('comes once everything that the datagrams resolved has run, and in the same round of the loop', async () => {
    const { deliver } = start(new StubNic(), true);
    setImmediate(() => {
      deliver(3);
      void handle();
      setImmediate(() => log.push('next round'));
    });
    await round();
    await round();
    expect(log).toEqual(['received', 'received', 'received', 'handled', 'sent', 'next round']);
  });

  it('comes in the next round where each datagram comes by itself, so that their answers leave together', async () => {
    const { deliver } = start(new StubNic(), false);
    setImmediate(() => {
      deliver();
      void handle();
    });
    setImmediate(() => deliver());
    await round();
    await round();
    expect(log).toEqual(['received', 'handled', 'received', 'sent']);
  });

  it('serves the doorbells that rang meanwhile: there is no second poll', async () => {
    const nic = new StubNic();
    const { deliver, poller } = start(nic, true);
    let polls = 0;
    vi.spyOn(nic, 'transmit').mockImplementation(() => {
      polls++;
      return 0; // And the NIC still has work: each poll would find some.
    });
    setImmediate(() => {
      deliver();
      void handle().then(() => poller.onDoorbell());
      setImmediate(() => {
        nic.hasWork = false;
      });
    });
    await round();
    await round();
    await round();
    expect(polls).toBe(1);
  });

  it('leaves no poll that would fire a timer before the port has looked again', async () => {
    const nic = new StubNic();
    nic.hasWork = false;
    nic.nextDeadlineNs = 0;
    nic.nextTimerNs = 0;
    const { deliver, poller } = start(nic, true);
    poller.pollSoon(); // It finds the timer due: from now on the answer may be in the socket.
    let looks = 0;
    const look = () => {
      if (++looks > 5) return;
      setImmediate(look); // Behind this one, as the port asks to look again while the socket is not empty.
      deliver(120);
    };
    setImmediate(look);
    while (looks <= 5) {
      await round();
      if (looks <= 5) expect(nic.timersFired).toBe(0);
    }
    await round();
    await round();
    expect(nic.timersFired).toBeGreaterThan(0); // Nothing more came.
  });
});

describe('a poll within a call', () => {
  function spinning(nic: StubNic, arrived: number[]) {
    const port = makePort(true);
    const asked: boolean[] = [];
    const receive = (everything = false) => {
      asked.push(everything);
      const datagrams = arrived.shift() ?? 0;
      for (let i = 0; i < datagrams; i++) port.onDatagram({} as RxDatagram);
      return datagrams;
    };
    poller = new EventLoopPoller(nic as unknown as Nic, port as unknown as Port, undefined, { receive });
    return { poller, asked };
  }

  it('reads once and sends one batch, and has the loop poll after it', async () => {
    const { poller, asked } = spinning(new StubNic(), [2, 1]);
    expect(poller.pollNow()).toBe(true);
    expect(log).toEqual(['received', 'received', 'sent']);
    expect(asked).toHaveLength(1);
    let polls = 0;
    const nic = new StubNic();
    vi.spyOn(nic, 'transmit').mockImplementation(() => {
      if (++polls === 2) nic.hasWork = false;
      return 1;
    });
    spinning(nic, []).poller.pollNow();
    expect(polls).toBe(1);
    await round();
    expect(polls).toBe(2);
  });

  it('reads the clock once, before it looks', () => {
    const clock = vi.spyOn(performance, 'now');
    const { poller } = spinning(new StubNic(), [3]);
    clock.mockClear();
    poller.pollNow();
    expect([log, clock.mock.calls.length]).toEqual([['received', 'received', 'received', 'sent'], 1]);
  });

  it('fires a timer only after a look at everything that found nothing', () => {
    const nic = new StubNic();
    nic.hasWork = false;
    nic.nextDeadlineNs = 0;
    nic.nextTimerNs = 0;
    const { poller, asked } = spinning(nic, [0, 120, 3, 0]);
    const fired = [1, 2, 3, 4].map(() => {
      poller.pollNow();
      return nic.timersFired;
    });
    expect(fired).toEqual([0, 0, 0, 1]);
    expect(asked).toEqual([false, true, true, true]);
  });

  it('is what the loop takes, too, before it fires a timer: the port may not have been told yet of what has arrived', async () => {
    const nic = new StubNic();
    nic.hasWork = false;
    nic.nextDeadlineNs = 0;
    nic.nextTimerNs = 0;
    const { poller, asked } = spinning(nic, [2, 0]);
    poller.pollSoon();
    const seen: Array<[looks: number, fired: number]> = [];
    for (let i = 0; i < 3; i++) {
      await round();
      seen.push([asked.length, nic.timersFired]);
    }
    expect(seen).toEqual([
      [0, 0], // It finds the timer due.
      [1, 0], // It reads two datagrams.
      [2, 1], // Nothing more has come.
    ]);
  });

  it('is not taken in the middle of another: the NIC calls who calls it', () => {
    const nic = new StubNic();
    const { poller } = spinning(nic, [1]);
    const nested: boolean[] = [];
    vi.spyOn(nic, 'receive').mockImplementation(() => void nested.push(poller.pollNow()));
    vi.spyOn(nic, 'transmit').mockImplementation(() => {
      nested.push(poller.pollNow());
      return 1;
    });
    expect(poller.pollNow()).toBe(true);
    expect(nested).toEqual([false, false]);
  });

  it('serves the doorbells before it: none of them is late afterwards', () => {
    let nowMs = 1000;
    vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
    const nic = new StubNic();
    const { poller } = spinning(nic, []);
    poller.onDoorbell();
    poller.pollNow();
    nowMs += 100 * US;
    nic.hasWork = true;
    poller.onDoorbell();
    expect(log).toEqual(['sent']);
  });

  it('needs a port that can be read at any time, and an open poller', () => {
    expect(start(new StubNic(), true).poller.pollNow()).toBe(false);
    poller?.close();
    const { poller: closed } = spinning(new StubNic(), []);
    closed.close();
    expect(closed.pollNow()).toBe(false);
    expect(log).toEqual([]);
  });
});

describe('a doorbell', () => {
  it('waits for others, and for no longer than a request takes to make', async () => {
    let nowMs = 1000;
    vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
    const nic = new StubNic();
    const { poller } = start(nic, true);
    poller.onDoorbell();
    nowMs += 10 * US;
    poller.onDoorbell();
    expect(log).toEqual([]);
    nowMs += 20 * US;
    poller.onDoorbell();
    expect(log).toEqual(['sent']); // At once, with the two before it.
    nic.hasWork = true;
    poller.onDoorbell();
    expect(log).toEqual(['sent']); // The next one waits again.
    await round();
    expect(log).toEqual(['sent', 'sent']);
  });

  it('waits longer behind each that was served at once, until the next poll: a long row of posts leaves in few batches', async () => {
    let nowMs = 1000;
    vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
    const nic = new StubNic();
    const { poller } = start(nic, true);
    const post = (posts: number) => {
      for (let i = 0; i < posts; i++) {
        nic.hasWork = true;
        poller.onDoorbell();
        nowMs += 5 * US;
      }
    };
    post(600); // 3 ms: after 25, 100, 400 and 1600 us more.
    expect(log).toHaveLength(4);
    await round();
    post(6);
    expect(log).toHaveLength(6); // The poll, and the first one after it.
  });

  it('looks at the clock for few of many that ring fast, and for each that rings slowly', async () => {
    let nowMs = 1000;
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
    const nic = new StubNic();
    const { poller } = start(nic, true);
    const post = (posts: number, gapMs: number) => {
      clock.mockClear();
      for (let i = 0; i < posts; i++) {
        poller.onDoorbell();
        nowMs += gapMs;
      }
      return clock.mock.calls.length;
    };
    expect(post(100, 0.2 * US)).toBeLessThan(20);
    expect(log).toEqual([]);
    await round();
    expect(log).toEqual(['sent']);
    nic.hasWork = true;
    expect(post(4, 12 * US)).toBe(5); // The last one is late, and the poll that it gets reads as well.
    expect(log).toEqual(['sent', 'sent']);
  });

  it('that comes late behind many fast ones is served soon: at most seven go by', () => {
    let nowMs = 1000;
    vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
    const { poller } = start(new StubNic(), true);
    for (let i = 0; i < 20; i++) {
      poller.onDoorbell();
      nowMs += 0.1 * US;
    }
    let late = 0;
    for (; log.length === 0 && late < 100; late++) {
      nowMs += 1;
      poller.onDoorbell();
    }
    expect(late).toBeLessThanOrEqual(8);
  });

  it('that is served at once fires no timer: nothing has been read', () => {
    let nowMs = 1000;
    vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
    const nic = new StubNic();
    nic.nextDeadlineNs = 0;
    nic.nextTimerNs = 0;
    const { poller } = start(nic, true);
    for (let i = 0; i < 6; i++) {
      poller.onDoorbell();
      nowMs += 30 * US;
    }
    expect([log.length > 0, nic.timersFired]).toEqual([true, 0]);
  });

  it('of a closed poller sends nothing', () => {
    let nowMs = 1000;
    vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
    const { poller } = start(new StubNic(), true);
    poller.close();
    poller.onDoorbell();
    nowMs += 100 * US;
    poller.onDoorbell();
    expect(log).toEqual([]);
  });
});
