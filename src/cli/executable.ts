/** The process around {@link runCli}: signals, streams, exit code. */

import { EXIT_INTERRUPTED, EXIT_OK } from './exit.js';
import { runCli } from './run.js';

const interrupt = new AbortController();
process.on('SIGINT', () => {
  // The second Ctrl-C means it.
  if (interrupt.signal.aborted) process.exit(EXIT_INTERRUPTED);
  interrupt.abort();
});

// The reader of a pipe went away, as `head` does when it has enough: nothing more to say to anybody.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(EXIT_OK);
});

process.exitCode = await runCli(process.argv.slice(2), {
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  interrupted: interrupt.signal,
});
