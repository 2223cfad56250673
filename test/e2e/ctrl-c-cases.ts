/**
 * Every command ends within three seconds of the first Ctrl-C, whatever it waits for: a peer, the exchange, a peer that stands still in the middle of its
 * work. It ends with 130, or with 0 where Ctrl-C is how it ends, and prints no stack. The same when the peer alone is gone: a command that
 * has failed does not stay.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises'; // timer: limits of waiting, and moments that nothing tells
import type { Command } from 'commander';
import { afterEach, describe, expect, it } from 'vitest';
import { COMMANDS } from '../../packages/cli/src/commands.js';
import { wholeProgram } from '../../packages/cli/src/run.js';
import { eventually } from '../support/eventually.js';
import { childrenOf, isBuilt, isLinux, type Program, rocev2Starter } from './executable.js';
import { metricsOf } from './watched.js';

const SERVER = '127.0.6.1';
const CLIENT = '127.0.6.2';
const NOBODY = '127.0.6.9';
/** Three seconds for the command; the rest is for a machine that is busy with other things. */
const LIMIT_MS = 8_000;

const start = rocev2Starter();
let tcpPort = 26_600;
const port = () => String(tcpPort++);

const toClose: Array<() => void> = [];
afterEach(() => {
  for (const close of toClose.splice(0)) close();
});

/** A program that has asked a server which accepts and never says a word. */
async function askingSilence(ask: (tcp: string) => Program): Promise<Program> {
  const server = createServer((socket) => {
    toClose.push(() => socket.destroy());
    socket.on('error', () => {});
  });
  toClose.push(() => server.close());
  await once(server.listen(0, SERVER), 'listening');
  const asked = once(server, 'connection');
  const program = ask(String((server.address() as { port: number }).port));
  await asked;
  await delay(50);
  return program;
}

/** Its connection is being opened. */
const isDialing = (tcp: string) =>
  new RegExp(`:${Number(tcp).toString(16).toUpperCase()} 02 `).test(readFileSync('/proc/net/tcp', 'utf8'));
const hasUdpPort = (address: string) => {
  const hex = address
    .split('.')
    .reverse()
    .map((byte) => Number(byte).toString(16).padStart(2, '0').toUpperCase());
  return readFileSync('/proc/net/udp', 'utf8').includes(` ${hex.join('')}:12B7 `);
};

/** A program that dials a machine which answers nothing: the queue of its port is full, and the program behind it stopped. */
async function dialingDeafness(ask: (tcp: string) => Program): Promise<Program> {
  const listening = `listen({ host: '${SERVER}', port: 0, backlog: 1 }, function () { console.log(this.address().port) })`;
  const deaf = spawn(process.execPath, ['-e', `require('node:net').createServer().${listening}`]);
  toClose.push(() => deaf.kill('SIGKILL'));
  const tcp = String(await once(deaf.stdout, 'data')).trim();
  deaf.kill('SIGSTOP');
  for (let isFull = false; !isFull; ) {
    const socket = connect(Number(tcp), SERVER).on('error', () => {});
    toClose.push(() => socket.destroy());
    isFull = await Promise.race([once(socket, 'connect').then(() => false), delay(100, true)]);
    if (isFull) socket.destroy();
  }
  const program = ask(tcp);
  await eventually(() => isDialing(tcp));
  return program;
}

/** A program that is asked by somebody who never says a word. */
async function askedBySilence(serve: (tcp: string) => Program): Promise<Program> {
  const tcp = port();
  const program = await saying(serve(tcp), 'stderr', /waiting for/);
  const socket = connect(Number(tcp), SERVER).on('error', () => {});
  toClose.push(() => socket.destroy());
  await once(socket, 'connect');
  await delay(100);
  return program;
}

interface Ends {
  readonly server: Program;
  readonly client: Program;
}

/** Both ends of a transfer in the middle of their work. */
async function transfer(...[tool, op, ...args]: string[]): Promise<Ends> {
  const tcp = port();
  const http = `${CLIENT}:${port()}`;
  const server = await saying(start(tool, op, '--bind', SERVER, '-p', tcp, ...args), 'stderr', /waiting for/);
  const client = start(tool, op, SERVER, '--bind', CLIENT, '-p', tcp, '-D', '60s', '--estats-http', http, ...args);
  await eventually(async () => /^roce_(tx_packets|direct_writes)_total [1-9]\d\d/m.test(await metricsOf(http)));
  return { server, client };
}

