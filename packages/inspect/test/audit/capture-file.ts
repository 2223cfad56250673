/** The audit of capture files that tests write. */

import { copyFileSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { Writable } from 'node:stream';
import { expect } from 'vitest';
import { CaptureStream } from '../../../../src/port/capture/capture-stream.js';
import { Output } from '../../../command/src/output.js';
import { Audit, type AuditReport } from '../../src/audit/audit.js';
import type { Finding } from '../../src/audit/ledger.js';
import { printStories } from '../../src/commands/audit/story.js';

const ROCE_PORT = 4791;

/** Reads as much of a capture as has been written. */
export async function auditOf(path: string, udpPorts: readonly number[] = [ROCE_PORT]): Promise<AuditReport> {
  const audit = new Audit({ udpPorts });
  for await (const chunk of (await CaptureStream.open(path)).chunks()) for (const packet of chunk) audit.take(packet);
  return audit.report();
}

/** No rule is broken but those that are expected, and there was something to judge. */
export function expectClean(report: AuditReport, expected: readonly number[] = []): void {
  expect(brokenIn(report, expected), 'what audit finds in the capture').toEqual([]);
  expect(report.packets.roce).toBeGreaterThan(0);
}

/**
 * As {@link expectClean}. A capture that fails is copied to a folder that stays, and the failure says where it is and shows the packets around the findings: what one run in a
 * hundred shows may never come back.
 */
export async function expectCleanFile(
  path: string,
  report: AuditReport,
  expected: readonly number[] = [],
): Promise<void> {
  const broken = brokenIn(report, expected);
  if (broken.length === 0) return expectClean(report, expected);
  const kept = keepCapture(path, 'broken-rule');
  const rules = [...new Set(broken.map(({ rule }) => rule))].join(', ');
  throw new Error(`a capture breaks rules ${rules}; it is kept as ${kept}\n${await storiesOf(path, broken)}`);
}

/** Copies a capture, as far as it has been written, to a folder that stays and is named for the `reason`; the path of the copy. */
export function keepCapture(path: string, reason: string): string {
  const kept = join(mkdtempSync(join(tmpdir(), `rocev2-${reason}-`)), basename(path));
  copyFileSync(path, kept);
  return kept;
}

function brokenIn({ findings }: AuditReport, expected: readonly number[]): Finding[] {
  return findings.filter(({ rule, verdict }) => verdict === 'violation' && !expected.includes(rule));
}

/** The findings with the packets around them, as `rocev2 audit` prints them. */
async function storiesOf(path: string, findings: readonly Finding[]): Promise<string> {
  let text = '';
  const stream = new Writable({
    write(chunk, _encoding, done) {
      text += chunk;
      done();
    },
  });
  const io = { args: [], stdout: stream, stderr: stream, env: {}, interrupted: new AbortController().signal };
  await printStories(new Output(io, false), { path, udpPorts: [4791] }, findings);
  return text;
}
