import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { run } from '../../packages/cli/test/run-in-process.js';
import { connect, listen } from '../../src/cm/listen-connect.js';
import { openDevice } from '../../src/verbs/open-device.js';
import { eventually } from '../support/eventually.js';
import { auditedStarter } from './audited-programs.js';
import { isBuilt, type Program } from './executable.js';
import { documentOf } from './watched.js';

/** TCP does not go through the switch. */
const allowForeignGid = true;

const TWO_PORTS = ['--port', 'a=127.0.0.1:0', '--port', 'b=127.0.0.1:0'];

const start = auditedStarter();

async function portsOf(program: Program): Promise<[string, string]> {
  const [, a] = await program.writes('stderr', /switch port a on (\S+:\d+)\n/);
  const [, b] = await program.writes('stderr', /switch port b on (\S+:\d+)\n/);
  return [a, b];
}

/** Writes 1 MiB from one endpoint to another on the switch. */
async function transfer(switchPorts: readonly [string, string]): Promise<void> {
  const [a, b] = await Promise.all(
    switchPorts.map((remote, i) =>
      openDevice({ address: `198.18.0.${i + 1}`, frame: { local: '127.0.0.1:0', remote } }),
    ),
  );
  const region = Buffer.alloc(1 << 20);
  const listener = await listen(b, { host: '127.0.0.1', port: 0, region, allowForeignGid });
  const [peer, connection] = await Promise.all([
    listener.accept(),
    connect(a, { host: '127.0.0.1', port: listener.port, allowForeignGid }),
  ]);
  const data = Buffer.from(Uint8Array.from({ length: 1 << 20 }, (_, i) => i * 7 + (i >> 8)));
  await connection.write(data);
  expect(region.equals(data)).toBe(true);
  await connection.close();
  await peer.close();
  await listener.close();
  await a.close();
  await b.close();
}

describe.skipIf(!isBuilt)('rocev2 switch', () => {
  it('keeps to link rates, pauses instead of dropping, and reports queues and pools', async () => {
    const args = [...TWO_PORTS, '--rate', '1Gbps', '--rate', 'b=50Mbps', '--pfc', '0', '--estats', '--json'];
    const program = start('switch', ...args);
    const switchPorts = await portsOf(program);
    const beganMs = performance.now();
    await transfer(switchPorts);
    expect(performance.now() - beganMs).toBeGreaterThan(150); // 1 MiB at 50 Mb/s: 168 ms
    // What a busy machine made the sender send twice drains.
    await eventually(async () => {
      const document = await documentOf(program);
      return document?.kind === 'switch' && document.ports.every(({ queueBytes }) => queueBytes === 0);
    });
    program.kill('SIGINT');
    expect(await program.ended(), program.stderr).toBe(0);
    const { ports, pools } = JSON.parse(program.stdout);
    const dropped = Object.entries<number>(ports[1].counters).filter(([name, n]) => name.includes('dropped') && n > 0);
    expect(dropped).toEqual([]);
    expect(ports[1].egress[0].bytesMax).toBeGreaterThan(0);
    expect(pools.headroom).toMatchObject({ sizeBytes: 2 * 4 * 2 ** 20, usedBytes: 0 });
  });

  it('carries bw between two processes, and its marks slow the sender down', async () => {
    const args = [...TWO_PORTS, '--rate', '1Gbps', '--rate', 'b=200Mbps', '--ecn', '20KB,20KB,1', '--json'];
    const program = start('switch', ...args);
    const [a, b] = await portsOf(program);
    const bw = (...more: string[]) => start('bw', 'write', '--json', '-p', '19520', ...more);
    const server = bw('--frame', `${b},200Mbps`, '--bind', '198.18.0.2');
    await server.writes('stderr', /waiting for 'rocev2 bw write 127.0.0.1'/);
    const control = ['--cc', 'dcqcn', '--rate', '1Gbps'];
    const client = bw('127.0.0.1', '--frame', `${a},1Gbps`, '--bind', '198.18.0.1', '-n', '60', ...control);
    expect(await client.ended(), client.stderr).toBe(0);
    await server.ended();
    program.kill('SIGINT');
    await program.ended();
    expect(JSON.parse(client.stdout)).toMatchObject({ verified: true, cc: 'dcqcn' });
    const marked = JSON.parse(program.stdout).ports[1].counters.tx_ecn_marked;
    expect(marked).toBeGreaterThan(0);
    expect(JSON.parse(server.stdout).counters.np_cnp_sent).toBeGreaterThan(0);
    expect(JSON.parse(client.stdout).counters.rp_cnp_handled).toBeGreaterThan(0);
  });

  it('forwards, drops by rule, counts, and ends by Ctrl-C with what it counted', async () => {
    const args = [...TWO_PORTS, '--loss', 'a>b:random=0.05', '--json'];
    // At random: a periodic rule can fall into step with go-back-N's repetitions and lose the same packet every time.
    const program = start('switch', ...args);
    const switchPorts = await portsOf(program);
    await transfer(switchPorts);
    program.kill('SIGINT');
    expect(await program.ended(), program.stderr).toBe(0);
    const { ports, rules, seconds } = JSON.parse(program.stdout);
    const [a, b] = ports;
    expect([a.name, b.name, a.local, b.local]).toEqual(['a', 'b', ...switchPorts]);
    expect(rules).toEqual([{ rule: 'a>b:random=0.05', hits: b.counters.tx_dropped_fault }]);
    expect(b.counters.tx_dropped_fault).toBeGreaterThanOrEqual(5);
    expect(a.counters.tx_dropped_fault).toBe(0);
    expect(a.counters.rx_packets).toBe(b.counters.tx_packets + b.counters.tx_dropped_fault);
    expect(b.counters.rx_packets).toBe(a.counters.tx_packets);
    expect(seconds).toBeGreaterThan(0);
  });

  it('takes its ports from a file, ends after its time, and prints a table', async () => {
    await withFile({ ports: [{ name: 'a', local: '127.0.0.1:0' }], loss: 'a>b:every=50' }, async (file) => {
      const program = start('switch', '--config', file, '--port', 'b=127.0.0.1:0', '--duration', '50ms');
      expect(await program.ended(), program.stderr).toBe(0);
      expect(program.stdout).toMatch(/^Counter +a +b\n-+\nrx_packets +0 +0\n/);
      expect(program.stdout).toMatch(/\nRule +Hits\n-+\na>b:every=50 +0\n$/);
    });
  });
});

