/** Deadlines of listeners as they are. `npm test` has them shorter. */

import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises'; // timer: the pace of an attack
import { expect, it } from 'vitest';
import { listen, openDevice } from '../../src/index.js';

const SERVER = '127.0.2.31';

it('a hello has a deadline as a whole, not one a byte', { timeout: 60_000 }, async () => {
  const device = await openDevice({ address: SERVER, udpPort: 0 });
  const listener = await listen(device, { port: 0 });
  const socket = connect({ host: SERVER, port: listener.port, localAddress: '127.0.2.32' });
  let cut = false;
  socket
    .on('error', () => {})
    .resume()
    .on('close', () => {
      cut = true;
    });
  const begin = performance.now();
  while (!cut) {
    socket.write(' ');
    await delay(500); // timer: the attack itself
  }
  expect(performance.now() - begin).toBeGreaterThan(9_000);
  expect(performance.now() - begin).toBeLessThan(13_000);
  expect(listener.counters().timed_out).toBe(1);
  await device.close();
});
