/** A process with few file descriptors (`ulimit -n 64`): strangers cannot take them all, and it accepts again when some are free. */

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, it } from 'vitest';
import { type Connection, connect, openDevice } from '../../src/index.js';
import { isBuilt } from '../support/built-api.js';
import { eventually } from '../support/eventually.js';

const SERVER = '127.0.4.21';
const CLIENT = '127.0.4.22';
const STRANGER = '127.0.4.23';
const API = fileURLToPath(new URL('../../build/src/index.js', import.meta.url));

const closers: Array<() => unknown> = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** A server in a process of its own; what it says, line by line. */
async function limitedServer(descriptors: number): Promise<{ port: number; lines: string[] }> {
  const program = `
    import { once } from 'node:events';
    import { listen, openDevice } from ${JSON.stringify(API)};
    console.log('loaded');
    await once(process.stdin, 'data');
    const device = await openDevice({ address: '${SERVER}', udpPort: 0 });
    const listener = await listen(device, { port: 0, region: 64 });
    listener.events.on('REFUSED', ({ reason, error }) => console.log(reason, error.message));
    console.log('port', listener.port);
    for await (const connection of listener) void connection.qp;`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['pipe', 'pipe', 'inherit'] });
  closers.push(() => child.kill('SIGKILL'));
  const lines: string[] = [];
  createInterface(child.stdout).on('line', (line) => lines.push(line));
  await eventually(() => lines.includes('loaded'));
  // Not before: Node itself opens more files than that at a time while it loads modules.
  execFileSync('prlimit', [`--pid=${child.pid}`, `--nofile=${descriptors}:${descriptors}`]);
  child.stdin.write('go');
  await eventually(() => lines.length > 1);
  child.on('exit', (code) => lines.push(`exit ${code}`));
  return { port: Number(lines[1].split(' ')[1]), lines };
}

async function strangers(count: number, port: number): Promise<Socket[]> {
  return Promise.all(
    Array.from({ length: count }, async () => {
      const socket = connectTcp({ host: SERVER, port, localAddress: STRANGER });
      closers.push(() => socket.destroy());
      socket.on('error', () => {}).resume();
      await Promise.race([once(socket, 'connect'), once(socket, 'close')]);
      return socket;
    }),
  );
}

it.runIf(isBuilt && process.platform === 'linux')('silent strangers make room: honest peers connect', async () => {
  const { port, lines } = await limitedServer(64);
  await strangers(100, port);
  const client = await openDevice({ address: CLIENT, udpPort: 0 });
  closers.push(() => client.close());
  const connection = await connect(client, { host: SERVER, port });
  await connection.write(Buffer.alloc(8), 0);
  expect(lines.filter((line) => line.startsWith('evicted')).length).toBeGreaterThan(30);
  expect(lines.filter((line) => line.startsWith('exit'))).toEqual([]);
});

it.runIf(isBuilt && process.platform === 'linux')(
  'connections take them all: one more is turned away with what to do, and taken when one has been closed',
  async () => {
    const { port, lines } = await limitedServer(64);
    const client = await openDevice({ address: CLIENT, udpPort: 0 });
    closers.push(() => client.close());
    const held: Connection[] = [];
    let refused: unknown;
    while (refused === undefined && held.length < 80) {
      try {
        held.push(await connect(client, { host: SERVER, port }));
      } catch (error) {
        refused = error;
      }
    }
    expect(held.length).toBeLessThan(64);
    expect(refused).toMatchObject({ code: 'ERR_ROCE_CONNECT' });
    const isTold = (line: string) => /^failed .*may open 64 files.*ulimit -n.*accepts again/.test(line);
    await eventually(() => lines.some(isTold));
    await held[0].write(Buffer.alloc(8), 0);
    for (const connection of held.splice(0, 10)) await connection.close();
    let again: Connection | undefined;
    await eventually(async () => {
      // The server has to hear first that they are closed.
      again = await connect(client, { host: SERVER, port }).catch(() => undefined);
      return again !== undefined;
    });
    await again!.write(Buffer.alloc(8), 0);
    expect(lines.filter((line) => line.startsWith('exit'))).toEqual([]);
  },
);

it.runIf(isBuilt && process.platform === 'linux')('with descriptors enough nobody is turned away', async () => {
  const { port, lines } = await limitedServer(128);
  await strangers(30, port);
  const client = await openDevice({ address: CLIENT, udpPort: 0 });
  closers.push(() => client.close());
  for (let i = 0; i < 40; i++) await connect(client, { host: SERVER, port });
  expect(lines).toHaveLength(2);
});
