/** Wireshark as second opinion on what `--pcap` writes: it must see the packets we sent, and nothing malformed. */

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { isBuilt, Program } from './executable.js';

const hasTshark = spawnSync('tshark', ['--version']).status === 0;
const why = hasTshark ? '' : ' (skipped: tshark is not installed)';
const FIELDS = ['infiniband.bth.opcode', 'infiniband.bth.psn', 'infiniband.bth.destqp', '_ws.malformed'];

const SERVER = '127.43.0.1';
const CLIENT = '127.43.0.2';
const folder = mkdtempSync(join(tmpdir(), 'rocev2-'));
afterAll(() => rmSync(folder, { recursive: true }));

let tcpPort = 26300;

/** A transfer whose client writes a capture. */
async function captured(op: string, ...args: string[]): Promise<string> {
  const port = String(tcpPort++);
  const server = Program.rocev2('bw', op, '-p', port, '--bind', SERVER);
  try {
    await server.writes('stderr', /waiting for/);
    const file = join(folder, `${op}-${port}.pcapng`);
    const client = Program.rocev2('bw', op, SERVER, '-p', port, '--bind', CLIENT, '--pcap', file, ...args);
    expect(await client.ended(), client.stderr).toBe(0);
    return file;
  } finally {
    server.kill('SIGKILL');
  }
}

/** Opcode, PSN and QPN of every packet, and what tshark calls malformed. */
function asTsharkSees(file: string): { packets: number[][]; malformed: string[] } {
  const fields = FIELDS.flatMap((field) => ['-e', field]);
  // What is inside a SEND is the program's business: Wireshark guesses RPC-over-RDMA and finds our random bytes to be bad RPC.
  const options = ['--disable-protocol', 'rpcordma', '-r', file, '-T', 'fields', ...fields];
  const { stdout } = spawnSync('tshark', options, { encoding: 'utf8' });
  const rows = stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.split('\t'));
  return {
    packets: rows.map((row) => row.slice(0, 3).map(Number)),
    malformed: rows.map((row) => row[3] ?? '').filter((text) => text !== ''),
  };
}

async function asWeDecode(file: string): Promise<number[][]> {
  const decode = Program.rocev2('decode', file, '--json');
  expect(await decode.ended()).toBe(0);
  return decode.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
    .filter((line) => line.type === 'packet')
    .map(({ bth }) => [bth.opcode, bth.psn, bth.destQpn]);
}

describe.runIf(isBuilt && hasTshark)(`captures in Wireshark${why}`, () => {
  it.each([
    ['write', ['-s', '10000', '-n', '20']],
    ['read', ['-s', '10001', '-n', '20', '--mtu', '1024']],
    ['send', ['-s', '3', '-n', '20']],
    ['atomic', ['-n', '20']],
    ['write', ['-s', '50000', '-n', '20', '--mtu', '256', '--loss', 'random=0.02', '-u', '13']],
  ])('%s %j', async (op, args) => {
    const file = await captured(op, ...args);
    const { packets, malformed } = asTsharkSees(file);
    expect(malformed).toEqual([]);
    expect(packets.length).toBeGreaterThan(20);
    expect(packets).toEqual(await asWeDecode(file));
  });
});
