/** The credit rules against a model of two sides that send, read, grant and wait in any order: nobody is ever not ready, and nobody waits for ever. */

import { expect, test } from 'vitest';
import { type RandomSource, randomInt, SeededRandom } from '../../../src/core/random.js';
import { type MessageClass, SuCredits } from '../../../src/storage-rpc/su/credits.js';

interface Flying {
  readonly what: MessageClass;
  readonly limit: number;
}

class Side {
  readonly credits: SuCredits;
  /** Receives that are really posted. */
  posted: number;
  /** Receives the application holds. */
  held = 0;
  readonly incoming: Flying[] = [];
  peer!: Side;

  constructor(credits: SuCredits, window: number) {
    this.credits = credits;
    this.posted = window;
  }

  send(what: MessageClass): boolean {
    if (!this.credits.allows(what)) return false;
    this.peer.incoming.push({ what, limit: this.credits.onSend() });
    return true;
  }

  /** The oldest message arrives. */
  deliver(): void {
    const message = this.incoming.shift();
    if (message === undefined) return;
    if (this.posted === 0) throw new Error('a message for which no receive is posted');
    this.posted--;
    if (!this.credits.onLimit(message.limit)) throw new Error(`limit ${message.limit} is refused`);
    if (message.what === 'data') this.held++;
    else this.repost('control');
    if (this.credits.grantDue) this.send('control');
  }

  release(): void {
    if (this.held === 0) return;
    this.held--;
    this.repost('data');
    if (this.credits.grantDue) this.send('control');
  }

  repost(after: MessageClass): void {
    this.posted++;
    this.credits.onRepost(after);
  }

  /** The timer of grants. */
  tick(): boolean {
    return this.credits.grantWanted && this.send('control');
  }
}

function pairOf(window: number, make: (window: number) => SuCredits): [Side, Side] {
  const a = new Side(make(window), window);
  const b = new Side(make(window), window);
  a.peer = b;
  b.peer = a;
  a.send('control'); // The hellos.
  b.deliver();
  b.send('control');
  a.deliver();
  return [a, b];
}

function step(side: Side, random: RandomSource): void {
  switch (randomInt(random, 0, 9)) {
    case 0:
    case 1:
    case 2:
      side.send('data');
      break;
    case 3:
      side.send('control');
      break;
    case 4:
    case 5:
    case 6:
      side.deliver();
      break;
    case 7:
    case 8:
      side.release();
      break;
    default:
      side.tick();
  }
}

/** Everybody reads everything: when nothing moves any more, both must be able to send. Returns messages it took to come to rest. */
function rest(sides: readonly Side[]): number {
  let messages = 0;
  do {
    for (const side of sides) {
      while (side.incoming.length > 0) {
        side.deliver();
        messages++;
      }
      while (side.held > 0) side.release();
      side.tick();
    }
    if (messages > 10_000) throw new Error('the two sides thank each other for ever');
  } while (sides.some(({ incoming }) => incoming.length > 0));
  return messages;
}

test('a million steps: no message without a receive, and never a deadlock', () => {
  const random = new SeededRandom(7).stream('credits');
  for (const window of [4, 5, 8, 32]) {
    const sides = pairOf(window, (w) => new SuCredits(w));
    for (let i = 0; i < 250_000; i++) {
      step(sides[randomInt(random, 0, 1)], random);
      if (i % 1000 === 0) {
        rest(sides);
        for (const side of sides) expect(side.credits.allows('data')).toBe(true);
      }
    }
  }
});

test('coming to rest takes a few messages', () => {
  const random = new SeededRandom(8).stream('credits');
  const sides = pairOf(32, (w) => new SuCredits(w));
  for (let round = 0; round < 100; round++) {
    for (let i = 0; i < 500; i++) step(sides[randomInt(random, 0, 1)], random);
    expect(rest(sides)).toBeLessThan(100);
  }
});

/** Without the rule about the last credits. */
class Careless extends SuCredits {
  override allows(): boolean {
    return this.available > 0;
  }
}

test('without the rule the same steps end with two sides that wait for each other', () => {
  const random = new SeededRandom(7).stream('credits');
  const sides = pairOf(4, (w) => new Careless(w));
  for (let i = 0; i < 250_000; i++) step(sides[randomInt(random, 0, 1)], random);
  rest(sides);
  expect(sides.map(({ credits }) => credits.allows('data'))).toEqual([false, false]);
});

test('limits that go back, or leap, are refused', () => {
  const [a] = pairOf(8, (w) => new SuCredits(w));
  expect(a.credits.onLimit(8)).toBe(false);
  expect(a.credits.onLimit(9)).toBe(true);
  expect(a.credits.onLimit(9 + 1025)).toBe(false);
});
