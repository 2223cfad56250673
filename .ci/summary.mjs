// Adds up the JSON reports of the suites in a folder: `node .ci/summary.mjs FOLDER STEPS_PASSED FAILED_STEP...`. Runs failed tests again (flaky.mjs),
// says once more what failed, because the output above it is long, and ends with the line `N passed, N failed, N skipped`. Exits with 1 when red.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import process from 'node:process';
import { FLAKY_ALLOWED, failuresOf, hasPassed, judge, linesOf, rerunCommand, stepsOfFlaky } from './flaky.mjs';

/** Lines of its output that are shown again of a failed step. */
const LOG_LINES = 30;

const read = (path) => JSON.parse(readFileSync(path, 'utf8'));
const [folder, passedSteps, ...failedSteps] = process.argv.slice(2);
const never = read(new URL('never-flaky.json', import.meta.url));
const known = read(new URL('known-flaky.json', import.meta.url));

let passed = Number(passedSteps);
let skipped = 0;
const failures = [];
const runs = {};
for (const file of readdirSync(folder).filter((name) => name.endsWith('.json'))) {
  const suite = basename(file, '.json');
  const report = read(join(folder, file));
  passed += report.numPassedTests;
  skipped += report.numPendingTests;
  const run = join(folder, `${suite}.run`);
  if (existsSync(run)) runs[suite] = read(run);
  failures.push(...failuresOf(suite, report, process.cwd(), runs[suite]?.unhandledErrors));
}

const { flaky, failed } = judge(failures, never, passesAlone);
const isTolerated = flaky.length <= FLAKY_ALLOWED;
const forgiven = isTolerated ? stepsOfFlaky(failedSteps, flaky, failed, runs) : [];
const red = failedSteps.filter((step) => !forgiven.includes(step));

for (const failure of flaky) {
  const { cause } = known.find(({ file, name }) => file === failure.file && name === failure.fullName) ?? {};
  tell(`flaky: ${nameOf(failure)}${cause === undefined ? '' : ` (known: ${cause})`}`, failure.messages);
}
if (!isTolerated) console.log(`${flaky.length} flaky tests: more than ${FLAKY_ALLOWED} fail`);
for (const name of red) {
  const outside = (runs[name]?.unhandledErrors ?? []).filter(({ file }) => file === undefined);
  tell(
    `failed step: ${name}`,
    outside.map(({ message }) => `error outside of tests: ${message}`),
  );
  const log = join(folder, `${name}.log`);
  if (outside.length === 0 && existsSync(log)) tell(`the end of its output:`, [endOf(readFileSync(log, 'utf8'))]);
}
for (const failure of failed) tell(`failed: ${nameOf(failure)}`, failure.messages);

const countsAsFailed = red.length + failed.length + (isTolerated ? 0 : flaky.length);
passed += forgiven.length + (isTolerated ? flaky.length : 0);
console.log(`\n${passed} passed, ${countsAsFailed} failed, ${skipped} skipped`);
process.exitCode = passed > 0 && countsAsFailed === 0 ? 0 : 1;

function nameOf({ file, fullName }) {
  return fullName === undefined ? file : `${file}: ${fullName}`;
}

function endOf(output) {
  return output.trimEnd().split('\n').slice(-LOG_LINES).join('\n');
}

function tell(title, messages) {
  console.log(title);
  for (const line of linesOf(messages)) console.log(`    ${line}`);
}

/** Runs the test alone. What cannot be run again has not passed. */
function passesAlone(failure) {
  const run = runs[failure.suite];
  if (run === undefined) return false;
  const [command, ...args] = rerunCommand(failure, run, process.version);
  const file = join(folder, 'rerun');
  rmSync(file, { force: true });
  console.log(`rerun: ${nameOf(failure)}`);
  const { status } = spawnSync(command, args, {
    stdio: 'ignore',
    env: { ...process.env, VITEST_JSON_FILE: file },
  });
  return status === 0 && existsSync(file) && hasPassed(read(file));
}
