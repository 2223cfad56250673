import { expect, test } from 'vitest';
import { TwoEnds } from './two-ends.js';

const BLOCKS = 4;

test('more messages than the send queue holds, before one completion is polled: all arrive, in order', async () => {
  const ends = await TwoEnds.create(BLOCKS);
  const count = 5 * ends.client.room;
  const arrived: number[] = [];
  const failures: Error[] = [];
  ends.client.onFailure = (error) => failures.push(error);
  const all = new Promise<void>((resolve) => {
    ends.server.onMessage = ({ count: n }) => {
      arrived.push(n);
      if (arrived.length === count) resolve();
    };
  });
  for (let n = 0; n < count; n++) ends.client.send({ type: 'ACK_COUNT', count: n });
  expect(ends.client.room).toBe(0);
  await ends.until(all);
  expect(arrived).toEqual(Array.from({ length: count }, (_, n) => n));
  expect(failures).toEqual([]);
});

test('what waits for room goes with the connection', async () => {
  const ends = await TwoEnds.create(BLOCKS);
  const arrived: number[] = [];
  ends.server.onMessage = ({ count }) => void arrived.push(count);
  const count = 5 * ends.client.room;
  for (let n = 0; n < count; n++) ends.client.send({ type: 'ACK_COUNT', count: n });
  const failed = new Promise<Error>((resolve) => {
    ends.client.onFailure = resolve;
  });
  await ends.until(ends.pair.a.qp.modify({ state: 'ERR' }));
  expect((await ends.until(failed)).message).toMatch(/flushed/i);
  expect(arrived.length).toBeLessThan(count);
});

test('a queue pair that is destroyed first fails what is posted after it, and throws at nobody', async () => {
  const ends = await TwoEnds.create(BLOCKS);
  const failures: Error[] = [];
  ends.client.onFailure = (error) => failures.push(error);
  await ends.until(ends.pair.a.qp.close());
  ends.client.send({ type: 'ACK_COUNT', count: 1 });
  ends.client.send({ type: 'ACK_COUNT', count: 2 });
  expect(failures).toMatchObject([{ code: 'ERR_ROCE_CLOSED' }]);
});
