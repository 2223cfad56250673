import { END_SIGNALS, EXIT_INTERRUPTED, EXIT_OK } from '@rocev2/command';
import { COMMANDS } from './commands.js';
import { runCli } from './run.js';

/** By then every wait, for a peer or a disk, has been cancelled. */
let interruptedLimitMs = 900;
/** A connection to a dead host, for example, would hold it for minutes. */
const LEFT_OPEN_LIMIT_MS = 300;

const interrupt = new AbortController();
for (const signal of END_SIGNALS) {
  process.on(signal, () => {
    if (!interrupt.signal.aborted) {
      interrupt.abort();
      setTimeout(() => process.exit(EXIT_INTERRUPTED), interruptedLimitMs).unref();
    } else if (signal === 'SIGINT') process.exit(EXIT_INTERRUPTED); // The second Ctrl-C ends the process at once.
  });
}

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (interrupt.signal.aborted) return; // The terminal or the reader is gone; what is open must still be closed.
  if (error.code !== 'EPIPE') throw error;
  process.exit(EXIT_OK); // The reader of the pipe has closed it, as `head` does.
});
process.stderr.on('error', () => {}); // Diagnostics without a reader.

process.exitCode = await runCli(COMMANDS, process.argv.slice(2), {
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  interrupted: interrupt.signal,
  allowAfterInterruption: (limitMs) => {
    interruptedLimitMs = limitMs;
  },
});

// After all output is written, so that a slow reader gets all of it.
process.stdout.write('', () => setTimeout(() => process.exit(), LEFT_OPEN_LIMIT_MS).unref());
