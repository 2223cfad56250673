import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { connect as connectRdma, openDevice } from '../../src/index.js';
import { auditedStarter } from './audited-programs.js';
import { isBuilt, Program } from './executable.js';
import { underLoad } from './watched.js';

/** Addresses of this file alone. */
const SERVER = '127.42.0.1';
const CLIENT = '127.42.0.2';
let tcpPort = 26100;

const start = auditedStarter();

async function server(...args: string[]): Promise<{ program: Program; port: string }> {
  const port = String(tcpPort++);
  const program = start(...args, '-p', port, '--bind', SERVER);
  await program.writes('stderr', /waiting for/);
  return { program, port };
}

function client(port: string, tool: string, op: string, ...args: string[]): Program {
  const program = start(tool, op, SERVER, '-p', port, '--bind', CLIENT, ...args);
  return program;
}

describe.runIf(isBuilt)('rocev2 bw and lat between two processes', () => {
  it.each([
    ['bw', 'write', '4MiB'],
    ['bw', 'read', '1MiB'],
    ['bw', 'send', '100KB'],
    ['bw', 'atomic', '8'],
    ['lat', 'write', '64'],
    ['lat', 'read', '4096'],
    ['lat', 'send', '3000'],
    ['lat', 'atomic', '8'],
  ])('%s %s of %s moves verified data and prints one JSON document', async (tool, op, size) => {
    const { program, port } = await server(tool, op, '--json');
    const running = client(port, tool, op, '-s', size, '-n', '20', '--json');
    expect(await running.ended()).toBe(0);
    const result = JSON.parse(running.stdout);
    expect(result).toMatchObject({ op, iterations: 20, verified: true, recovery: 'go-back-n', mtu: 4096 });
    expect(result.bytes).toBe(20 * result.sizeBytes);
    expect(result.latencyNs.p50).toBeGreaterThan(0);
    expect(await program.ended()).toBe(0);
    expect(JSON.parse(program.stdout)).toMatchObject({ role: 'server', verified: true });
  });

  it.each([
    ['bw', 'write', '64KiB', 'uc'],
    ['lat', 'send', '3000', 'uc'],
    ['bw', 'send', '4096', 'ud'],
    ['lat', 'send', '64', 'ud'],
  ])('%s %s of %s over %s says what arrived', async (tool, op, size, transport) => {
    const { program, port } = await server(tool, op, '--transport', transport, '--json');
    const running = client(port, tool, op, '--transport', transport, '-s', size, '-n', '20', '--json');
    expect(await running.ended()).toBe(0);
    const common = { op, transport, verified: true };
    expect(JSON.parse(running.stdout)).toMatchObject({ ...common, iterations: 20, lost: 0, recovery: 'none' });
    expect(await program.ended()).toBe(0);
    expect(JSON.parse(program.stdout)).toMatchObject({
      ...common,
      role: 'server',
      iterations: 20,
      lost: 0,
    });
  });

  it('a worker engine loses over UC exactly the messages with a hole', async () => {
    const { port } = await server('bw', 'send', '--transport', 'uc', '--engine', 'worker');
    const holes = ['-s', '20000', '-n', '100', '--loss', 'every=33', '--engine', 'worker', '--json'];
    const running = client(port, 'bw', 'send', '--transport', 'uc', ...holes);
    expect(await running.ended()).toBe(0);
    expect(JSON.parse(running.stdout)).toMatchObject({ iterations: 85, lost: 15, verified: true, engine: 'worker' });
  });

  it.each([
    ['bw', 'write', '1MiB', '--io', 'dgram'],
    ['bw', 'write', '1MiB', '--engine', 'worker'],
    ['bw', 'read', '100KB', '--engine', 'worker', '--io', 'dgram', '--no-spin'],
    ['lat', 'write', '64', '--engine', 'worker'],
    ['lat', 'send', '3000', '--engine', 'worker'],
  ])('%s %s of %s runs with %s %s', async (tool, op, size, ...where) => {
    const { program, port } = await server(tool, op, ...where);
    const running = client(port, tool, op, '-s', size, '-n', '20', '--json', ...where);
    expect(await running.ended()).toBe(0);
    const engine = where.includes('worker') ? 'worker' : 'inline';
    expect(JSON.parse(running.stdout)).toMatchObject({ op, iterations: 20, verified: true, engine });
    expect(await program.ended()).toBe(0);
  });

  it.each(['go-back-n', 'selective-repeat'])('%s repairs what a lossy endpoint does to it', async (recovery) => {
    const { port } = await server('bw', 'write', '--recovery', recovery);
    const faults = ['--loss', 'random=0.01;corrupt=0.005;duplicate=0.01', '-u', '13'];
    const running = client(
      port,
      'bw',
      'write',
      '-s',
      '64KiB',
      '-n',
      '100',
      '--recovery',
      recovery,
      '--json',
      ...faults,
    );
    expect(await running.ended()).toBe(0);
    const result = JSON.parse(running.stdout);
    expect(result.verified).toBe(true);
    expect(result.counters.tx_retransmitted).toBeGreaterThan(0);
  });

  it('shares a run among queue pairs', async () => {
    const { port } = await server('bw', 'write');
    const running = client(port, 'bw', 'write', '-s', '64KiB', '-n', '50', '-q', '4', '--json');
    expect(await running.ended()).toBe(0);
    expect(JSON.parse(running.stdout)).toMatchObject({ iterations: 200, qps: 4, verified: true });
  });

  it('works where both endpoints share one address and differ in UDP port', async () => {
    const port = String(tcpPort++);
    const listening = start('bw', 'send', '-p', port, '--bind', '127.42.0.9', '--udp-port', '4891');
    await listening.writes('stderr', /waiting for/);
    const args = ['-p', port, '--bind', '127.42.0.9', '--udp-port', '4892', '-n', '10', '--json'];
    const running = start('bw', 'send', '127.42.0.9', ...args);
    expect(await running.ended()).toBe(0);
    expect(JSON.parse(running.stdout).verified).toBe(true);
  });

  it('writes a capture in which every ICRC is right', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'rocev2-'));
    try {
      const file = join(folder, 'trace.pcapng');
      const { port } = await server('bw', 'write');
      expect(await client(port, 'bw', 'write', '-s', '10000', '-n', '5', '--pcap', file).ended()).toBe(0);
      expect(existsSync(file) && readFileSync(file).length > 0).toBe(true);
      const decode = Program.rocev2('decode', file, '--json');
      expect(await decode.ended()).toBe(0);
      const lines = decode.stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
      const packets = lines.filter((line) => line.type === 'packet');
      expect(packets.length).toBeGreaterThanOrEqual(15 + 1);
      expect(packets.every((packet) => packet.icrc === 'ok')).toBe(true);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('refuses by name a client that wants another test and waits on for its own', async () => {
    const { program, port } = await server('bw', 'write');
    const running = client(port, 'bw', 'read');
    expect(await running.ended()).toBe(1);
    expect(running.stderr).toMatch(/the server runs 'rocev2 bw write', the client 'rocev2 bw read'/);
    expect(await client(port, 'bw', 'write', '-n', '5').ended()).toBe(0);
    expect(await program.ended()).toBe(0);
    expect(program.stderr).toMatch(
      /was not the client: the server runs 'rocev2 bw write', the client 'rocev2 bw read'/,
    );
  });

  it('names each stranger and waits on: port scanners, garbage, other programs', async () => {
    const { program, port } = await server('bw', 'write');
    const strangers = [
      ['', /127\.0\.0\.1:\d+ was not the client: the peer closed the control connection/],
      ['GET / HTTP/1.1\r\n\r\n', /was not the client: the peer does not speak the rocev2 exchange/],
      ['{"purpose":{"tool":"window"}}\n', /was not the client: the server runs 'rocev2 bw write'/],
    ] as const;
    for (const [text, named] of strangers) {
      connect(Number(port), SERVER)
        .on('error', () => {})
        .end(text);
      await program.writes('stderr', named);
    }
    const silent = connect(Number(port), SERVER).on('error', () => {}); // To the end.
    await once(silent, 'connect');
    const device = await openDevice({ address: CLIENT, udpPort: 0 });
    const another = connectRdma(device, { host: SERVER, port: Number(port) });
    await expect(another).rejects.toMatchObject({ code: 'ERR_ROCE_MISMATCH' });
    await device.close();
    expect(await client(port, 'bw', 'write', '-n', '5').ended()).toBe(0);
    expect(await program.ended()).toBe(0);
    silent.destroy();
  });

  it('exits with 3 when nobody listens, and with 2 for an impossible option', async () => {
    expect(await client('26099', 'bw', 'write').ended()).toBe(3);
    const usage = start('bw', 'write', '--mtu', '1500');
    expect(await usage.ended()).toBe(2);
    expect(usage.stderr).toMatch(/256, 512, 1024, 2048, 4096/);
  });

  it('prints what it has when it is interrupted, and exits with 130', async () => {
    const { port } = await server('bw', 'write');
    const http = `${CLIENT}:9466`;
    const running = client(port, 'bw', 'write', '-D', '30s', '--json', '--estats-http', http);
    await underLoad(http);
    running.kill('SIGINT');
    expect(await running.ended()).toBe(130);
    expect(JSON.parse(running.stdout)).toMatchObject({ op: 'write', verified: true });
  });
});
