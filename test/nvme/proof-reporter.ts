/**
 * A vitest reporter: writes what has been seen into the table of the file that NVME_TABLE names, and fails the run for a test of this suite that is no proof
 * (proofs.ts).
 */

import { readFileSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import type { Reporter, TestModule } from 'vitest/node';
import { type Shown, withShown } from './proof-table.js';
import { PROOFS } from './proofs.js';

declare module 'vitest' {
  interface TaskMeta {
    /** Of the guests: as `uname -r` says. */
    kernelRelease?: string;
  }
}

export default class ProofReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const ran = tests.filter((test) => ['passed', 'failed'].includes(test.result().state));
    const names = new Set(PROOFS.map(({ test }) => test));
    for (const { fullName } of ran.filter((test) => !names.has(test.fullName))) {
      console.error(`no proof, and so in no table: ${fullName}; add it to test/nvme/proofs.ts`);
      process.exitCode = 1;
    }
    const file = process.env['NVME_TABLE'];
    if (file === undefined) return;
    const day = new Date().toISOString().slice(0, 10);
    const shown = ran.flatMap((test): Shown[] => {
      const release = test.meta().kernelRelease;
      const result = test.result().state === 'passed' ? 'passed' : 'FAILED';
      return release === undefined || release === '' ? [] : [{ test: test.fullName, release, result, day }];
    });
    writeFileSync(file, withShown(readFileSync(file, 'utf8'), shown));
  }
}
