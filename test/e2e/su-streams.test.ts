/** sU streams between two processes: both engines, lost packets, failovers, a server that is killed. */

import { afterEach, describe, expect, it } from 'vitest';
import { isBuilt, Program } from './executable.js';

const SERVER = '127.66.0.1';
const CLIENT = '127.66.0.2';
const started: Program[] = [];
afterEach(() => {
  for (const program of started.splice(0)) program.kill('SIGKILL');
});

function end(options: object): Program {
  const program = Program.fixture('su-endpoint.mjs', JSON.stringify(options));
  started.push(program);
  return program;
}

async function serverAt(port: number, options: object): Promise<{ server: Program; port: number }> {
  const server = end({ role: 'server', address: SERVER, port, ...options });
  return { server, port: Number((await server.writes('stdout', /"listening":(\d+)/))[1]) };
}

async function said(program: Program, key: string) {
  const [line] = await program.writes('stdout', new RegExp(`^\\{.*"${key}".*\\}$`, 'm'));
  return JSON.parse(line);
}

describe.skipIf(!isBuilt)('sU streams between two processes', () => {
  it.each(['inline', 'worker'])('every byte comes back in order, although packets are lost (%s)', async (engine) => {
    const lossy = { engine, loss: 'random=0.01', seed: 5 };
    const { port } = await serverAt(0, lossy);
    const client = end({ role: 'client', address: CLIENT, port, bytes: 5e6, ...lossy });
    expect(await said(client, 'transports')).toEqual({ transports: { rdma: 1, tcp: 0 } });
    const result = await said(client, 'isSame');
    expect(result).toMatchObject({ isSame: true, rx_icrc_errors: 0 });
    expect(result.tx_retransmitted).toBeGreaterThan(0);
    expect(await client.ended(), client.stderr).toBe(0);
  });

  it('every byte comes back in order, although RDMA breaks three times', async () => {
    const { port } = await serverAt(0, { engine: 'inline' });
    const client = end({ role: 'client', address: CLIENT, engine: 'inline', port, bytes: 5e6, failovers: 3 });
    const { isSame, events } = await said(client, 'isSame');
    expect(isSame).toBe(true);
    expect(events).toEqual(['failover', 'return', 'failover', 'return', 'failover', 'return']);
    expect(await client.ended(), client.stderr).toBe(0);
  });

  it('without both, all of it crosses RDMA', async () => {
    const { port } = await serverAt(0, { engine: 'inline' });
    const client = end({ role: 'client', address: CLIENT, engine: 'inline', port, bytes: 5e6 });
    const result = await said(client, 'isSame');
    expect(result).toMatchObject({ isSame: true, events: [], rx_icrc_errors: 0 });
    expect(result.rx_packets).toBeGreaterThan(5e6 / 4096);
    expect(await client.ended(), client.stderr).toBe(0);
  });

  it('kill -9 of the server ends the stream when another one answers in its place, and a new stream works', async () => {
    const { server, port } = await serverAt(0, { engine: 'inline' });
    const client = end({ role: 'client', address: CLIENT, engine: 'inline', port });
    await said(client, 'transports');
    server.kill('SIGKILL');
    await server.ended();
    await serverAt(port, { engine: 'inline' });
    expect(await said(client, 'code')).toMatchObject({ code: expect.stringMatching(/^ERR_ROCE_/) });
    expect(await said(client, 'answer')).toEqual({ answer: 'hello' });
    expect(await client.ended(), client.stderr).toBe(0);
  });
});
