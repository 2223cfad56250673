/**
 * The HTTP interface of an endpoint, over its control socket and, if configured, over TCP:
 *
 *     GET  /estats.json?minutes=1        the snapshot
 *     GET  /histogram.json?stage=...     one histogram, bucket by bucket; conn, op, status, minutes select
 *     GET  /dumps.json                   the dumps so far
 *     GET  /metrics                      Prometheus text
 *     GET  /healthz                      `ok`, while the program serves requests
 *     POST /dumps                        dumps every connection now and answers as /dumps.json; control socket only
 *
 * HEAD is GET without the body.
 */

import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { send, sendJson } from './control-socket.js';
import type { Estats } from './estats.js';
import { BUCKETS, bucketStartNs, Histogram, type LatencySummary } from './histogram.js';
import { urlOf } from './http-server.js';
import { PROMETHEUS_TYPE, prometheusMetrics } from './prometheus.js';
import { type EndpointIdentity, recentWindows, snapshotOf } from './snapshot.js';
import { STAGES, type StageName } from './stages.js';
import { mergeWindows } from './window-merge.js';

const MINUTES_MAX = 60;

interface HistogramQuery {
  /** So far back, 0..60. */
  readonly minutes: number;
  readonly stage: StageName;
  readonly conn: string | undefined;
  readonly op: string | undefined;
  readonly status: string | undefined;
}

function parseQuery(parameters: URLSearchParams): HistogramQuery | string {
  const minutes = Number(parameters.get('minutes') ?? 1);
  if (!(minutes >= 0 && minutes <= MINUTES_MAX)) return `minutes: it must be a number from 0 to ${MINUTES_MAX}`;
  const named = parameters.get('stage') ?? 't6_t1';
  const stage = STAGES.find((name) => name === named);
  if (stage === undefined) return `stage: it must be one of ${STAGES.join(', ')}`;
  const text = (name: string) => parameters.get(name) ?? undefined;
  return { minutes, stage, conn: text('conn'), op: text('op'), status: text('status') };
}

/** What `/histogram.json` answers. */
export interface HistogramDocument {
  /** Which stage. */
  readonly stage: StageName;
  /** Count, sum, bounds and quantiles in nanoseconds. */
  readonly summary: LatencySummary;
  /** Buckets that hold something: from (inclusive), to (exclusive), samples. Nanoseconds; null is without end. */
  readonly buckets: ReadonlyArray<readonly [fromNs: number, toNs: number | null, count: number]>;
}

type Answer = (query: HistogramQuery, response: ServerResponse) => Promise<void> | void;

interface EstatsHandlers {
  readonly control: RequestListener;
  readonly readOnly: RequestListener;
}

export function estatsHandlers(estats: Estats, identity: EndpointIdentity): EstatsHandlers {
  const metrics = prometheusMetrics(estats);
  const reads: Readonly<Record<string, Answer>> = {
    '/estats.json': async ({ minutes }, response) =>
      sendJson(response, snapshotOf(estats, identity, minutes, await estats.askNic())),
    '/histogram.json': (query, response) => sendJson(response, histogramDocument(query.stage, select(estats, query))),
    '/dumps.json': (_, response) => sendJson(response, estats.dumpLog.dumps),
    '/healthz': (_, response) => send(response, 200, 'text/plain', 'ok\n'),
    '/metrics': (_, response) => send(response, 200, PROMETHEUS_TYPE, metrics()),
  };
  const writes: Readonly<Record<string, Answer>> = {
    '/dumps': async (_, response) => {
      await estats.dumpAll();
      sendJson(response, estats.dumpLog.dumps);
    },
  };
  const listener =
    (tables: Readonly<Record<string, Readonly<Record<string, Answer>>>>): RequestListener =>
    (request, response) =>
      void answer(request, response, tables).catch((error: Error) => send(response, 500, 'text/plain', error.message));
  return { control: listener({ GET: reads, POST: writes }), readOnly: listener({ GET: reads }) };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  tables: Readonly<Record<string, Readonly<Record<string, Answer>>>>,
): Promise<void> {
  request.resume();
  const url = urlOf(request);
  if (url === undefined) {
    send(response, 400, 'text/plain', 'that is no URL\n');
    return;
  }
  const route = Object.entries(tables[request.method === 'HEAD' ? 'GET' : (request.method ?? '')] ?? {}).find(
    ([path]) => path === url.pathname,
  )?.[1];
  if (route === undefined) {
    send(response, 404, 'text/plain', `there is no ${request.method} ${url.pathname} here\n`);
    return;
  }
  const query = parseQuery(url.searchParams);
  if (typeof query === 'string') send(response, 400, 'text/plain', `${query}\n`);
  else await route(query, response);
}

function select(estats: Estats, { minutes, stage, conn, op, status }: HistogramQuery): Histogram {
  const selected = new Histogram();
  const fits = (wanted: string | undefined, value: string) => wanted === undefined || wanted === value;
  for (const group of mergeWindows(recentWindows(estats, minutes)).groups) {
    if (!fits(conn, group.conn) || !fits(op, group.op) || !fits(status, group.status)) continue;
    selected.add(group.stages[STAGES.indexOf(stage)].toSparse());
  }
  return selected;
}

function histogramDocument(stage: StageName, histogram: Histogram): HistogramDocument {
  const buckets: Array<readonly [number, number | null, number]> = [];
  for (let bucket = 0; bucket < BUCKETS; bucket++) {
    const count = histogram.countAt(bucket);
    const end = bucketStartNs(bucket + 1);
    if (count > 0) buckets.push([bucketStartNs(bucket), Number.isFinite(end) ? end : null, count]);
  }
  return { stage, summary: histogram.summary(), buckets };
}
