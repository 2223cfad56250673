// Adds up the JSON reports of the suites in a folder: `node .ci/summary.mjs FOLDER STEPS_PASSED FAILED_STEP...`.
// It says once more what failed, because the output above it is long, and ends with the line `N passed, N failed, N skipped`.
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

const MESSAGE_LINES = 12;

const [folder, passedSteps, ...failedSteps] = process.argv.slice(2);
let passed = Number(passedSteps);
let failed = failedSteps.length;
let skipped = 0;
for (const name of failedSteps) console.log(`failed step: ${name}`);
for (const file of readdirSync(folder).filter((name) => name.endsWith('.json'))) {
  const report = JSON.parse(readFileSync(join(folder, file), 'utf8'));
  passed += report.numPassedTests;
  failed += report.numFailedTests;
  skipped += report.numPendingTests;
  for (const { name, status, message, assertionResults } of report.testResults) {
    const at = relative(process.cwd(), name);
    if (status === 'failed' && assertionResults.length === 0) tell(`failed file: ${at}`, [message]);
    for (const test of assertionResults)
      if (test.status === 'failed') tell(`failed test: ${at}: ${test.fullName}`, test.failureMessages);
  }
}
console.log(`\n${passed} passed, ${failed} failed, ${skipped} skipped`);

function tell(title, messages) {
  console.log(title);
  for (const line of messages.join('\n').split('\n').slice(0, MESSAGE_LINES)) console.log(`    ${line}`);
}
