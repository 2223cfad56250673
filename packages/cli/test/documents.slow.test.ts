import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, hostname, tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { describe, expect, it, onTestFinished } from 'vitest';
import { documentOf, problemsOf, SCHEMA_NAMES } from '../../../test/support/documents.js';
import { freePort } from '../../../test/support/free-port.js';
import { documentHead } from '../../command/src/document-head.js';
import { COMMANDS } from '../src/commands.js';
import { wholeProgram } from '../src/run.js';
import { bothSides } from './both-sides.js';
import { run, silentIo } from './run-in-process.js';

const HERE = '127.0.4.1';
const THERE = '127.0.4.2';

/** Figures of a test; the rest of its document is about one side of it. */
const OF_THE_TEST = [
  ...['op', 'transport', 'sizeBytes', 'bidirectional', 'iterations', 'lost', 'bytes', 'seconds', 'goodputBps'],
  ...['messagesPerSecond', 'peakBps', 'latencyNs', 'verified', 'recovery', 'cc', 'mtu', 'qps'],
];

/** Runs a command that ends by itself. */
async function ran(name: string, ...args: string[]): Promise<Record<string, unknown>> {
  const { stdout, stderr, exitCode } = await run([...args, '--json']);
  expect(exitCode, stderr).toBe(0);
  return documentOf(name, stdout);
}

/** Runs a command that ends by Ctrl-C, once it says that it has begun. */
async function interrupted(name: string, ...args: string[]): Promise<Record<string, unknown>> {
  const interrupt = new AbortController();
  const onStderr = (soFar: string) => void (soFar.includes('Ctrl-C') && interrupt.abort());
  const { exitCode, stdout, stderr } = await run([...args, '--json'], { interrupted: interrupt.signal, onStderr });
  expect(exitCode, stderr).toBe(0);
  return documentOf(name, stdout);
}

/** The paths of all commands that can print a document. */
async function commandsWithJson(): Promise<string[]> {
  const leaves = (command: Command, path: readonly string[]): string[] =>
    command.commands.length > 0
      ? command.commands.flatMap((child) => leaves(child, [...path, child.name()]))
      : command.options.some(({ long }) => long === '--json')
        ? [path.join('-')]
        : [];
  return leaves(
    await wholeProgram(
      COMMANDS,
      silentIo(() => {}),
    ),
    [],
  );
}

it('each command with --json has a schema; all changes of an NVMe target have one', async () => {
  const names = [...(await commandsWithJson()), 'decode-line'].map((name) =>
    /^nvme-(add|remove|resize|ana)$/.test(name) ? 'nvme-change' : name,
  );
  expect([...new Set(names)].sort()).toEqual([...SCHEMA_NAMES].sort());
});

