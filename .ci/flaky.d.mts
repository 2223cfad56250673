/** A test that failed, or a file that failed as a whole. */
export interface Failure {
  readonly suite: string;
  readonly file: string;
  readonly fullName: string | undefined;
  readonly messages: readonly string[];
}

/** never-flaky.json. */
export interface Never {
  readonly paths: readonly string[];
  readonly messages: readonly string[];
}

/** What vitest.report.ts writes beside the report of a suite. */
export interface Run {
  readonly config: string;
  readonly node: string;
  /** Errors outside of tests. `file` is the absolute path of the test file that ran, if vitest knows it. */
  readonly unhandledErrors: ReadonlyArray<{ readonly message: string; readonly file?: string }>;
}

/** What is read of a JSON report of vitest. */
export interface Report {
  readonly success: boolean;
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly testResults: ReadonlyArray<{
    readonly name: string;
    readonly status: string;
    readonly message: string;
    readonly assertionResults: ReadonlyArray<{
      readonly fullName: string;
      readonly status: string;
      readonly failureMessages: readonly string[];
    }>;
  }>;
}

export declare const FLAKY_ALLOWED: number;
export declare const RERUNS_AT_MOST: number;
export declare function failuresOf(
  suite: string,
  report: Report,
  root: string,
  unhandledErrors?: Run['unhandledErrors'],
): Failure[];
export declare function linesOf(messages: readonly string[]): string[];
export declare function isFound(failure: Failure, never: Never): boolean;
export declare function judge(
  failures: readonly Failure[],
  never: Never,
  passesAlone: (failure: Failure) => boolean,
): { flaky: Failure[]; failed: Failure[] };
export declare function stepsOfFlaky(
  failedSteps: readonly string[],
  flaky: readonly Failure[],
  failed: readonly Failure[],
  runs: Readonly<Record<string, Run | undefined>>,
): string[];
export declare function rerunCommand(
  failure: Pick<Failure, 'file' | 'fullName'>,
  run: Pick<Run, 'config' | 'node'>,
  ownNode: string,
): string[];
export declare function hasPassed(report: Pick<Report, 'success' | 'numPassedTests' | 'numFailedTests'>): boolean;
