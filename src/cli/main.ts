#!/usr/bin/env node
/** The `rocev2` executable. An old Node.js could not even load the rest: the version is looked at first. */

import { complaintAboutNode } from './node-version.js';

const complaint = complaintAboutNode(process.versions.node);
if (complaint === undefined) {
  await import('./executable.js');
} else {
  process.stderr.write(`${complaint}\n`);
  process.exitCode = 2;
}
