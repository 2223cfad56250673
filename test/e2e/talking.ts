/** Two processes that talk to each other all the time and check what arrives, for tests in which one of them stands still or dies. */

import { setTimeout as pause } from 'node:timers/promises'; // timer: the standstill itself
import { afterAll, expect } from 'vitest';
import { eventually } from '../support/eventually.js';
import { Program } from './executable.js';

export type Side = 'server' | 'client';
export type Ends = Readonly<Record<Side, Program>>;
export const otherOf = (side: Side): Side => (side === 'server' ? 'client' : 'server');

/** UDP and TCP ports are chosen by the system. */
const ADDRESS = '127.0.0.1';
const programs: Program[] = [];
afterAll(() => {
  for (const program of programs) program.kill('SIGKILL');
});

export interface Terms {
  readonly engine: 'inline' | 'worker';
  readonly options?: object;
  readonly blockMs?: number;
}

export async function talking(terms: Terms): Promise<Ends> {
  const common = { address: ADDRESS, options: {}, ...terms };
  const start = (args: object) => {
    const program = Program.fixture('talking-endpoint.mjs', JSON.stringify({ ...common, ...args }));
    programs.push(program);
    return program;
  };
  const server = start({ listen: true });
  const port = Number((await server.writes('stdout', /"listening":(\d+)/))[1]);
  const ends = { server, client: start({ connect: port }) };
  await goesOn(ends);
  return ends;
}

/** What the program last said of what it has received. */
export function receivedBy(program: Program): number {
  const reports = program.stdout.match(/"received":\d+/g);
  return Number(reports?.at(-1)?.slice('"received":'.length) ?? 0);
}

/** Both sides receive more than they have; nothing was wrong, and nothing has failed. */
export async function goesOn({ server, client }: Ends): Promise<void> {
  const before = [server, client].map(receivedBy);
  await eventually(() => [server, client].every((program, i) => receivedBy(program) >= before[i] + 20));
  for (const program of [server, client]) {
    expect(program.stdout).not.toMatch(/"wrong":[1-9]|"sending"|"receiving"/);
    expect(program.stderr).toBe('');
  }
}

/** They have shown what they had to. */
export function end({ server, client }: Ends): void {
  server.kill('SIGKILL');
  client.kill('SIGKILL');
}

/** Stops a process for so long. */
export async function standstill(program: Program, seconds: number): Promise<void> {
  program.kill('SIGSTOP');
  await pause(seconds * 1000);
  program.kill('SIGCONT');
}
