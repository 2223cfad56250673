import { once } from 'node:events';
import { expect, it } from 'vitest';
import { TypedEvents } from '../../src/verbs/typed-events.js';

const emitter = () => new TypedEvents<{ QP_FATAL: [qpn: number]; CQ_ERR: [] }>({ QP_FATAL: true, CQ_ERR: true });

it('a listener for an event that does not exist is refused, with the name that was meant', () => {
  for (const method of ['on', 'addListener', 'once', 'prependListener', 'prependOnceListener'] as const) {
    // @ts-expect-error: a name that is misspelt
    const listen = () => emitter()[method]('QP_FATL', () => {});
    expect(listen).toThrow(
      expect.objectContaining({
        code: 'ERR_ROCE_UNKNOWN_NAME',
        hint: expect.stringContaining("did you mean 'QP_FATAL'?"),
      }),
    );
  }
});

it('the other listeners are called, and once of node:events works', async () => {
  const events = emitter();
  const seen: number[] = [];
  events.on('QP_FATAL', (qpn) => seen.push(qpn));
  events.prependOnceListener('QP_FATAL', (qpn) => seen.push(-qpn));
  const first = once(events, 'QP_FATAL');
  expect([events.emit('QP_FATAL', 1), events.emit('QP_FATAL', 2), events.emit('CQ_ERR')]).toEqual([true, true, false]);
  expect(await first).toEqual([1]);
  expect(seen).toEqual([-1, 1, 2]);
});
