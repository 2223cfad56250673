/** The worker of the page: it simulates and reads captures, so that the page stays responsive. */

import { nextTurn } from '@rocev2/lab/internal/page';
import {
  exampleCapture,
  type PacketColumns,
  readCapture,
  runVariant,
  SIMULATED_SCENES,
  type Variant,
} from '../scenes/index.js';
import type { FileReply, FileRequest, RunReply, RunRequest } from './messages.js';

/** The page gets numbers this often. */
const REPORT_MS = 50;
/** The page shows the first packets as soon as there are this many. */
const FIRST_PACKETS = 200;

let newest = 0;

function send(reply: RunReply | FileReply, packets?: PacketColumns): void {
  const transfer = packets === undefined ? [] : Object.values(packets).flatMap((column) => column.buffer ?? []);
  postMessage(reply, { transfer });
}

async function runOne(variant: Variant, request: number): Promise<void> {
  const about = { request, variant: variant.name };
  const timesNs: number[] = [];
  const samples: Array<readonly number[]> = [];
  let reportedMs = performance.now();
  let hasShown = false;
  const finished = await runVariant(variant, async ({ done, timeNs, sample, log }) => {
    timesNs.push(timeNs);
    samples.push(sample);
    if (!hasShown && log.count >= FIRST_PACKETS) {
      hasShown = true;
      const packets = log.columns();
      send({ ...about, kind: 'packets', packets }, packets);
    }
    const nowMs = performance.now();
    if (nowMs - reportedMs < REPORT_MS && done < 1) return true;
    reportedMs = nowMs;
    send({ ...about, kind: 'progress', done, timesNs, samples });
    await nextTurn(); // Messages of the page arrive.
    return request === newest;
  });
  if (finished === undefined) return;
  send({ ...about, kind: 'result', ...finished }, finished.packets);
}

async function run({ request, scene, values, seed }: RunRequest): Promise<void> {
  const found = SIMULATED_SCENES.find(({ name }) => name === scene)!;
  for (const variant of found.variants(values, seed)) {
    try {
      await runOne(variant, request);
    } catch (error) {
      send({ request, variant: variant.name, kind: 'failed', message: (error as Error).message });
    }
    if (request !== newest) return;
  }
}

async function read({ request, file, seed }: FileRequest): Promise<void> {
  const onProgress = async (done: number) => {
    send({ request, kind: 'reading', done });
    await nextTurn();
    return request === newest;
  };
  try {
    const report = file === undefined ? await exampleCapture(seed) : await readCapture(file, onProgress);
    if (report !== undefined) send({ request, kind: 'report', report });
  } catch (error) {
    send({ request, kind: 'failed', message: (error as Error).message });
  }
}

addEventListener('message', ({ data }: MessageEvent<RunRequest | FileRequest>) => {
  newest = data.request;
  void (data.kind === 'run' ? run(data) : read(data));
});