async function pingpongs(): Promise<Ends> {
  const args = ['-p', port(), '-n', '1000000000'];
  const server = await saying(start('pingpong', '--bind', SERVER, ...args), 'stderr', /waiting for/);
  const client = start('pingpong', SERVER, '--bind', CLIENT, ...args);
  await client.writes('stdout', /remote address/);
  await delay(200);
  return { server, client };
}

async function rpings(): Promise<Ends> {
  const server = await saying(start('rping', '-s', '-a', SERVER), 'stderr', /listening/);
  const client = start('rping', '-c', '-a', SERVER, '--bind', CLIENT, '-v');
  await client.writes('stdout', /ping data/);
  return { server, client };
}

/** One of two, whose peer stands still. */
async function facingStandstill(both: Promise<Ends>, which: keyof Ends): Promise<Program> {
  const ends = await both;
  ends[which === 'server' ? 'client' : 'server'].kill('SIGSTOP');
  await delay(50);
  return ends[which];
}

async function saying(program: Program, stream: 'stdout' | 'stderr', text: RegExp): Promise<Program> {
  await program.writes(stream, text);
  return program;
}

/** A program that has processes of its own, so long ago. */
async function withChildren(program: Program, sinceMs: number): Promise<Program> {
  await eventually(() => childrenOf(program.process.pid!).length > 0);
  await delay(sinceMs);
  return program;
}

/** A command in one phase of its work. */
export interface Case {
  readonly what: string;
  readonly phase: string;
  readonly begin: () => Promise<Program>;
  /** 130 unless said. */
  readonly code?: number;
}

/** The phases before two have met. */
function meetings(...[tool, op, ...args]: string[]): Case[] {
  const what = [tool, op, ...args].join(' ');
  const serve = (tcp: string) => start(tool, op, '--bind', SERVER, '-p', tcp, ...args);
  const ask = (tcp: string) => start(tool, op, SERVER, '--bind', CLIENT, '-p', tcp, ...args);
  return [
    { what, phase: 'waits for a client', begin: () => saying(serve(port()), 'stderr', /waiting for/) },
    { what, phase: 'is asked by silence', begin: () => askedBySilence(serve) },
    { what, phase: 'asks silence', begin: () => askingSilence(ask) },
    { what, phase: 'asks a machine that does not answer', begin: () => dialingDeafness(ask) },
  ];
}

/** The phases of two at work. */
function work(what: string, both: () => Promise<Ends>): Case[] {
  return [
    { what, phase: 'is a client at work', begin: async () => (await both()).client },
    { what, phase: 'is a server at work', begin: async () => (await both()).server },
    ...standstill(what, both),
  ];
}

/** The same with a peer that has been stopped. */
function standstill(what: string, both: () => Promise<Ends>): Case[] {
  return [
    { what, phase: 'is a client whose server stands still', begin: () => facingStandstill(both(), 'client') },
    { what, phase: 'is a server whose client stands still', begin: () => facingStandstill(both(), 'server') },
  ];
}

const disk = (...args: string[]) => start('disk', ...args);
const memory = ['--backend', 'memory', '--size', '1MiB'];
const http = (tcp: string) => `http://${SERVER}:${tcp}`;
/** A client of RDMA CM whose requests nobody answers. */
const nobodyIsThere = async (program: Program, own: string) => {
  await eventually(() => hasUdpPort(own));
  await delay(100);
  return program;
};

