import { once } from 'node:events';
import { chmod, lstat, mkdir, mkdtemp, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { createServer } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  askProgram,
  askSnapshot,
  findEndpoints,
  findPrograms,
} from '../../packages/command/src/programs/program-client.js';
import { toHgrm } from '../../packages/dashboard/src/commands/estats/hgrm.js';
import { switchDocument } from '../../packages/dashboard/test/watched-documents.js';
import { COUNTER_NAMES } from '../../src/memory/ring/counters.js';
import { serveDocument } from '../../src/verbs/estats/control-socket.js';
import {
  type EndpointServer,
  type EndpointServerOptions,
  serveEstats,
} from '../../src/verbs/estats/endpoint-server.js';
import type { HistogramDocument } from '../../src/verbs/estats/http-handler.js';
import type { QpAttr } from '../../src/verbs/qp-attributes.js';
import { createPair, type Pair } from '../support/pair.js';
import { parsePrometheus } from '../support/prometheus-text.js';

let runtime: string;
let before: string | undefined;
const open: EndpointServer[] = [];

beforeEach(async () => {
  before = process.env['XDG_RUNTIME_DIR'];
  runtime = await mkdtemp(path.join(os.tmpdir(), 'estats-'));
  process.env['XDG_RUNTIME_DIR'] = runtime;
});

afterEach(async () => {
  for (const server of open.splice(0)) await server.close();
  if (before === undefined) delete process.env['XDG_RUNTIME_DIR'];
  else process.env['XDG_RUNTIME_DIR'] = before;
  await rm(runtime, { recursive: true });
});

/** An endpoint that has done ten WRITEs and one READ that failed. */
async function endpoint(
  options: EndpointServerOptions = {},
  rateControl: QpAttr['rateControl'] = undefined,
): Promise<{ server: EndpointServer; pair: Pair }> {
  const pair = await createPair({ estats: {}, ...(rateControl !== undefined && { attrA: { rateControl } }) });
  const { a, b } = pair;
  const target = { sges: [a.mr.sge(0, 4096)], remoteAddr: b.mr.addr };
  for (let n = 0; n < 10; n++) a.qp.postSend({ opcode: 'RDMA_WRITE', ...target, rkey: b.mr.rkey });
  pair.completions(a.cq, 10);
  a.qp.postSend({ opcode: 'RDMA_READ', ...target, rkey: b.mr.rkey + 1 });
  pair.completions(a.cq, 1);
  const identity = { pid: process.pid, address: '192.0.2.1', port: 'simulated', engine: 'inline' } as const;
  const server = await serveEstats(a.device.estats!, identity, options);
  open.push(server);
  return { server, pair };
}

const OWN = () => path.join(runtime, 'rocev2');

describe('the control socket', () => {
  it('can be opened by its owner alone, and so can its directory', async () => {
    const { server } = await endpoint();
    expect((await lstat(server.socketPath)).mode & 0o777).toBe(0o600);
    expect((await lstat(OWN())).mode & 0o777).toBe(0o700);
  });

  it('is gone when the endpoint closes', async () => {
    const { server } = await endpoint();
    await server.close();
    expect(await readdir(OWN())).toEqual([]);
  });

  it('is not made in a directory that others can enter', async () => {
    await mkdir(OWN(), { mode: 0o700 });
    await chmod(OWN(), 0o755);
    await expect(endpoint()).rejects.toMatchObject({ code: 'ERR_ROCE_IO' });
    await expect(findEndpoints(1)).rejects.toMatchObject({ code: 'ERR_ROCE_IO' });
  });

  it('is not made where somebody has put a link', async () => {
    const elsewhere = path.join(runtime, 'elsewhere');
    await mkdir(elsewhere, { mode: 0o700 });
    await symlink(elsewhere, OWN());
    await expect(endpoint()).rejects.toMatchObject({ code: 'ERR_ROCE_IO' });
  });

  it('serves every endpoint of a process', async () => {
    await endpoint();
    await endpoint();
    expect(await findEndpoints(1)).toHaveLength(2);
  });
});

describe('finding endpoints', () => {
  it('finds none where there was never one', async () => expect(await findEndpoints(1)).toEqual([]));

  it('removes the socket of a dead process, and leaves what is not a socket of an endpoint', async () => {
    const { server } = await endpoint();
    const dead = path.join(OWN(), '1-1.sock');
    const other = createServer().listen(dead);
    await new Promise((resolve) => other.once('listening', resolve));
    // As after a crash: the socket stays, nobody listens.
    const kept = path.join(OWN(), 'kept');
    await rename(dead, kept);
    await new Promise((resolve) => other.close(resolve));
    await rename(kept, dead);
    await writeFile(path.join(OWN(), 'notes.txt'), 'mine');
    expect((await findEndpoints(1)).map(({ socketPath }) => socketPath)).toEqual([server.socketPath]);
    expect((await readdir(OWN())).sort()).toEqual([path.basename(server.socketPath), 'notes.txt'].sort());
  });
});

