/** The audit of capture files that tests write. */

import { expect } from 'vitest';
import { Audit, type AuditReport } from '../../src/audit/audit.js';
import { CaptureStream } from '../../src/capture/capture-stream.js';

const ROCE_PORT = 4791;

/** Reads as much of a capture as has been written. */
export async function auditOf(path: string, udpPorts: readonly number[] = [ROCE_PORT]): Promise<AuditReport> {
  const audit = new Audit({ udpPorts });
  for await (const chunk of (await CaptureStream.open(path)).chunks()) for (const packet of chunk) audit.take(packet);
  return audit.report();
}

/** No rule is broken but those that are expected, and there was something to judge. */
export function expectClean(report: AuditReport, expected: readonly number[] = []): void {
  const broken = report.findings.filter(({ rule, verdict }) => verdict === 'violation' && !expected.includes(rule));
  expect(broken, 'what audit finds in the capture').toEqual([]);
  expect(report.packets.roce).toBeGreaterThan(0);
}
