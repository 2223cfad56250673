#!/usr/bin/env node
/** The `rocev2` executable. */

import { complaintAboutNode } from './node-version.js';

const complaint = complaintAboutNode(process.versions.node);
if (complaint === undefined) {
  try {
    await import('./executable.js');
  } catch (error) {
    // Modules are files, so loading fails if the limit of open files is too low.
    if ((error as NodeJS.ErrnoException).code !== 'EMFILE') throw error;
    process.stderr.write(`rocev2: ${(error as Error).message} (raise the limit of open files: ulimit -n 1024)\n`);
    process.exitCode = 1;
  }
} else {
  process.stderr.write(`${complaint}\n`);
  process.exitCode = 2;
}
