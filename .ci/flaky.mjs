// Tells flaky tests from failed ones: a failed test runs twice more, alone; one that passes both times is flaky. What a search over seeds, kills or
// faults found (never-flaky.json: words in the path of the file, patterns in the name or the message) is a failure at once.
import { relative, resolve } from 'node:path';

/** Flaky tests that leave a run green. */
export const FLAKY_ALLOWED = 2;
/** With more failures than this, something is broken, and reruns would only take time. */
export const RERUNS_AT_MOST = 20;
/** Lines that are printed of a failure. */
const MESSAGE_LINES = 40;
/** Times that a flaky test passes alone. */
const PASSES = 2;

/**
 * The failures of a suite: its tests, and files that fail as a whole, which have no `fullName`. `root` is what paths are relative to. An error outside of
 * tests belongs to the first failed test of the file that ran, or else fails that file.
 */
export function failuresOf(suite, report, root, unhandledErrors = []) {
  const failures = failedTests(suite, report, root);
  for (const { message, file } of unhandledErrors.filter((error) => error.file !== undefined)) {
    const path = relative(root, file);
    const failure = failures.find((other) => other.file === path);
    if (failure === undefined) failures.push({ suite, file: path, fullName: undefined, messages: [message] });
    else failure.messages = [...failure.messages, message];
  }
  return failures;
}

function failedTests(suite, report, root) {
  return report.testResults.flatMap(({ name, status, message, assertionResults }) => {
    const file = relative(root, name);
    const tests = assertionResults.filter((test) => test.status === 'failed');
    if (tests.length > 0)
      return tests.map(({ fullName, failureMessages }) => ({ suite, file, fullName, messages: failureMessages }));
    return status === 'failed' ? [{ suite, file, fullName: undefined, messages: [message] }] : [];
  });
}

/** Whether this failure is never flaky. */
export function isFound({ file, fullName, messages }, never) {
  const text = [fullName ?? '', ...messages].join('\n');
  return (
    never.paths.some((word) => `/${file}`.includes(word)) ||
    never.messages.some((pattern) => new RegExp(pattern).test(text))
  );
}

/** Splits failures in flaky and failed ones. `passesAlone` runs a test once more. */
export function judge(failures, never, passesAlone) {
  const isRerun = failures.length <= RERUNS_AT_MOST;
  const isFlaky = (failure) => {
    if (!isRerun || isFound(failure, never)) return false;
    for (let pass = 0; pass < PASSES; pass++) if (!passesAlone(failure)) return false;
    return true;
  };
  const flaky = failures.filter(isFlaky);
  return { flaky, failed: failures.filter((failure) => !flaky.includes(failure)) };
}

/** What is printed of the messages of a failure: not where vitest called the test. */
export function linesOf(messages) {
  return messages
    .join('\n')
    .split('\n')
    .filter((line) => !line.includes('/node_modules/@vitest/'))
    .slice(0, MESSAGE_LINES);
}

/** The steps that failed for nothing but flaky tests. A suite without a report, or with errors outside of its files, stays failed. */
export function stepsOfFlaky(failedSteps, flaky, failed, runs) {
  return failedSteps.filter(
    (step) =>
      flaky.some(({ suite }) => suite === step) &&
      !failed.some(({ suite }) => suite === step) &&
      runs[step]?.unhandledErrors.every(({ file }) => file !== undefined),
  );
}

/** The command that runs a failed test alone, on the Node and with the configuration of its suite. */
export function rerunCommand({ file, fullName }, { config, node }, ownNode) {
  const major = node.split('.')[0];
  const onNode = major === ownNode.split('.')[0] ? [] : ['node', 'scripts/on-node.js', major.replace('v', ''), '--'];
  const name = fullName === undefined ? [] : ['-t', `^${fullName.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}$`];
  return [...onNode, 'npx', 'vitest', 'run', '--config', config, resolve(file), ...name];
}

/** Whether the report of a rerun says that the test ran and passed. */
export function hasPassed(report) {
  return report.success && report.numPassedTests > 0 && report.numFailedTests === 0;
}
