/**
 * When a NIC on an event loop has its turn: behind what a port has delivered together, within the call of a program that spins, else in the check phase. The order of callbacks is what is tested; only
 * the clock of doorbells is the test's.
 */

import { performance } from 'node:perf_hooks';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { EventLoopCrank } from '../../src/driver/event-loop-crank.js';
import type { Nic } from '../../src/nic/nic.js';
import type { Port, RxDatagram, TxBatch } from '../../src/port/datagram.js';

const NEVER = Number.POSITIVE_INFINITY;
const US = 1e-3;

/** What has happened, in order. */
let log: string[];
let crank: EventLoopCrank | undefined;

class StubNic {
  nextDeadlineNs = NEVER;
  nextTimerNs = NEVER;
  hasWork = true;
  timersJudged = 0;

  receive(): void {
    log.push('received');
  }

  transmit(): number {
    this.hasWork = false;
    log.push('sent');
    return 1;
  }

  onDeadline(_now: number, timersToo: boolean): void {
    if (timersToo) this.timersJudged++;
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
  crank = new EventLoopCrank(nic as unknown as Nic, port as unknown as Port);
  return {
    port,
    crank,
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
  crank?.close();
});

describe('a turn behind what was delivered', () => {
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

  it('serves the doorbells that rang meanwhile: there is no second turn', async () => {
    const nic = new StubNic();
    const { deliver, crank } = start(nic, true);
    let turns = 0;
    vi.spyOn(nic, 'transmit').mockImplementation(() => {
      turns++;
      return 0; // And the NIC still has work: each turn would find some.
    });
    setImmediate(() => {
      deliver();
      void handle().then(() => crank.onDoorbell());
      setImmediate(() => {
        nic.hasWork = false;
      });
    });
    await round();
    await round();
    await round();
    expect(turns).toBe(1);
  });

  it('leaves no turn that would judge a timer before the port has looked again', async () => {
    const nic = new StubNic();
    nic.hasWork = false;
    nic.nextDeadlineNs = 0;
    nic.nextTimerNs = 0;
    const { deliver, crank } = start(nic, true);
    crank.turnSoon(); // It finds the timer due: from now on the answer may be in the socket.
    let looks = 0;
    const look = () => {
      if (++looks > 5) return;
      setImmediate(look); // Behind this one, as the port asks to look again while the socket is not empty.
      deliver(120);
    };
    setImmediate(look);
    while (looks <= 5) {
      await round();
      if (looks <= 5) expect(nic.timersJudged).toBe(0);
    }
    await round();
    await round();
    expect(nic.timersJudged).toBeGreaterThan(0); // Nothing more came.
  });
});

describe('a turn within a call', () => {
  function spinning(nic: StubNic, arrived: number[]) {
    const port = makePort(true);
    const asked: boolean[] = [];
    const receive = (everything = false) => {
      asked.push(everything);
      const datagrams = arrived.shift() ?? 0;
      for (let i = 0; i < datagrams; i++) port.onDatagram({} as RxDatagram);
      return datagrams;
    };
    crank = new EventLoopCrank(nic as unknown as Nic, port as unknown as Port, undefined, { receive });
    return { crank, asked };
  }

  it('reads once and sends one batch, and has the loop take a turn behind it', async () => {
    const { crank, asked } = spinning(new StubNic(), [2, 1]);
    expect(crank.turnNow()).toBe(true);
    expect(log).toEqual(['received', 'received', 'sent']);
    expect(asked).toHaveLength(1);
    let turns = 0;
    const nic = new StubNic();
    vi.spyOn(nic, 'transmit').mockImplementation(() => {
      if (++turns === 2) nic.hasWork = false;
      return 1;
    });
    spinning(nic, []).crank.turnNow();
    expect(turns).toBe(1);
    await round();
    expect(turns).toBe(2);
  });

  it('reads the clock once, before it looks', () => {
    const clock = vi.spyOn(performance, 'now');
    const { crank } = spinning(new StubNic(), [3]);
    clock.mockClear();
    crank.turnNow();
    expect([log, clock.mock.calls.length]).toEqual([['received', 'received', 'received', 'sent'], 1]);
  });

  it('judges a timer only after a look at everything that found nothing', () => {
    const nic = new StubNic();
    nic.hasWork = false;
    nic.nextDeadlineNs = 0;
    nic.nextTimerNs = 0;
    const { crank, asked } = spinning(nic, [0, 120, 3, 0]);
    const judged = [1, 2, 3, 4].map(() => {
      crank.turnNow();
      return nic.timersJudged;
    });
    expect(judged).toEqual([0, 0, 0, 1]);
    expect(asked).toEqual([false, true, true, true]);
  });

  it('is what the loop takes, too, before it judges a timer: the port may not have been told yet of what has arrived', async () => {
    const nic = new StubNic();
    nic.hasWork = false;
    nic.nextDeadlineNs = 0;
    nic.nextTimerNs = 0;
    const { crank, asked } = spinning(nic, [2, 0]);
    crank.turnSoon();
    const seen: Array<[looks: number, judged: number]> = [];
    for (let i = 0; i < 3; i++) {
      await round();
      seen.push([asked.length, nic.timersJudged]);
    }
    expect(seen).toEqual([
      [0, 0], // It finds the timer due.
      [1, 0], // It reads two datagrams.
      [2, 1], // Nothing more has come.
    ]);
  });

  it('is not taken in the middle of another: the NIC calls who calls it', () => {
    const nic = new StubNic();
    const { crank } = spinning(nic, [1]);
    const nested: boolean[] = [];
    vi.spyOn(nic, 'receive').mockImplementation(() => void nested.push(crank.turnNow()));
    vi.spyOn(nic, 'transmit').mockImplementation(() => {
      nested.push(crank.turnNow());
      return 1;
    });
    expect(crank.turnNow()).toBe(true);
    expect(nested).toEqual([false, false]);
  });

  it('serves the doorbells before it: none of them is late afterwards', () => {
    let nowMs = 1000;
    vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
    const nic = new StubNic();
    const { crank } = spinning(nic, []);
    crank.onDoorbell();
    crank.turnNow();
    nowMs += 100 * US;
    nic.hasWork = true;
    crank.onDoorbell();
    expect(log).toEqual(['sent']);
  });

  it('needs a port that can be read at any time, and an open crank', () => {
    expect(start(new StubNic(), true).crank.turnNow()).toBe(false);
    crank?.close();
    const { crank: closed } = spinning(new StubNic(), []);
    closed.close();
    expect(closed.turnNow()).toBe(false);
    expect(log).toEqual([]);
  });
});

describe('a doorbell', () => {
  it('waits for others, and for no longer than a request takes to make', async () => {
    let nowMs = 1000;
    vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
    const nic = new StubNic();
    const { crank } = start(nic, true);
    crank.onDoorbell();
    nowMs += 10 * US;
    crank.onDoorbell();
    expect(log).toEqual([]);
    nowMs += 20 * US;
    crank.onDoorbell();
    expect(log).toEqual(['sent']); // At once, with the two before it.
    nic.hasWork = true;
    crank.onDoorbell();
    expect(log).toEqual(['sent']); // The next one waits again.
    await round();
    expect(log).toEqual(['sent', 'sent']);
  });

  it('waits longer behind each that was served at once, until the next turn: a long row of posts leaves in few batches', async () => {
    let nowMs = 1000;
    vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
    const nic = new StubNic();
    const { crank } = start(nic, true);
    const post = (posts: number) => {
      for (let i = 0; i < posts; i++) {
        nic.hasWork = true;
        crank.onDoorbell();
        nowMs += 5 * US;
      }
    };
    post(600); // 3 ms: after 25, 100, 400 and 1600 us more.
    expect(log).toHaveLength(4);
    await round();
    post(6);
    expect(log).toHaveLength(6); // The turn, and the first one behind it.
  });

  it('looks at the clock for few of many that ring fast, and for each that rings slowly', async () => {
    let nowMs = 1000;
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
    const nic = new StubNic();
    const { crank } = start(nic, true);
    const post = (posts: number, gapMs: number) => {
      clock.mockClear();
      for (let i = 0; i < posts; i++) {
        crank.onDoorbell();
        nowMs += gapMs;
      }
      return clock.mock.calls.length;
    };
    expect(post(100, 0.2 * US)).toBeLessThan(20);
    expect(log).toEqual([]);
    await round();
    expect(log).toEqual(['sent']);
    nic.hasWork = true;
    expect(post(4, 12 * US)).toBe(5); // The last one is late, and the turn that it gets looks, too.
    expect(log).toEqual(['sent', 'sent']);
  });

  it('that comes late behind many fast ones is served soon: at most seven go by', () => {
    let nowMs = 1000;
    vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
    const { crank } = start(new StubNic(), true);
    for (let i = 0; i < 20; i++) {
      crank.onDoorbell();
      nowMs += 0.1 * US;
    }
    let late = 0;
    for (; log.length === 0 && late < 100; late++) {
      nowMs += 1;
      crank.onDoorbell();
    }
    expect(late).toBeLessThanOrEqual(8);
  });

  it('that is served at once judges no timer: nothing has been read', () => {
    let nowMs = 1000;
    vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
    const nic = new StubNic();
    nic.nextDeadlineNs = 0;
    nic.nextTimerNs = 0;
    const { crank } = start(nic, true);
    for (let i = 0; i < 6; i++) {
      crank.onDoorbell();
      nowMs += 30 * US;
    }
    expect([log.length > 0, nic.timersJudged]).toEqual([true, 0]);
  });

  it('of a closed crank sends nothing', () => {
    let nowMs = 1000;
    vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
    const { crank } = start(new StubNic(), true);
    crank.close();
    crank.onDoorbell();
    nowMs += 100 * US;
    crank.onDoorbell();
    expect(log).toEqual([]);
  });
});
