import { Writable } from 'node:stream';
import type { CliEnvironment } from '../../command/src/exit.js';
import type { CliIo } from '../../command/src/output.js';
import { COMMANDS } from '../src/commands.js';
import { runCli } from '../src/run.js';

export interface CliResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

class Collected extends Writable {
  text = '';
  readonly isTTY: boolean;
  readonly #heard: (soFar: string) => void;

  constructor(isTTY: boolean, heard: (soFar: string) => void = () => {}) {
    super();
    this.isTTY = isTTY;
    this.#heard = heard;
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString();
    this.#heard(this.text);
    done();
  }
}

export interface RunOptions {
  readonly tty?: boolean;
  readonly env?: CliEnvironment;
  readonly interrupted?: AbortSignal;
  /** Called with all of stderr so far, whenever there is more. */
  readonly onStderr?: (soFar: string) => void;
  /** The same of stdout. */
  readonly onStdout?: (soFar: string) => void;
}

/** The command line as a shell would call it, without the process. */
export async function run(args: readonly string[], options: RunOptions = {}): Promise<CliResult> {
  const stdout = new Collected(options.tty ?? false, options.onStdout);
  const stderr = new Collected(options.tty ?? false, options.onStderr);
  const io: CliIo = {
    args,
    stdout,
    stderr,
    env: options.env ?? {},
    interrupted: options.interrupted ?? new AbortController().signal,
  };
  const exitCode = await runCli(COMMANDS, args, io);
  return { exitCode, stdout: stdout.text, stderr: stderr.text };
}

/** For what looks at the program without running a command: says what it has to say to `heard`. */
export function silentIo(heard: (text: string) => void): CliIo {
  const stream = () =>
    new Writable({
      write(chunk: Buffer, _encoding, done) {
        heard(chunk.toString());
        done();
      },
    });
  return { args: [], stdout: stream(), stderr: stream(), env: {}, interrupted: new AbortController().signal };
}
