/**
 * The pictures of docs/extents.md are those of a run: a cluster on simulated NICs, whose packets were captured, and which tell it all. `npx vitest run
 * packages/extents/test/pictures -u` draws them anew.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { formatBytes } from '../../../../src/core/units.js';
import type { ExtentPlace } from '../../src/messages.js';
import { callsIn, type Message } from './calls-in-capture.js';
import { HOSTS, PacketCluster } from './packet-cluster.js';
import { drawSequence, type Picture } from './sequence-picture.js';

const RECORD_BYTES = 8192;
/** Said at any time, and no part of what a picture shows. */
const BACKGROUND = ['report', 'renew', 'join', 'introduce'];
const LEFT_OUT = 'virtual time, 10 Gb/s; left out: acknowledgements, reports of nodes, and releases of memory';

interface Window {
  readonly fromNs: number;
  readonly toNs: number;
}

const folder = mkdtempSync(join(tmpdir(), 'rocev2-pictures-'));
const windows = {} as Record<'append' | 'seal' | 'copy' | 'repair', Window>;
let messages: readonly Message[];
let isRead = false;
let victim = '';
let damaged = '';

beforeAll(async () => {
  const cluster = await PacketCluster.create(join(folder, 'cluster.pcapng'));
  const during = async (work: Promise<unknown>): Promise<Window> => {
    const fromNs = cluster.nowNs;
    await cluster.until(work);
    return { fromNs, toNs: cluster.nowNs };
  };
  const writer = await cluster.until(cluster.writer('log'));
  await cluster.until(writer.append(Buffer.alloc(RECORD_BYTES, 1))); // The stream has an extent now.
  windows.append = await during(writer.append(Buffer.alloc(RECORD_BYTES, 2)));
  await cluster.sleep(300);
  const first = writer.extent as ExtentPlace;
  victim = first.replicas[2].address;
  cluster.powerOff(victim);
  windows.seal = await during(writer.append(Buffer.alloc(RECORD_BYTES, 3)));
  windows.copy = await during(cluster.sleep(4000));
  // Of the sealed extent: whoever is asked first is the one whose disk has a bit changed.
  const reader = cluster.reader();
  damaged = first.replicas[0].address;
  cluster.damage(damaged, first.extent);
  windows.repair = await during(
    (async () => {
      for (let k = 0; k < 8 && reader.counters.damaged === 0; k++) await reader.read(first.extent, 0, 0, 2);
      isRead = reader.counters.damaged > 0;
    })(),
  );
  await cluster.sleep(20); // The repair goes on after the answer.
  const { packets, addresses } = await cluster.capture();
  messages = callsIn(packets, addresses).filter(({ method }) => !BACKGROUND.includes(method));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const within = ({ fromNs, toNs }: Window, slackNs = 0) =>
  messages.filter(({ sentNs }) => sentNs >= fromNs && sentNs < toNs + slackNs);

type Values = Record<string, unknown> & { readonly code?: string };
const count = (value: unknown) => (value as number).toLocaleString('en');
const nodes = (value: unknown) => (value as ReadonlyArray<{ node: number }>).map(({ node }) => node).join(', ');

/** What a request or an answer says, in few words. */
function label({ kind, method, value, bytes }: Message): string {
  const of = (value ?? {}) as Values;
  if (kind === 'read') return '';
  if (kind === 'data') return formatBytes(bytes);
  if (kind === 'refusal') return `${of.code}`;
  const words: Record<string, readonly [call: string, answer: string]> = {
    append: [
      `append at ${count(of['offset'] ?? 0)}`,
      of['failed'] === undefined ? 'durable' : `not on node ${of['failed']}`,
    ],
    advance: [`advance: suspect ${of['suspects']}`, `extent ${of['extent']} on ${nodes(of['replicas'] ?? [])}`],
    fence: [`fence, epoch ${of['epoch']}`, `has ${count(of['length'] ?? 0)} B`],
    seal: [`seal at ${count(of['length'] ?? 0)}`, 'sealed'],
    create: [`create extent ${of['extent']}`, 'made'],
    noteVersion: ['note the metadata version', 'durable'],
    copy: [`copy extent ${of['extent']}`, 'durable'],
    fetch: [`fetch from ${count(of['offset'] ?? 0)}`, 'records'],
    read: ['read', 'blocks'],
    repair: ['repair', of['isRepaired'] === true ? 'repaired' : 'not repaired'],
    locateExtent: ['where is it?', `on ${nodes(of['replicas'] ?? [])}`],
  };
  return (words[method] ?? [method, ''])[kind === 'call' ? 0 : 1];
}

function picture(rest: Pick<Picture, 'title' | 'messages'> & Partial<Picture>): string {
  return drawSequence({
    subtitle: LEFT_OUT,
    hosts: HOSTS.map((host) => host.replace('node', 'node ')),
    notes: [],
    label,
    ...rest,
  });
}

const saved = (name: string) => `../../docs/pictures/extents-${name}.svg`;

/** Calls of the method, and how many have an answer. */
function answered(shown: readonly Message[], method: string): readonly [calls: number, answers: number] {
  const of = (kind: Message['kind']) =>
    shown.filter((message) => message.method === method && message.kind === kind && message.arrivedNs !== undefined)
      .length;
  return [of('call'), of('answer')];
}

describe('the pictures of docs/extents.md', () => {
  it('show an append: three nodes have the record before the owner hears of it', async () => {
    const shown = within(windows.append);
    expect(answered(shown, 'append')).toEqual([3, 3]);
    // The record crosses the network three times, and its owner's cable once.
    const data = shown.filter(({ kind }) => kind === 'data');
    expect(data.map(({ from }) => HOSTS[from] === 'client')).toEqual([true, false, false]);
    for (const { bytes } of data) expect(bytes).toBeGreaterThan(RECORD_BYTES);
    const last = shown.at(-1)!;
    expect([last.kind, HOSTS[last.to]]).toEqual(['answer', 'client']);
    const title = 'An append of 8 KiB';
    await expect(picture({ title, messages: shown })).toMatchFileSnapshot(saved('append'));
  });

  it('show a seal: the manager fences who answers, writes the length down, and opens another extent', async () => {
    const shown = within(windows.seal);
    expect(answered(shown, 'fence')).toEqual([2, 2]);
    expect(answered(shown, 'seal')).toEqual([2, 2]);
    expect(answered(shown, 'create')).toEqual([3, 3]);
    expect(answered(shown, 'noteVersion')).toEqual([3, 3]);
    const host = HOSTS.indexOf(victim);
    expect(shown.filter((message) => message.from === host)).toEqual([]);
    const notes = [{ timeNs: windows.seal.fromNs, host, text: 'loses its power' }];
    const title = 'A node is lost during an append: its extent is sealed, and another one opened';
    await expect(picture({ title, messages: shown, notes })).toMatchFileSnapshot(saved('seal'));
  });

  it('show how a lost replica is made anew, by the nodes alone', async () => {
    const shown = within(windows.copy);
    expect(answered(shown, 'copy')).toEqual([1, 1]);
    expect(answered(shown, 'fetch')[0]).toBeGreaterThan(0);
    // No record passes the manager.
    for (const { kind, to } of shown) if (kind === 'data') expect(HOSTS[to]).not.toBe('manager');
    const title = 'A replica that was lost with its node is made anew';
    await expect(picture({ title, messages: shown })).toMatchFileSnapshot(saved('copy'));
  });

  it('show how a damaged record is read elsewhere and repaired', async () => {
    expect(isRead).toBe(true);
    const all = within(windows.repair, 2e7);
    const refused = all.findIndex(({ kind, method }) => kind === 'refusal' && method === 'read');
    const shown = all.slice(refused - 1);
    expect(answered(shown, 'repair')).toEqual([1, 1]);
    const notes = [
      { timeNs: shown[0].sentNs - 1000, host: HOSTS.indexOf(damaged), text: 'a bit has changed on its disk' },
    ];
    const title = 'A damaged record is read elsewhere, and repaired';
    await expect(picture({ title, messages: shown, notes })).toMatchFileSnapshot(saved('repair'));
  });
});
