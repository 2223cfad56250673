/** A receiver that posts nothing is asked again and again, without end by default: what that costs is bounded by its RNR timer, and honest peers go on. */

import { setTimeout as pause } from 'node:timers/promises'; // timer: what is measured is a rate
import { expect, it } from 'vitest';
import { connect, listen, openDevice } from '../../src/index.js';

const MEASURED_MS = 2000;
/** RNR timer code 12, that of `listen` and `connect`: 0.64 ms. */
const RNR_TIMER_MS = 0.64;

it('costs at most one packet and its NAK each RNR timer, little time, and no other connection', async () => {
  const server = await openDevice({ address: '127.0.0.1', udpPort: 0 });
  const client = await openDevice({ address: '127.0.0.1', udpPort: 0 });
  const listener = await listen(server, { port: 0, receiveDepth: 1 });
  const target = { host: '127.0.0.1', port: listener.port };
  const [deaf, storming] = await Promise.all([listener.accept(), connect(client, target)]);
  const [listening, honest] = await Promise.all([listener.accept(), connect(client, target)]);
  await storming.send(Buffer.alloc(8)); // It takes the only receive, and nobody asks for it.
  const stuck = storming.send(Buffer.alloc(8));

  const before = client.counters();
  const usedBefore = process.cpuUsage();
  await pause(MEASURED_MS);
  const { user, system } = process.cpuUsage(usedBefore);
  const after = client.counters();
  const packets = after.tx_packets - before.tx_packets;
  const share = (user + system) / 1000 / MEASURED_MS;
  process.stdout.write(
    `${packets / (MEASURED_MS / 1000)} packets/s, ${Math.round(share * 100)} % of a core for both ends\n`,
  );
  expect(packets).toBeGreaterThan(10);
  expect(packets).toBeLessThanOrEqual((1.05 * MEASURED_MS) / RNR_TIMER_MS);
  expect(share).toBeLessThan(0.5);

  await honest.send(Buffer.from('served'));
  expect((await listening.receive()).data.toString()).toBe('served');
  await deaf.receive();
  await stuck; // Its receiver is ready at last.
  await client.close();
  await server.close();
});
