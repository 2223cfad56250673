import { execFile } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { run } from '../../packages/cli/test/run-in-process.js';
import { connect, listen } from '../../src/cm/listen-connect.js';
import { RC_ACK } from '../../src/packet/opcode.js';
import { emitRoce, writeCnp } from '../../src/packet/roce.js';
import { EVENTS, eventProblem } from '../../src/port/capture/events.js';
import { TraceFile } from '../../src/port/capture/trace-file.js';
import { isTrace, readTrace, type TraceRecord } from '../../src/port/capture/trace-reader.js';
import { openDevice } from '../../src/verbs/open-device.js';
import { isBuilt } from '../e2e/executable.js';
import { eventually } from '../support/eventually.js';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rocev2-trace-'));
});
afterAll(() => rm(folder, { recursive: true }));

const clock = { nowNs: () => 0, wallMs: () => 0 };

/** 4.3 s: also on a busy machine the NAK comes first. */
const TIMEOUT = 20;

/** One WRITE of 64 KiB under a fault rule; the requester's trace and counters, and the responder's. */
async function tracedWrite(loss: string, name: string) {
  const paths = { a: join(folder, `${name}-a.jsonl`), b: join(folder, `${name}-b.jsonl`) };
  const a = await openDevice({ address: '127.58.4.1', loss, trace: paths.a });
  const b = await openDevice({ address: '127.58.4.2', trace: paths.b });
  const region = Buffer.alloc(65536);
  const listener = await listen(b, { port: 0, host: '127.58.4.2', region });
  const [server, client] = await Promise.all([
    listener.accept(),
    connect(a, { host: '127.58.4.2', port: listener.port, mtu: 1024, timeout: TIMEOUT }),
  ]);
  await client.write(Buffer.alloc(65536, 7));
  const counters = { a: a.counters(), b: b.counters() };
  for (const end of [client, server, listener, a, b]) await end.close();
  const records = async (path: string) => [...readTrace(await readFile(path, 'utf8'))];
  return { paths, counters, a: await records(paths.a), b: await records(paths.b) };
}

const named = (records: readonly TraceRecord[], name: string) => records.filter((record) => record.name === name);

