/** Programs of `rocev2 disk` in a folder of their own, for one file of tests; what a test that fails leaves running is ended. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect } from 'vitest';
import { Program } from './executable.js';

export const BLOCK = 4096;
export const BLOCKS = 256;

export let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rocev2-disk-'));
});
/** What a test that fails leaves running. */
let started: Program[] = [];
afterEach(async () => {
  for (const program of started) program.kill('SIGKILL');
  await Promise.all(started.map((program) => program.ended()));
  started = [];
  await rm(folder, { recursive: true });
});

export function rocev2Disk(...args: string[]): Program {
  const program = Program.rocev2('disk', ...args);
  started.push(program);
  return program;
}

export async function uriOf(program: Program): Promise<string> {
  const [, uri] = await program.writes('stderr', / at (nbd\S+)\n/);
  return uri;
}

/** Server and gateway on two addresses, the disk in a file. */
export class Chain {
  readonly server: Program;
  readonly gateway: Program;

  private constructor(server: Program, gateway: Program) {
    this.server = server;
    this.gateway = gateway;
  }

  static async start(...gatewayArgs: string[]): Promise<Chain> {
    const server = await Chain.serve();
    const meet = ['--connect', '127.54.0.1', '--bind', '127.54.0.2'];
    const listen = ['--listen', `unix:${join(folder, 'socket')}`];
    return new Chain(server, rocev2Disk('nbd', ...meet, ...listen, ...gatewayArgs, '--json'));
  }

  static async serve(name = 'disk', ...args: string[]): Promise<Program> {
    const backend = ['--backend', `file:${join(folder, name)}`, '--size', `${BLOCKS * BLOCK}`];
    const program = rocev2Disk('serve', ...backend, '--bind', '127.54.0.1', '--json', ...args);
    await program.writes('stderr', /Ctrl-C ends it/);
    return program;
  }
}

/** Ends a program as Ctrl-C does; the document it printed. */
export async function documentOf(program: Program): Promise<Record<string, unknown>> {
  program.kill('SIGINT');
  expect(await program.ended(), program.stderr).toBe(0);
  return JSON.parse(program.stdout);
}
