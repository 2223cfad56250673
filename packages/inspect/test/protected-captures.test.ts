/** From `keyLog` of devices to `decode --keys` and `audit --keys`, with captures of real sockets. */

import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect, listen, openDevice } from '../../../src/index.js';
import { CaptureReader } from '../../../src/port/capture/capture-reader.js';
import { run } from '../../cli/test/run-in-process.js';

let directory: string;
let capture: string;
let log: string;
const psk = { identity: 'alice', key: new Uint8Array(32).fill(1) };

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'rocev2-keys-'));
  [capture, log] = [join(directory, 'a.pcapng'), join(directory, 'keys.log')];
  const server = await openDevice({ address: '127.0.0.1', secure: { psk } });
  const client = await openDevice({ address: '127.0.0.2', secure: { psk, keyLog: log }, pcap: capture });
  const listener = await listen(server, { port: 0, region: 65_536 });
  const [at, from] = await Promise.all([
    listener.accept(),
    connect(client, { host: '127.0.0.1', port: listener.port }),
  ]);
  await from.write(client.allocate(20_000).fill(7));
  await from.send(Buffer.from('hello'));
  await at.receive();
  await from.read(1000);
  await from.close();
  await at.close();
  await listener.close();
  await client.close();
  await server.close();
}, 30_000);
afterAll(() => rmSync(directory, { recursive: true }));

async function json(...args: string[]) {
  const { exitCode, stdout, stderr } = await run([...args, '--json']);
  return {
    exitCode,
    stderr,
    lines: stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  };
}

function file(name: string, bytes: Uint8Array | string): string {
  const path = join(directory, name);
  writeFileSync(path, bytes, { mode: 0o600 });
  return path;
}

it('the log is for its owner alone, and has both directions', () => {
  expect(statSync(log).mode & 0o777).toBe(0o600);
  expect(readFileSync(log, 'utf8')).toMatch(/^(ROCEV2_PSP_SECRET [0-9a-f]{8} [0-9a-f]{64}\n){2}$/);
});

describe('decode', () => {
  it('shows what was sent, with right ICRCs, and names the keys', async () => {
    const { exitCode, lines } = await json('decode', capture, '--keys', log);
    const summary = lines.pop();
    expect(exitCode).toBe(0);
    expect(summary.protected).toEqual({ opened: lines.length, withoutKey: 0, forged: 0, cut: 0 });
    expect(lines.filter(({ bth }) => bth === undefined)).toEqual([]);
    expect(new Set(lines.map(({ icrc }) => icrc))).toEqual(new Set(['ok']));
    expect(lines.find(({ reth }) => reth?.dmaLength === 20_000)).toMatchObject({ psp: { phase: 0, version: 0 } });
    expect(
      summary.flows.reduce((sum: number, { payloadBytes }: { payloadBytes: number }) => sum + payloadBytes, 0),
    ).toBe(21_005);
  });

  it('without keys shows the BTH and no more', async () => {
    const { lines } = await json('decode', capture);
    expect(lines.pop()).toMatchObject({ flows: [] });
    expect(lines.every(({ bth, reth, psp }) => !bth && !reth && psp.bth)).toBe(true);
  });

  it('says in words how many were opened', async () => {
    const { stdout } = await run(['decode', capture, '--keys', log]);
    expect(stdout).toMatch(/RC RDMA_WRITE_FIRST .* va=.* PSP spi=|PSP spi=.*va=/);
    expect(stdout).toMatch(/\n\d+ protected packets opened\n$/);
  });

  it('counts what the keys do not open, and goes on', async () => {
    const bytes = readFileSync(capture);
    [...new CaptureReader(bytes)].at(-1)!.bytes[60] ^= 1;
    const { lines } = await json('decode', file('changed.pcapng', bytes), '--keys', log);
    expect(lines.pop().protected).toMatchObject({ forged: 1, withoutKey: 0 });
    const one = readFileSync(log, 'utf8').split('\n')[0];
    const half = await json('decode', capture, '--keys', file('half.log', one));
    const { opened, withoutKey } = half.lines.pop().protected;
    expect([opened > 0, withoutKey > 0, opened + withoutKey]).toEqual([true, true, half.lines.length]);
  });

  it.each([
    ['nothing', '', /has no secrets/],
    ['a broken line', 'ROCEV2_PSP_SECRET 12', /line 1 of .*bad.log is not a secret/],
  ])('refuses a log with %s', async (_, text, words) => {
    const { exitCode, stderr } = await run(['decode', capture, '--keys', file('bad.log', text)]);
    expect([exitCode, stderr]).toEqual([2, expect.stringMatching(words)]);
  });
});

describe('audit', () => {
  it('judges what was opened', async () => {
    const { exitCode, lines } = await json('audit', capture, '--keys', log);
    expect(exitCode).toBe(0);
    expect(lines[0].packets).toMatchObject({ protected: 0, unsound: 0, roce: lines[0].packets.total });
    expect(lines[0]).toMatchObject({ connections: 1, protected: { forged: 0, withoutKey: 0 } });
    expect(lines[0].rules.filter(({ verdict }: { verdict: string }) => verdict === 'violation')).toEqual([]);
  });

  it('leaves protected packets out without keys, and says so', async () => {
    const { exitCode, lines } = await json('audit', capture);
    expect([exitCode, lines[0].packets.roce]).toEqual([1, 0]);
    expect(lines[0].packets.protected).toBe(lines[0].packets.total);
    const { stdout, stderr } = await run(['audit', capture]);
    expect(stdout).toMatch(/\d+ of them protected/);
    expect(stderr).toContain('packets are protected: give the file of --keylog with --keys');
  });

  it('writes an opened capture, which needs no keys', async () => {
    const opened = join(directory, 'opened.pcapng');
    const { stdout } = await run(['audit', capture, '--keys', log, '--fix-icrc', opened]);
    expect(stdout).toMatch(/0 ICRCs repaired/);
    const { lines } = await json('decode', opened);
    expect(lines.pop()).toMatchObject({ flows: [{ icrcBad: 0 }, { icrcBad: 0 }] });
    expect(lines.some(({ psp }) => psp !== undefined)).toBe(false);
  });
});

describe('a log that cannot be', () => {
  const open = (keyLog: string) => openDevice({ address: '127.0.0.3', secure: { psk, keyLog } });

  it('others may read it', async () => {
    const path = file('open.log', '');
    chmodSync(path, 0o644);
    await expect(open(path)).rejects.toMatchObject({
      code: 'ERR_ROCE_IO',
      message: expect.stringContaining('other users have access'),
    });
    chmodSync(path, 0o600);
    await (await open(path)).close();
  });

  it('there is no such folder', async () => {
    await expect(open(join(directory, 'none', 'keys.log'))).rejects.toThrow(
      /cannot write the key log .*no such folder/,
    );
  });

  it('--keylog needs credentials', async () => {
    const { exitCode, stderr } = await run(['bw', 'write', '--keylog', log]);
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('needs credentials')]);
  });
});
