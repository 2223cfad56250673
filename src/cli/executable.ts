/** The process around {@link runCli}: signals, streams, exit code. */

import { EXIT_INTERRUPTED, EXIT_OK } from './exit.js';
import { runCli } from './run.js';

/** From Ctrl-C to the end, at most: whatever a command still waits for then, a peer or a disk, it has been told to stop waiting. */
let interruptedLimitMs = 900;
/** From a command's end to that of the process, at most: a connection to a host that has died, say, would hold it for minutes. */
const LEFT_OPEN_LIMIT_MS = 300;

const interrupt = new AbortController();
process.on('SIGINT', () => {
  // The second Ctrl-C means it.
  if (interrupt.signal.aborted) process.exit(EXIT_INTERRUPTED);
  interrupt.abort();
  setTimeout(() => process.exit(EXIT_INTERRUPTED), interruptedLimitMs).unref();
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
  allowAfterInterruption: (limitMs) => {
    interruptedLimitMs = limitMs;
  },
});

// Once all is written: whoever reads slowly gets the rest.
process.stdout.write('', () => setTimeout(() => process.exit(), LEFT_OPEN_LIMIT_MS).unref());
