import { readFile } from 'node:fs/promises';
import { checkWritable, hostReport, packageVersion, writeOutputFile } from '@rocev2/command';
import { wallMs } from 'rocev2/internal/driver';
import { makeBundle } from './bundle.js';
import { junitReport } from './conform-junit.js';
import { sarifReport } from './conform-sarif.js';
import { reportPage } from './report-page.js';
import type { ConformRunResult } from './result.js';

export interface ConformOutputs {
  readonly pcap?: string;
  readonly junit?: string;
  readonly sarif?: string;
  readonly report?: string;
  readonly results?: string;
  readonly bundle?: string;
}

export async function checkOutputs({ pcap, junit, sarif, report, results, bundle }: ConformOutputs): Promise<void> {
  for (const file of [pcap, junit, sarif, report, results, bundle]) await checkWritable(file);
}

export async function writeOutputs(
  files: ConformOutputs,
  result: ConformRunResult,
  document: string,
  capture: string | undefined,
): Promise<void> {
  const { junit, sarif, report, results, bundle } = files;
  const { cases, remote, port } = result;
  const target = `${remote} port ${port}`;
  const page = reportPage(result, packageVersion(), new Date(wallMs()).toISOString().slice(0, 10));
  if (junit !== undefined) await writeOutputFile(junit, junitReport(cases, target));
  if (sarif !== undefined) await writeOutputFile(sarif, sarifReport(cases, target, packageVersion()));
  if (report !== undefined) await writeOutputFile(report, page);
  if (results !== undefined) await writeOutputFile(results, document);
  if (bundle === undefined) return;
  const environment = `${JSON.stringify(await hostReport(), undefined, 2)}\n`;
  const packets = await readFile(capture!);
  await writeOutputFile(bundle, await makeBundle({ results: document, report: page, packets, environment }));
}
