import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Diagnosis, Owner } from '../../src/verbs/estats/diagnosis.js';
import { documentOf } from '../support/documents.js';
import { eventually } from '../support/eventually.js';
import { RuntimeFolder } from '../support/runtime-folder.js';
import { isBuilt, isLinux, Program } from './executable.js';

/** Work requests that a diagnosis should rest on. */
const ENOUGH = 15;
const LIMIT_MS = 60_000;

let runtime: RuntimeFolder;

beforeAll(async () => {
  runtime = await RuntimeFolder.take('estats');
});

afterAll(async () => {
  await runtime[Symbol.asyncDispose]();
});

async function ask<T>(...args: string[]): Promise<T | undefined> {
  const command = Program.rocev2('estats', ...args, '--json');
  return (await command.ended()) === 0
    ? (documentOf(`estats-${args[0]}`, command.stdout)['endpoints'] as T)
    : undefined;
}

/**
 * What `estats diagnose` says of the endpoint on this address once it has done enough; if `owner` is given, once it says that: on a machine
 * that starves a process, the program that stands still is for a while the right answer.
 */
async function diagnosis(address: string, owner?: Owner): Promise<Diagnosis> {
  let row: Diagnosis | undefined;
  const diagnosed = async () => {
    const found = await ask<Array<{ connections: Diagnosis[] }>>('diagnose', '-e', address);
    row = found?.[0].connections[0];
    return row !== undefined && row.count >= ENOUGH && (owner === undefined || row.owner === owner);
  };
  await eventually(diagnosed, { limitMs: LIMIT_MS, everyMs: 200 }).catch((error: Error) => {
    throw new Error(`${error.message}\n${JSON.stringify(row)}`);
  });
  return row!;
}

interface Planted {
  readonly server?: Record<string, unknown>;
  readonly client?: Record<string, unknown>;
}

/** Two fixture endpoints on 127.57.N.1 and 127.57.N.2, one of them with a fault; what is said of the client. */
async function withFault(n: number, { server, client }: Planted, owner?: Owner): Promise<Diagnosis> {
  const [serverAddress, clientAddress] = [`127.57.${n}.1`, `127.57.${n}.2`];
  const port = 18580 + n;
  const programs = [
    Program.fixture('estats-endpoint.mjs', JSON.stringify({ address: serverAddress, listen: port, ...server })),
  ];
  try {
    await programs[0].writes('stdout', /listening/);
    const target = { address: clientAddress, connect: { host: serverAddress, port }, ...client };
    programs.push(Program.fixture('estats-endpoint.mjs', JSON.stringify(target)));
    return await diagnosis(clientAddress, owner);
  } finally {
    for (const program of programs) program.kill('SIGKILL');
  }
}

/** `rocev2 TOOL OP` on 127.57.N.1 and .2 with options of the client; what is said of the client. */
async function withOptions(n: number, command: readonly string[], options: string[], owner: Owner): Promise<Diagnosis> {
  const [serverAddress, clientAddress] = [`127.57.${n}.1`, `127.57.${n}.2`];
  const port = String(18580 + n);
  const programs = [Program.rocev2(...command, '--bind', serverAddress, '-p', port, '--estats')];
  try {
    await programs[0].writes('stderr', /waiting/);
    const common = ['--bind', clientAddress, '-p', port, '-D', '60s', '--estats'];
    programs.push(Program.rocev2(...command, serverAddress, ...common, ...options));
    return await diagnosis(clientAddress, owner);
  } finally {
    for (const program of programs) program.kill('SIGKILL');
  }
}

// The addresses are all this host's on Linux only.
describe
  .runIf(isBuilt && isLinux)
  .concurrent('of real processes, estats diagnose names', { timeout: 2 * LIMIT_MS }, () => {
    it('the responder when its program blocks its event loop', async () => {
      const found = await withFault(11, { server: { blockMs: 190, everyMs: 200 } }, 'responder');
      expect(found.stage).toBe('t4_t3');
    });

    it('not the responder when the NIC of that program runs in a worker', async () => {
      const found = await withFault(12, { server: { blockMs: 190, everyMs: 200, engine: 'worker' } });
      expect(found.owner).not.toBe('responder');
    });

    it('the application when it blocks its own event loop', async () => {
      const found = await withFault(13, { client: { blockMs: 190, everyMs: 200 } }, 'application');
      expect(found.because).toMatch(/this program was stalled/);
    });

    it('pacing when it may not send faster', async () => {
      const found = await withOptions(14, ['bw', 'write'], ['-t', '4', '-s', '16KiB', '--rate', '5Mbps'], 'pacing');
      expect(found.because).toMatch(/rate control/);
    });

    it('the network when every third packet is lost', async () => {
      const found = await withOptions(15, ['lat', 'read', '-e'], ['--loss', 'host>wire:random=0.3'], 'network');
      expect(found.stage).toBe('t4_t3');
    });
  });
