/** `rocev2 bw` under rate control, between two processes. That a rate is reached depends on the machine; that it is not exceeded does not. */

import { describe, expect, it } from 'vitest';
import { auditedStarter } from './audited-programs.js';
import { isBuilt } from './executable.js';

/** Addresses of this file alone. */
const SERVER = '127.51.0.1';
const CLIENT = '127.51.0.2';
let tcpPort = 27100;

const start = auditedStarter();

async function transfer(op: string, ...args: string[]) {
  const port = String(tcpPort++);
  const server = start('bw', op, '-p', port, '--bind', SERVER, '--json');
  await server.writes('stderr', /waiting for/);
  const client = start('bw', op, SERVER, '-p', port, '--bind', CLIENT, '--json', ...args);
  expect(await client.ended(), client.stderr).toBe(0);
  expect(await server.ended(), server.stderr).toBe(0);
  return JSON.parse(client.stdout);
}

describe.runIf(isBuilt)('rocev2 bw under rate control', () => {
  it.each([
    ['write', 'fixed', ['--rate', '100Mbps']],
    ['read', 'fixed', ['--rate', '100Mbps']],
    [
      'send',
      'dcqcn',
      ['--cc', 'dcqcn', '--rate', '100Mbps', '--cc-params', 'preset=azure-gen1,additiveIncreaseBps=1Mbps'],
    ],
    ['write', 'timely', ['--cc', 'timely', '--rate', '100Mbps']],
    ['write', 'patched-timely', ['--cc', 'patched-timely', '--rate', '100Mbps', '--engine', 'worker']],
  ])('%s, %s: never sends faster than the rate', async (op, cc, args) => {
    const result = await transfer(op, '-s', '16KiB', '-n', '200', ...args);
    expect(result).toMatchObject({ cc, verified: true, iterations: 200 });
    expect(result.goodputBps).toBeLessThan(105e6);
  });

  it('refuses parameters that do not exist, before it connects', async () => {
    const client = start('bw', 'write', SERVER, '--cc', 'dcqcn', '--cc-params', 'speed=11');
    expect(await client.ended()).toBe(2);
    expect(client.stderr).toMatch(/no rate control parameter speed/);
  });
});