/** Servers that need no other program, by command; Ctrl-C is how they end. */
const SERVERS: Readonly<Record<string, () => Promise<Program>>> = {
  'disk serve': () => serving(disk('serve', ...memory, '--bind', SERVER, '-p', port())),
  'disk nbd': () => serving(disk('nbd', ...memory, '--listen', `${SERVER}:${port()}`)),
  'kv serve': () => serving(start('kv', 'serve', '--bind', SERVER, '-p', port())),
  'nvme target': () =>
    serving(start('nvme', 'target', '--disk', 'memory', '--size', '1MiB', '--bind', SERVER, '-p', port())),
  'verbs serve': () => serving(start('verbs', 'serve', '--bind', SERVER)),
  'conform serve': () => serving(start('conform', 'serve', '--bind', SERVER, '--port', port())),
  switch: () => serving(start('switch', '--port', `a=${SERVER}:${port()}`, '--port', `b=${SERVER}:${port()}`)),
  wire: () => serving(start('wire', `${SERVER}:${port()}`, `${SERVER}:${port()}`)),
  'extents manager': () => serving(start('extents', 'manager', '--dir', folder(), '--bind', SERVER, '-p', port())),
  'extents up': () =>
    serving(start('extents', 'up', '--dir', folder(), '--bind', SERVER, '-p', port(), '--nodes', '3')),
};

