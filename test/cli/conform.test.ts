/** `rocev2 conform` on real sockets: a target, a tester, a service that has not asked for it, and nobody. */

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { CASES } from '../../src/conform/cases.js';
import { Acknowledger } from '../../src/qp/acknowledger.js';
import { documentOf } from '../support/documents.js';
import { serve } from './both-sides.js';
import { run } from './run-in-process.js';

const TARGET = '127.0.183.1';
const TESTER = '127.0.183.2';
const NOBODY = '127.0.183.3';
const SERVICE = '127.0.183.4';
/** Short, since a target on loopback answers at once; where nothing may come, a slow one would only look better. */
const QUICK = ['--quiet', '5ms', '--timeout', '2s'];

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'rocev2-conform-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

afterEach(() => vi.restoreAllMocks());

const conform = (target: string, ...args: string[]) =>
  run(['conform', 'run', target, '--bind', TESTER, ...QUICK, ...args]);

describe('rocev2 conform', () => {
  it('our own target passes all cases; what is run is chosen by rule, name and subject', async () => {
    const stop = new AbortController();
    const { ended, waits } = serve(['conform', 'serve', '--bind', TARGET, '--json'], { interrupted: stop.signal });
    await waits;
    const whole = await conform(TARGET, '--json');
    const report = documentOf('conform-run', whole.stdout) as {
      cases: { name: string; verdict: string; text: string | null }[];
    };
    expect(report.cases.filter(({ verdict }) => verdict === 'failed' || verdict === 'cannot tell')).toEqual([]);
    expect(whole.exitCode).toBe(0);
    expect(report).toMatchObject({ isTarget: true, depth: 4, remote: TARGET, local: TESTER, unsoundAnswers: 0 });
    expect(report.cases).toHaveLength(CASES.length);

    const pcap = join(folder, 'some.pcapng');
    const junit = join(folder, 'some.xml');
    const some = await conform(TARGET, '--only', '44,order', '--pcap', pcap, '--junit', junit, '--mtu', '1024');
    expect(some).toMatchObject({ exitCode: 0, stderr: '' });
    expect(some.stdout).toContain('gap/nak: A PSN is left out.');
    expect(some.stdout).toMatch(/\d+ cases: \d+ passed, 0 failed, 0 cannot tell, 0 not applicable\./);
    expect(readFileSync(junit, 'utf8')).toContain('name="gap/nak (rule 44)');
    const audited = await run(['audit', pcap, '--rules', '36,40,80']);
    expect(audited).toMatchObject({ exitCode: 0, stderr: '' });

    stop.abort();
    const { stdout } = await ended;
    expect(documentOf('conform-serve', stdout)).toMatchObject({ address: TARGET, refused: 0 });
  });

  it('a target that says nothing of gaps breaks a rule of level must: exit code 4, and a sentence', async () => {
    vi.spyOn(Acknowledger.prototype, 'reportGap').mockImplementation(() => {});
    const stop = new AbortController();
    const { ended, waits } = serve(['conform', 'serve', '--bind', TARGET], { interrupted: stop.signal });
    await waits;
    const junit = join(folder, 'broken.xml');
    const found = await conform(TARGET, '--only', 'gap/nak,ack/asked', '--timeout', '100ms', '--junit', junit);
    expect(found.exitCode).toBe(4);
    expect(found.stderr).toContain('1 rule broken: 44 (A gap is answered by NAK 0x60 with the expected PSN.)');
    expect(found.stdout).toContain('after the packet with PSN 2, nothing came; expected NAK 0x60 (sequence) at PSN 1');
    expect(found.stdout).toContain('2 cases: 1 passed, 1 failed');
    expect(readFileSync(junit, 'utf8')).toContain('<failure type="must"');
    stop.abort();
    expect((await ended).stdout).toMatch(/\d+ connections, 0 requests refused/);
  });

  it('another service is tested only when the command line says so', async () => {
    const stop = new AbortController();
    const { ended, waits } = serve(['rping', '-s', '-a', SERVICE], { interrupted: stop.signal });
    await waits;
    const asked = await conform(SERVICE, '--port', '7174');
    expect(asked).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('is no rocev2 conform serve') });
    stop.abort();
    await ended;
  });

  it('a target where nobody is, and lists that name nothing, are told', async () => {
    const silent = await run(['conform', 'run', NOBODY, '--bind', TESTER, '--timeout', '20ms']);
    expect(silent).toMatchObject({ exitCode: 3, stderr: expect.stringContaining('no answer') });
    const only = (list: string) => run(['conform', 'run', TARGET, '--only', list]);
    expect(await only('gpa')).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("did you mean 'gap'?") });
    expect(await only('gap/nka')).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('gap/nak') });
    expect(await only('110')).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('no case for rule 110') });
    expect(await run(['conform', 'serve'])).toMatchObject({ exitCode: 2 });
  });

  it('the list has every case', async () => {
    const { stdout } = await run(['conform', 'list', '--json']);
    expect(documentOf('conform-list', stdout)).toMatchObject({ cases: CASES.map(({ name }) => ({ name })) });
    expect((await run(['conform', 'list'])).stdout).toContain('cm/nobody');
  });
});
