/** `rocev2 kv demo`: one owner that computes half of the time, and four ways to read what it has. */

import { setTimeout as delay } from 'node:timers/promises';
import {
  CommandFailure,
  checkWritable,
  defineDocument,
  EXIT_INTERRUPTED,
  type Output,
  orInterrupted,
  writeOutputFile,
} from '@rocev2/command';
import { formatNs, NS_PER_MS, NS_PER_S } from 'rocev2/internal/core';
import { nowNs } from 'rocev2/internal/driver';
import { demoPage } from './page.js';
import { type KvDemoReader, readerOf } from './result.js';
import { DemoRig } from './rig.js';
import { blockOf, LiveLines } from './strip-chart.js';

const KV_DEMO_DOCUMENT = defineDocument<KvDemoResult>('kv-demo');

const IDLE_NS = 2 * NS_PER_S;
const BUSY_NS = 2 * NS_PER_S;
const PER_SECOND = 200;
const LOOK_MS = 250;
const NAME_WIDTH = 14;
/** Blocks of the chart in the terminal. */
const STRIP_WIDTH = 48;

/** Options of `rocev2 kv demo`. */
export interface KvDemoOptions {
  /** Nanoseconds. */
  readonly duration: number;
  /** File for a page with the chart. */
  readonly html?: string;
}

/** The fields of `kv demo --json`. */
export interface KvDemoResult {
  /** Time of the measurement. */
  readonly seconds: number;
  /** Of each turn, the owner waits for work for so long. */
  readonly idleSeconds: number;
  /** Then it computes for so long. */
  readonly busySeconds: number;
  /** GETs that each reader asks, answered or not. */
  readonly getsPerSecond: number;
  /** The readers. Redis is missing where there is no `redis-server`. */
  readonly readers: readonly KvDemoReader[];
}

/** Runs for the time, or until Ctrl-C, and prints what came of it. Everything that it has started has ended when it resolves. */
export async function runKvDemo({ duration, html }: KvDemoOptions, output: Output): Promise<void> {
  await checkWritable(html);
  const { interrupted } = output.io;
  const turnS = (IDLE_NS + BUSY_NS) / NS_PER_S;
  output.line(output.colors.bold('Values of a process that computes, and ways to read them'));
  output.line(
    `The owner computes ${BUSY_NS / NS_PER_S} s of every ${turnS} s without a break. Each reader asks ${PER_SECOND} times a second.`,
  );
  await using rig = new DemoRig();
  const isStarted = await orInterrupted(rig.start(PER_SECOND), interrupted);
  if (isStarted === undefined) throw new CommandFailure(EXIT_INTERRUPTED, 'interrupted');
  if (!rig.hasRedis) output.line('Redis is left out: there is no redis-server here.');
  output.line();
  const turns = await rig.begin(IDLE_NS, BUSY_NS);
  await watch(rig, turns.startNs + duration, output);
  const seconds = (nowNs() - turns.startNs) / NS_PER_S;
  const readers = (await rig.end()).map(({ name, samples }) => readerOf(name, samples, turns, seconds));
  const rows = readers.map(rowOf);
  output.table(
    TITLES.map((title, k) => ({ title, align: k === 0 ? 'left' : 'right' })),
    rows,
  );
  if (html !== undefined) {
    const origin = `rocev2 kv demo, ${seconds.toFixed(0)} s, ${PER_SECOND} GETs a second of each reader`;
    await writeOutputFile(html, demoPage(readers, turns, { titles: TITLES, rows, origin }));
    output.note(`wrote ${html}`);
  }
  const [idleSeconds, busySeconds] = [turns.idleNs / NS_PER_S, turns.busyNs / NS_PER_S];
  output.document(KV_DEMO_DOCUMENT, { seconds, idleSeconds, busySeconds, getsPerSecond: PER_SECOND, readers });
  if (interrupted.aborted) throw new CommandFailure(EXIT_INTERRUPTED, 'interrupted: the demo did not run to its end');
}

/** Draws the chart until the time is over, or Ctrl-C. */
async function watch(rig: DemoRig, endNs: number, { io }: Output): Promise<void> {
  const chart = new LiveLines(io);
  const strips = new Map<string, string>();
  try {
    for (let sinceNs = nowNs(); nowNs() < endNs && !io.interrupted.aborted; ) {
      await orInterrupted(delay(Math.min(LOOK_MS, Math.max(0, (endNs - nowNs()) / NS_PER_MS))), io.interrupted);
      const lookNs = nowNs();
      const worst = await rig.worstNs(sinceNs);
      sinceNs = lookNs;
      for (const [name, ns] of worst) strips.set(name, ((strips.get(name) ?? '') + blockOf(ns)).slice(-STRIP_WIDTH));
      chart.update(
        worst.map(([name, ns]) => `${name.padEnd(NAME_WIDTH)}${strips.get(name)!.padEnd(STRIP_WIDTH)} ${formatNs(ns)}`),
      );
    }
  } finally {
    chart.clear();
  }
}

const TITLES = ['', 'GETs', 'p50', 'p99', 'max', 'p99, owner waits', 'p99, owner computes'];

function rowOf({ name, get, whileIdle, whileBusy }: KvDemoReader): string[] {
  return [
    name,
    String(get.count),
    ...[get.p50Ns, get.p99Ns, get.maxNs, whileIdle.p99Ns, whileBusy.p99Ns].map(formatNs),
  ];
}