describe('programs that are no endpoints', () => {
  const other = async () => {
    const server = await serveDocument(() => switchDocument(1, { a: {} }));
    open.push({ socketPath: server.at, httpUrl: undefined, close: () => server.close() });
    return server.at;
  };

  it('are found as what they are, and not as endpoints', async () => {
    const { server } = await endpoint();
    await other();
    expect((await findPrograms(1)).map(({ document }) => document.kind).sort()).toEqual(['endpoint', 'switch']);
    expect((await findEndpoints(1)).map(({ socketPath }) => socketPath)).toEqual([server.socketPath]);
  });

  it('are named when one asks them for what an endpoint has', async () => {
    const socketPath = await other();
    await expect(askSnapshot({ socketPath }, 1)).rejects.toMatchObject({
      code: 'ERR_ROCE_MISMATCH',
      message: expect.stringContaining('is a switch, not an endpoint'),
    });
    await expect(askProgram({ socketPath }, '/histogram.json')).rejects.toMatchObject({
      code: 'ERR_ROCE_INVALID_ARGUMENT',
    });
  });

  it('refuse a path that is none', async () => {
    const socketPath = await other();
    const asked = request({ socketPath, path: '//', agent: false }).end();
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    response.resume();
    expect(response.statusCode).toBe(404);
  });
});

