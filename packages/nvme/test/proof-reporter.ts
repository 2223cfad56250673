/**
 * A vitest reporter: writes what has been seen into the table of the file that NVME_TABLE names, test by test, so that a run that is cut short keeps what it has
 * shown; and fails the run for a test of this suite that is no proof (proofs.ts).
 */

import { readFileSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import type { Reporter, TestCase } from 'vitest/node';
import { withShown } from './proof-table.js';
import { PROOFS } from './proofs.js';

declare module 'vitest' {
  interface TaskMeta {
    /** Of the guests: as `uname -r` says. */
    kernelRelease?: string;
  }
}

const NAMES: ReadonlySet<string> = new Set(PROOFS.map(({ test }) => test));

export default class ProofReporter implements Reporter {
  onTestCaseResult(test: TestCase): void {
    const { state } = test.result();
    if (state === 'skipped') return;
    if (!NAMES.has(test.fullName)) {
      console.error(`no proof, and so in no table: ${test.fullName}; add it to packages/nvme/test/proofs.ts`);
      process.exitCode = 1;
      return;
    }
    const file = process.env['NVME_TABLE'];
    const release = test.meta().kernelRelease;
    if (file === undefined || release === undefined || release === '') return;
    const result = state === 'passed' ? 'passed' : 'FAILED';
    const day = new Date().toISOString().slice(0, 10);
    writeFileSync(file, withShown(readFileSync(file, 'utf8'), [{ test: test.fullName, release, result, day }]));
  }
}