async function withFile(content: unknown, use: (path: string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'rocev2-'));
  try {
    const path = join(directory, 'switch.json');
    await writeFile(path, JSON.stringify(content));
    await use(path);
  } finally {
    await rm(directory, { recursive: true });
  }
}

it('an endpoint on a frame wire has to be told its address', async () => {
  const { exitCode, stderr } = await run(['bw', 'write', '--frame', '127.0.0.1:5001']);
  expect(exitCode).toBe(2);
  expect(stderr).toContain('--frame needs --bind');
});

describe('a switch that cannot be', () => {
  it.each([
    [{ ports: [{ name: 'a', local: 'somewhere' }] }, 'ports[0].local: '],
    [{ ports: [{ name: 'a b', local: '127.0.0.1:0' }] }, 'ports[0].name: '],
    [{ ports: [], loss: 'sometimes' }, 'loss: '],
    [{ ports: [], seed: -1 }, 'seed: '],
    [{ ports: [{ name: 'a', local: '127.0.0.1:0', rateBps: 'fast' }] }, 'ports[0].rateBps: '],
    [{ ecn: { kind: 'red', kminBytes: '5KB', kmaxBytes: '200KB', pmax: 2 } }, 'ecn.pmax: '],
    [{ prots: [] }, 'the file: '],
    [[], 'the file: '],
  ])('%j: the message names the field', async (config, field) => {
    await withFile(config, async (file) => {
      const { exitCode, stdout, stderr } = await run(['switch', '--config', file]);
      expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
      expect(stderr).toContain(`${file} is not a switch configuration:\n  ${field}`);
    });
  });

  it.each([
    [['--port', 'nonsense'], "'nonsense' is not a switch port"],
    [['--port', 'a=127.0.0.1:0'], 'at least two ports'],
    [[...TWO_PORTS, '--loss', 'sometimes'], "'sometimes'"],
    [[...TWO_PORTS, '--rate', 'c=1Gbps'], "no port 'c'"],
    [[...TWO_PORTS, '--rate', 'a=fast'], "'fast' is not a rate"],
    [[...TWO_PORTS, '--ecn', '5KB,200KB'], 'KMIN,KMAX,PMAX'],
    [[...TWO_PORTS, '--ecn', '200KB,5KB,1'], 'Kmin is at most Kmax'],
    [[...TWO_PORTS, '--pfc', '8'], 'from 0 to 7'],
    [[...TWO_PORTS, '--pfc', '3'], 'give every port a rateBps'],
  ])('%j is a usage error', async (args, message) => {
    const { exitCode, stderr } = await run(['switch', ...args]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain(message);
  });
});
