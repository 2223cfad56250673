import { Writable } from 'node:stream';
import { type CliIo, method } from '@rocev2/command';
import { z } from 'zod';

class Collected extends Writable {
  text = '';
  onText = () => {};

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString();
    this.onText();
    done();
  }
}

/** What a process that runs one command line offers its parent. */
export function commandService(runCommand: (args: string[], io: Omit<CliIo, 'args'>) => Promise<number>) {
  const stderr = new Collected();
  return {
    /** Runs the command line of `rocev2` and returns what it printed; once in a process. */
    run: method({ args: z.array(z.string()) }, async ({ args }) => {
      const stdout = new Collected();
      const io = { stdout, stderr, env: process.env, interrupted: new AbortController().signal };
      const exitCode = await runCommand(args, io);
      return { exitCode, stdout: stdout.text, stderr: stderr.text };
    }),
    /** Returns once the running command has printed `text` as a note. */
    noted: method(
      { text: z.string() },
      ({ text }) =>
        new Promise<void>((resolve) => {
          stderr.onText = () => {
            if (stderr.text.includes(text)) resolve();
          };
          stderr.onText();
        }),
    ),
  };
}

export type CommandService = ReturnType<typeof commandService>;