describe('documents of --json follow their schemas', () => {
  it.each(['bw', 'lat'] as const)('%s: client and server', async (tool) => {
    const common = ['-p', String(await freePort()), '-n', '20', '-s', '4096', '--json'];
    const client = [tool, 'write', HERE, ...common, '--bind', THERE];
    const [server, { stdout }] = await bothSides([tool, 'write', ...common, '--bind', HERE], client);
    const atServer = documentOf(tool, server.stdout);
    const atClient = documentOf(tool, stdout);
    expect(atServer).toMatchObject({ role: 'server', op: 'write', verified: true, unknown: [] });
    expect(atClient).toMatchObject({
      role: 'client',
      op: 'write',
      verified: true,
      iterations: 20,
      unknown: [],
      command: `rocev2 ${client.join(' ')}`,
    });
    expect(Object.keys(atServer)).toEqual(Object.keys(atClient));
    expect(OF_THE_TEST.map((field) => atServer[field])).toEqual(OF_THE_TEST.map((field) => atClient[field]));
  });

  it('bw -a -b: the server, too, has a result of each size, and its own direction first', async () => {
    const common = ['-p', String(await freePort()), '-n', '5', '-a', '-b', '-c', 'UD', '--json', '--bind'];
    const [server, client] = await bothSides(['bw', 'send', ...common, HERE], ['bw', 'send', HERE, ...common, THERE]);
    const [atServer, atClient] = [server, client].map(({ stdout }) => documentOf('bw', stdout));
    const sizes = (document: Record<string, unknown>) =>
      (document['sizes'] as Array<Record<string, unknown>>).map(({ sizeBytes, seconds }) => [sizeBytes, seconds]);
    expect(sizes(atServer)).toEqual(sizes(atClient));
    expect(sizes(atServer)).toHaveLength(12);
    expect(atServer['directions']).toEqual((atClient['directions'] as unknown[]).toReversed());
  });

  it.each(['bw', 'lat'] as const)(
    '%s --perftest: a server names the figures that only its client has',
    async (tool) => {
      const common = ['-p', String(await freePort()), '-n', '20', '-s', '4096', '--perftest', '--json', '--bind'];
      const [server, client] = await bothSides(
        [tool, 'send', ...common, HERE],
        [tool, 'send', '127.0.0.1', ...common, THERE],
      );
      const [atServer, atClient] = [server, client].map(({ stdout }) => documentOf(tool, stdout));
      expect(Object.keys(atServer)).toEqual(Object.keys(atClient));
      expect(atServer).toMatchObject({ role: 'server', unknown: ['verified', 'latencyNs', 'peakBps'] });
      expect(atServer).toMatchObject({ latencyNs: null, peakBps: null });
      expect(atClient).toMatchObject({ role: 'client', unknown: ['verified'] });
    },
  );

  it('pingpong: both sides have the same fields', async () => {
    const common = ['-p', String(await freePort()), '-n', '10', '--json', '--bind'];
    const [server, client] = await bothSides(['pingpong', ...common, HERE], ['pingpong', HERE, ...common, THERE]);
    const atServer = documentOf('pingpong', server.stdout);
    expect(Object.keys(atServer)).toEqual(Object.keys(documentOf('pingpong', client.stdout)));
  });

  it('rping: both sides have the same fields', async () => {
    const common = ['-p', String(await freePort()), '--json'];
    const [server, client] = await bothSides(
      ['rping', '-s', '-a', HERE, ...common],
      ['rping', '-c', '-a', HERE, '--bind', THERE, '-C', '5', ...common],
    );
    const atServer = documentOf('rping', server.stdout);
    expect(Object.keys(atServer)).toEqual(Object.keys(documentOf('rping', client.stdout)));
  });

  it('sim list, sim run, fluid, and the report of them', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'rocev2-documents-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const { scenarios } = await ran('sim-list', 'sim', 'list');
    await ran('sim-show', 'sim', 'show', 'dcqcn-n2-4us');
    expect(scenarios).not.toHaveLength(0);
    const short = ['--set', 'duration=200us', '--set', 'warmup=0us'];
    await ran('sim-run', 'sim', 'run', 'dcqcn-n2-4us', ...short);
    const study = await ran('fluid', 'fluid', 'dcqcn', '--duration', '1ms');
    writeFileSync(join(folder, 'fluid.json'), JSON.stringify(study));
    expect(await ran('report', 'report', folder)).toMatchObject({ sections: [{ file: 'fluid.json' }] });
  });

  it('nvme target, and what it answers to discover, list and id-ctrl', async () => {
    const port = String(await freePort());
    const at = ['-p', port, '--json'];
    const nqn = 'nqn.2026-11.rocev2:db';
    const interrupt = new AbortController();
    const args = [
      'nvme',
      'target',
      '--disk',
      'db=memory',
      '--size',
      '1MiB',
      '--transport',
      'tcp',
      '--bind',
      HERE,
      ...at,
    ];
    let isReady = () => {};
    const ready = new Promise<void>((resolve) => {
      isReady = resolve;
    });
    const onStderr = (soFar: string) => void (soFar.includes('Ctrl-C') && isReady());
    const target = run(args, { interrupted: interrupt.signal, onStderr });
    await ready;
    const { subsystems } = await ran('nvme-discover', 'nvme', 'discover', HERE, '-p', port);
    expect(subsystems).toMatchObject([{ nqn, transport: 'tcp', address: HERE, service: port }]);
    const { namespaces } = await ran('nvme-list', 'nvme', 'list', HERE, '-p', port, '--nqn', nqn);
    expect(namespaces).toMatchObject([{ nsid: 1, sizeBytes: 1 << 20, blockBytes: 512 }]);
    expect(await ran('nvme-id-ctrl', 'nvme', 'id-ctrl', HERE, '-p', port, '--nqn', nqn)).toMatchObject({ nqn });
    interrupt.abort();
    const { stdout, stderr, exitCode } = await target;
    expect(exitCode, stderr).toBe(0);
    expect(documentOf('nvme-target', stdout)).toMatchObject({ queues: 3, subsystems: [{ nqn }] });
  });

  it('kv serve, and what get, set, list and bench print', async () => {
    const port = String(await freePort());
    const interrupt = new AbortController();
    let isReady = () => {};
    const ready = new Promise<void>((resolve) => {
      isReady = resolve;
    });
    const onStderr = (soFar: string) => void (soFar.includes('Ctrl-C') && isReady());
    const args = ['kv', 'serve', '--bind', HERE, '-p', port, '--memory', '8MiB', '--engine', 'inline', '--json'];
    const owner = run(args, { interrupted: interrupt.signal, onStderr });
    await ready;
    const { version } = await ran('kv-set', 'kv', 'set', HERE, 'k', 'v', '-p', port);
    expect(await ran('kv-get', 'kv', 'get', HERE, 'k', '-p', port)).toMatchObject({ key: 'k', text: 'v', version });
    expect((await ran('kv-list', 'kv', 'list', HERE, '-p', port))['entries']).toHaveLength(1);
    expect((await interrupted('kv-watch', 'kv', 'watch', HERE, '-p', port))['changes']).toEqual([]);
    await ran('kv-bench', 'kv', 'bench', HERE, '-p', port, '--keys', '10', '-D', '50ms');
    interrupt.abort();
    const { stdout, stderr, exitCode } = await owner;
    expect(exitCode, stderr).toBe(0);
    expect(documentOf('kv-serve', stdout)).toMatchObject({ port: Number(port) });
  });

  it('switch', async () => {
    const ports = [
      '--port',
      `a=${HERE}:0`,
      '--port',
      `b=${HERE}:0`,
      '--loss',
      'every=2',
      '--pfc',
      '3',
      '--rate',
      '1Gbps',
    ];
    await ran('switch', 'switch', ...ports, '--duration', '10ms');
  });

  it.each(['atomic-rc-v4', 'cm-rping-v6'])('decode of %s: a line a packet, and the summary', async (name) => {
    const capture = fileURLToPath(new URL(`../../../test/golden/${name}.pcapng`, import.meta.url));
    const { stdout } = await run(['decode', capture, '--json', '--limit', '20']);
    const lines = stdout.trimEnd().split('\n');
    for (const line of lines.slice(0, -1)) documentOf('decode-line', line);
    expect(documentOf('decode', lines.at(-1)!)).toMatchObject({ type: 'summary', packets: lines.length - 1 });
  });

  it('disk serve, disk nbd', async () => {
    const disk = ['--backend', 'memory', '--size', '1MiB'];
    await interrupted(
      'disk-serve',
      'disk',
      'serve',
      ...disk,
      '--engine',
      'inline',
      '-p',
      String(await freePort()),
      '--bind',
      HERE,
    );
    await interrupted('disk-nbd', 'disk', 'nbd', ...disk, '--listen', '127.0.0.1:0');
  });

  it('a document without a field, or with one more, is refused', async () => {
    const { seconds, ...without } = await ran(
      'switch',
      'switch',
      '--port',
      `a=${HERE}:0`,
      '--port',
      `b=${HERE}:0`,
      '--duration',
      '1ms',
    );
    expect(problemsOf('switch', { ...without, seconds })).toEqual([]);
    expect(problemsOf('switch', without)).toMatchObject([{ keyword: 'required' }]);
    expect(problemsOf('switch', { ...without, seconds, more: 1 })).toMatchObject([{ keyword: 'additionalProperties' }]);
  });
});

describe('the head of a document', () => {
  it('has versions, machine and times, and no name of host or user', () => {
    const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'));
    const head = documentHead('fluid', ['fluid', 'dcqcn'], 0);
    expect(head).toMatchObject({
      schema: 'fluid',
      schemaVersion: 1,
      toolVersion: version,
      command: 'rocev2 fluid dcqcn',
    });
    expect(head.host).toMatchObject({ node: process.versions.node, platform: process.platform, arch: process.arch });
    expect(head.start).toBe('1970-01-01T00:00:00.000Z');
    expect(Date.parse(head.end)).toBeGreaterThan(Date.parse('2026-01-01'));
    const words = JSON.stringify(head).split(/\W+/);
    expect(words).not.toContain(hostname());
    expect(words).not.toContain(userInfo().username);
  });

  it('has a command line that a shell takes back, without the home directory', () => {
    const { command } = documentHead('report', ['report', join(homedir(), 'runs'), '--title', "Ann's run"], 0);
    expect(command).toBe(`rocev2 report ~/runs --title 'Ann'\\''s run'`);
  });
});