describe('an endpoint answers', () => {
  it('/estats.json with a snapshot', async () => {
    const { server, pair } = await endpoint();
    const snapshot = await askSnapshot(server, 1);
    expect(snapshot).toMatchObject({ version: 1, pid: process.pid, address: '192.0.2.1', engine: 'inline' });
    const whole = snapshot.groups.filter(({ stage }) => stage === 't6_t1');
    expect(whole.map(({ op, status, count }) => [op, status, count])).toEqual([
      ['RDMA_WRITE', 'SUCCESS', 10],
      ['RDMA_READ', 'REM_ACCESS_ERR', 1],
    ]);
    expect(snapshot.qps).toMatchObject([{ qpn: pair.a.qp.qpn, remote: { address: '192.0.2.2', qpn: pair.b.qp.qpn } }]);
    expect(snapshot.device.counters).toEqual(pair.a.device.counters());
  });

  it('/estats.json with latency by operation, of successful work alone', async () => {
    const { server } = await endpoint();
    const { latency, groups } = await askSnapshot(server, 1);
    expect(latency.map(({ op, count }) => [op, count])).toEqual([['RDMA_WRITE', 10]]);
    expect(latency[0].bars.reduce((sum, { count }) => sum + count, 0)).toBe(10);
    expect(latency[0].sumNs).toBe(groups.find(({ op, stage }) => op === 'RDMA_WRITE' && stage === 't6_t1')!.sumNs);
  });

  it('/estats.json with what rate control allows: null where there is none', async () => {
    const { server } = await endpoint();
    expect((await askSnapshot(server, 1)).qps).toMatchObject([{ rateBps: null, targetRateBps: null, alpha: null }]);
    const fixed = await endpoint({}, { name: 'fixed', rateBps: 1e9 });
    expect((await askSnapshot(fixed.server, 1)).qps).toMatchObject([{ rateBps: 1e9, alpha: null }]);
    const dcqcn = await endpoint({}, { name: 'dcqcn' });
    const [{ rateBps, alpha }] = (await askSnapshot(dcqcn.server, 1)).qps;
    expect(rateBps).toBeGreaterThan(0);
    expect(alpha).toBeGreaterThan(0);
    expect(alpha).toBeLessThanOrEqual(1);
  });

  it('/estats.json with the dumps there are, in brief', async () => {
    const { server } = await endpoint();
    await expect
      .poll(async () => (await askSnapshot(server, 1)).dumps)
      .toMatchObject([{ reason: 'error', op: 'RDMA_READ', status: 'REM_ACCESS_ERR' }]);
  });

  it('/histogram.json with the buckets of what was selected', async () => {
    const { server } = await endpoint();
    const ask = async (query: string) =>
      JSON.parse(await askProgram(server, `/histogram.json?${query}`)) as HistogramDocument;
    const writes = await ask('op=RDMA_WRITE&stage=t4_t3');
    expect(writes.summary.count).toBe(10);
    expect(writes.buckets.reduce((sum, [, , count]) => sum + count, 0)).toBe(10);
    for (const [fromNs, toNs] of writes.buckets) expect(toNs).toBeGreaterThan(fromNs);
    expect((await ask('status=REM_ACCESS_ERR')).summary.count).toBe(1);
    expect((await ask('conn=nobody')).summary.count).toBe(0);
  });

  it('a histogram document becomes what HdrHistogram prints, in microseconds', async () => {
    const { server } = await endpoint();
    const document = JSON.parse(await askProgram(server, '/histogram.json?op=RDMA_WRITE')) as HistogramDocument;
    const text = toHgrm(document);
    const lines = text.trimEnd().split('\n');
    expect(lines[0]).toMatch(/^ +Value +Percentile TotalCount 1\/\(1-Percentile\)$/);
    const rows = lines.filter((line) => /^ *[\d.]+ /.test(line)).map((line) => line.trim().split(/ +/).map(Number));
    expect(rows.at(-1)?.slice(1, 3)).toEqual([1, 10]);
    expect(rows.at(-1)?.[0]).toBeCloseTo(document.summary.maxNs / 1000, 0);
    expect(text).toMatch(/#\[Max += +[\d.]+, Total count += +10\]/);
  });

  it('/metrics with text that a scraper accepts, equal to the snapshot', async () => {
    const { server, pair } = await endpoint();
    const families = parsePrometheus(await askProgram(server, '/metrics'));
    const latency = families.get('roce_op_latency_seconds')!;
    const { groups } = await askSnapshot(server, 60);
    const { count, sumNs } = groups.find(({ op, stage }) => op === 'RDMA_WRITE' && stage === 't6_t1')!;
    const find = (name: string) =>
      latency.samples.find(
        ({ name: n, labels }) => n === name && labels['op'] === 'RDMA_WRITE' && labels['stage'] === 't6_t1',
      )?.value;
    expect(find('roce_op_latency_seconds_count')).toBe(count);
    expect(find('roce_op_latency_seconds_sum')).toBeCloseTo(sumNs / 1e9, 9);
    for (const name of COUNTER_NAMES) {
      const now = pair.a.device.counters()[name];
      // The NIC interrupts its program for the answer of this very question.
      const value = name === 'interrupts' ? expect.toSatisfy((n: number) => n > 0 && n <= now) : now;
      expect(families.get(`roce_${name}_total`)?.samples).toEqual([{ name: `roce_${name}_total`, labels: {}, value }]);
    }
  });

  it('/metrics without a label whose values have no bound', async () => {
    const { server } = await endpoint();
    const families = parsePrometheus(await askProgram(server, '/metrics'));
    const labels = [...families.values()].flatMap(({ samples }) => samples.flatMap((s) => Object.keys(s.labels)));
    expect(new Set(labels)).toEqual(new Set(['le', 'op', 'status', 'stage']));
  });

  it('/healthz with ok', async () => {
    const { server } = await endpoint();
    expect(await askProgram(server, '/healthz')).toBe('ok\n');
  });

  it('HEAD as GET, without the body', async () => {
    const { server } = await endpoint();
    expect(await askProgram(server, '/metrics', 'HEAD')).toBe('');
    await expect(askProgram(server, '/nothing', 'HEAD')).rejects.toThrow();
  });

  it('/metrics with what closed windows held', async () => {
    const { server, pair } = await endpoint();
    pair.run({ untilNs: pair.events.nowNs + 120e9 });
    const families = parsePrometheus(await askProgram(server, '/metrics'));
    const counts = families.get('roce_op_latency_seconds')!.samples.filter(({ name }) => name.endsWith('_count'));
    expect(counts.some(({ value }) => value === 10)).toBe(true);
  });

  it('POST /dumps with a dump of every connection', async () => {
    const { server } = await endpoint();
    expect(JSON.parse(await askProgram(server, '/dumps', 'POST'))).toMatchObject([
      { reason: 'error' },
      { reason: 'asked' },
    ]);
    expect(JSON.parse(await askProgram(server, '/dumps.json'))).toHaveLength(2);
  });

  it.each([
    ['/nothing', 'GET', /there is no GET \/nothing/],
    ['/estats.json', 'POST', /there is no POST/],
    ['/estats.json?minutes=1000', 'GET', /minutes/],
    ['/histogram.json?stage=t7_t6', 'GET', /stage/],
  ])('%s %s with a refusal that says why', async (what, method, why) => {
    const { server } = await endpoint();
    await expect(askProgram(server, what, method)).rejects.toThrow(why);
  });
});

describe('HTTP for everybody', () => {
  it('is not served unless asked for', async () => expect((await endpoint()).server.httpUrl).toBeUndefined());

  it('reads, and makes no dumps', async () => {
    const { server } = await endpoint({ http: { host: '127.0.0.1', port: 0 } });
    const target = { url: server.httpUrl! };
    expect((await askSnapshot(target, 1)).pid).toBe(process.pid);
    expect(parsePrometheus(await askProgram(target, '/metrics')).size).toBeGreaterThan(10);
    await expect(askProgram(target, '/dumps', 'POST')).rejects.toThrow(/there is no POST/);
  });

  it('on a port that is taken is refused, and no socket stays', async () => {
    const { server } = await endpoint({ http: { host: '127.0.0.1', port: 0 } });
    const port = Number(new URL(server.httpUrl!).port);
    await expect(endpoint({ http: { host: '127.0.0.1', port } })).rejects.toMatchObject({ code: 'ERR_ROCE_IO' });
    expect(await readdir(OWN())).toEqual([path.basename(server.socketPath)]);
  });
});
