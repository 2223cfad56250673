/** A transfer ends at its time, and at Ctrl-C, with its result so far, even if no message ever completes. */

import { describe, expect, it } from 'vitest';
import { isBuilt, rocev2Starter } from '../e2e/executable.js';

const SERVER = '127.0.6.21';
const CLIENT = '127.0.6.22';
/** Messages of 4096 packets of which one in 256 is lost: go-back-0 never completes one. */
const LIVELOCK = ['--recovery', 'go-back-0'];
const LOST = ['-s', '4MiB', '--loss', 'every=256', '--json'];

describe.runIf(isBuilt)('bw in a livelock', () => {
  const start = rocev2Starter();

  it.each(['a duration', 'Ctrl-C'])('ends by %s and reports what it has', async (how) => {
    const tcp = how === 'Ctrl-C' ? '26590' : '26591';
    const server = start('bw', 'write', '--bind', SERVER, '-p', tcp, ...LIVELOCK);
    await server.writes('stderr', /waiting for/);
    const limit = how === 'Ctrl-C' ? [] : ['-D', '1'];
    const client = start('bw', 'write', SERVER, '--bind', CLIENT, '-p', tcp, ...LIVELOCK, ...LOST, ...limit);
    if (how === 'Ctrl-C') {
      await server.writes('stdout', /remote address/);
      client.kill('SIGINT');
    }
    expect(await client.ended()).toBe(how === 'Ctrl-C' ? 130 : 0);
    const result = JSON.parse(client.stdout);
    expect(result).toMatchObject({ iterations: 0, bytes: 0 });
    if (how === 'Ctrl-C') return;
    expect(result.seconds).toBeLessThan(2);
    expect(result.usefulShare).toBeLessThan(0.9);
    expect(result.counters.fault_dropped).toBeGreaterThan(0);
    expect(await server.ended()).toBe(0);
  });
});