describe('a trace', () => {
  it('tells of a loss: the packet that was dropped, the NAK, and where the sender went back to', async () => {
    const { a, b, counters } = await tracedWrite('host>wire:every=20:once', 'loss');
    expect(named(a, 'roce:packet_dropped')).toMatchObject([{ data: { trigger: 'fault_rule', direction: 'sent' } }]);
    const { psn } = named(a, 'roce:packet_dropped')[0].data;
    expect(named(b, 'roce:nak_sent')).toMatchObject([{ data: { psn, syndrome: 'NAK PSN_SEQUENCE_ERROR' } }]);
    expect(named(a, 'roce:nak_received').map(({ data }) => data['psn'])).toEqual([psn]);
    expect(named(a, 'roce:retransmission').map(({ data }) => data['psn'])).toEqual([psn]);
    expect(named(a, 'roce:packet_sent')).toHaveLength(counters.a.tx_packets);
    expect(named(b, 'roce:packet_received')).toHaveLength(counters.b.rx_packets);
  });

  it('has no such events where nothing was lost', async () => {
    const { a, b } = await tracedWrite('psn=0:x1', 'clean');
    const news = [...a, ...b].filter(({ name }) => !/packet_(sent|received)$/.test(name));
    expect(
      news.map(({ name }) => name).filter((name) => name !== 'roce:timeout' && name !== 'roce:retransmission'),
    ).toEqual([]);
  });

  it('names the counter of the NIC that a packet was dropped by, and tells of CNPs', async () => {
    const path = join(folder, 'drops.jsonl');
    const device = await openDevice({ address: '127.58.4.3', udpPort: 0, trace: path });
    const socket = createSocket('udp4');
    const send = (bytes: Uint8Array) =>
      new Promise((resolve) => socket.send(bytes, device.attributes.udpPort, '127.58.4.3', resolve));
    const icrc = new Uint8Array(4);
    await send(Buffer.concat([emitRoce({ opcode: RC_ACK, destQpn: 0x1234, psn: 7, syndrome: 0x1f }), icrc]));
    const cnp = new Uint8Array(32);
    writeCnp(cnp, 0, 0x1235);
    await send(cnp);
    await send(new Uint8Array(5));
    await eventually(() => device.counters().rx_packets === 3);
    socket.close();
    await device.close();
    const records = [...readTrace(await readFile(path, 'utf8'))];
    expect(named(records, 'roce:cnp_received').map(({ data }) => data['dest_qpn'])).toEqual([0x1235]);
    expect(named(records, 'roce:packet_dropped').map(({ data }) => data)).toEqual([
      { trigger: 'rx_drop_no_qp', direction: 'received', dest_qpn: 0x1234, psn: 7 },
      { trigger: 'rx_drop_no_qp', direction: 'received', dest_qpn: 0x1235, psn: 0 },
      { trigger: 'rx_drop_parse', direction: 'received' },
    ]);
  });

  it('begins with a record that describes it, in the shape of qlog', async () => {
    const path = join(folder, 'head.jsonl');
    await (await TraceFile.create(path, 'here', { nowNs: () => 5, wallMs: () => 1000 })).close();
    const bytes = await readFile(path);
    expect(isTrace(bytes)).toBe(true);
    expect(JSON.parse(bytes.toString())).toMatchObject({
      qlog_version: '0.4',
      trace: { vantage_point: { name: 'here' }, common_fields: { time_format: 'relative', reference_time: 1000 } },
    });
  });

  it('counts what the disk is too slow for, and says so where it is missing', async () => {
    const path = join(folder, 'flood.jsonl');
    const file = await TraceFile.create(path, 'flood', clock);
    const events = 400_000; // In one turn, so that nothing can be written meanwhile.
    for (let i = 0; i < events; i++) file.event('roce:timeout', { count: i });
    await file.close();
    const records = [...readTrace(await readFile(path, 'utf8'))];
    const lost = named(records, 'roce:records_lost').reduce((sum, { data }) => sum + Number(data['count']), 0);
    expect(lost).toBeGreaterThan(0);
    expect(named(records, 'roce:timeout').length + lost).toBe(events);
  });

  it('cannot be written where there is no such place', async () => {
    await expect(openDevice({ address: '127.58.4.4', trace: join(folder, 'no', 'where') })).rejects.toMatchObject({
      code: 'ERR_ROCE_IO',
    });
  });

  it('is decoded as a story, and refused where it is damaged', async () => {
    const { paths } = await tracedWrite('host>wire:every=20:once', 'decode');
    const story = await run(['decode', paths.a, '--flow']);
    expect(story.exitCode).toBe(0);
    expect(story.stdout).toMatch(
      /packet_dropped +trigger=fault_rule direction=sent .*\n.*nak_received .*NAK PSN_SEQUENCE_ERROR/,
    );
    expect(story.stdout).toMatch(/roce:retransmission +1\n/);
    const json = await run(['decode', paths.a, '--json', '--limit', '3']);
    const lines = json.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines.map(({ type }) => type)).toEqual(['event', 'event', 'event', 'summary']);
    const text = await readFile(paths.a, 'utf8');
    expect(() => [...readTrace(`${text}{"time":1,"name":"roce:nonsense","data":{}}\n`)]).toThrow(/there is no event/);
    expect([...readTrace(`${text}{"time":1,"na`)]).toHaveLength(text.trim().split('\n').length - 1); // cut off
  });
});

describe('the catalogue of events', () => {
  it('knows what belongs to an event', () => {
    expect(eventProblem('roce:timeout', { count: 1 })).toBeUndefined();
    expect(eventProblem('roce:timeout', {})).toBe('roce:timeout lacks count');
    expect(eventProblem('roce:timeout', { count: '1' })).toBe('count of roce:timeout is not a number');
    expect(eventProblem('roce:timeout', { count: 1, more: 2 })).toBe('roce:timeout has no more');
    expect(eventProblem('toString', {})).toBe('there is no event toString');
  });

  it('names all events in one way', () => {
    for (const name of Object.keys(EVENTS)) expect(name).toMatch(/^roce:[a-z]+(_[a-z]+)*$/);
  });

  it.skipIf(!isBuilt)('is what docs/events.md says', async () => {
    await promisify(execFile)(process.execPath, ['scripts/events-doc.js', '--check']);
  });
});
