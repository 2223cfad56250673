/** Flags of the stock programs that have no meaning here. */

import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { hostReport } from '../../command/src/host-report.js';
import { run } from './run-in-process.js';

it('are refused with what to use instead', async () => {
  const { exitCode, stderr } = await run(['rping', '-s', '-a', '127.0.0.2', '-P']);
  expect(exitCode).toBe(2);
  expect(stderr).toMatch(/-P of the stock program is not supported \(.*start it again/);
});

it('are accepted with a sentence', async () => {
  const args = ['pingpong', '-d', 'rxe0', '-g', '1', '-r', '100', '--bind', '127.0.0.1', '-p', '26595'];
  const waited = await run(args, { interrupted: AbortSignal.abort() });
  expect(waited.stderr).toContain('-d has no effect here: rocev2 has no IB devices, and --bind selects the address');
  expect(waited.stderr).toContain('-g has no effect here: the GID is that of the address of --bind');
  expect(waited.exitCode).toBe(130);
});

it.runIf(process.platform === 'linux')('info names the process that has the port', async () => {
  const socket = createSocket('udp4').on('error', () => {});
  socket.bind(4791);
  const isBound = await Promise.race([
    once(socket, 'listening').then(() => true),
    once(socket, 'error').then(() => false),
  ]);
  const { ports } = await hostReport();
  if (isBound) expect(ports[0]).toMatchObject({ free: false, reason: 'EADDRINUSE', holder: { pid: process.pid } });
  socket.close();
});