const serving = (program: Program) => saying(program, 'stderr', /Ctrl-C/);

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'rocev2-signals-'));
  toClose.push(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Every command in every phase. */
const CASES: readonly Case[] = [
  ...Object.entries(SERVERS).map(([what, begin]) => ({ what, phase: 'serves', code: 0, begin })),
  ...meetings('bw', 'write'),
  ...work('bw write', () => transfer('bw', 'write', '--no-map-regions')),
  {
    what: 'bw write',
    phase: 'is a client that copies to mapped regions',
    begin: async () => (await transfer('bw', 'write')).client,
  },
  ...standstill('lat send -e', () => transfer('lat', 'send', '-e')),
  ...standstill('bw send --transport ud', () => transfer('bw', 'send', '--transport', 'ud')),
  ...meetings('lat', 'read', '--perftest'),
  ...work('bw write --perftest', () => transfer('bw', 'write', '--perftest')),
  {
    what: 'bw write --perftest -R',
    phase: 'waits for a client',
    begin: () => saying(start('bw', 'write', '--perftest', '-R', '--bind', SERVER), 'stderr', /waiting for/),
  },
  {
    what: 'bw write --perftest -R',
    phase: 'asks where nobody is',
    begin: () => nobodyIsThere(start('bw', 'write', NOBODY, '--perftest', '-R', '--bind', '127.0.6.3'), '127.0.6.3'),
  },
  {
    what: 'pingpong',
    phase: 'is asked by silence',
    begin: () => askedBySilence((tcp) => start('pingpong', '--bind', SERVER, '-p', tcp)),
  },
  {
    what: 'pingpong',
    phase: 'asks silence',
    begin: () => askingSilence((tcp) => start('pingpong', SERVER, '--bind', CLIENT, '-p', tcp)),
  },
  {
    what: 'pingpong',
    phase: 'asks a machine that does not answer',
    begin: () => dialingDeafness((tcp) => start('pingpong', SERVER, '--bind', CLIENT, '-p', tcp)),
  },
  ...standstill('pingpong', pingpongs),
  {
    what: 'rping -c',
    phase: 'asks where nobody is',
    begin: () => nobodyIsThere(start('rping', '-c', '-a', NOBODY, '--bind', '127.0.6.4'), '127.0.6.4'),
  },
  ...work('rping', rpings),
  {
    what: 'srq-pingpong',
    phase: 'is asked by silence',
    begin: () => askedBySilence((tcp) => start('srq-pingpong', '--bind', SERVER, '-p', tcp)),
  },
  {
    what: 'srq-pingpong',
    phase: 'asks silence',
    begin: () => askingSilence((tcp) => start('srq-pingpong', SERVER, '--bind', CLIENT, '-p', tcp)),
  },
  ...['ucmatose', 'cmtime', 'udaddy'].flatMap((what): Case[] => [
    { what, phase: 'waits for a client', begin: () => saying(start(what, '-b', SERVER), 'stderr', /listening/) },
    {
      what,
      phase: 'asks where nobody is',
      begin: () => nobodyIsThere(start(what, '-s', NOBODY, '-b', '127.0.6.4'), '127.0.6.4'),
    },
  ]),
  { what: 'window', phase: 'is at work', begin: () => withChildren(start('window', '--total', '100GiB'), 500) },
  {
    what: 'disk nbd',
    phase: 'asks silence',
    begin: () => askingSilence((tcp) => disk('nbd', '--connect', SERVER, '-p', tcp, '--listen', `${SERVER}:${port()}`)),
  },
  { what: 'disk bench', phase: 'asks silence', begin: () => askingSilence((tcp) => disk('bench', SERVER, '-p', tcp)) },
  { what: 'disk bench', phase: 'begins', begin: () => withChildren(disk('bench'), 200) },
  { what: 'livelock', phase: 'is at work', begin: () => withChildren(start('livelock', '--seconds', '60'), 500) },
  { what: 'demo', phase: 'begins', begin: () => withChildren(start('demo'), 100) },
  { what: 'dashboard', phase: 'begins', code: 0, begin: () => withChildren(start('dashboard'), 100) },
  {
    what: 'dashboard --attach',
    phase: 'follows silence',
    code: 0,
    begin: () => askingSilence((tcp) => start('dashboard', '--attach', http(tcp))),
  },
  {
    what: 'estats top',
    phase: 'asks silence',
    begin: () => askingSilence((tcp) => start('estats', 'top', '-e', http(tcp))),
  },
  { what: 'sim run', phase: 'computes', begin: () => saying(start('sim', 'run', 'dcqcn-n10-4us'), 'stdout', /./) },
];

/** Tests of the cases that are wanted: `SIGINT` is Ctrl-C. */
export function endsBySignal(signal: 'SIGINT' | 'SIGTERM' | 'SIGHUP', isWanted: (one: Case) => boolean): void {
  describe.runIf(isBuilt && isLinux)(`the first ${signal}`, () => {
    it.each(CASES.filter(isWanted))('ends $what, which $phase', async ({ begin, code = 130 }) => {
      const program = await begin();
      const beganMs = performance.now();
      program.kill(signal);
      const outcome = await Promise.race([program.ended(), delay(5 * LIMIT_MS, 'goes on')]);
      const tookMs = performance.now() - beganMs;
      expect({ outcome, text: program.stderr }).toMatchObject({ outcome: code });
      expect(tookMs, program.stderr).toBeLessThan(LIMIT_MS);
      expect(program.stderr).not.toMatch(/^ {4}at |undefined/m);
    });
  });
}

/** They have cases of their own, need another server, or Redis. */
const OTHERS = new Set(['dashboard', 'extents node', 'kv watch', 'sim worker']);

/** Tests that no command which serves was forgotten. */
export function namesAllServers(): void {
  it('every command that runs until Ctrl-C has a case', async () => {
    const program = await wholeProgram(COMMANDS, { args: [], stdout, stderr, env: {}, interrupted: NEVER });
    const found = leavesOf(program.commands).filter(({ text }) => /\bCtrl-C\b/.test(text));
    const servers = found.map(({ path }) => path).filter((path) => !OTHERS.has(path));
    expect(servers.length).toBeGreaterThan(5);
    expect(servers.filter((path) => !(path in SERVERS))).toEqual([]);
  });
}

const { stdout, stderr } = process;
const NEVER = new AbortController().signal;

interface Leaf {
  readonly path: string;
  readonly text: string;
}

function leavesOf(commands: readonly Command[], before = ''): Leaf[] {
  return commands.flatMap((command): Leaf[] => {
    const path = `${before}${command.name()}`;
    if (command.commands.length > 0) return leavesOf(command.commands, `${path} `);
    return [{ path, text: command.description() }];
  });
}

/** Tests of what ends without it. */
export function endsWithoutCtrlC(): void {
  describe.runIf(isBuilt && isLinux)('without Ctrl-C, a client whose server stands still', () => {
    it.each(['bw write -u 14 --no-map-regions', 'lat send -e -u 14', 'lat write -u 14', 'bw write --perftest'])(
      'fails and ends: %s',
      async (what) => {
        const [tool, op, ...args] = what.split(' ');
        const client = await facingStandstill(transfer(tool, op, ...args), 'client');
        await client.writes('stderr', /retry counter exceeded|Flushed/);
        const outcome = await Promise.race([client.ended(), delay(5 * LIMIT_MS, 'goes on')]);
        expect(outcome).toBe(1);
      },
    );
  });
}
