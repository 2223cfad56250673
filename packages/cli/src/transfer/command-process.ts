import { Writable } from 'node:stream';
import { method, serveParent } from '@rocev2/command';
import { z } from 'zod';
import { COMMANDS } from '../commands.js';
import { runCli } from '../run.js';

class Collected extends Writable {
  text = '';
  onText = () => {};

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString();
    this.onText();
    done();
  }
}

const stderr = new Collected();

const service = {
  /** Runs the command line of `rocev2` and returns what it printed; once in a process. */
  run: method({ args: z.array(z.string()) }, async ({ args }) => {
    const stdout = new Collected();
    const io = { stdout, stderr, env: process.env, interrupted: new AbortController().signal };
    const exitCode = await runCli(COMMANDS, args, io);
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

export type CommandService = typeof service;

serveParent(service);
