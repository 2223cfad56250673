/**
 * Child processes of the interop suite: a command's whole result, and a process that runs beside the test.
 * Only the process started here is signalled, through its own handle.
 */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';

/** What a finished command left behind. A command ended by a signal has exit code 128 + signal, as in a shell. */
export interface CommandResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export class RunningCommand {
  readonly pid: number | undefined;
  /** All output so far. */
  stdout = '';
  stderr = '';
  readonly #child: ChildProcess;
  readonly #title: string;
  readonly #finished: Promise<CommandResult>;
  #running = true;

  constructor(argv: readonly string[], options: SpawnOptions = {}) {
    const [program, ...rest] = argv;
    if (program === undefined) throw new TypeError('an empty command');
    this.#title = argv.join(' ');
    this.#child = spawn(program, rest, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
    this.pid = this.#child.pid;
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text;
    });
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
    });
    this.#finished = new Promise((resolve, reject) => {
      this.#child.once('error', reject);
      this.#child.once('close', (code, signal) => {
        const exitCode = code ?? 128 + constants.signals[signal as NodeJS.Signals];
        resolve({ exitCode, stdout: this.stdout, stderr: this.stderr });
      });
    }).finally(() => {
      this.#running = false;
    }) as Promise<CommandResult>;
    this.#finished.catch(() => {}); // a failure to start is reported to whoever waits; nobody has to
  }

  /** The result, once the process has ended. Rejects, and leaves it running, when that takes longer than `timeoutMs`. */
  async wait(timeoutMs = 60_000): Promise<CommandResult> {
    return this.#within(timeoutMs, 'did not end', this.#finished);
  }

  /** Resolves as soon as stdout (or stderr) matches; rejects when the process ends without, or after `timeoutMs`. */
  async waitForOutput(
    pattern: RegExp,
    timeoutMs = 20_000,
    from: 'stdout' | 'stderr' = 'stdout',
  ): Promise<RegExpMatchArray> {
    const stream = this.#child[from];
    const seen = async (): Promise<RegExpMatchArray> => {
      for (;;) {
        const match = this[from].match(pattern);
        if (match) return match;
        if (!this.#running || !stream) throw this.#failure(`never printed ${pattern}`);
        await Promise.race([once(stream, 'data'), this.#finished]);
      }
    };
    return this.#within(timeoutMs, `did not print ${pattern}`, seen());
  }

  /** Ends standard input, for a process started with a pipe there. */
  endInput(): void {
    this.#child.stdin?.end();
  }

  /** SIGTERM, or SIGINT as Ctrl-C, and SIGKILL to a process that is still there two seconds later. Harmless after its end. */
  async stop(signal: 'SIGTERM' | 'SIGINT' = 'SIGTERM'): Promise<CommandResult> {
    this.#child.kill(signal);
    const insist = setTimeout(() => this.#child.kill('SIGKILL'), 2000); // timer: a limit
    try {
      return await this.#finished;
    } finally {
      clearTimeout(insist);
    }
  }

  async #within<T>(timeoutMs: number, complaint: string, outcome: Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      // timer: a limit
      timer = setTimeout(() => reject(this.#failure(`${complaint} within ${timeoutMs} ms`)), timeoutMs);
    });
    outcome.catch(() => {}); // it may still fail after we have stopped listening
    try {
      return await Promise.race([outcome, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  #failure(complaint: string): Error {
    return new Error(`${this.#title}: ${complaint}\n${this.stdout}${this.stderr}`);
  }
}
