import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CaptureReader } from '../../../../src/port/capture/capture-reader.js';
import { openDevice } from '../../../../src/verbs/open-device.js';
import { documentOf } from '../../../../test/support/documents.js';
import { freeUdpPort } from '../../../../test/support/free-port.js';
import { serve } from '../../../cli/test/both-sides.js';
import { run } from '../../../cli/test/run-in-process.js';
import type { Check } from '../../src/commands/doctor/check.js';

const HERE = '127.0.3.51';
const THERE = '127.0.3.52';
const NOBODY = '127.0.3.53';
const QUICK = ['--bind', HERE, '--probes', '30', '--interval', '1'];

const verdicts = (document: Record<string, unknown>) =>
  Object.fromEntries((document['checks'] as Check[]).map(({ name, verdict }) => [name, verdict]));

describe.skipIf(process.platform !== 'linux')('rocev2 doctor', () => {
  it('finds nothing wrong with a peer that serves rping', async () => {
    const server = serve(['rping', '-s', '-a', THERE]);
    await server.waits;
    const { exitCode, stdout, stderr } = await run(['doctor', THERE, ...QUICK, '--port', '7174', '--json']);
    expect([exitCode, stderr]).toEqual([0, '']);
    const document = documentOf('doctor', stdout);
    expect(verdicts(document)).toEqual({
      port: 'ok',
      cm: 'ok',
      loss: 'ok',
      order: 'ok',
      service: 'ok',
      mtu: 'ok',
      dscp: 'cannot tell', // a socket of node:dgram cannot set it, so rping answers with 0
      ecn: 'warning', // nor see marks, so rping sends no CNP
      icrc: 'ok',
      rules: 'ok',
      timeout: 'ok',
    });
    expect(document).toMatchObject({ path: { sent: 30, answered: 30 }, service: { pathMtu: 4096, failure: null } });
    expect((await server.ended).exitCode).toBe(0);
  });

  it('needs no program there but RDMA CM, and keeps its capture where it is told to', async () => {
    const server = serve(['rping', '-s', '-a', THERE]);
    await server.waits;
    const folder = mkdtempSync(join(tmpdir(), 'rocev2-doctor-test-'));
    const pcap = join(folder, 'seen.pcapng');
    const { exitCode, stdout } = await run(['doctor', THERE, ...QUICK, '--pcap', pcap]);
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^127\.0\.3\.52, examined from 127\.0\.3\.51\n {2}ok {10}port /);
    expect(stdout).toMatch(/not tested {2}mtu +no service was named\n +start rping/);
    expect([...new CaptureReader(readFileSync(pcap))]).toHaveLength(60);
    rmSync(folder, { recursive: true });
    await run(['rping', '-c', '-a', THERE, '--bind', HERE, '-C', '1']);
    await server.ended;
  });

  it.each([
    ['is sound', undefined, { ecn: 'cannot tell', loss: 'ok' }, 'marks reach the peer'],
    ['clears ECN', 'every=1,bleach', { ecn: 'warning', loss: 'ok' }, 'no CNP came: the network clears ECN'],
    ['loses packets', 'random=0.2', { loss: 'failed' }, 'round trips lost'],
    ['changes the order', 'every=3,delay=30ms', { order: 'warning', loss: 'ok' }, 'answers came late'],
    ['damages packets', 'b>a:every=9,corrupt', { icrc: 'failed' }, 'packets had a wrong ICRC'],
  ] as const)('a way that %s', async (_, rules, expected, words) => {
    const end = new AbortController();
    const interrupted = end.signal;
    const [atHere, atThere, there] = [await freeUdpPort(), await freeUdpPort(), await freeUdpPort()];
    const faults = rules === undefined ? [] : ['--faults', rules];
    const wire = serve(['wire', `127.0.0.1:${atHere}`, `127.0.0.1:${atThere},127.0.0.1:${there}`, ...faults], {
      interrupted,
    });
    await wire.waits;
    // A frame port shows marks, where a socket of node:dgram does not.
    const frame = ['--frame', `127.0.0.1:${atThere}`, '--frame-port', `${there}`];
    const server = serve(['rping', '-s', '-a', '192.0.2.2', ...frame], { interrupted });
    try {
      await server.waits;
      const way = ['--bind', '192.0.2.1', '--frame', `127.0.0.1:${atHere}`, '--probes', '30', '--interval', '1'];
      const { stdout } = await run(['doctor', '192.0.2.2', ...way, '--port', '7174', '--json']);
      const document = documentOf('doctor', stdout);
      const checks = document['checks'] as Check[];
      expect(verdicts(document), JSON.stringify(checks)).toMatchObject(expected);
      expect(checks.map(({ text }) => text).join('\n')).toContain(words);
    } finally {
      end.abort();
      await Promise.all([wire.ended, server.ended]);
    }
  });

  it('refuses to examine its own address', async () => {
    const { exitCode, stderr } = await run(['doctor', HERE, '--bind', HERE]);
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('give this side another address with --bind')]);
  });

  it('says so when nobody is there', async () => {
    const { exitCode, stdout, stderr } = await run(['doctor', NOBODY, ...QUICK, '--json']);
    expect(exitCode).toBe(3);
    expect(stderr).toContain('failed: port, cm');
    expect(verdicts(documentOf('doctor', stdout))).toMatchObject({
      port: 'failed',
      cm: 'failed',
      loss: 'not tested',
      icrc: 'cannot tell',
    });
  });

  it('says so when RDMA CM is there, and the service is not', async () => {
    const server = serve(['rping', '-s', '-a', THERE, '-p', '7180']);
    await server.waits;
    const { exitCode, stdout } = await run(['doctor', THERE, ...QUICK, '--port', '7181']);
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(
      /failed +service +cannot connect to 127\.0\.3\.52 port 7181: rejected: no listener on that port/,
    );
    await run(['rping', '-c', '-a', THERE, '--bind', HERE, '-C', '1', '-p', '7180']);
    await server.ended;
  });

  it('asks an endpoint of this host even if that has the address, and so cannot send', async () => {
    await using _device = await openDevice({ address: HERE, estats: {} });
    const { exitCode, stdout, stderr } = await run(['doctor', THERE, ...QUICK, '--endpoint', HERE, '--json']);
    expect([exitCode, stderr]).toEqual([1, 'rocev2: failed: port\n']);
    expect(verdicts(documentOf('doctor', stdout))).toEqual({
      port: 'failed', // nobody is there
      cm: 'not tested',
      timeout: 'ok',
      endpoint: 'ok',
    });
    expect(await run(['doctor', THERE, ...QUICK])).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('EADDRINUSE'),
    });
  });

  it('refuses what cannot be', async () => {
    expect(await run(['doctor'])).toMatchObject({ exitCode: 2 });
    expect(await run(['doctor', THERE, '--size', '5'])).toMatchObject({ exitCode: 2 });
    expect(await run(['doctor', THERE, ...QUICK, '--endpoint', '99999999'])).toMatchObject({ exitCode: 3 });
  });
});
