/** `rocev2 conform` on real sockets: a target, a tester, a service that has not asked for it, and nobody. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseTarGzip } from 'nanotar';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { Acknowledger } from '../../../../src/qp/acknowledger.js';
import { documentOf } from '../../../../test/support/documents.js';
import { serve } from '../../../cli/test/both-sides.js';
import { run } from '../../../cli/test/run-in-process.js';
import { CASES } from '../../src/conform/cases.js';

const TARGET = '127.0.183.1';
const TESTER = '127.0.183.2';
const NOBODY = '127.0.183.3';
const SERVICE = '127.0.183.4';
/** Timers of the target make some long, and many are alike; test/conform has all in virtual time. */
const QUICK_CASES = CASES.map(({ name }) => name).filter(
  (name) => !/^(requester|combined)\//.test(name) || name === 'requester/read-depth',
);
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
    const whole = await conform(TARGET, '--json', '--only', QUICK_CASES.join(','));
    const report = documentOf('conform-run', whole.stdout) as {
      cases: { name: string; verdict: string; text: string | null }[];
    };
    expect(report.cases.filter(({ verdict }) => verdict === 'failed' || verdict === 'cannot tell')).toEqual([]);
    expect(whole.exitCode).toBe(0);
    expect(report).toMatchObject({ isTarget: true, depth: 4, remote: TARGET, local: TESTER, unsoundAnswers: 0 });
    expect(report.cases).toHaveLength(QUICK_CASES.length);

    const pcap = join(folder, 'some.pcapng');
    const junit = join(folder, 'some.xml');
    const some = await conform(TARGET, '--only', '44,order', '--pcap', pcap, '--junit', junit, '--mtu', '1024');
    expect(some).toMatchObject({ exitCode: 0, stderr: '' });
    expect(some.stdout).toContain('gap/nak: A PSN is left out.');
    expect(some.stdout).toMatch(/\d+ cases: \d+ passed, 0 failed, 0 differs, 0 cannot tell, 0 not supported\./);
    expect(readFileSync(junit, 'utf8')).toContain('name="gap/nak (rule 44)');
    const audited = await run(['audit', pcap, '--rules', '36,40,80']);
    expect(audited).toMatchObject({ exitCode: 0, stderr: '' });
    // Each case begins with its name, so that it is found in Wireshark.
    expect(readFileSync(pcap, 'latin1')).toContain('order/write-middle-alone');

    stop.abort();
    const { stdout } = await ended;
    expect(documentOf('conform-serve', stdout)).toMatchObject({ address: TARGET, refused: 0 });
  });

  it('a target that says nothing of gaps breaks a rule of level must: exit code 4, and a sentence', async () => {
    vi.spyOn(Acknowledger.prototype, 'reportGap').mockImplementation(() => {});
    const stop = new AbortController();
    const { ended, waits } = serve(['conform', 'serve', '--bind', TARGET], { interrupted: stop.signal });
    await waits;
    const file = (name: string) => join(folder, name);
    const junit = file('broken.xml');
    const files = ['--report', file('broken.html'), '--sarif', file('broken.sarif'), '--bundle', file('broken.tgz')];
    const which = ['--only', 'gap/nak,ack/asked', '--timeout', '100ms'];
    const found = await conform(TARGET, ...which, '--junit', junit, ...files, '--name', 'a <silent> NIC');
    expect(found.exitCode).toBe(4);
    expect(found.stderr).toContain('1 rule broken: 44 (A gap is answered by NAK 0x60 with the expected PSN.)');
    expect(found.stdout).toContain('after the packet with PSN 2, nothing came; expected NAK 0x60 (sequence) at PSN 1');
    expect(found.stdout).toContain('2 cases: 1 passed, 1 failed');
    expect(readFileSync(junit, 'utf8')).toContain('<failure type="must"');
    const page = readFileSync(file('broken.html'), 'utf8');
    expect(page).toContain('Conformance of a &lt;silent&gt; NIC');
    expect(page).toContain('<li>expect NAK 0x60 (sequence) at PSN 1</li>');
    expect(page).toMatch(/RC RDMA_WRITE_ONLY .* ok/);
    const { runs } = JSON.parse(readFileSync(file('broken.sarif'), 'utf8'));
    expect(runs[0].results).toMatchObject([{ ruleId: 'ROCE044', level: 'error' }]);
    const bundle = await parseTarGzip(readFileSync(file('broken.tgz')));
    const names = ['results.json', 'report.html', 'packets.pcapng', 'environment.json'];
    expect(bundle.map(({ name }) => name)).toEqual(names);
    const { cases } = JSON.parse(bundle[0].text);
    // The numbers of the results are those of the capture.
    writeFileSync(file('bundled.pcapng'), bundle[2].data!);
    const { stdout } = await run(['decode', file('bundled.pcapng'), '--json']);
    const decoded = stdout.split('\n').find((line) => line.includes(`"number":${cases[0].packets[0].number},`));
    expect(decoded).toContain('CM REQ'.slice(3));

    const passed = file('passed.json');
    vi.restoreAllMocks();
    await conform(TARGET, '--only', 'gap/nak,ack/asked', '--results', passed, '--name', 'ours');
    writeFileSync(file('peers.json'), JSON.stringify({ peers: [{ name: 'both', results: ['passed.json'] }] }));
    const html = file('matrix.html');
    const matrix = ['conform', 'matrix', file('peers.json'), file('broken.tgz'), passed];
    const side = documentOf('conform-matrix', (await run([...matrix, '--json', '--html', html])).stdout);
    expect(side).toMatchObject({
      peers: ['both', 'a <silent> NIC', 'ours'],
      rules: [
        { rule: 38, verdicts: ['passed', 'passed', 'passed'] },
        { rule: 44, verdicts: ['passed', 'failed', 'passed'] },
      ],
    });
    const linked = [...readFileSync(html, 'utf8').matchAll(/href="#([^"]+)"/g)].map(([, anchor]) => anchor);
    expect(linked).toHaveLength(6);
    for (const anchor of linked) expect(readFileSync(html, 'utf8')).toContain(`id="${anchor}"`);
    expect((await run(matrix)).stdout).toMatch(/44 +must +passed +failed +passed/);
    expect(await run(['conform', 'matrix', junit])).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('not JSON'),
    });
    writeFileSync(file('other.json'), '{"schema":"bw"}');
    const wrong = await run(['conform', 'matrix', file('other.json')]);
    expect(wrong.stderr).toContain('is not a result of rocev2 conform run');
    stop.abort();
    expect(await ended).toMatchObject({ stdout: expect.stringMatching(/\d+ connections, 0 requests refused/) });
  });

  it('another service is tested only when the command line says so', async () => {
    const stop = new AbortController();
    const { ended, waits } = serve(['rping', '-s', '-a', SERVICE], { interrupted: stop.signal });
    await waits;
    const asked = await conform(SERVICE, '--port', '7174');
    expect(asked).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('is not a rocev2 conform serve') });
    stop.abort();
    await ended;
  });

  it('a target where nobody is, and lists that name nothing, are told', async () => {
    const silent = await run(['conform', 'run', NOBODY, '--bind', TESTER, '--timeout', '20ms']);
    expect(silent).toMatchObject({ exitCode: 3, stderr: expect.stringContaining('the REQ was not answered') });
    const only = (list: string) => run(['conform', 'run', TARGET, '--only', list]);
    expect(await only('gpa')).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("did you mean 'gap'?") });
    expect(await only('gap/nka')).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('gap/nak') });
    expect(await only('110')).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('no case for rule 110') });
    expect(await run(['conform', 'serve'])).toMatchObject({ exitCode: 2 });
  });

  it('an agent is asked over TCP, and its refusal is told', async () => {
    const agent = createServer((socket) => {
      socket.on('data', () => socket.write('error ibv_create_qp: no memory\n'));
    });
    await new Promise<void>((resolve) => agent.listen(0, NOBODY, resolve));
    const { port } = agent.address() as AddressInfo;
    const refused = await conform(NOBODY, '--via', 'agent', '--port', `${port}`);
    expect(refused).toMatchObject({ exitCode: 3 });
    expect(refused.stderr).toContain('the agent refuses: ibv_create_qp: no memory');
    agent.close();
    expect(await conform(NOBODY, '--via', 'agent', '--port', `${port}`)).toMatchObject({
      exitCode: 3,
      stderr: expect.stringContaining('there: rocev2 conform agent > agent.c'),
    });
    expect((await run(['conform', 'agent'])).stdout).toContain('#include <infiniband/verbs.h>');
  });

  it('the list has every case', async () => {
    const { stdout } = await run(['conform', 'list', '--json']);
    expect(documentOf('conform-list', stdout)).toMatchObject({ cases: CASES.map(({ name }) => ({ name })) });
    expect((await run(['conform', 'list'])).stdout).toContain('cm/nobody');
  });
});
